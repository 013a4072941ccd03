/*
 * sharers PROCESSES FILES STEP excl|join|late: processes of one program share files without ever talking to each other.
 *
 * File i is made by process i modulo PROCESSES. The others poll for its name (with O_CREAT, `join`: they do not wait
 * and race for it), open it, and write a block of their own at their number times STEP. `late`: the maker writes a
 * little later than the others, as a program does that computes first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what, const char *name)
{
	fprintf(stderr, "%d: %s %s: %s\n", getpid(), what, name, strerror(errno));
	return 1;
}

static int share(long me, long processes, long files, long step, const char *how)
{
	char name[64], block[64];

	for (long i = 0; i < files; i++) {
		int maker = i % processes == me, flags = O_WRONLY, fd;

		snprintf(name, sizeof name, "shared.%ld", i);
		if (strcmp(how, "join") == 0)
			flags |= O_CREAT;
		else if (maker)
			flags |= O_CREAT | O_EXCL;
		while ((fd = open(name, flags, 0644)) < 0 && errno == ENOENT)
			sched_yield();
		if (fd < 0)
			return fail("open", name);
		if (maker && strcmp(how, "late") == 0)
			nanosleep(&(struct timespec){0, 200000}, NULL);
		memset(block, 'a' + (int)me, sizeof block);
		if (pwrite(fd, block, sizeof block, me * step) != sizeof block)
			return fail("pwrite", name);
		if (close(fd))
			return fail("close", name);
	}
	return 0;
}

int main(int argc, char **argv)
{
	long processes = atol(argv[1]), files = atol(argv[2]), step = atol(argv[3]);
	int status, wrong = 0;

	if (argc != 5)
		return 99;
	for (long p = 0; p < processes; p++)
		if (fork() == 0)
			_exit(share(p, processes, files, step, argv[4]));
	while (wait(&status) > 0)
		wrong |= status;
	return wrong ? 1 : 0;
}
