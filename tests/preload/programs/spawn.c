/* vfork, posix_spawn, system and a raw clone while files are open: the parent's view must not change. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(void)
{
	char *argv[] = { "true", NULL };
	int fd = open("kept", O_CREAT | O_WRONLY, 0644), status;
	pid_t pid;

	if (fd < 0 || write(fd, "12345", 5) != 5)
		return 1;
	pid = vfork();
	if (pid == 0) {
		close(fd);
		if (chdir("/") != 0)
			_exit(99);
		execv("/bin/true", argv);
		_exit(98);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 2;
	pid = vfork();
	if (pid == 0) {
		close(fd);
		_exit(7);
	}
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
		return 3;
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) || waitpid(pid, &status, 0) != pid || status)
		return 4;
	if (system("exit 3") != 3 << 8)
		return 5;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		int own = open("cloned", O_CREAT | O_WRONLY, 0644);

		_exit(write(own, "abc", 3) == 3 && close(own) == 0 ? 0 : 1);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 6;
	if (write(fd, "678", 3) != 3 || close(fd))
		return 7;
	fd = open("after", O_CREAT | O_WRONLY, 0644); /* relative to where the parent still is */
	return fd < 0 || close(fd) ? 8 : 0;
}
