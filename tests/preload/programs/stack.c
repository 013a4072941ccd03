/*
 * What a program's signal handler does on a small stack of its own: it makes files, some of them in the directory
 * "below".
 *
 * "crash BYTES": a fault, whose handler has a stack of BYTES and reports into a file, as a crash reporter does; the
 * program ends by the fault. "measure": each call in a handler with much room that was painted before, and how many
 * bytes of it were used, a line for each: the first time, and once more.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MUCH = 1 << 18, PAINT = 0xa5 };

static volatile int step;
static int kept = -1;

static void put(const char *name, int flags)
{
	int fd = open(name, flags, 0644);

	if (fd < 0 || write(fd, "text\n", 5) != 5 || close(fd))
		_exit(3);
}

static void by_openat(void)
{
	int at = open("below", O_RDONLY | O_DIRECTORY), fd = openat(at, "by-openat", O_CREAT | O_WRONLY, 0644);

	if (at < 0 || fd < 0 || close(fd) || close(at))
		_exit(4);
}

static void by_creat(void)
{
	int fd = creat("by-creat", 0644);

	if (fd < 0 || close(fd))
		_exit(5);
}

static void duplicate(void)
{
	int fd = open("by-open", O_WRONLY), other = dup(fd);

	if (fd < 0 || other < 0 || dup2(fd, other) != other || close(fd) || close(other))
		_exit(6);
}

static void one(void)
{
	switch (step / 2) {
	case 0:
		put("by-open", O_CREAT | O_WRONLY | O_TRUNC);
		break;
	case 1:
		put("by-open", O_WRONLY | O_APPEND);
		break;
	case 2:
		by_openat();
		break;
	case 3:
		by_creat();
		break;
	case 4:
		duplicate();
		break;
	case 5:
		kept = open("kept", O_CREAT | O_RDWR | O_EXCL * (step % 2 == 0), 0644);
		break;
	case 6:
		if (step % 2 == 0 && close(kept))
			_exit(8);
		break;
	}
}

static void measured(int number)
{
	(void)number;
	one();
}

static void crashed(int number)
{
	(void)number;
	for (step = 0; step < 14; step++)
		one();
	_exit(0);
}

static void on_stack(int number, void (*handler)(int), char *memory, size_t size)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_sp = memory, .ss_size = size};

	if (sigaltstack(&stack, NULL) || sigaction(number, &action, NULL))
		exit(2);
}

static void measure(void)
{
	static const char *const names[] = {"open", "reopen", "openat", "creat", "dup", "kept", "close"};
	static char memory[MUCH];
	size_t unused;

	on_stack(SIGUSR1, measured, memory, sizeof memory);
	for (step = 0; step < 14; step++) {
		memset(memory, PAINT, sizeof memory);
		raise(SIGUSR1);
		for (unused = 0; (unsigned char)memory[unused] == PAINT; unused++)
			;
		printf("%s %zu\n", names[step / 2], sizeof memory - unused);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2) {
		measure();
		return 0;
	}
	if (argc != 3)
		return 2;
	on_stack(SIGSEGV, crashed, malloc((size_t)atoi(argv[2])), (size_t)atoi(argv[2]));
	return *(volatile int *)(argc == 3 ? NULL : argv);
}
