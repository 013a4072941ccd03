/* Threads that create, write, duplicate and close files; then a fork whose child does the same. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 16, FILES = 40 };

static void *work(void *argument)
{
	char name[64], block[1000] = "x";
	long who = (long)argument;

	for (int i = 0; i < FILES; i++) {
		int fd, other;

		snprintf(name, sizeof name, "t%ld.f%d", who, i);
		fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
		if (fd < 0 || write(fd, block, sizeof block) != (long)sizeof block)
			abort();
		other = dup(fd);
		close(fd);
		if (pwrite(other, block, 500, 2000) != 500 || close(other))
			abort();
	}
	return NULL;
}

static void run(long from)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(from + i)))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	int status;

	run(0);
	if (fork() == 0) {
		run(100);
		return 0;
	}
	wait(&status);
	return status;
}
