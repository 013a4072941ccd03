/* liblustreapi.so.1, opened at first use, and a plan in its terms. */
#include "place/llapi.h"
#include "base/lock.h"
#include "base/symbols.h"

#include <dlfcn.h>
#include <signal.h>

/* Result, name behind "llapi_", parameters, and whether nothing goes without it: 2.12 has no extension sizes. */
#define SYMBOLS                                                                                                        \
    SYMBOL(void *, layout_alloc, (void), true)                                                                         \
    SYMBOL(void, layout_free, (void *layout), true)                                                                    \
    SYMBOL(int, layout_stripe_count_set, (void *layout, uint64_t count), true)                                         \
    SYMBOL(int, layout_stripe_size_set, (void *layout, uint64_t size), true)                                           \
    SYMBOL(int, layout_extension_size_set, (void *layout, uint64_t size), false)                                       \
    SYMBOL(int, layout_pattern_set, (void *layout, uint64_t pattern), true)                                            \
    SYMBOL(int, layout_ost_index_set, (void *layout, int stripe, uint64_t index), true)                                \
    SYMBOL(int, layout_pool_name_set, (void *layout, const char *pool), true)                                          \
    SYMBOL(int, layout_comp_extent_set, (void *layout, uint64_t start, uint64_t end), true)                            \
    SYMBOL(int, layout_comp_flags_set, (void *layout, uint32_t flags), true)                                           \
    SYMBOL(int, layout_comp_add, (void *layout), true)                                                                 \
    SYMBOL(int, layout_file_open, (const char *path, int flags, mode_t mode, const void *layout), true)                \
    SYMBOL(void, msg_set_level, (int level), true)

#define SYMBOL(result, name, parameters, needed) result(*name) parameters;
static struct {
    SYMBOLS
} llapi;
#undef SYMBOL

static int loaded; /* atomic: 1 usable, 2 not */
static struct tz_lock loading;

static void *(*open_library)(const char *name, int flags);
static int open_flags = RTLD_NOW | RTLD_LOCAL;

/*
 * Before there are threads: libc before 2.34 has dlopen in a library of its own, and whoever looks for what is not
 * there goes through all libraries, also those that another thread unloads meanwhile. What that dlopen calls is in
 * libc.
 */
__attribute__((constructor)) static void look_up(void)
{
    const int by_dlopen = (int)0x80000000;
    void *found = tz_symbol_behind("dlopen");

    if (!found) {
        found = tz_symbol_behind("__libc_dlopen_mode");
        open_flags |= by_dlopen;
    }
    memcpy(&open_library, &found, sizeof found);
}

static bool load(void)
{
#define SYMBOL(result, name, parameters, needed) {"llapi_" #name, &llapi.name, needed},
    static const struct {
        const char *name;
        void *to;
        bool needed;
    } symbols[] = {SYMBOLS};
    void *library = open_library ? open_library("liblustreapi.so.1", open_flags) : NULL;

    if (!library)
        return false;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = tz_symbol_of(library, symbols[i].name);

        if (!found && symbols[i].needed)
            return false;
        memcpy(symbols[i].to, &found, sizeof found);
    }
    llapi.msg_set_level(0); /* it prints what it refuses */
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

    if (c->pattern & LOV_PATTERN_MDT)
        return llapi.layout_pattern_set(layout, LLAPI_LAYOUT_MDT);
    if ((c->pattern & LOV_PATTERN_OVERSTRIPING) && llapi.layout_pattern_set(layout, LLAPI_LAYOUT_OVERSTRIPING))
        return -1;
    if (llapi.layout_stripe_size_set(layout, c->stripe_size) || llapi.layout_stripe_count_set(layout, c->stripe_count))
        return -1;
    if (c->pool[0] && llapi.layout_pool_name_set(layout, c->pool))
        return -1;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = llapi.layout_ost_index_set(layout, (int)i, osts[c->first_ost + i]);
    return rc;
}

static int add_extension(void *layout, const struct tz_component *c)
{
    uint64_t start = c->start ? c->start : c->extension;

    if (!llapi.layout_extension_size_set) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (llapi.layout_comp_add(layout) || llapi.layout_comp_extent_set(layout, start, c->end) ||
        llapi.layout_comp_flags_set(layout, LCME_FL_EXTENSION) ||
        llapi.layout_extension_size_set(layout, c->extension) || llapi.layout_stripe_count_set(layout, c->stripe_count))
        return -1;
    return c->pool[0] ? llapi.layout_pool_name_set(layout, c->pool) : 0;
}

static int fill(void *layout, const struct tz_plan *plan, enum tz_request_lists lists)
{
    for (uint16_t i = 0; i < plan->layout.count; i++) {
        const struct tz_component *c = &plan->layout.components[i];
        bool grows = c->flags & TZ_COMP_SEL;
        uint64_t end = !grows ? c->end : c->start ? c->start : c->extension;

        if (i && llapi.layout_comp_add(layout))
            return -1;
        if (plan->layout.composite && llapi.layout_comp_extent_set(layout, c->start, end))
            return -1;
        if (add_component(layout, c, plan->row.osts, lists) || (grows && add_extension(layout, c)))
            return -1;
    }
    return 0;
}

/* A signal handler's own stack: nobody says how much of one liblustreapi needs. */
static bool on_small_stack(void)
{
    stack_t stack;

    return syscall(SYS_sigaltstack, NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK);
}

int tz_llapi_open(const struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int flags)
{
    void *layout;
    int fd = -1, saved;

    /* llapi takes no directory descriptor, and where that directory is now is not known for sure. */
    if ((c->call.path[0] != '/' && c->call.dirfd != AT_FDCWD) || on_small_stack() || !usable()) {
        errno = ENOSYS;
        return -1;
    }
    layout = llapi.layout_alloc();
    if (!layout || fill(layout, plan, lists)) {
        if (layout)
            llapi.layout_free(layout);
        errno = ENOSYS; /* nothing was opened: do it ourselves */
        return -1;
    }
    fd = llapi.layout_file_open(c->call.path, flags, c->call.mode, layout);
    saved = errno;
    llapi.layout_free(layout);
    errno = saved == ENOSYS ? EINVAL : saved;
    return fd;
}
