/* iorlike: writes files the way IOR does, without MPI.
 *
 * Knows nothing of Lustre, of tarazu or of the testbed: an ordinary program to be balanced.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage_text[] =
    "Usage: iorlike [-F] [-n RANKS] [-b SIZE] [-t SIZE] [-s SEGMENTS] [-S STEPS] [-r RUN] [-v] -o PATTERN\n"
    "\n"
    "Writes SEGMENTS blocks of SIZE per rank, in transfers, like IOR.\n"
    "\n"
    "  -o PATTERN   output file; {run} {step} {rank} are replaced by numbers, {run:03} pads them\n"
    "               with zeros; directories are made\n"
    "  -F           one file per rank; without {rank} in PATTERN, .RANK is appended\n"
    "               (default: one shared file, rank after rank within each segment)\n"
    "  -b SIZE      block: contiguous bytes per rank and segment (default 16m)\n"
    "  -t SIZE      transfer: bytes per write (default 1m)\n"
    "  -s SEGMENTS  blocks per rank (default 1)\n"
    "  -S STEPS     writes the whole set so often, as steps 0, 1, ... (default 1)\n"
    "  -r RUN       number of this run (default 0)\n"
    "  -n RANKS     without a launcher: that many processes stand in for the ranks, each with\n"
    "               OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE set (default 1)\n"
    "  -v           says what was written\n"
    "  -h           this text\n"
    "\n"
    "Under mpirun or srun the launcher's rank and size are used and -n is ignored.\n"
    "SIZE takes k, m, g (powers of 1024). Exit status: 0, 1 when a rank failed, 2 for wrong usage.\n";

struct plan {
    const char *pattern;
    uint64_t block, transfer;
    int segments, steps, run, ranks;
    bool per_rank, verbose;
};

static void fail(const char *what)
{
    fprintf(stderr, "iorlike: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void wrong(const char *what)
{
    fprintf(stderr, "iorlike: %s (iorlike -h explains)\n", what);
    exit(2);
}

static uint64_t parse_size(const char *text)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    switch (*end) {
    case 'k':
    case 'K':
        value <<= 10;
        end++;
        break;
    case 'm':
    case 'M':
        value <<= 20;
        end++;
        break;
    case 'g':
    case 'G':
        value <<= 30;
        end++;
        break;
    }
    if (errno || *end || value == 0)
        wrong("a size is a number above 0 with k, m or g");
    return value;
}

static int parse_count(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*end || value < 0 || value > 1000000)
        wrong("a count is a number");
    return (int)value;
}

static long environment_number(const char *const *names, long fallback)
{
    for (; *names; names++) {
        const char *value = getenv(*names);

        if (value && *value)
            return atol(value);
    }
    return fallback;
}

/* Replaces {name} and {name:0N}. */
static void substitute(char *out, size_t size, const struct plan *plan, int step, int rank)
{
    const struct {
        const char *name;
        int value;
    } tokens[] = {{"{run", plan->run}, {"{step", step}, {"{rank", rank}};
    size_t at = 0;

    for (const char *in = plan->pattern; *in;) {
        bool replaced = false;

        for (size_t i = 0; i < 3 && !replaced; i++) {
            size_t length = strlen(tokens[i].name);
            int width = 0, used = 0;

            if (strncmp(in, tokens[i].name, length) != 0)
                continue;
            if (in[length] == ':' && sscanf(in + length, ":%d}%n", &width, &used) == 1 && used)
                length += used;
            else if (in[length] == '}')
                length++;
            else
                continue;
            at += snprintf(out + at, at < size ? size - at : 0, "%0*d", width, tokens[i].value);
            in += length;
            replaced = true;
        }
        if (!replaced) {
            if (at < size)
                out[at] = *in;
            at++;
            in++;
        }
        if (at >= size) {
            errno = ENAMETOOLONG;
            fail(plan->pattern);
        }
    }
    out[at] = 0;
    if (plan->per_rank && !strstr(plan->pattern, "{rank"))
        at += snprintf(out + at, size - at, ".%d", rank);
    if (at >= size) {
        errno = ENAMETOOLONG;
        fail(plan->pattern);
    }
}

