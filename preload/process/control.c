/*
 * Reading the control page. Where a mapping shows what others store it is mapped once, and a look is a load. On NFS,
 * and on whatever is not known, a mapped page may stay as it was: there the file is opened anew, which makes the client
 * ask its server, a few times a second until there is a map, and once a second from then on.
 */
#include "process/control.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "core/map_open.h"
#include "process/mounts.h"
#include "process/state.h"
#include "process/trusted.h"

enum {
    PAGE = 4096,
    RETRY_NS = 20000000,
    EARLY_NS = 200000000,
    LATER_NS = 1000000000,
    SHARE = 20, /* looks take a twentieth of the time at most */
    OFF_GENERATION = 16,
    OFF_STOPPED = 24,
    OFF_SITE_STOPPED = 32
};

static struct {
    struct tz_lock lock;
    const uint8_t *page;          /* atomic: mapped, where a mapping shows what other nodes store */
    uint64_t due_ns;              /* atomic: the next look at the file */
    uint64_t generation, stopped; /* atomic: as the last look found them, where there is no such mapping */
    int found;                    /* atomic: one has found them */
} control;

/* A map that was sent lies beside the spools, in a place where somebody else may have been first. */
static bool is_kept(void)
{
    static struct tz_identity directory;
    size_t length = strlen(tz_config.spool);
    int fd;

    if (!length || strncmp(tz_config.map, tz_config.spool, length) != 0 || tz_config.map[length] != '/')
        return true;
    fd = tz_trusted_directory(tz_config.map, false, &directory);
    if (fd < 0)
        return false;
    tz_sys_close(fd);
    return true;
}

bool tz_control_path(char *out, size_t size, const char *name, uint64_t number)
{
    char digits[24] = "";

    if (number)
        tz_put_number(digits, number, 10);
    return is_kept() && tz_join(out, size, (const char *[]){tz_config.map, "/", name, digits, NULL});
}

static bool is_page(const uint8_t *page)
{
    return memcmp(page, "TZCTRL01", 8) == 0 && tz_get32(page + 8) == 1;
}

static void map_page(int fd)
{
    uint8_t *page = tz_pages_of(fd, 0, PAGE, PROT_READ);

    if (page && is_page(page))
        tz_store(&control.page, page);
    else
        tz_pages_free(page, PAGE);
}

static void read_page(int fd)
{
    _Alignas(8) uint8_t head[OFF_SITE_STOPPED + 8];

    if (syscall(SYS_pread64, fd, head, sizeof head, 0) != (long)sizeof head || !is_page(head))
        return;
    tz_store(&control.stopped, tz_get64(head + OFF_STOPPED) | tz_get64(head + OFF_SITE_STOPPED));
    tz_store(&control.generation, tz_get64(head + OFF_GENERATION));
    tz_store(&control.found, 1);
}

/* Under the lock. What cannot be read changes nothing. */
static void look_at_file(void)
{
    TZ_MIDDLE static char path[1100];
    struct tz_stat st;
    int fd;

    if (!tz_control_path(path, sizeof path, "control", 0))
        return;
    fd = tz_sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (!tz_map_trust(fd, tz_config.trusted_uid, PAGE, &st)) {
        if (!control.found && tz_mount_is_coherent(st.dev))
            map_page(fd);
        else
            read_page(fd);
    }
    tz_sys_close(fd);
}

/* Until the next look: a server that takes long is asked less often. */
static uint64_t pause_ns(uint64_t took_ns)
{
    bool awaits_map = tz_config.mode != TZ_OBSERVE && control.generation == 0;
    uint64_t least = !awaits_map ? LATER_NS : control.found ? EARLY_NS : RETRY_NS;

    return took_ns * SHARE > least ? took_ns * SHARE : least;
}

/* When the file is to be looked at. Who comes during the first look waits for it, later on nobody does. */
static bool look_when_due(void)
{
    uint64_t began = tz_about_steady_ns(), ended;
    bool looked = false;

    if (began < tz_load(&control.due_ns) || !tz_owner() || !tz_trylock_slow(&control.lock, !tz_load(&control.found)))
        return false;
    if (!tz_load(&control.page) && began >= tz_load(&control.due_ns)) {
        look_at_file();
        ended = tz_about_steady_ns();
        tz_store(&control.due_ns, ended + pause_ns(ended - began));
        looked = true;
    }
    tz_unlock(&control.lock);
    return looked;
}

static uint64_t word_of(const uint8_t *page, int offset)
{
    return tz_load((const uint64_t *)(const void *)(page + offset));
}

void tz_control_look(struct tz_said *said)
{
    const uint8_t *page = tz_load(&control.page);

    *said = (struct tz_said){0};
    if (!tz_config.map[0])
        return;
    if (tz_unlikely(!page)) {
        said->again = look_when_due();
        page = tz_load(&control.page);
    }
    said->mapped = page != NULL;
    if (tz_likely(said->mapped)) {
        said->stopped = (word_of(page, OFF_STOPPED) | word_of(page, OFF_SITE_STOPPED)) != 0;
        said->generation = word_of(page, OFF_GENERATION);
    } else {
        said->stopped = tz_load(&control.stopped) != 0;
        said->generation = tz_load(&control.generation);
    }
}
