/* Calls that fail, and what they leave in errno; calls that succeed, and what they leave alone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOW(call)                                                          \
	do {                                                                \
		errno = 4711;                                               \
		long r = (long)(call);                                      \
		printf("%-40.40s %ld %d\n", #call, r, errno);               \
	} while (0)
#define POINTER(call) SHOW((call) != NULL)

int main(void)
{
	char bad[] = "x", template[] = "tXXXXXX", none[] = "/nonexistent/dXXXXXX";
	const char *volatile null = NULL;
	int fd, dir = open(".", O_RDONLY | O_DIRECTORY);
	FILE *f;

	SHOW(open("nodir/f", O_CREAT | O_RDWR, 0644));
	SHOW(open(".", O_CREAT | O_RDWR, 0644));
	SHOW(open("..", O_WRONLY));
	SHOW(open("", O_CREAT | O_RDWR, 0644));
	SHOW(open(null, O_CREAT | O_RDWR, 0644));
	SHOW(openat(999, "f", O_CREAT | O_RDWR, 0644));
	SHOW(openat(dir, "f", O_CREAT | O_EXCL | O_RDWR, 0644));
	SHOW(openat(dir, "f", O_CREAT | O_EXCL | O_RDWR, 0644));
	SHOW(open("f/g", O_CREAT | O_RDWR, 0644));
	SHOW(open("f/", O_CREAT | O_RDWR, 0644));
	SHOW(creat("c", 0600));
	SHOW(mkstemp(bad));
	SHOW(mkstemp(none));
	SHOW(mkstemp(template) > 0);
	POINTER(fopen("nodir/f", "w"));
	POINTER(fopen("f", "q"));
	POINTER(fopen("f", "wx"));
	POINTER(f = fopen("g", "w"));
	SHOW(fwrite("abc", 1, 3, f));
	SHOW(fseek(f, -1, SEEK_SET));
	POINTER(f = freopen("h", "a", f));
	SHOW(fclose(f));
	POINTER(fdopen(999, "w"));
	SHOW(close(999));
	SHOW(close(-1));
	SHOW(dup(999));
	SHOW(dup2(999, 5));
	SHOW(dup3(dir, dir, 0));
	fd = open("k", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0640);
	SHOW(fcntl(fd, F_GETFD));
	SHOW(fcntl(fd, F_GETFL));
	SHOW(dup2(fd, 50));
	SHOW(dup2(999, 50));
	SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 60));
	SHOW(write(fd, "x", 1));
	SHOW(write(999, "x", 1));
	SHOW(pwrite(fd, "x", 1, -1));
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(lseek(fd, -10, SEEK_SET));
	SHOW(close_range(50, 60, 0));
	SHOW(close(50));
	SHOW(close(fd));
	SHOW(close(fd));
	SHOW(umask(027));
	SHOW(umask(022));
	SHOW(chdir("nodir"));
	SHOW(mkdir("sub", 0755));
	SHOW(chdir("sub"));
	SHOW(open("../f", O_WRONLY | O_TRUNC));
	SHOW(fchdir(dir));
	SHOW(fchdir(999));
	SHOW(closedir(fdopendir(dir)));
	return 0;
}
