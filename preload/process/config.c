/* The settings, from the environment: what each variable means is in the documentation. */
#include "process/config.h"
#include "base/glob.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "process/filter.h"
#include "process/outside.h"
#include "process/sanitizer.h"

#include <stdlib.h>
#include <sys/auxv.h>

TZ_MIDDLE struct tz_config tz_config;

extern char *program_invocation_short_name;

static bool copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length >= size)
        return false;
    memcpy(to, from, length + 1);
    return true;
}

static const char *first_set(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);

        if (value && *value)
            return value;
    }
    return NULL;
}

/* A whole non-negative number, or `otherwise`. */
static int64_t number(const char *text, int64_t otherwise)
{
    uint64_t value;

    if (!text || !*text)
        return otherwise;
    value = tz_read_number(&text, 10);
    return *text || value > INT32_MAX ? otherwise : (int64_t)value;
}

/* Does one of a list of ':'-separated globs match? */
static bool glob_any(const char *globs, const char *text)
{
    while (globs && *globs) {
        size_t length = tz_until(globs, ':');

        if (length && tz_glob(globs, length, text))
            return true;
        globs += length + (globs[length] == ':');
    }
    return false;
}

/* OMPIO tests locking with `<file>.locktest.<rank>`, one per rank and MPI_File_open, unlinked at once. */
static bool is_lock_test(const char *key, size_t length)
{
    const char *p = key + length, *digits = p;

    while (p > key && p[-1] >= '0' && p[-1] <= '9')
        p--;
    return p < digits && p - key >= 10 && memcmp(p - 10, ".locktest.", 10) == 0;
}

bool tz_key_wanted(const char *key, size_t length)
{
    if (is_lock_test(key, length))
        return false;
    if (tz_config.include && !glob_any(tz_config.include, key))
        return false;
    return !tz_config.exclude || !glob_any(tz_config.exclude, key);
}

static void read_identity(void)
{
    static const char *const jobs[] = {"TARAZU_JOB",  "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
                                       "FLUX_JOB_ID", "JOB_ID",       NULL};
    static const char *const rank[] = {"TARAZU_RANK", "PMIX_RANK",          "OMPI_COMM_WORLD_RANK",
                                       "PMI_RANK",    "SLURM_PROCID",       "MV2_COMM_WORLD_RANK",
                                       "ALPS_APP_PE", "JSM_NAMESPACE_RANK", NULL};
    static const char *const ranks[] = {
        "TARAZU_RANKS",        "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
        "MV2_COMM_WORLD_SIZE", "JSM_NAMESPACE_SIZE",   NULL};
    /* Not SLURM_NTASKS: a batch script has it too, where rank 0 is all there is. */
    const char *job = first_set(jobs), *array = getenv("TARAZU_ARRAY_JOB");

    if (job)
        strncpy(tz_config.job, job, sizeof tz_config.job - 1);
    if (array)
        strncpy(tz_config.array_job, array, sizeof tz_config.array_job - 1);
    if (gethostname(tz_config.host, sizeof tz_config.host - 1) || !tz_config.host[0])
        copy(tz_config.host, sizeof tz_config.host, "unknown");
    if (program_invocation_short_name)
        strncpy(tz_config.program, program_invocation_short_name, sizeof tz_config.program - 1);
    tz_config.ranks = (int32_t)number(first_set(ranks), 0);
    tz_config.ident = (struct tz_ident){.job_id = tz_config.job,
                                        .array_job = tz_config.array_job,
                                        .array_index = (int32_t)number(getenv("TARAZU_ARRAY_INDEX"), -1),
                                        .host = tz_config.host,
                                        .rank = (int32_t)number(first_set(rank), -1),
                                        .pid = tz_getpid()};
}

/* TARAZU_SPOOL with %h replaced by the host name. */
static void read_spool(const char *setting)
{
    size_t length = 0, host = strlen(tz_config.host);

    for (const char *p = setting; *p; p++) {
        bool is_host = p[0] == '%' && p[1] == 'h';
        const char *from = is_host ? tz_config.host : p;
        size_t n = is_host ? host : 1;

        if (length + n >= sizeof tz_config.spool) {
            tz_config.spool[0] = '\0';
            return;
        }
        memcpy(tz_config.spool + length, from, n);
        length += n;
        p += is_host;
    }
    tz_config.spool[length] = '\0';
    memcpy(tz_config.spool_beside, tz_config.spool, length + 1);
    for (size_t i = length; i > 0; i--)
        if (tz_config.spool_beside[i - 1] == '/') {
            tz_config.spool_beside[i - 1] = '.';
            break;
        }
}

