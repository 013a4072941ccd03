/* The calls that make directories. */
#include "life/start.h"
#include "life/withdraw.h"
#include "place/current.h"
#include "place/decide.h"
#include "place/mkdir.h"
#include "process/state.h"
#include "process/stop.h"
#include "record/node.h"
#include "record/recorder.h"

/* The path without slashes at its end, in the scratch; NULL where it names no directory that could be made. */
static const char *trimmed(const char *path, struct tz_scratch **scratch)
{
    size_t length = path ? strlen(path) : 0;

    if (length == 0 || length >= TZ_PATH_MAX)
        return NULL;
    if (path[length - 1] != '/')
        return path;
    if (!tz_scratch_need(scratch))
        return NULL;
    while (length > 1 && path[length - 1] == '/')
        length--;
    memcpy((*scratch)->opened, path, length);
    (*scratch)->opened[length] = '\0';
    return (*scratch)->opened;
}

static bool locate(struct tz_create *c, const struct tz_call *call)
{
    struct tz_scratch *scratch = NULL;
    const char *path = trimmed(call->path, &scratch);
    struct tz_where where;

    if (!path || !tz_locate(call->dirfd, path, &scratch, &where) || !tz_key_wanted(where.key, where.key_length)) {
        tz_scratch_put(scratch);
        return false;
    }
    *c = (struct tz_create){.call = *call, .scratch = scratch, .where = where, .mdt = -1};
    return true;
}

static int make(struct tz_create *c)
{
    bool stopped = tz_stopped(&c->said), place;
    int result, saved = errno;
    uint16_t mdt = 0;

    if (tz_unlikely(c->said.again))
        tz_current_retry();
    tz_template(c->where.key, c->where.key_length, &tz_config.ident, &c->scratch->names);
    c->nth = TZ_NO_NTH;
    if (tz_owner_quick())
        tz_counters_take(c->where.mount, c->where.key, c->where.key_length, &c->scratch->names, true, &c->nth);
    place = !stopped && tz_place_decide_directory(c, &mdt);
    errno = saved;
    result = place ? tz_place_mkdir(c, mdt) : tz_call_mkdir(&c->call);
    saved = errno;
    c->existence = result ? TZ_EXISTED : TZ_FRESH;
    if (result && saved != EEXIST)
        tz_counters_return(&c->nth);
    else if (!stopped)
        tz_record_directory(c);
    else if (!result)
        tz_node_passed_over();
    errno = saved;
    return result;
}

static int hook_mkdir(const struct tz_call *call)
{
    int result, saved = errno;
    struct tz_create create;

    if (!tz_enter())
        return tz_call_mkdir(call);
    if (!tz_withdrawn() && locate(&create, call)) {
        errno = saved;
        result = make(&create);
        saved = errno;
        tz_scratch_put(create.scratch);
        errno = saved;
    } else {
        errno = saved;
        result = tz_call_mkdir(call);
    }
    tz_leave();
    return result;
}

TZ_EXPORT int mkdir(const char *path, mode_t mode)
{
    return hook_mkdir(&(struct tz_call){TZ_SYM_mkdir, AT_FDCWD, path, 0, mode});
}

TZ_EXPORT int mkdirat(int dirfd, const char *path, mode_t mode)
{
    return hook_mkdir(&(struct tz_call){TZ_SYM_mkdirat, dirfd, path, 0, mode});
}
