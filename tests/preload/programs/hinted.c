/* hinted NAME: sets a layout of its own as MPI-IO drivers do: O_LOV_DELAY_CREATE, then the ioctl. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct {
		uint32_t magic, pattern;
		uint64_t id, seq;
		uint32_t stripe_size;
		uint16_t stripe_count, stripe_offset;
	} lum = { 0x0BD10BD0, 1, 0, 0, 2 << 20, 2, 5 };
	int fd = argc > 1 ? open(argv[1], O_CREAT | O_RDWR | O_NOCTTY | FASYNC, 0644) : -1;

	if (fd < 0 || ioctl(fd, _IOW('f', 154, long), &lum) != 0)
		return 1;
	return write(fd, "data", 4) == 4 && close(fd) == 0 ? 0 : 2;
}
