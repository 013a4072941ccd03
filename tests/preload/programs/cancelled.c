/*
 * A thread that opens a new file FILE and is cancelled on the way, when the library between has made AT.reached; it
 * goes on with AT.go. Prints where the cancel took effect, and how many descriptors were left.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int fd = -1;

static int count(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int entries = 0;

	while (readdir(directory))
		entries++;
	closedir(directory);
	return entries;
}

static void end(void *unused)
{
	(void)unused;
	if (fd >= 0)
		close(fd);
}

static void *make(void *name)
{
	pthread_cleanup_push(end, NULL);
	fd = open(name, O_CREAT | O_RDWR, 0644);
	pthread_testcancel();
	pthread_cleanup_pop(1);
	return NULL;
}

int main(int argc, char **argv)
{
	char reached[512], go[512];
	int before = count();
	pthread_t maker;
	void *result;

	if (argc != 3)
		return 2;
	snprintf(reached, sizeof reached, "%s.reached", argv[2]);
	snprintf(go, sizeof go, "%s.go", argv[2]);
	pthread_create(&maker, NULL, make, argv[1]);
	while (access(reached, F_OK))
		usleep(1000);
	pthread_cancel(maker);
	close(open(go, O_CREAT | O_WRONLY, 0644));
	pthread_join(maker, &result);
	printf("%s the open, %d left\n",
	       result != PTHREAD_CANCELED ? "not cancelled in"
	       : fd >= 0		  ? "cancelled behind"
					  : "cancelled in",
	       count() - before);
	return 0;
}
