/*
 * A library between libtarazu.so and the testbed, which answers for calls of the library alone.
 *
 * BETWEEN_DENIED: names of calls with blanks between, that fail with BETWEEN_ERRNO. BETWEEN_AT: the call at which the
 * process is killed as it begins, or, with BETWEEN_FILE, waits: it makes FILE.reached and goes on when FILE.go is there.
 * `reopen` stands for an open of a link to a descriptor, `named` for one of another name, to write, that creates nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_named(const char *variable, const char *call)
{
	const char *names = getenv(variable);
	size_t length = strlen(call);

	for (; names && *names; names += strcspn(names, " "), names += *names == ' ')
		if (strncmp(names, call, length) == 0 && (names[length] == ' ' || !names[length]))
			return 1;
	return 0;
}

static void wait_here(const char *file)
{
	char reached[512], go[512];

	snprintf(reached, sizeof reached, "%s.reached", file);
	snprintf(go, sizeof go, "%s.go", file);
	syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, reached, O_CREAT | O_WRONLY, 0666));
	while (syscall(SYS_faccessat, AT_FDCWD, go, F_OK) != 0)
		usleep(1000);
}

static int denied(const char *call)
{
	if (is_named("BETWEEN_AT", call)) {
		const char *file = getenv("BETWEEN_FILE");

		if (!file)
			kill(getpid(), SIGKILL);
		wait_here(file);
	}
	if (!is_named("BETWEEN_DENIED", call))
		return 0;
	errno = atoi(getenv("BETWEEN_ERRNO"));
	return 1;
}

#define DENIED(type, name, parameters, arguments)                                                                      \
	type name parameters;                                                                                          \
	type name parameters                                                                                           \
	{                                                                                                              \
		return denied(#name) ? -1 : NEXT(name) arguments;                                                      \
	}

DENIED(int, fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
       (fd, name, value, size, flags))
DENIED(int, setxattr, (const char *path, const char *name, const void *value, size_t size, int flags),
       (path, name, value, size, flags))
DENIED(ssize_t, fgetxattr, (int fd, const char *name, void *value, size_t size), (fd, name, value, size))
DENIED(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), (path, name, value, size))
DENIED(int, dup3, (int from, int to, int flags), (from, to, flags))

int ioctl(int fd, unsigned long request, ...);
int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return denied("ioctl") ? -1 : NEXT(ioctl)(fd, request, argument);
}

#define OPEN(name)                                                                                                     \
	int name(const char *path, int flags, ...)                                                                     \
	{                                                                                                              \
		va_list arguments;                                                                                     \
		mode_t mode;                                                                                           \
                                                                                                                       \
		va_start(arguments, flags);                                                                            \
		mode = va_arg(arguments, mode_t);                                                                      \
		va_end(arguments);                                                                                     \
		if (strncmp(path, "/proc/", 6) == 0 && strstr(path, "/fd/") && denied("reopen"))                       \
			return -1;                                                                                     \
		if (!(flags & (O_CREAT | O_PATH)) && (flags & O_ACCMODE) != O_RDONLY && denied("named"))               \
			return -1;                                                                                     \
		return NEXT(name)(path, flags, mode);                                                                  \
	}

OPEN(open)
OPEN(open64)
