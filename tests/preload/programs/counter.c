/* Another tool's preload: counts opens and says so at exit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

static int opens;

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	va_list arguments;
	int mode = 0;

	va_start(arguments, flags);
	if (flags & O_CREAT)
		mode = va_arg(arguments, int);
	va_end(arguments);
	opens++;
	return next(path, flags, mode);
}

__attribute__((destructor)) static void say(void)
{
	fprintf(stderr, "%d\n", opens);
}
