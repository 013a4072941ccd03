/* Scratch memory in slots that are kept, and of which others can see who reads which map. */
#include "process/scratch.h"
#include "base/pages.h"

enum { SCRATCH_SLOTS = 64 };

static uint32_t beyond_slots; /* atomic: operations whose scratch has no slot, and so is not seen by others */

TZ_MIDDLE static struct {
    int used;                   /* atomic */
    struct tz_scratch *scratch; /* atomic, kept once made */
} slots[SCRATCH_SLOTS];

/* Of the first slot: most processes need no other. Its beginning lies in one page. */
TZ_LARGE static char first[TZ_PAGE + sizeof(struct tz_scratch)];

/* Where this thread found one before: warm memory, and no fight for the first slot. */
static TZ_THREAD int my_slot;

static struct tz_scratch *get(void)
{
    struct tz_scratch *found;

    for (int n = 0, i = my_slot; n < SCRATCH_SLOTS; n++, i = (i + 1) % SCRATCH_SLOTS) {
        if (tz_relaxed(&slots[i].used) || __atomic_exchange_n(&slots[i].used, 1, __ATOMIC_ACQUIRE))
            continue;
        found = tz_relaxed(&slots[i].scratch);
        if (!found) {
            found = i == 0 ? tz_page_in(first) : tz_pages(sizeof *found);
            __atomic_store_n(&slots[i].scratch, found, __ATOMIC_SEQ_CST);
        }
        if (found) {
            found->slot = my_slot = i;
            return found;
        }
        tz_store(&slots[i].used, 0);
        return NULL;
    }
    found = tz_pages(sizeof *found);
    if (found) {
        found->slot = -1;
        __atomic_add_fetch(&beyond_slots, 1, __ATOMIC_SEQ_CST);
    }
    return found;
}

void tz_scratch_put(struct tz_scratch *scratch)
{
    if (!scratch)
        return;
    tz_store(&scratch->map, NULL);
    if (scratch->slot >= 0) {
        tz_store(&slots[scratch->slot].used, 0);
        return;
    }
    tz_pages_free(scratch, sizeof *scratch);
    __atomic_sub_fetch(&beyond_slots, 1, __ATOMIC_SEQ_CST);
}

bool tz_scratch_need(struct tz_scratch **scratch)
{
    if (!*scratch)
        *scratch = get();
    return *scratch != NULL;
}

bool tz_scratch_holds(const struct tz_map *map)
{
    if (__atomic_load_n(&beyond_slots, __ATOMIC_SEQ_CST))
        return true;
    for (int i = 0; i < SCRATCH_SLOTS; i++) {
        const struct tz_scratch *scratch = __atomic_load_n(&slots[i].scratch, __ATOMIC_SEQ_CST);

        if (scratch && __atomic_load_n(&scratch->map, __ATOMIC_SEQ_CST) == map)
            return true;
    }
    return false;
}

/* Slots of threads that do not exist in the child. */
void tz_scratch_forked(void)
{
    struct tz_scratch *scratch;

    beyond_slots = 0;
    for (int i = 0; i < SCRATCH_SLOTS; i++) {
        tz_store(&slots[i].used, 0);
        scratch = tz_load(&slots[i].scratch);
        if (scratch)
            tz_store(&scratch->map, NULL);
    }
}