static void make_directories(const char *path)
{
    char part[PATH_MAX];

    strcpy(part, path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            fail(part);
        *slash = '/';
    }
}

static void write_block(int fd, const char *data, const struct plan *plan, uint64_t offset, const char *path)
{
    for (uint64_t done = 0; done < plan->block;) {
        uint64_t left = plan->block - done;
        ssize_t wrote;

        if (lseek(fd, (off_t)(offset + done), SEEK_SET) < 0)
            fail(path);
        wrote = write(fd, data, left < plan->transfer ? left : plan->transfer);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            fail(path);
        done += (uint64_t)wrote;
    }
}

static void run_rank(const struct plan *plan, int rank, int ranks)
{
    char path[PATH_MAX], *data = malloc(plan->transfer);

    if (!data)
        fail("transfer buffer");
    memset(data, 'a' + rank % 26, plan->transfer);
    for (int step = 0; step < plan->steps; step++) {
        int fd;

        substitute(path, sizeof(path), plan, step, rank);
        make_directories(path);
        fd = open(path, O_CREAT | O_RDWR, 0664);
        if (fd < 0)
            fail(path);
        for (int segment = 0; segment < plan->segments; segment++) {
            uint64_t row = plan->per_rank ? (uint64_t)segment : (uint64_t)segment * ranks + rank;

            write_block(fd, data, plan, row * plan->block, path);
        }
        if (close(fd) != 0)
            fail(path);
        if (plan->verbose)
            printf("rank %d step %d: %llu bytes to %s\n", rank, step,
                   (unsigned long long)(plan->block * plan->segments), path);
    }
    free(data);
}

static int fork_ranks(const struct plan *plan, char **argv)
{
    int failed = 0, status;

    for (int rank = 0; rank < plan->ranks; rank++) {
        char number[16];
        pid_t pid = fork();

        if (pid < 0)
            fail("fork");
        if (pid > 0)
            continue;
        snprintf(number, sizeof(number), "%d", rank);
        setenv("OMPI_COMM_WORLD_RANK", number, 1);
        snprintf(number, sizeof(number), "%d", plan->ranks);
        setenv("OMPI_COMM_WORLD_SIZE", number, 1);
        /* A rank is a program of its own: what is preloaded into it must see its rank from the start. */
        execv("/proc/self/exe", argv);
        fail("/proc/self/exe");
    }
    while (wait(&status) > 0)
        failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return failed;
}

int main(int argc, char **argv)
{
    static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    static const char *const size_names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
    struct plan plan = {.block = 16u << 20, .transfer = 1u << 20, .segments = 1, .steps = 1, .ranks = 1};
    long rank;
    int option;

    while ((option = getopt(argc, argv, "Fn:b:t:s:S:r:o:vh")) != -1) {
        switch (option) {
        case 'F':
            plan.per_rank = true;
            break;
        case 'n':
            plan.ranks = parse_count(optarg);
            break;
        case 'b':
            plan.block = parse_size(optarg);
            break;
        case 't':
            plan.transfer = parse_size(optarg);
            break;
        case 's':
            plan.segments = parse_count(optarg);
            break;
        case 'S':
            plan.steps = parse_count(optarg);
            break;
        case 'r':
            plan.run = parse_count(optarg);
            break;
        case 'o':
            plan.pattern = optarg;
            break;
        case 'v':
            plan.verbose = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return 0;
        default:
            wrong("unknown option");
        }
    }
    if (!plan.pattern || optind != argc || plan.ranks == 0)
        wrong("one output pattern (-o) and at least one rank are needed");
    if (strlen(plan.pattern) >= PATH_MAX)
        wrong("the output pattern is too long");
    rank = environment_number(rank_names, -1);
    if (rank < 0)
        return fork_ranks(&plan, argv);
    run_rank(&plan, (int)rank, (int)environment_number(size_names, 1));
    return 0;
}
