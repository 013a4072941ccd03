/*
 * A program that allows itself a few system calls, as a sandbox does, and writes files before and after.
 *
 * filtered HOW WHAT WHEN FILE...   WHAT a call gets that is not in the list: kill, trap, errno; HOW the list is set:
 * prctl, seccomp, raw (past libc), thread, strict; WHEN: start, later (after the first file), fork, exec
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int allowed[] = {
    SYS_read,         SYS_write,
    SYS_openat,       SYS_close,
    SYS_fstat,        SYS_newfstatat,
    SYS_mmap,         SYS_munmap,
    SYS_mprotect,     SYS_brk,
    SYS_exit,         SYS_exit_group,
    SYS_rt_sigaction, SYS_futex,
    SYS_pread64,      SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_execve,
    SYS_faccessat,    SYS_set_tid_address,
    SYS_prlimit64,    SYS_set_robust_list,
    SYS_getrandom,    SYS_wait4,
    SYS_madvise,
#ifdef SYS_access
    SYS_access,       SYS_arch_prctl,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
};
enum { ALLOWED = sizeof allowed / sizeof *allowed };

static struct sock_filter code[2 * ALLOWED + 2];
static struct sock_fprog list = {0, code};
static const char *how;

static void write_list(const char *what)
{
    unsigned other = SECCOMP_RET_KILL_PROCESS;

    if (strcmp(what, "trap") == 0)
        other = SECCOMP_RET_TRAP;
    if (strcmp(what, "errno") == 0)
        other = SECCOMP_RET_ERRNO | EPERM;
    code[list.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++) {
        code[list.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        code[list.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[list.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
}

static long raw(long number, long first, long second, long third)
{
    long result;
#if defined(__x86_64__)
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = first, x1 __asm__("x1") = second,
                     x2 __asm__("x2") = third;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    result = x0;
#endif
    return result;
}

static void set_list(void)
{
    long failed = 0;

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (strcmp(how, "strict") == 0)
        failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    else if (strcmp(how, "seccomp") == 0)
        failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &list);
    else if (strcmp(how, "raw") == 0)
        failed = raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&list);
    else
        failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &list);
    if (failed)
        _exit(3);
}

static void put(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);

    if (fd < 0 || write(fd, "1234", 4) != 4 || close(fd))
        _exit(4);
}

static void *in_thread(void *path)
{
    set_list();
    put(path);
    return NULL;
}

int main(int count, char **words)
{
    const char *when = words[3];
    char **files = words + 4;

    how = words[1];
    if (strcmp(how, "inherited") == 0) {
        for (; *files; files++)
            put(*files);
        puts("done");
        return 0;
    }
    write_list(words[2]);
    if (strcmp(when, "later") == 0)
        put(*files++);
    if (strcmp(how, "thread") == 0) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, in_thread, *files++) || pthread_join(thread, NULL))
            return 5;
        puts("done");
        return 0;
    }
    if (strcmp(when, "fork") == 0) {
        pid_t child = fork();
        int status;

        if (child) {
            waitpid(child, &status, 0);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
    set_list();
    if (strcmp(how, "strict") == 0) {
        static const char done[] = "done\n";

        if (write(1, done, sizeof done - 1) < 0)
            return 6;
        raw(SYS_exit, 0, 0, 0);
    }
    if (strcmp(when, "exec") == 0) {
        words[1] = "inherited";
        execv(words[0], words);
        return 7;
    }
    for (; *files; files++)
        put(*files);
    puts("done");
    return count < 4;
}
