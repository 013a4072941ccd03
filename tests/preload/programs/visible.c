/*
 * Calls each wrapped function on a file of its own in the working directory, and prints all that a program can see of
 * it: results, errno, ferror, positions, flags, numbers of descriptors, how children ended; then what lies there.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

enum { NEW = O_CREAT | O_EXCL | O_RDWR, UNTOUCHED = 4711 };

static const char *here; /* the function that is called */
static char data[70000];

static long say(const char *step, long result)
{
	int error = errno;

	printf("%s %s %ld %d\n", here, step, result, error);
	errno = UNTOUCHED;
	return result;
}
#define SAY(call) (errno = UNTOUCHED, say(#call, (long)(call)))
#define SAY_IF(call) (errno = UNTOUCHED, say(#call, (call) != NULL))

static void look(int fd)
{
	struct stat st;
	long result = SAY(fstat(fd, &st));

	if (result == 0)
		printf("%s size %ld mode %o links %ld\n", here, (long)st.st_size, st.st_mode, (long)st.st_nlink);
	SAY(fcntl(fd, F_GETFL));
	SAY(fcntl(fd, F_GETFD));
	SAY(lseek(fd, 0, SEEK_CUR));
}

/* What programs do with a descriptor, to its end. */
static void use(int fd)
{
	char text[8] = "";

	if (fd < 0)
		return;
	SAY(write(fd, "0123456789", 10));
	look(fd);
	SAY(pwrite(fd, "abc", 3, 100));
	SAY(pread(fd, text, 4, 0));
	SAY(fsync(fd));
	look(fd);
	SAY(close(fd));
	SAY(close(fd));
}

static void see(FILE *f)
{
	SAY(ferror(f));
	SAY(feof(f));
	SAY(fileno(f));
	SAY(ftell(f));
	SAY(ferror(f));
}

/* What a stream still holds is written by its close. */
static void use_stream(FILE *f, bool flush)
{
	if (!f)
		return;
	SAY(fwrite("0123456789", 1, 10, f));
	SAY(fprintf(f, "%d", 11));
	see(f);
	if (flush)
		SAY(fflush(f));
	see(f);
	SAY(fputs("x", f));
	SAY(fclose(f));
}

static void open_(void) { use((int)SAY(open("open", NEW, 0640))); use((int)SAY(open("open", O_WRONLY | O_APPEND))); }
static void open64_(void) { use((int)SAY(open64("open64", NEW | O_CLOEXEC, 0600))); }
static void openat_(void) { use((int)SAY(openat(AT_FDCWD, "openat", O_CREAT | O_WRONLY | O_TRUNC, 0644))); }
static void openat64_(void) { use((int)SAY(openat64(AT_FDCWD, "openat64", O_CREAT | O_RDWR | O_APPEND, 0644))); }
static void creat_(void) { use((int)SAY(creat("creat", 0644))); use((int)SAY(creat("creat", 0644))); }
static void creat64_(void) { use((int)SAY(creat64("creat64", 0604))); }

static void exists(const char *name)
{
	long fd = syscall(SYS_openat, AT_FDCWD, name, O_CREAT | O_WRONLY, 0644);

	if (fd >= 0)
		syscall(SYS_close, fd);
}
static void __open_2_(void) { exists(here); use((int)SAY(__open_2("__open_2", O_RDWR))); }
static void __open64_2_(void) { exists(here); use((int)SAY(__open64_2("__open64_2", O_RDWR))); }
static void __openat_2_(void) { exists(here); use((int)SAY(__openat_2(AT_FDCWD, "__openat_2", O_RDWR))); }
static void __openat64_2_(void) { exists(here); use((int)SAY(__openat64_2(AT_FDCWD, "__openat64_2", O_RDWR))); }

/* Their names are drawn: given back to one that is known. */
#define TEMPORARY(function, suffix, ...)                                   \
	static void function##_(void)                                      \
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

static FILE *stream; /* so that SAY can assign it */