static bool take_field(const char **text, char *to, size_t size)
{
    size_t length = tz_until(*text, ':');

    if (length >= size)
        return false;
    memcpy(to, *text, length);
    to[length] = '\0';
    *text += length;
    *text += **text == ':';
    return true;
}

/*
 * TARAZU_HERE, what the leader has found for the processes of its node: "host:device:inode:type:device:type", of the
 * spool directory, of the file system that the stop file lies on, and of that of the control page.
 */
static void read_here(const char *p)
{
    struct tz_here *here = &tz_config.here;
    char host[TZ_HOST_MAX];

    if (!p || !take_field(&p, host, sizeof host) || strcmp(host, tz_config.host) != 0)
        return;
    here->spool.dev = tz_read_number(&p, 10);
    p += *p == ':';
    here->spool.ino = tz_read_number(&p, 10);
    p += *p == ':';
    if (!take_field(&p, here->stop_type, sizeof here->stop_type))
        return;
    here->map_dev = tz_read_number(&p, 10);
    p += *p == ':';
    take_field(&p, here->map_type, sizeof here->map_type);
}

static bool equals(const char *value, const char *word)
{
    return value && strcmp(value, word) == 0;
}

/* Copies: the program may change its environment later. A list too long to keep must not be half obeyed. */
static bool copy_lists(void)
{
    TZ_LARGE static char include[TZ_GLOBS_MAX], exclude[TZ_GLOBS_MAX];
    const char *wanted = getenv("TARAZU_INCLUDE"), *unwanted = getenv("TARAZU_EXCLUDE");

    if (wanted && *wanted)
        tz_config.include = include;
    if (unwanted && *unwanted)
        tz_config.exclude = exclude;
    return (!tz_config.include || copy(include, sizeof include, wanted)) &&
           (!tz_config.exclude || copy(exclude, sizeof exclude, unwanted));
}

bool tz_config_read(void)
{
    const char *spool, *map, *value = getenv("TARAZU_DISABLE");

    if ((value && *value && !equals(value, "0")) || getauxval(AT_SECURE) || tz_sanitized())
        return false;
    if (getenv("TARAZU_STEP") && tz_outside()) {
        tz_leave();
        return false;
    }
    spool = getenv("TARAZU_SPOOL");
    map = getenv("TARAZU_MAP");
    value = getenv("TARAZU_MODE");
    tz_config.mode = equals(value, "place") ? TZ_PLACE : equals(value, "advise") ? TZ_ADVISE : TZ_OBSERVE;
    value = getenv("TARAZU_RECORD");
    tz_config.recorder = equals(value, "full") ? TZ_RECORD_FULL : TZ_RECORD_LIGHT;
    if (!spool || !*spool || equals(value, "off"))
        tz_config.recorder = TZ_RECORD_OFF;
    if (!map || !copy(tz_config.map, sizeof tz_config.map, map))
        tz_config.map[0] = '\0';
    if (tz_config.recorder == TZ_RECORD_OFF && (tz_config.mode == TZ_OBSERVE || !tz_config.map[0]))
        return false;
    value = getenv("TARAZU_STOP");
    if (!value || value[0] != '/' || !copy(tz_config.stop, sizeof tz_config.stop, value))
        tz_config.stop[0] = '\0';
    if (tz_filtered()) /* before any other call to the kernel */
        return false;
    read_identity();
    if (glob_any(getenv("TARAZU_EXCLUDE_PROGRAMS"), tz_config.program))
        return false;
    if (tz_config.recorder != TZ_RECORD_OFF) {
        read_spool(spool);
        tz_config.spool_limit = (uint64_t)number(getenv("TARAZU_SPOOL_KIB"), 0) << 10;
    }
    read_here(getenv("TARAZU_HERE"));
    tz_config.llapi = equals(getenv("TARAZU_APPLY"), "llapi");
    tz_config.hints = equals(getenv("TARAZU_LISTS"), "hints");
    tz_config.trusted_uid = number(getenv("TARAZU_UID"), -1);
    return copy_lists();
}
