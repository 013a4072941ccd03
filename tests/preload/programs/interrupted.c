/*
 * Makes directories where a library must not stumble: in many threads, in children of fork and vfork, and in a signal
 * handler that interrupts the same (with an argument). Prints how many calls failed, and ends with their number.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, EACH = 50, SIGNALS = 200 };

static int failed; /* atomic */
static volatile int handled;

static void make(const char *kind, int i, int k)
{
	char path[64] = "";
	size_t n = strlen(kind);

	/* no printf: a handler calls this */
	memcpy(path, kind, n);
	path[n++] = '.';
	path[n++] = (char)('a' + i);
	for (int digit = 100; digit; digit /= 10)
		path[n++] = (char)('0' + k / digit % 10);
	if (mkdir(path, 0755) != 0)
		__atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
}

static void *thread(void *number)
{
	for (int k = 0; k < EACH; k++)
		make("thread", (int)(long)number, k);
	return NULL;
}

static void handler(int signal_)
{
	int saved = errno;

	(void)signal_;
	if (handled < SIGNALS)
		make("handler", 0, handled++);
	errno = saved;
}

static void child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	failed += status != 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	pthread_t threads[THREADS];
	pid_t pid;
	int k;

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (k = 0; k < 5; k++) {
		if ((pid = fork()) == 0) {
			make("fork", 0, k);
			make("fork", 1, k);
			_exit(failed);
		}
		child(pid);
	}
	for (k = 0; k < 5; k++) {
		if ((pid = vfork()) == 0) {
			make("vfork", 0, k);
			_exit(0);
		}
		child(pid);
		make("parent", 0, k);
	}
	(void)argv;
	for (k = 0; argc == 1 && k < SIGNALS; k++)
		make("main", 0, k);
	if (argc == 1)
		goto out;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (k = 0; k < 999 && handled < SIGNALS; k++)
		make("main", 0, k);
	setitimer(ITIMER_REAL, &never, NULL);
	for (k = handled; k < SIGNALS; k++)
		make("handler", 0, k);
out:
	printf("%d failed\n", failed);
	return failed;
}
