/*
 * creator NAME FLAGS MODE [pause]: creates a file, writes into each of three components, and says all that a program
 * can see of it. With `pause` it waits for a line of input before it writes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *what, long result, int error)
{
	printf("%s %ld %d\n", what, result, error);
}

static void put(int fd, const char *text, off_t at)
{
	errno = 4711;
	long n = pwrite(fd, text, strlen(text), at);

	say("pwrite", n, errno);
}

int main(int argc, char **argv)
{
	int flags = (int)strtol(argv[2], NULL, 0), fd;
	mode_t mode = (mode_t)strtol(argv[3], NULL, 8);
	sigset_t before, after;
	struct stat st;
	char line[8], back[4] = "";

	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	sigaddset(&before, SIGALRM);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = 4711;
	fd = open(argv[1], flags, mode);
	say("open", fd, errno);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	if (memcmp(&before, &after, sizeof before) != 0)
		say("signal mask changed", 0, 0);
	if (fd < 0)
		return 3;
	say("flags", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
	if (fstat(fd, &st) == 0)
		printf("file %lo %ld %d\n", (long)st.st_mode, (long)st.st_size, (int)st.st_uid);
	say("next descriptor", dup(0), 0);
	if (argc > 4) {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin))
			return 4;
	}
	if ((flags & O_ACCMODE) != O_RDONLY) {
		say("write", write(fd, "abc", 3), 0);
		put(fd, "second", 2 << 20);
		put(fd, "third", 9 << 20);
	}
	if ((flags & O_ACCMODE) == O_RDWR)
		say("pread", pread(fd, back, 3, 0), back[0]);
	say("lseek", lseek(fd, 0, SEEK_END), 0);
	say("close", close(fd), 0);
	return 0;
}
