/*
 * Children that share this process's memory (vfork, clone with and without its semantics) create files and close this
 * process's; a copy by fork, and threads that create the same and other names. Ends with 0 when all of it worked.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, FILES = 30 };

static int kept, shared;

static int make(const char *name)
{
    int fd = open(name, O_CREAT | O_WRONLY, 0644);

    return fd < 0 || write(fd, "abc", 3) != 3 || close(fd);
}

static int child(void *name)
{
    int bad = make(name);

    close(kept);
    if (chdir("/"))
        bad = 1;
    _exit(bad);
}

static void *work(void *argument)
{
    char name[64];
    long who = (long)argument;

    for (int i = 0; i < FILES; i++) {
        int copy;

        snprintf(name, sizeof name, "same.%d", i);
        if (make(name))
            abort();
        snprintf(name, sizeof name, "directory%d", i);
        mkdir(name, 0755);
        snprintf(name, sizeof name, "directory%d/own.%ld", i, who);
        if (make(name))
            abort();
        copy = dup(shared);
        if (pwrite(copy, "0123456789", 10, who * 100) != 10 || write(shared, "x", 1) != 1 || close(copy))
            abort();
        umask(022);
    }
    return NULL;
}

static int ended_well(pid_t pid)
{
    int status;

    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
    static char stack[2][65536] __attribute__((aligned(64)));
    static char names[3][8] = {"run7", "run8", "run9"};
    pthread_t threads[THREADS];
    pid_t pid;

    kept = open("kept", O_CREAT | O_WRONLY, 0644);
    if (kept < 0 || make("run0"))
        return 1;
    pid = vfork();
    if (pid == 0)
        child(names[0]);
    if (!ended_well(pid) || make("run1"))
        return 2;
    pid = clone(child, stack[0] + sizeof stack[0], CLONE_VM | CLONE_VFORK | SIGCHLD, names[1]);
    if (!ended_well(pid) || make("run2"))
        return 3;
    pid = fork();
    if (pid == 0)
        exit(make("run3"));
    if (!ended_well(pid))
        return 4;
    shared = open("shared", O_CREAT | O_WRONLY, 0644);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 5;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (close(shared))
        return 6;
#ifdef CLONES_RUN_ON /* two that run at once in one thread's storage are more than sanitizers can follow */
    pid = clone(child, stack[1] + sizeof stack[1], CLONE_VM | SIGCHLD, names[2]);
    if (!ended_well(pid))
        return 7;
#endif
    return write(kept, "12345", 5) != 5 || close(kept) || make("run4") ? 8 : 0;
}
