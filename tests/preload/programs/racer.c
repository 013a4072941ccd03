/* racer NAME BLOCKS_AT WHEN: creates or joins a shared file at a given time and writes and reads its own block. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	long who = rank ? atol(rank) : atol(argv[argc - 1]);
	off_t at = who * atol(argv[2]);
	double when = atof(argv[3]);
	char block[1000], back[1000];
	struct timespec now;
	int fd;

	do
		clock_gettime(CLOCK_REALTIME, &now);
	while ((double)now.tv_sec + (double)now.tv_nsec / 1e9 < when);
	memset(block, (int)who + 1, sizeof block);
	fd = open(argv[1], O_CREAT | O_RDWR, 0644);
	if (fd < 0) {
		perror("open");
		return 1;
	}
	if (pwrite(fd, block, sizeof block, at) != sizeof block) {
		perror("pwrite");
		return 2;
	}
	if (pread(fd, back, sizeof back, at) != sizeof back || memcmp(block, back, sizeof back) != 0)
		return 3;
	return close(fd) ? 4 : 0;
}
