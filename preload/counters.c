#include "counters.h"
#include "map.h"
#include "siphash.h"

/*
 * One open-addressed table for three kinds of entry, told apart by the letter in what is hashed: a template's next
 * n, a name's two n. Key 0 is an empty slot; a name that was given back keeps its slot with value NONE.
 */
struct slot {
    uint64_t key, value;
};

enum { FIRST_SLOTS = 256 };
#define NONE UINT64_MAX

static struct slot *table;
static size_t slots, used;
static struct tz_lock lock;
static const uint8_t hash_key[16] = "tarazu counters";

static struct slot *find(struct slot *in, size_t size, uint64_t key)
{
    size_t i = key & (size - 1);

    while (in[i].key && in[i].key != key)
        i = (i + 1) & (size - 1);
    return &in[i];
}

static bool grow(void)
{
    size_t size = slots ? 2 * slots : FIRST_SLOTS;
    struct slot *bigger = tz_pages(size * sizeof *bigger);

    if (!bigger)
        return false;
    for (size_t i = 0; i < slots; i++)
        if (table[i].key)
            *find(bigger, size, table[i].key) = table[i];
    tz_pages_free(table, slots * sizeof *table);
    table = bigger;
    slots = size;
    return true;
}

static uint64_t key_of(char kind, const struct tz_mount *m, const char *text, size_t length)
{
    return tz_hash_template(hash_key, kind, m->fs, m->fs_length, text, length, 0, 0) | 1;
}

/* The slot of a key, made when it is new. */
static struct slot *slot_of(uint64_t key, uint64_t initial)
{
    struct slot *s = find(table, slots, key);

    if (s->key == 0) {
        s->key = key;
        s->value = initial;
        used++;
    }
    return s;
}

void tz_counters_take(const struct tz_mount *mount, const char *key, size_t key_length, const struct tz_names *names,
                      struct tz_nth *nth)
{
    struct slot *name, *precise, *loose;

    *nth = (struct tz_nth){.keys = {key_of('E', mount, key, key_length),
                                    key_of('T', mount, names->precise, names->precise_length),
                                    key_of('L', mount, names->loose, names->loose_length)}};
    if (!tz_owner() || !tz_trylock(&lock))
        return;
    if ((used + 3) * 4 > slots * 3 && !grow()) {
        tz_unlock(&lock);
        return;
    }
    name = slot_of(nth->keys[0], NONE);
    if (name->value != NONE) {
        nth->again = true;
        nth->precise = (uint32_t)(name->value >> 32);
        nth->loose = (uint32_t)name->value;
    } else {
        precise = slot_of(nth->keys[1], 0);
        loose = slot_of(nth->keys[2], 0);
        nth->precise = (uint32_t)precise->value++;
        nth->loose = (uint32_t)loose->value++;
        name->value = (uint64_t)nth->precise << 32 | nth->loose;
    }
    tz_unlock(&lock);
}

void tz_counters_return(const struct tz_nth *nth)
{
    struct slot *precise, *loose;

    if (nth->again || !tz_owner() || !tz_trylock(&lock))
        return;
    if (slots) {
        find(table, slots, nth->keys[0])->value = NONE;
        precise = find(table, slots, nth->keys[1]);
        loose = find(table, slots, nth->keys[2]);
        if (precise->value == (uint64_t)nth->precise + 1)
            precise->value--;
        if (loose->value == (uint64_t)nth->loose + 1)
            loose->value--;
    }
    tz_unlock(&lock);
}

/* A child is a process of its own and counts from 0. The table is given up: a thread may have been replacing it. */
void tz_counters_forked(void)
{
    lock.held = 0;
    table = NULL;
    slots = used = 0;
}
