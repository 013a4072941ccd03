/* Before and after an open: is the path managed, is all stopped, what is planned; then the record. */
#include "hooks/opening.h"
#include "base/rawsys.h"
#include "life/withdraw.h"
#include "place/apply.h"
#include "place/current.h"
#include "place/decide.h"
#include "process/state.h"
#include "process/stop.h"
#include "record/node.h"
#include "record/recorder.h"

bool tz_opening_begin(struct tz_opening *o, const struct tz_call *call)
{
    struct tz_create *c = &o->create;
    struct tz_scratch *scratch = NULL;
    struct tz_where where;
    int saved = errno;

    if (tz_withdrawn())
        return false;
    if (!tz_locate(call->dirfd, call->path, &scratch, &where) || !tz_key_wanted(where.key, where.key_length)) {
        tz_scratch_put(scratch);
        errno = saved;
        return false;
    }
    *c = (struct tz_create){.call = *call, .scratch = scratch, .where = where};
    o->creates = call->flags & O_CREAT;
    o->place = false;
    o->stopped = tz_stopped(&c->said);
    if (tz_unlikely(c->said.again))
        tz_current_retry();
    if (o->creates) {
        if (call->flags & O_EXCL)
            c->existence = TZ_FRESH;
        tz_template(c->where.key, c->where.key_length, &tz_config.ident, &c->scratch->names);
        c->nth = TZ_NO_NTH;
        if (tz_owner_quick())
            tz_counters_take(c->where.mount, c->where.key, c->where.key_length, &c->scratch->names, &c->nth);
        o->place = !o->stopped && tz_place_decide(c, &o->plan);
    }
    errno = saved;
    return true;
}

/* What is open now, where a record needs it. */
static bool look_at(const struct tz_create *c, bool creates, int fd, struct tz_stat *st)
{
    bool writes = (c->call.flags & O_ACCMODE) != O_RDONLY;

    return tz_config.recorder != TZ_RECORD_OFF && (writes || (creates && c->existence == TZ_PERHAPS)) &&
           tz_look(fd, st) == 0;
}

static void record(struct tz_create *c, bool creates, int fd, FILE *stream)
{
    struct tz_stat room, *st = look_at(c, creates, fd, &room) ? &room : NULL;
    enum tz_made made = creates ? tz_record_create(c, st) : TZ_NOT_MADE;

    tz_record_open(fd, st, &c->where, c->call.flags, made, stream);
}

void tz_opening_end(struct tz_opening *o, int fd, FILE *stream)
{
    struct tz_create *c = &o->create;
    int saved = errno;

    if (fd < 0) {
        if (o->creates)
            tz_counters_return(&c->nth);
    } else if (o->stopped) {
        if (o->creates)
            tz_node_passed_over(); /* names are counted on: those of later files must be found again */
    } else {
        if (!o->place && c->existence != TZ_FRESH)
            tz_place_opened(c, fd);
        record(c, o->creates, fd, stream);
    }
    tz_scratch_put(c->scratch);
    errno = saved;
}
