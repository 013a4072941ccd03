/* Programs under a compiler's sanitizer: their runtime watches every call and all memory, and the library is off. */
#pragma once

#include "tz.h"

/* The runtime of the address sanitizer is in this process, as a library of its own. */
bool tz_address_sanitizer(void);

/* Some runtime is that takes what others do in the process for the program's own mistakes. */
bool tz_sanitized(void);
