/*
 * Calls each wrapped function on a file of its own in the working directory, and prints all that a program can see of
 * it: results, errno, ferror, positions, flags, numbers of descriptors, how children ended; then what lies there.
 */
#include "visible.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

const char *here;
char data[70000];

long say(const char *step, long result)
{
	int error = errno;

	printf("%s %s %ld %d\n", here, step, result, error);
	errno = UNTOUCHED;
	return result;
}
void look(int fd)
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
void use(int fd)
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

void see(FILE *f)
{
	SAY(ferror(f));
	SAY(feof(f));
	SAY(fileno(f));
	SAY(ftell(f));
	SAY(ferror(f));
}

/* What a stream still holds is written by its close. */
void use_stream(FILE *f, bool flush)
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

int made(const char *name)
{
	int fd = (int)SAY(open(name, NEW, 0644));

	if (fd >= 0)
		SAY(write(fd, "0123456789", 10));
	return fd;
}

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
