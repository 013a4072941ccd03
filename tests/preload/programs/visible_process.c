/* Directories, the working directory, children and how they end. */
#include "visible.h"

#include <link.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void chdir_(void)
{
	SAY(mkdir("sub", 0755));
	if (SAY(chdir("sub")))
		return;
	use((int)SAY(open("chdir", NEW, 0644)));
	SAY(chdir(".."));
}
void fchdir_(void)
{
	int fd = (int)SAY(open(".", O_RDONLY | O_DIRECTORY));

	SAY(chdir("/"));
	SAY(fchdir(fd));
	SAY(fchdir(999));
	SAY(close(fd));
	use((int)SAY(open("fchdir", NEW, 0644)));
}
void umask_(void)
{
	SAY(umask(027));
	use((int)SAY(open("umask", NEW, 0666)));
	SAY(umask(022));
}

/* Of a child: what it says, and how it ends. */
static void wait_for(pid_t child)
{
	int status = -1;

	if (child > 0)
		waitpid(child, &status, 0);
	say("ended", status);
}
#define END(function, call)                                                \
	void function##_(void)                                      \
	{                                                                  \
		pid_t child;                                               \
									   \
		fflush(stdout);                                            \
		child = fork();                                            \
		if (child == 0) {                                          \
			FILE *stream = fopen(#function, "w");                    \
			if (stream)                                        \
				fputs("held at the end", stream);          \
			call;                                              \
		}                                                          \
		wait_for(child);                                           \
	}
END(_exit, _exit(3))
END(_Exit, _Exit(4))
END(quick_exit, quick_exit(5))
END(exit, exit(6)) /* not wrapped: what the library does at the end is seen by it */

static void write_and_end(const char *name)
{
	int fd = open(name, NEW, 0644), status = 7;

	if (fd < 0 || write(fd, "child", 5) != 5)
		status = errno;
	if (fd >= 0 && close(fd))
		status = errno;
	_exit(status);
}
void vfork_(void)
{
	pid_t child;

	fflush(stdout);
	child = vfork();
	if (child == 0)
		write_and_end("vfork");
	wait_for(child);
}
static int cloned(void *name)
{
	write_and_end(name);
	return 0;
}
void clone_(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	fflush(stdout);
	wait_for(clone(cloned, stack + sizeof stack, SIGCHLD, "clone"));
}

/* Past libc's own functions, with as many arguments as there can be. */
void prctl_(void)
{
	char name[16] = "";

	SAY(prctl(PR_SET_NAME, "visible-name"));
	SAY(prctl(PR_GET_NAME, name));
	puts(name);
	SAY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	use((int)SAY(open("prctl", NEW, 0644)));
}
void syscall_(void)
{
	char text[4] = "";
	int fd = (int)SAY(syscall(SYS_openat, AT_FDCWD, "syscall", NEW, 0644));

	SAY(syscall(SYS_pwrite64, fd, "abc", 3, 1));
	SAY(syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != -1);
	SAY(syscall(SYS_pread64, fd, text, 3, 1));
	puts(text);
	SAY(syscall(-1));
	SAY(syscall(SYS_close, fd));
}

static int stop(struct dl_phdr_info *info, size_t size, void *data_)
{
	(void)info;
	(void)size;
	(void)data_;
	return 7;
}
void dl_iterate_phdr_(void) { SAY(dl_iterate_phdr(stop, NULL)); }
