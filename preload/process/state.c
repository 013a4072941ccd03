/* Whose memory this is: by a page that a forked copy sees as zeros, and by the process id. */
#include "process/state.h"
#include "base/pages.h"
#include "base/rawsys.h"

#include <sys/auxv.h>

int tz_state;
int tz_counting;
int tz_memory_shared;
TZ_THREAD int tz_depth;
TZ_THREAD int tz_mine;
TZ_THREAD int tz_uncertain;

static int owner_pid;
static int *copy_mark; /* on a page that a forked copy sees as zeros; NULL where the kernel has no such page */
static void (*copied)(void);

/* Of the library's own zeros, where pages are small enough. */
static int *mark_page(void)
{
    TZ_LARGE static char room[2 * TZ_PAGE];

    return getauxval(AT_PAGESZ) == TZ_PAGE ? tz_page_in(room) : tz_pages(TZ_PAGE);
}

void tz_owner_begin(void (*call)(void))
{
    int *page = mark_page();

    copied = call;
    owner_pid = tz_config.ident.pid;
#ifdef MADV_WIPEONFORK
    if (page && madvise(page, TZ_PAGE, MADV_WIPEONFORK) == 0) {
        *page = 1;
        copy_mark = page;
    }
#endif
}

void tz_owner_forked(void)
{
    owner_pid = tz_getpid();
    tz_config.ident.pid = owner_pid;
    tz_mine = 0;
    if (copy_mark)
        tz_store(copy_mark, 1);
}

/* A copy made by a raw clone: no atfork handler ran. */
static void check_copy(void)
{
    if (copy_mark && tz_load(copy_mark) == 0)
        copied();
}

bool tz_owner(void)
{
    if (tz_mine == 0) {
        check_copy();
        tz_mine = tz_getpid() == owner_pid ? 1 : -1;
        if (tz_mine > 0) /* a child of vfork has gone its way */
            tz_uncertain = 0;
    }
    return tz_mine > 0;
}

bool tz_owner_quick(void)
{
    if (tz_mine || tz_uncertain || !copy_mark || tz_load(&tz_memory_shared))
        return tz_owner();
    check_copy();
    return true;
}
