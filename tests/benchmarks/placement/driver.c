/*
 * The application's side: does what a line of standard input says ("case threads iterations") and answers with
 * nanoseconds per operation. Started twice, with the library preloaded and without; the caller pairs the answers.
 *
 * The opens carry a combination of flags that the kernel refuses before it looks at the path: what differs between
 * the two processes is then the library alone, up to the first system call.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

enum { REFUSED = 020000000, NAMES = 1000, BLOCK = 64 };

static char outside[NAMES][128], managed[NAMES][128], created[NAMES][128];
static int data_fd;
static const char *what;
static long iterations;
static atomic_long total_ns;

/* The library asks whether the mount is Lustre: it is told so. */
int statfs(const char *path, struct statfs *out)
{
    (void)path;
    memset(out, 0, sizeof *out);
    out->f_type = 0x0BD00BD0;
    return 0;
}

/* Of this thread: what others take from the machine is not counted. */
static long cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void refused_opens(char names[NAMES][128])
{
    for (long i = 0; i < iterations; i++)
        if (open(names[i % NAMES], O_CREAT | O_EXCL | O_WRONLY | REFUSED, 0644) >= 0)
            abort();
}

static void writes(void)
{
    static char block[BLOCK];

    if (lseek(data_fd, 0, SEEK_SET) != 0)
        abort();
    for (long i = 0; i < iterations; i++)
        if (write(data_fd, block, sizeof block) != BLOCK)
            abort();
}

static void creates(void)
{
    for (long i = 0; i < iterations; i++) {
        int fd = open(created[i % NAMES], O_CREAT | O_WRONLY | O_TRUNC, 0644);

        if (fd < 0 || close(fd))
            abort();
    }
}

static void *work(void *argument)
{
    long start = cpu_ns();

    (void)argument;
    if (*what == 'o')
        refused_opens(outside);
    else if (*what == 'm')
        refused_opens(managed);
    else if (*what == 'w')
        writes();
    else
        creates();
    atomic_fetch_add(&total_ns, cpu_ns() - start);
    return NULL;
}

static void run(int threads)
{
    pthread_t ids[256];

    total_ns = 0;
    if (threads == 1) {
        work(NULL);
    } else {
        for (int i = 0; i < threads; i++)
            if (pthread_create(&ids[i], NULL, work, NULL))
                abort();
        for (int i = 0; i < threads; i++)
            pthread_join(ids[i], NULL);
    }
    printf("%.2f\n", (double)total_ns / ((double)iterations * threads));
    fflush(stdout);
}

/* driver MOUNT OUTSIDE PREFIX STEP */
int main(int count, char **arguments)
{
    char line[256], name[32], path[512];
    int threads;

    if (count != 5)
        return 2;
    for (int i = 0; i < NAMES; i++) {
        snprintf(outside[i], sizeof outside[i], "%s/file.%08d", arguments[2], i);
        snprintf(managed[i], sizeof managed[i], "%s/run/%s.%08ld", arguments[1], arguments[3], i * atol(arguments[4]));
        snprintf(created[i], sizeof created[i], "%s/run/new.%08d", arguments[1], i);
    }
    snprintf(path, sizeof path, "%s/run/data", arguments[1]);
    data_fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    if (data_fd < 0)
        return 1;
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%31s %d %ld", name, &threads, &iterations) == 3) {
        what = name;
        run(threads);
    }
    return 0;
}
