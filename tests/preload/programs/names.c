/*
 * names COUNT PATTERN BEFORE AFTER...: makes BEFORE, then COUNT names and removes each at once (or finds that they are too
 * long), then AFTER; says by how many KiB its own memory has grown.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long own_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib;
}

static void make(const char *name, int keep)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0644);

	if (fd < 0 && errno == ENAMETOOLONG)
		return;
	if (fd < 0 || close(fd) || (!keep && unlink(name))) {
		perror(name);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	long count = atol(argv[1]), before = own_kib();
	char name[8192];

	make(argv[3], 1);
	for (long i = 0; i < count; i++) {
		snprintf(name, sizeof name, argv[2], i);
		make(name, 0);
	}
	for (int i = 4; i < argc; i++)
		make(argv[i], 1);
	printf("%ld\n", own_kib() - before);
	return 0;
}
