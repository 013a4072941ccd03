/* Functions that open, duplicate, write and close descriptors. */
#include "visible.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

void open_(void) { use((int)SAY(open("open", NEW, 0640))); use((int)SAY(open("open", O_WRONLY | O_APPEND))); }
void open64_(void) { use((int)SAY(open64("open64", NEW | O_CLOEXEC, 0600))); }
void openat_(void) { use((int)SAY(openat(AT_FDCWD, "openat", O_CREAT | O_WRONLY | O_TRUNC, 0644))); }
void openat64_(void) { use((int)SAY(openat64(AT_FDCWD, "openat64", O_CREAT | O_RDWR | O_APPEND, 0644))); }
void creat_(void) { use((int)SAY(creat("creat", 0644))); use((int)SAY(creat("creat", 0644))); }
void creat64_(void) { use((int)SAY(creat64("creat64", 0604))); }

static void exists(const char *name)
{
	long fd = syscall(SYS_openat, AT_FDCWD, name, O_CREAT | O_WRONLY, 0644);

	if (fd >= 0)
		syscall(SYS_close, fd);
}
void __open_2_(void) { exists(here); use((int)SAY(__open_2("__open_2", O_RDWR))); }
void __open64_2_(void) { exists(here); use((int)SAY(__open64_2("__open64_2", O_RDWR))); }
void __openat_2_(void) { exists(here); use((int)SAY(__openat_2(AT_FDCWD, "__openat_2", O_RDWR))); }
void __openat64_2_(void) { exists(here); use((int)SAY(__openat64_2(AT_FDCWD, "__openat64_2", O_RDWR))); }

/* Their names are drawn: given back to one that is known. */
#define TEMPORARY(function, suffix, ...)                                   \
	void function##_(void)                                      \
	{                                                                  \
		char name[64] = #function ".XXXXXX" suffix;                \
		int fd = (int)SAY(function(name, ##__VA_ARGS__));          \
									   \
		rename(name, #function);                                   \
		use(fd);                                                   \
	}
TEMPORARY(mkstemp, "")
TEMPORARY(mkstemp64, "")
TEMPORARY(mkostemp, "", O_APPEND)
TEMPORARY(mkostemp64, "", O_CLOEXEC)
TEMPORARY(mkstemps, ".x", 2)
TEMPORARY(mkstemps64, ".x", 2)
TEMPORARY(mkostemps, ".x", 2, O_CLOEXEC)
TEMPORARY(mkostemps64, ".x", 2, O_APPEND)

void close_(void) { SAY(close(made("close"))); }
void closedir_(void)
{
	DIR *directory = opendir(".");
	int fd = (int)SAY(dirfd(directory));
	int file = (int)SAY(openat(fd, "closedir", NEW, 0644));

	SAY(closedir(directory));
	SAY(fcntl(fd, F_GETFD));
	use(file);
}
void close_range_(void)
{
	int fd = made("close_range");

	if (fd >= 0)
		SAY(close_range((unsigned)fd, (unsigned)fd, 0));
	SAY(fcntl(fd, F_GETFD));
}
void closefrom_(void)
{
	int fd = made("closefrom");

	if (fd >= 0) {
		errno = UNTOUCHED;
		closefrom(fd);
		say("closefrom", 0);
	}
	SAY(fcntl(fd, F_GETFD));
}
static void twice(int fd, int other)
{
	if (other >= 0)
		SAY(write(other, "more", 4));
	SAY(close(fd));
	use(other);
}
void dup_(void) { int fd = made("dup"); twice(fd, (int)SAY(dup(fd))); SAY(dup(999)); }
void dup2_(void)
{
	int fd = made("dup2"), other = made("dup2.other");

	SAY(dup2(999, other));
	look(other);
	twice(fd, (int)SAY(dup2(fd, other)));
}
void dup3_(void) { int fd = made("dup3"); SAY(dup3(fd, fd, 0)); twice(fd, (int)SAY(dup3(fd, 77, O_CLOEXEC))); }
void fcntl_(void) { int fd = made("fcntl"); twice(fd, (int)SAY(fcntl(fd, F_DUPFD, 40))); }
void fcntl64_(void) { int fd = made("fcntl64"); twice(fd, (int)SAY(fcntl64(fd, F_DUPFD_CLOEXEC, 50))); }

static const struct iovec two[] = {{"abc", 3}, {"defg", 4}};

void write_(void) { use(made("write")); }
#define WRITE(function, ...)                                               \
	void function##_(void)                                      \
	{                                                                  \
		int fd = made(#function);                                  \
									   \
		SAY(function(fd, __VA_ARGS__));                            \
		use(fd);                                                   \
	}
WRITE(pwrite, "abc", 3, 50)
WRITE(pwrite64, "abc", 3, 1 << 20)
WRITE(writev, two, 2)
WRITE(pwritev, two, 2, 60)
WRITE(pwritev64, two, 2, 3 << 20)
WRITE(pwritev2, two, 2, -1, 0)
WRITE(pwritev64v2, two, 2, 10 << 20, 0)
WRITE(lseek, 5, SEEK_END)
WRITE(lseek64, -100, SEEK_SET)
