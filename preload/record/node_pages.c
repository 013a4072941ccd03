/* Which piece a place of the node file lies in, and mapping it when something there is asked for. */
#include "record/node_pages.h"
#include "base/pages.h"
#include "base/rawsys.h"
#include "record/spool_files.h"

enum { FIRST_BITS = 18, PIECES = 9 };

_Static_assert(1 << (FIRST_BITS + PIECES - 1) == TZ_NODE_LONGEST, "the last piece ends there");

static uint8_t *pieces[PIECES]; /* atomic pointers */

static unsigned piece_of(uint64_t place)
{
    return place >> FIRST_BITS ? 64 - (unsigned)__builtin_clzll(place >> FIRST_BITS) : 0;
}

static uint64_t begin_of(unsigned piece)
{
    return piece ? 1ULL << (FIRST_BITS + piece - 1) : 0;
}

static size_t size_of(unsigned piece)
{
    return piece ? begin_of(piece) : 1ULL << FIRST_BITS;
}

/* Whichever thread is first. */
static uint8_t *map(int fd, unsigned piece)
{
    uint8_t *made = tz_pages_of(fd, begin_of(piece), size_of(piece), PROT_READ | PROT_WRITE), *found = NULL;

    if (!made || __atomic_compare_exchange_n(&pieces[piece], &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    tz_pages_free(made, size_of(piece));
    return found;
}

void *tz_node_begin(int fd)
{
    uint8_t *begin = map(fd, 0);

    if (begin)
        __atomic_fetch_or(begin, 0, __ATOMIC_RELAXED); /* a page that is read before it is written costs two faults */
    return begin;
}

void tz_node_not(void)
{
    tz_pages_free(__atomic_exchange_n(&pieces[0], NULL, __ATOMIC_ACQ_REL), size_of(0));
}

static uint8_t *open_piece(unsigned piece)
{
    struct tz_stat st;
    int fd = tz_spool_open(TZ_NODE_NAME, O_RDWR, &st);
    uint8_t *pages;

    if (fd < 0)
        return NULL;
    pages = map(fd, piece);
    tz_sys_close(fd);
    return pages;
}

void *tz_node_at(uint64_t place, size_t length)
{
    unsigned piece = piece_of(place);
    uint8_t *pages;

    if (place + length > TZ_NODE_LONGEST || piece != piece_of(place + length - 1))
        return NULL;
    pages = tz_load(&pieces[piece]);
    if (tz_unlikely(!pages))
        pages = open_piece(piece);
    return pages ? pages + (place - begin_of(piece)) : NULL;
}

uint64_t tz_node_whole(uint64_t place, size_t length)
{
    unsigned last = piece_of(place + length - 1);

    return piece_of(place) == last ? place : begin_of(last);
}
