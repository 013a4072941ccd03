/* The path of what a descriptor stands for. */
#pragma once

#include "tz.h"

/* As the kernel has it now, in `out` of TZ_PATH_MAX bytes; its length, 0 for what has none or too long a one. */
size_t tz_fd_path(int fd, char *out);
