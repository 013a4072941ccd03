/* An I/O library that a program loads itself. */
#include <fcntl.h>
#include <unistd.h>

int plugin_write(const char *name);
int plugin_write(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0644);

	return fd < 0 || write(fd, "data", 4) != 4 ? -1 : close(fd);
}
