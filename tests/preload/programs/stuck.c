/*
 * A library behind libtarazu.so in which the first thread that reserves memory for a file never comes back, and the
 * waits for its locks are counted: each begins with a nap of 20 microseconds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int stuck, waits; /* atomic */

long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), value[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		value[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_nanosleep && ((const struct timespec *)value[0])->tv_nsec == 20000)
		__atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
	if (number == SYS_fallocate && __atomic_fetch_add(&stuck, 1, __ATOMIC_ACQ_REL) == 0)
		for (;;)
			pause();
	return next(number, value[0], value[1], value[2], value[3], value[4], value[5]);
}
