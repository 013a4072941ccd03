/* A program, or a library, with a variable that is named like the loader's list. */
#include <fcntl.h>
#include <unistd.h>

struct {
	long version;
	void *first, *call;
	long state;
	void *base;
} _r_debug = {1, 0, 0, 0, 0};

#ifndef LIBRARY
int main(void)
{
	int fd = open("f", O_CREAT | O_WRONLY, 0600);

	return fd < 0 || write(fd, "x", 1) != 1 || close(fd);
}
#endif
