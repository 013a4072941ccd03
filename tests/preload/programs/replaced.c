/*
 * Threads that make files below a directory's descriptor while others put another directory there by dup2. The
 * directories' paths are long.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAKERS = 4, REPLACERS = 2, ROUNDS = 20000, PARTS = 4, PART = 100 };

static int at; /* the descriptor that is replaced */
static int other[2];
static int done; /* atomic */

static int make_directory(char letter)
{
	char name[PART + 1] = "";
	int fd = open(".", O_RDONLY | O_DIRECTORY), next;

	memset(name, letter, PART);
	for (int i = 0; i < PARTS; i++) {
		mkdirat(fd, name, 0755);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		if (fd < 0 || next < 0)
			abort();
		close(fd);
		fd = next;
	}
	return fd;
}

static void *make(void *number)
{
	char name[32];
	int fd;

	snprintf(name, sizeof name, "made.%ld", (long)number);
	for (int i = 0; i < ROUNDS; i++) {
		fd = openat(at, name, i % 100 ? O_WRONLY : O_CREAT | O_WRONLY, 0644);
		if (fd >= 0 && (write(fd, "x", 1) != 1 || close(fd)))
			abort();
	}
	return NULL;
}

static void *replace(void *unused)
{
	for (int i = 0; !__atomic_load_n(&done, __ATOMIC_RELAXED); i++)
		if (dup2(other[i % 2], at) != at)
			abort();
	return unused;
}

int main(void)
{
	pthread_t makers[MAKERS], replacers[REPLACERS];
	int fd;

	other[0] = make_directory('a');
	other[1] = make_directory('b');
	at = dup(other[0]);
	for (int i = 0; i < REPLACERS; i++)
		pthread_create(&replacers[i], NULL, replace, NULL);
	for (long i = 0; i < MAKERS; i++)
		pthread_create(&makers[i], NULL, make, (void *)i);
	for (int i = 0; i < MAKERS; i++)
		pthread_join(makers[i], NULL);
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < REPLACERS; i++)
		pthread_join(replacers[i], NULL);
	/* whatever happened before: this is where the descriptor leads now */
	if (dup2(other[1], at) != at)
		abort();
	fd = openat(at, "last", O_CREAT | O_WRONLY, 0644);
	if (fd < 0 || close(fd))
		abort();
	return 0;
}
