/* Calls that a signal interrupts while they wait: what each returns, and errno. The mount has a pipe named "pipe". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static void handler(int number)
{
	(void)number;
}

static void report(const char *what, long result)
{
	printf("%s %ld %d\n", what, result, result < 0 ? errno : 0);
	errno = 0;
}

static long is_open(FILE *stream)
{
	return stream ? 0 : -1;
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler};
	struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
	static char much[1 << 20];
	FILE *stream;
	int fd;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	report("open", open("pipe", O_WRONLY));
	report("open O_CREAT", open("pipe", O_WRONLY | O_CREAT, 0644));
	report("openat", openat(AT_FDCWD, "pipe", O_WRONLY | O_CREAT, 0644));
	report("creat", creat("pipe", 0644));
	report("fopen", is_open(fopen("pipe", "w")));
	stream = fopen("file", "w");
	report("freopen", is_open(freopen("pipe", "w", stream)));
	fd = open("pipe", O_RDWR);
	report("write", write(fd, much, sizeof much));
	report("write more", write(fd, much, sizeof much));
	stream = fdopen(fd, "w");
	report("fwrite", fwrite(much, 1, sizeof much, stream) < sizeof much ? -1 : 0);
	setitimer(ITIMER_REAL, &never, NULL);
	report("dup", dup(fd) >= 0 ? 0 : -1);
	report("close", close(fd));
	return 0;
}
