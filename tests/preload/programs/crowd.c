/*
 * crowd THREADS [everywhere]: threads that start at once; each creates a file of its own and joins one shared file,
 * while a timer's handler creates files, too: in the first thread, or in whichever the signal finds. Ends with 0 when everything worked and the descriptors are all closed again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_barrier_t start;
static volatile sig_atomic_t failed;

static int complain(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 1;
}

static void *work(void *argument)
{
	long who = (long)argument;
	char name[32], block[512];
	int fd;

	snprintf(name, sizeof name, "own.%ld", who);
	memset(block, 1 + who % 100, sizeof block);
	pthread_barrier_wait(&start);
	fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (fd < 0 || write(fd, block, sizeof block) != sizeof block || close(fd))
		failed = complain("own");
	fd = open("shared", O_CREAT | O_RDWR, 0644);
	if (fd < 0 || pwrite(fd, block, sizeof block, who * 512) != sizeof block || close(fd))
		failed = complain("shared");
	return NULL;
}

static void on_timer(int number)
{
	int fd = open("by-handler", O_CREAT | O_WRONLY, 0644);

	(void)number;
	if (fd < 0 || close(fd))
		failed = 3;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 300;
	pthread_t *threads = calloc((size_t)count, sizeof *threads);
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	int before = dup(0), after;
	sigset_t timer;

	close(before);
	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &often, NULL);
	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	if (argc < 3)
		pthread_sigmask(SIG_BLOCK, &timer, NULL);
	pthread_barrier_init(&start, NULL, (unsigned)count);
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 10;
	pthread_sigmask(SIG_UNBLOCK, &timer, NULL);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	memset(&often, 0, sizeof often);
	setitimer(ITIMER_REAL, &often, NULL);
	on_timer(0);
	after = dup(0);
	return failed ? failed : after != before ? 11 : 0;
}