static void fopen_(void)
{
	SAY_IF(stream = fopen("fopen", "w"));
	use_stream(stream, true);
	SAY_IF(stream = fopen("fopen", "a+"));
	use_stream(stream, false);
	SAY_IF(stream = fopen("fopen", "r+e"));
	if (stream) {
		SAY(fread(data, 1, 4, stream));
		SAY(fseek(stream, 0, SEEK_CUR));
		use_stream(stream, false);
	}
}
static void fopen64_(void)
{
	SAY_IF(stream = fopen64("fopen64", "wx"));
	use_stream(stream, false);
	SAY_IF(stream = fopen64("fopen64.wide", "w,ccs=UTF-8"));
	if (stream) {
		SAY(fputws(L"wide", stream));
		SAY(fclose(stream));
	}
	SAY_IF(stream = fopen64("fopen64.large", "w+"));
	if (stream) {
		SAY(fwrite(data, 1, sizeof data, stream));
		see(stream);
		SAY(fclose(stream));
	}
	SAY_IF(stream = fopen64("fopen64.unbuffered", "w"));
	if (stream) {
		SAY(setvbuf(stream, NULL, _IONBF, 0));
		use_stream(stream, false);
	}
}
static void freopen_(void)
{
	SAY_IF(stream = fopen("freopen", "w"));
	if (!stream)
		return;
	SAY(fputs("lost or not", stream));
	SAY_IF(stream = freopen("freopen.second", "w", stream));
	use_stream(stream, false);
}
static void freopen64_(void)
{
	SAY_IF(stream = fopen("freopen64", "w"));
	if (!stream)
		return;
	SAY(fputs("lost or not", stream));
	SAY_IF(stream = freopen64("freopen64", "a", stream));
	use_stream(stream, true);
}
static void fdopen_(void)
{
	int fd = (int)SAY(open("fdopen", NEW, 0644));

	SAY_IF(stream = fdopen(fd, "w"));
	use_stream(stream, false);
}
static void fclose_(void)
{
	SAY_IF(stream = fopen("fclose", "w"));
	if (stream) {
		SAY(fputs("held until the end", stream));
		SAY(fclose(stream));
	}
	SAY_IF(stream = fopen("fclose", "a"));
	if (stream) {
		SAY(fputs("more", stream));
		SAY(fclose(stream));
	}
}
static void fwrite_(void)
{
	SAY_IF(stream = fopen("fwrite", "w"));
	for (int i = 0; stream && i < 3; i++)
		SAY(fwrite(data, 7, 1000, stream));
	use_stream(stream, true);
}
#define SEEK(function, ...)                                                \
	static void function##_(void)                                      \
	{                                                                  \
		SAY_IF(stream = fopen(#function, "w+"));                   \
		if (!stream)                                               \
			return;                                            \
		SAY(fputs("0123456789", stream));                          \
		__VA_ARGS__;                                               \
		use_stream(stream, false);                                 \
	}
SEEK(fseek, SAY(fseek(stream, 3, SEEK_SET)); SAY(fgetc(stream)); SAY(fseek(stream, 0, SEEK_END)))
SEEK(fseeko, SAY(fseeko(stream, 100, SEEK_SET)); SAY(fseeko(stream, -5, SEEK_CUR)))
SEEK(fseeko64, SAY(fseeko64(stream, 1, SEEK_END)))
SEEK(rewind, errno = UNTOUCHED; rewind(stream); say("rewind", 0))

static int made(const char *name)
{
	int fd = (int)SAY(open(name, NEW, 0644));

	if (fd >= 0)
		SAY(write(fd, "0123456789", 10));
	return fd;
}
static void close_(void) { SAY(close(made("close"))); }
static void closedir_(void)
{
	DIR *directory = opendir(".");
	int fd = (int)SAY(dirfd(directory));
	int file = (int)SAY(openat(fd, "closedir", NEW, 0644));

	SAY(closedir(directory));
	SAY(fcntl(fd, F_GETFD));
	use(file);
}
static void close_range_(void)
{
	int fd = made("close_range");

	if (fd >= 0)
		SAY(close_range((unsigned)fd, (unsigned)fd, 0));
	SAY(fcntl(fd, F_GETFD));
}
static void closefrom_(void)
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
static void dup_(void) { int fd = made("dup"); twice(fd, (int)SAY(dup(fd))); SAY(dup(999)); }
static void dup2_(void)
{
	int fd = made("dup2"), other = made("dup2.other");

	SAY(dup2(999, other));
	look(other);
	twice(fd, (int)SAY(dup2(fd, other)));
}
static void dup3_(void) { int fd = made("dup3"); SAY(dup3(fd, fd, 0)); twice(fd, (int)SAY(dup3(fd, 77, O_CLOEXEC))); }
static void fcntl_(void) { int fd = made("fcntl"); twice(fd, (int)SAY(fcntl(fd, F_DUPFD, 40))); }
static void fcntl64_(void) { int fd = made("fcntl64"); twice(fd, (int)SAY(fcntl64(fd, F_DUPFD_CLOEXEC, 50))); }

static const struct iovec two[] = {{"abc", 3}, {"defg", 4}};

static void write_(void) { use(made("write")); }
#define WRITE(function, ...)                                               \
	static void function##_(void)                                      \
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

static void enter(const char *path)
{
	struct stat st;

	if (SAY(lstat(path, &st)) == 0)
		printf("%s %s mode %o\n", here, path, st.st_mode);
	SAY(rmdir(path));
}
static void mkdir_(void)
{
	SAY(mkdir("mkdir", 0750));
	SAY(mkdir("mkdir", 0750));
	SAY(mkdir("mkdir/in//", 0777));
	SAY(mkdir("mkdir/missing/in", 0777));
	enter("mkdir/in");
	enter("mkdir");
}
static void mkdirat_(void)
{
	int fd = (int)SAY(open(".", O_RDONLY | O_DIRECTORY));

	SAY(mkdirat(fd, "mkdirat", 01777));
	SAY(mkdirat(999, "mkdirat.none", 0777));
	SAY(close(fd));
	enter("mkdirat");
}
static void chdir_(void)
{
	SAY(mkdir("sub", 0755));
	if (SAY(chdir("sub")))
		return;
	use((int)SAY(open("chdir", NEW, 0644)));
	SAY(chdir(".."));
}
static void fchdir_(void)
{
	int fd = (int)SAY(open(".", O_RDONLY | O_DIRECTORY));

	SAY(chdir("/"));
	SAY(fchdir(fd));
	SAY(fchdir(999));
	SAY(close(fd));
	use((int)SAY(open("fchdir", NEW, 0644)));
}
static void umask_(void)
{
	SAY(umask(027));
	use((int)SAY(open("umask", NEW, 0666)));
	SAY(umask(022));
}

/* Of a child: what it says, and how it ends. */
static void wait_for(pid_t child)
{
	int status = -1;

	if (child > 0)
		waitpid(child, &status, 0);
	say("ended", status);
}
#define END(function, call)                                                \
	static void function##_(void)                                      \
	{                                                                  \
		pid_t child;                                               \
									   \
		fflush(stdout);                                            \
		child = fork();                                            \
		if (child == 0) {                                          \
			stream = fopen(#function, "w");                    \
			if (stream)                                        \
				fputs("held at the end", stream);          \
			call;                                              \
		}                                                          \
		wait_for(child);                                           \
	}
END(_exit, _exit(3))
END(_Exit, _Exit(4))
END(quick_exit, quick_exit(5))
END(exit, exit(6)) /* not wrapped: what the library does at the end is seen by it */

static void write_and_end(const char *name)
{
	int fd = open(name, NEW, 0644), status = 7;

	if (fd < 0 || write(fd, "child", 5) != 5)
		status = errno;
	if (fd >= 0 && close(fd))
		status = errno;
	_exit(status);
}
static void vfork_(void)
{
	pid_t child;

	fflush(stdout);
	child = vfork();
	if (child == 0)
		write_and_end("vfork");
	wait_for(child);
}
static int cloned(void *name)
{
	write_and_end(name);
	return 0;
}
static void clone_(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	fflush(stdout);
	wait_for(clone(cloned, stack + sizeof stack, SIGCHLD, "clone"));
}

static int stop(struct dl_phdr_info *info, size_t size, void *data_)
{
	(void)info;
	(void)size;
	(void)data_;
	return 7;
}
static void dl_iterate_phdr_(void) { SAY(dl_iterate_phdr(stop, NULL)); }

static const struct {
	const char *name;
	void (*call)(void);
} functions[] = {
#define TZ_WRAP(result, name, parameters) {#name, name##_},
#include "wrap.def"
	{"exit", exit_},
};

static int in_order(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void list(const char *directory)
{
	struct dirent **entries;
	int n = scandir(directory, &entries, NULL, in_order);

	for (int i = 0; i < n; i++) {
		char path[512], text[32] = "";
		struct stat st;
		int fd;

		snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
		if (lstat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
		if (fd >= 0)
			(void)!read(fd, text, sizeof text - 1);
		syscall(SYS_close, fd);
		printf("%s %o %ld %ld %s\n", path, st.st_mode, (long)st.st_nlink, (long)st.st_size, text);
	}
}

static void count_descriptors(void)
{
	int open_ = 0;

	for (int fd = 0; fd < 1024; fd++)
		open_ += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	printf("descriptors %d\n", open_);
}

int main(int argc, char **argv)
{
	memset(data, 'd', sizeof data);
	signal(SIGXFSZ, SIG_IGN);
	umask(022);
	for (int i = 1; i < argc; i++) {
		if (chdir(argv[i]))
			return 2;
		printf("== %s\n", argv[i]);
		for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
			here = functions[k].name;
			functions[k].call();
		}
		count_descriptors();
		list(".");
		list("sub");
		if (chdir(".."))
			return 3;
	}
	return 0;
}
