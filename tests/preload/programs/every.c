/* Creates one file through each libc function that can, named after it; then opens some again in the checked ways. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

static void put(int fd)
{
	if (fd < 0 || write(fd, "data", 4) != 4 || close(fd))
		abort();
}

static void put_stream(FILE *f)
{
	if (!f || fwrite("data", 1, 4, f) != 4 || fclose(f))
		abort();
}

static char *template(const char *name, const char *suffix)
{
	static char text[64];

	snprintf(text, sizeof text, "%s.XXXXXX%s", name, suffix);
	return text;
}

int main(void)
{
	int flags = O_CREAT | O_WRONLY, dir = open(".", O_RDONLY | O_DIRECTORY);

	put(open("open", flags, 0644));
	put(open64("open64", flags, 0644));
	put(openat(dir, "openat", flags, 0644));
	put(openat64(dir, "openat64", flags, 0644));
	put(creat("creat", 0644));
	put(creat64("creat64", 0644));
	put_stream(fopen("fopen", "w"));
	put_stream(fopen64("fopen64", "w"));
	put_stream(freopen("freopen", "w", fopen("/dev/null", "w")));
	put_stream(freopen64("freopen64", "w", fopen("/dev/null", "w")));
	put(mkstemp(template("mkstemp", "")));
	put(mkstemp64(template("mkstemp64", "")));
	put(mkostemp(template("mkostemp", ""), O_APPEND));
	put(mkostemp64(template("mkostemp64", ""), O_APPEND));
	put(mkstemps(template("mkstemps", ".x"), 2));
	put(mkstemps64(template("mkstemps64", ".x"), 2));
	put(mkostemps(template("mkostemps", ".x"), 2, O_CLOEXEC));
	put(mkostemps64(template("mkostemps64", ".x"), 2, O_CLOEXEC));
	put(__open_2("open", O_WRONLY | O_APPEND));
	put(__open64_2("open64", O_WRONLY | O_APPEND));
	put(__openat_2(dir, "openat", O_WRONLY | O_APPEND));
	put(__openat64_2(dir, "openat64", O_WRONLY | O_APPEND));
	return close(dir);
}
