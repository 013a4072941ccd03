/*
 * A launcher hands its environment to more than the program. Slurm's task prolog and epilog and srun's own run with it,
 * and may leave something running; a job that is submitted from the program takes it along into another job, whose
 * shell it is not meant for.
 */
#include "process/outside.h"
#include "base/rawsys.h"
#include "base/text.h"

#include <stdlib.h>

extern char *program_invocation_short_name;

static const char *const submits[] = {"sbatch", "qsub", "bsub", "msub", "yhbatch", NULL};
/* What `tarazu run` sets; TARAZU_RUN_… and the like are the user's own. */
static const char *const ours[] = {"TARAZU_STEP",
                                   "TARAZU_MODE",
                                   "TARAZU_RECORD",
                                   "TARAZU_SPOOL",
                                   "TARAZU_HERE",
                                   "TARAZU_SPOOL_KIB",
                                   "TARAZU_APPLY",
                                   "TARAZU_LISTS",
                                   "TARAZU_INCLUDE",
                                   "TARAZU_EXCLUDE",
                                   "TARAZU_EXCLUDE_PROGRAMS",
                                   "TARAZU_MAP",
                                   "TARAZU_STOP",
                                   "TARAZU_JOB",
                                   "TARAZU_ARRAY_JOB",
                                   "TARAZU_ARRAY_INDEX",
                                   NULL};
/* Open MPI warns at each start of names in these that have no value. */
static const char *const lists[] = {"OMPI_MCA_mca_base_env_list", "OMPI_MCA_mca_base_env_list_internal", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Name and parent of a process, by /proc/PID/stat: `123 (name) S 45 …`. False where that cannot be read. */
static bool look_at(pid_t pid, char *name, size_t size, pid_t *parent)
{
    char path[64], digits[21], text[512], *open, *close;
    ssize_t length = -1;
    int fd;

    tz_put_number(digits, (uint64_t)pid, 10);
    if (!tz_join(path, sizeof path, (const char *const[]){"/proc/", digits, "/stat", NULL}))
        return false;
    fd = tz_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        length = syscall(SYS_read, fd, text, sizeof text - 1);
        tz_sys_close(fd);
    }
    if (length <= 0)
        return false;
    text[length] = '\0';
    open = strchr(text, '(');
    close = strrchr(text, ')');
    if (!open || !close || close < open || (size_t)(close - open) > size || strlen(close) < 5)
        return false;
    *close = '\0';
    memcpy(name, open + 1, (size_t)(close - open));
    *parent = (pid_t)tz_number_of(close + 4, strspn(close + 4, "0123456789"), 10);
    return true;
}

/*
 * The variable alone does not tell: tasks have that of the prologs before them. A task is started by the step's daemon;
 * its prolog by what is to become the task, while that still bears the daemon's name; srun's prolog by srun.
 */
static bool is_prolog(void)
{
    const char *context = getenv("SLURM_SCRIPT_CONTEXT");
    char name[64];
    pid_t above, next;

    if (!context || (strncmp(context, "prolog_", 7) && strncmp(context, "epilog_", 7)))
        return false;
    if (!look_at(getppid(), name, sizeof name, &above))
        return false;
    if (strcmp(name, "srun") == 0)
        return true;
    if (strncmp(name, "slurmstepd", 10))
        return false;
    return strcmp(context, "epilog_task") == 0 ||
           (look_at(above, name, sizeof name, &next) && strncmp(name, "slurmstepd", 10) == 0);
}

bool tz_outside(void)
{
    return is_one_of(program_invocation_short_name ? program_invocation_short_name : "", submits) || is_prolog();
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t size = strlen(end);

    return length >= size && memcmp(text + length - size, end, size) == 0;
}

static bool is_library(const char *entry, size_t length)
{
    return ends_with(entry, length, "/libtarazu.so");
}

static bool is_our_name(const char *entry, size_t length)
{
    return length >= 7 && (memcmp(entry, "TARAZU_", 7) == 0 || (length == 10 && memcmp(entry, "LD_PRELOAD", 10) == 0));
}

/* A variable's list without some entries; without any left the variable goes. */
static void drop(const char *variable, const char *separators, bool (*dropped)(const char *, size_t))
{
    char *value = getenv(variable), *to, *copy;
    bool changed = false;

    if (!value || !(copy = malloc(strlen(value) + 1)))
        return;
    to = copy;
    for (const char *p = value; *p;) {
        size_t length = strcspn(p, separators);

        if (length && dropped(p, length)) {
            changed = true;
        } else if (length) {
            if (to > copy)
                *to++ = *separators;
            memcpy(to, p, length);
            to += length;
        }
        p += length + (p[length] != '\0');
    }
    *to = '\0';
    if (changed && to > copy)
        setenv(variable, copy, 1);
    else if (changed)
        unsetenv(variable);
    free(copy);
}

void tz_leave(void)
{
    drop("LD_PRELOAD", ": ", is_library);
    for (const char *const *list = lists; *list; list++)
        drop(*list, ";", is_our_name);
    for (const char *const *name = ours; *name; name++)
        unsetenv(*name);
}
