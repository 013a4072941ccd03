/* What the fuzzed functions promise is checked: a broken promise ends the run as a crash does. */
#ifndef TZ_FUZZ_H
#define TZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_EXPECT(true_)                                                                                             \
    do {                                                                                                               \
        if (!(true_)) {                                                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #true_);                                        \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* In a block of its own, aligned to 16 bytes. */
static inline uint8_t *fuzz_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
