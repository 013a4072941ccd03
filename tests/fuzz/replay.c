/* Runs the files named as arguments through a fuzzer's target, where there is no libFuzzer to do it. */
#include "fuzz.h"

enum { LARGEST = 1 << 20 };

int main(int count, char **names)
{
    static uint8_t data[LARGEST];

    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");

        if (!file) {
            perror(names[i]);
            return 1;
        }
        fprintf(stderr, "%s\n", names[i]);
        LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, file));
        fclose(file);
    }
    return 0;
}
