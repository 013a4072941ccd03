/*
 * Makes directories in many ways, and prints all that a program can see of each call: result, errno, and what lies
 * there then. Below a fresh directory that is named; the same names for whoever compares.
 *
 *	makers DIRECTORY
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { UNTOUCHED = 4711, CASES_PER_MODE = 5 };

static void look(int dirfd, const char *path)
{
	char acl[256];
	struct stat st;
	int fd;

	if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW)) {
		printf(" nothing %d\n", errno);
		return;
	}
	fd = openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	printf(" mode %o uid %u gid %u links %lu acl %zd %zd\n", st.st_mode, st.st_uid, st.st_gid,
	       (unsigned long)st.st_nlink, fgetxattr(fd, "system.posix_acl_access", acl, sizeof acl),
	       fgetxattr(fd, "system.posix_acl_default", acl, sizeof acl));
	close(fd);
}

static void say(const char *call, const char *path, mode_t mode, int result)
{
	printf("%s %.40s (%zu) %o: %d %d", call, path, strlen(path), mode, result, errno);
}

static void at(int dirfd, const char *path, mode_t mode)
{
	errno = UNTOUCHED;
	say("mkdirat", path, mode, mkdirat(dirfd, path, mode));
	look(dirfd, path);
}

static void here(const char *path, mode_t mode)
{
	errno = UNTOUCHED;
	say("mkdir", path, mode, mkdir(path, mode));
	look(AT_FDCWD, path);
}

static void touch(const char *path)
{
	close(open(path, O_CREAT | O_WRONLY, 0644));
}

/* Parents and names that are in the way, made past libc. */
static void prepare(void)
{
	/* version 2; user rwx, group r-x, one named user rwx, mask rwx, others nothing */
	static const unsigned char list[] = {2, 0, 0, 0, 1,    0, 7, 0, 255, 255, 255, 255, 2,   0,   7,   0,
					     1, 0, 0, 0, 4,    0, 5, 0, 255, 255, 255, 255, 16,  0,   7,   0,
					     255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255};
	static const char *const plain[] = {"plain", "sgid", "acl", "sticky", "noread", "nowrite", "nosearch", "there", NULL};

	umask(0);
	for (int i = 0; plain[i]; i++)
		syscall(SYS_mkdirat, AT_FDCWD, plain[i], 0777);
	if (chown("sgid", (uid_t)-1, 12) && errno != EPERM)
		perror("chown");
	chmod("sgid", 02777);
	chmod("sticky", 01777);
	chmod("noread", 0333);
	chmod("nowrite", 0555);
	chmod("nosearch", 0666);
	setxattr("acl", "system.posix_acl_default", list, sizeof list, 0);
	touch("file");
	if (symlink("plain", "link") || symlink("nowhere", "dangling") || symlink("loop", "loop"))
		perror("symlink");
}

static void modes(void)
{
	static const mode_t mode[] = {0777, 0755, 0700, 0, 0444, 01777, 02777, 04777, 0100755, 0xffffffff};
	static const char *const parent[CASES_PER_MODE] = {"plain", "sgid", "acl", "sticky", "noread"};
	static const mode_t mask[] = {0, 022, 027, 077, 0777};
	char path[64];

	for (size_t p = 0; p < CASES_PER_MODE; p++)
		for (size_t u = 0; u < sizeof mask / sizeof *mask; u++)
			for (size_t m = 0; m < sizeof mode / sizeof *mode; m++) {
				snprintf(path, sizeof path, "%s/%zu.%zu", parent[p], u, m);
				umask(mask[u]);
				here(path, mode[m]);
			}
	umask(022);
}

static void paths(void)
{
	static const char *const path[] = {
		"", ".", "..", "/", "//", "./", "a", "a", "a/", "b/", "c///", "a/.", "a/..", "a/b/", "a//b2", "a/./b3",
		"a/../a2", "./a3", "missing/a", "missing/", "missing/a/", "file", "file/", "file/a", "file/.", "link",
		"link/", "link/in", "link/in/", "dangling", "dangling/", "dangling/a", "loop", "loop/a", "nowrite/a",
		"nosearch/a", "noread/a", "there", "there/", "/proc/a", "/dev/null/a", "a b", "new\nline", "\xff\xfe", NULL};
	static char name[PATH_MAX + 64];

	for (int i = 0; path[i]; i++)
		here(path[i], 0755);
	for (size_t length = 253; length <= 258; length++) {
		memset(name, 'n', length);
		name[length] = '\0';
		here(name, 0755);
		strcat(name, "/");
		here(name, 0755);
		name[length] = '\0';
	}
	/* paths of about PATH_MAX, of "./" */
	for (size_t length = PATH_MAX - 3; length <= PATH_MAX + 2; length++) {
		for (size_t i = 0; i < length - 1; i++)
			name[i] = "./"[i % 2];
		name[length - 1] = 'l';
		name[length] = '\0';
		here(name, 0755);
	}
}

static void descriptors(void)
{
	char absolute[PATH_MAX], text[PATH_MAX + 16];
	int plain = open("plain", O_RDONLY | O_DIRECTORY), path = open("plain", O_PATH), file = open("file", O_RDONLY);
	int gone, none = 999;

	at(AT_FDCWD, "at", 0777);
	at(plain, "at", 0777);
	at(plain, "at", 0777);
	at(plain, "at/", 0777);
	at(plain, "at/below", 0777);
	at(plain, "../up", 0777);
	at(path, "at.path", 0777);
	at(file, "at", 0777);
	at(none, "at", 0777);
	at(-1, "at", 0777);
	at(plain, "", 0777);
	at(plain, ".", 0777);
	if (getcwd(absolute, sizeof absolute)) {
		snprintf(text, sizeof text, "%s/absolute", absolute);
		errno = UNTOUCHED;
		say("mkdirat", "absolute", 0777, mkdirat(none, text, 0777));
		look(AT_FDCWD, "absolute");
		snprintf(text, sizeof text, "%s//absolute2/", absolute);
		errno = UNTOUCHED;
		say("mkdir", "absolute2", 0777, mkdir(text, 0777));
		look(AT_FDCWD, "absolute2");
	}
	syscall(SYS_mkdirat, AT_FDCWD, "gone", 0777);
	gone = open("gone", O_RDONLY | O_DIRECTORY);
	rmdir("gone");
	at(gone, "in", 0777);
	close(gone);
	close(plain);
	close(path);
	close(file);
}

static void moved(void)
{
	here("first", 0755);
	rename("first", "second");
	here("first", 0755);
	rmdir("second");
	here("second", 0755);
	rmdir("second");
	here("second", 0700);
	/* what was a directory is a link to another one */
	here("was", 0755);
	here("was/in", 0755);
	rmdir("was/in");
	rmdir("was");
	if (symlink("plain", "was"))
		perror("symlink");
	here("was/in", 0755);
	look(AT_FDCWD, "plain/in");
}

/* No descriptor is to be had. */
static void limited(void)
{
	struct rlimit limit, none;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	errno = UNTOUCHED;
	say("mkdir", "limited", 0755, mkdir("limited", 0755));
	setrlimit(RLIMIT_NOFILE, &limit);
	look(AT_FDCWD, "limited");
}

static void count_descriptors(void)
{
	int open_ = 0;

	for (int fd = 0; fd < 1024; fd++)
		open_ += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	printf("descriptors %d\n", open_);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]))
		return 2;
	prepare();
	modes();
	paths();
	descriptors();
	moved();
	limited();
	count_descriptors();
	return 0;
}
