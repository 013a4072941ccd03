/*
 * Fills as many MiB as the second argument says, makes and removes as many files as the first, then prints its VmSize
 * in KiB, and how many MiB malloc gives beside that, where nothing is filled.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long size_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (status && fgets(line, sizeof line, status) && sscanf(line, "VmSize: %ld", &kib) != 1)
		;
	if (status)
		fclose(status);
	return kib;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0, mib = 0;
	size_t filled = argc > 2 ? (size_t)atoi(argv[2]) << 20 : 0;
	char name[32], *memory = malloc(filled + 1);

	if (!memory)
		return 1;
	memset(memory, 1, filled + 1);

	for (int i = 0; i < count; i++) {
		int fd;

		snprintf(name, sizeof name, "f%d", i);
		fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) || unlink(name))
			return 1;
	}
	printf("%ld", size_kib());
	while (!filled && mib < 1000 && malloc((1 << 20) - 64))
		mib++;
	printf(" %d\n", mib);
	return 0;
}
