/* Runs files, and each of their beginnings, through a fuzzer's target, where there is no libFuzzer to do it. */
#include "fuzz.h"

enum { LARGEST = 1 << 20 };

int main(int count, char **names)
{
    static uint8_t data[LARGEST];
    size_t size;

    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");

        if (!file) {
            perror(names[i]);
            return 1;
        }
        size = fread(data, 1, sizeof data, file);
        for (size_t length = 0; length <= size; length++)
            LLVMFuzzerTestOneInput(data, length);
        printf("%s\n", names[i]);
        fclose(file);
    }
    return 0;
}
