/*
 * A table of three kinds of entry, told apart by the letter in what is hashed: a template's next n, a name's two n.
 * No lock: a child that shares the memory, or a thread, may be killed anywhere in here and leaves nothing locked.
 *
 * A key lies in its bucket of the first level whose bucket had room, in the last level in the first slot behind it that
 * was free. Slots are never freed, so that a full bucket stays full and the search for a key always takes the same way.
 *
 * All levels together are 4.6 MiB, room for some 80,000 files that are made and closed. When a key finds none, nothing
 * new is taken in any more: who was counted before keeps its numbers, all others have none.
 */
#include "names/counters.h"
#include "base/hash.h"
#include "base/pages.h"

enum { BUCKET = 8, LEVELS = 4, LEAST_BITS = 5, FIRST_BITS = 9, MORE_BITS = 3, LAST_SLOTS = 256 };

/* In it the first level: a page, all that most processes need. */
TZ_LARGE static char room[2 * TZ_PAGE];
static struct tz_counter *levels[LEVELS]; /* atomic pointers; of the first one not used */
static int full;                          /* atomic */

static unsigned bits(int level)
{
    return level ? FIRST_BITS + MORE_BITS * (unsigned)(level - 1) : LEAST_BITS;
}

static size_t size(int level)
{
    return sizeof(struct tz_counter) * BUCKET << bits(level);
}

static struct tz_counter *least(void)
{
    return tz_page_in(room);
}

struct tz_counter *tz_counters_slot(uint64_t key)
{
    for (int i = 0; i < LEVELS; i++) {
        uint64_t first = BUCKET * (key >> (64 - bits(i))), mask = ((uint64_t)BUCKET << bits(i)) - 1;
        struct tz_counter *level = i ? tz_pages_once(&levels[i], size(i)) : least();

        if (!level)
            return NULL;
        for (uint64_t k = 0; k < (i == LEVELS - 1 ? LAST_SLOTS : BUCKET); k++) {
            struct tz_counter *slot = &level[(first + k) & mask];
            uint64_t seen = i == 0 && k == 0 ? 0 : tz_load(&slot->key); /* as in tz_file_new: written to at once */

            if (seen == 0 && tz_load(&full) && (seen = tz_load(&slot->key)) == 0)
                return NULL;
            if (seen == 0 &&
                __atomic_compare_exchange_n(&slot->key, &seen, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return slot;
            if (seen == key)
                return slot;
        }
    }
    tz_store(&full, 1);
    return NULL;
}

static bool exchange(struct tz_counter *slot, uint64_t *from, uint64_t to)
{
    return __atomic_compare_exchange_n(&slot->value, from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* A name's value: 0 while it has no numbers. */
static uint64_t value_of(const struct tz_nth *nth)
{
    return ((uint64_t)nth->precise << 32 | nth->loose) + 1;
}

static void give_back(const struct tz_nth *nth)
{
    uint64_t precise = (uint64_t)nth->precise + 1, loose = (uint64_t)nth->loose + 1;

    exchange(nth->slots[1], &precise, nth->precise);
    exchange(nth->slots[2], &loose, nth->loose);
}

void tz_counters_take(const struct tz_mount *m, const char *key, size_t key_length, const struct tz_names *names,
                      struct tz_nth *nth)
{
    uint64_t fs = tz_hash_text(m->fs, m->fs_length, 0), value;

    *nth = TZ_NO_NTH;
    nth->slots[0] = tz_counters_slot(tz_hash_text(key, key_length, fs ^ 'E') | 1);
    if (!nth->slots[0])
        return;
    value = tz_load(&nth->slots[0]->value);
    if (value == 0) {
        nth->slots[1] = tz_counters_slot(tz_hash_text(names->precise, names->precise_length, fs ^ 'T') | 1);
        nth->slots[2] = tz_counters_slot(tz_hash_text(names->loose, names->loose_length, fs ^ 'L') | 1);
        if (!nth->slots[1] || !nth->slots[2] || tz_load(&full)) { /* other new names may have got no numbers */
            nth->slots[0] = NULL;
            return;
        }
        nth->precise = (uint32_t)__atomic_fetch_add(&nth->slots[1]->value, 1, __ATOMIC_ACQ_REL);
        nth->loose = (uint32_t)__atomic_fetch_add(&nth->slots[2]->value, 1, __ATOMIC_ACQ_REL);
        if (exchange(nth->slots[0], &value, value_of(nth)))
            return;
        give_back(nth); /* another thread creates the same name */
    }
    nth->again = true;
    nth->precise = (uint32_t)((value - 1) >> 32);
    nth->loose = (uint32_t)(value - 1);
}

void tz_counters_return(const struct tz_nth *nth)
{
    uint64_t mine = value_of(nth);

    if (nth->again || !nth->slots[0])
        return;
    if (exchange(nth->slots[0], &mine, 0))
        give_back(nth);
}

/* A child is a process of its own and counts from 0, in the memory that it has. */
void tz_counters_forked(void)
{
    for (int i = 0; i < BUCKET << LEAST_BITS; i++) /* most are zeros, which stay shared with the parent */
        if (least()[i].key)
            least()[i] = (struct tz_counter){0};
    for (int i = 1; i < LEVELS; i++)
        if (levels[i] && madvise(levels[i], size(i), MADV_DONTNEED))
            tz_store(&levels[i], NULL);
    tz_store(&full, 0);
}
