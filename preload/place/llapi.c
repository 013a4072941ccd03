/* liblustreapi.so.1, opened at first use, and a plan in its terms. */
#include "place/llapi.h"

#include "base/lock.h"

#include <dlfcn.h>
#include <fcntl.h>

TZ_SYMVER(dlsym);
TZ_SYMVER(dlopen);

/* Values and signatures of Lustre's public header. */
enum { LLAPI_MDT = 0x2, LLAPI_OVERSTRIPED = 0x4 };

static struct {
    void *(*alloc)(void);
    void (*free)(void *layout);
    int (*stripe_count)(void *layout, uint64_t count);
    int (*stripe_size)(void *layout, uint64_t size);
    int (*extension_size)(void *layout, uint64_t size);
    int (*pattern)(void *layout, uint64_t pattern);
    int (*ost_index)(void *layout, int stripe, uint64_t index);
    int (*pool)(void *layout, const char *pool);
    int (*extent)(void *layout, uint64_t start, uint64_t end);
    int (*flags)(void *layout, uint32_t flags);
    int (*add)(void *layout);
    int (*file_open)(const char *path, int flags, mode_t mode, const void *layout);
    void (*message_level)(int level);
} llapi;

static int loaded; /* atomic: 1 usable, 2 not */
static struct tz_lock loading;

static bool load(void)
{
    static const struct {
        const char *name;
        void *to;
        bool needed;
    } symbols[] = {
        {"llapi_layout_alloc", &llapi.alloc, true},
        {"llapi_layout_free", &llapi.free, true},
        {"llapi_layout_stripe_count_set", &llapi.stripe_count, true},
        {"llapi_layout_stripe_size_set", &llapi.stripe_size, true},
        {"llapi_layout_extension_size_set", &llapi.extension_size, false}, /* not in 2.12 */
        {"llapi_layout_pattern_set", &llapi.pattern, true},
        {"llapi_layout_ost_index_set", &llapi.ost_index, true},
        {"llapi_layout_pool_name_set", &llapi.pool, true},
        {"llapi_layout_comp_extent_set", &llapi.extent, true},
        {"llapi_layout_comp_flags_set", &llapi.flags, true},
        {"llapi_layout_comp_add", &llapi.add, true},
        {"llapi_layout_file_open", &llapi.file_open, true},
        {"llapi_msg_set_level", &llapi.message_level, true},
    };
    void *library = dlopen("liblustreapi.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return false;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(library, symbols[i].name);

        if (!found && symbols[i].needed)
            return false;
        memcpy(symbols[i].to, &found, sizeof found);
    }
    llapi.message_level(0); /* it prints what it refuses */
    return true;
}

static bool usable(void)
{
    int state = tz_load(&loaded);

    if (state == 0 && tz_trylock(&loading)) {
        state = tz_load(&loaded);
        if (state == 0) {
            state = load() ? 1 : 2;
            tz_store(&loaded, state);
        }
        tz_unlock(&loading);
    }
    return state == 1;
}

static int add_component(void *layout, const struct tz_component *c, const uint16_t *osts, enum tz_request_lists lists)
{
    bool list = (c->flags & TZ_COMP_LIST) && (lists == TZ_LISTS_ALL || c->start == 0);
    bool hint = !list && (c->flags & (TZ_COMP_LIST | TZ_COMP_HINT));
    uint32_t n = list ? c->stripe_count : hint ? 1 : 0;
    int rc = 0;

    if (c->pattern & TZ_PATTERN_MDT)
        return llapi.pattern(layout, LLAPI_MDT);
    if ((c->pattern & TZ_PATTERN_OVERSTRIPED) && llapi.pattern(layout, LLAPI_OVERSTRIPED))
        return -1;
    if (llapi.stripe_size(layout, c->stripe_size) || llapi.stripe_count(layout, c->stripe_count))
        return -1;
    if (c->pool[0] && llapi.pool(layout, c->pool))
        return -1;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = llapi.ost_index(layout, (int)i, osts[c->first_ost + i]);
    return rc;
}

static int add_extension(void *layout, const struct tz_component *c)
{
    uint64_t start = c->start ? c->start : c->extension;

    if (!llapi.extension_size) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (llapi.add(layout) || llapi.extent(layout, start, c->end) || llapi.flags(layout, TZ_LCME_EXTENSION) ||
        llapi.extension_size(layout, c->extension) || llapi.stripe_count(layout, c->stripe_count))
        return -1;
    return c->pool[0] ? llapi.pool(layout, c->pool) : 0;
}

static int fill(void *layout, const struct tz_plan *plan, enum tz_request_lists lists)
{
    for (uint16_t i = 0; i < plan->layout.count; i++) {
        const struct tz_component *c = &plan->layout.components[i];
        bool grows = c->flags & TZ_COMP_SEL;
        uint64_t end = !grows ? c->end : c->start ? c->start : c->extension;

        if (i && llapi.add(layout))
            return -1;
        if (plan->layout.composite && llapi.extent(layout, c->start, end))
            return -1;
        if (add_component(layout, c, plan->row.osts, lists) || (grows && add_extension(layout, c)))
            return -1;
    }
    return 0;
}

/* llapi takes no directory descriptor, and where that directory is now is not known for sure. */
static bool has_path(const struct tz_call *call)
{
    return call->path[0] == '/' || call->dirfd == AT_FDCWD;
}

int tz_llapi_open(const struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int flags)
{
    void *layout;
    int fd = -1, saved;

    if (!has_path(&c->call) || !usable()) {
        errno = ENOSYS;
        return -1;
    }
    layout = llapi.alloc();
    if (!layout || fill(layout, plan, lists)) {
        if (layout)
            llapi.free(layout);
        errno = ENOSYS; /* nothing was opened: do it ourselves */
        return -1;
    }
    fd = llapi.file_open(c->call.path, flags, c->call.mode, layout);
    saved = errno;
    llapi.free(layout);
    errno = saved == ENOSYS ? EINVAL : saved;
    return fd;
}
