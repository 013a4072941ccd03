/*
 * paths FLAGS DIRECTORY NAME WARM: opens NAME1 and NAME2 below DIRECTORY ("-": the working directory; "@DIR": a
 * descriptor of DIR; "=DIR": after chdir) between calls of getppid, once a file elsewhere has been opened.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int dir = AT_FDCWD, fd;
	char name[4096];

	if (argc < 4)
		return 2;
	fd = open(argv[3], O_CREAT | O_WRONLY, 0644);
	if (fd < 0 || close(fd))
		return 3;
	if (argv[1][0] == '@')
		dir = open(argv[1] + 1, O_RDONLY | O_DIRECTORY);
	if (argv[1][0] == '=' && chdir(argv[1] + 1))
		return 4;
	for (int i = 1; i <= 3; i++) {
		snprintf(name, sizeof name, "%s%d", argv[2], i);
		syscall(SYS_getppid);
		fd = openat(dir, name, O_CREAT | O_WRONLY, 0644);
		syscall(SYS_getppid);
		if (fd < 0 || close(fd))
			return 5;
	}
	return 0;
}
