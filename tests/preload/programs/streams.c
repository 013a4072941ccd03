/* Creates a file through a stream or creat and prints what a program can see of it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argv[1], *name = argv[2];
	FILE *f;
	int fd;

	(void)argc;
	if (strcmp(how, "creat") == 0) {
		fd = creat(name, 0640);
		printf("%d %zd %d\n", fd, write(fd, "hello", 5), close(fd));
		return 0;
	}
	f = fopen(name, strcmp(how, "mode-a") == 0 ? "a+" : strcmp(how, "ccs") == 0 ? "w,ccs=UTF-8" : "w+e");
	if (!f) {
		perror("fopen");
		return 1;
	}
	printf("%d %x %x %ld\n", fileno(f), fcntl(fileno(f), F_GETFL), fcntl(fileno(f), F_GETFD), ftell(f));
	if (strcmp(how, "ccs") != 0)
		printf("%d\n", fprintf(f, "hello"));
	return fclose(f);
}
