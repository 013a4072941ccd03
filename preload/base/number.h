/* Numbers as text. */
#pragma once

#include "tz.h"

/* Writes the digits, without a NUL; returns how many. `base` is 16 at most, 20 bytes are enough for base 10. */
size_t tz_put_number(char *out, uint64_t value, unsigned base);

/* Reads the digits at *text (`base` is 10 at most) and moves it behind them. Above 32 bits only that it is above. */
uint64_t tz_read_number(const char **text, unsigned base);
