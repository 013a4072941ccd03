/* A list without locks, in pages of its own. */
#include "record/kept.h"
#include "base/pages.h"

enum { MOST = 256 };

struct kept {
    struct kept *next;
    size_t size;
    struct tz_record record;
    uint8_t values[sizeof(struct tz_close_values)];
    uint8_t texts[];
};

static struct kept *newest; /* atomic */
static uint32_t count;      /* atomic */

static struct kept *copy_of(const struct tz_record *record)
{
    size_t size = sizeof(struct kept);
    struct kept *kept;
    uint8_t *text;

    for (unsigned i = 0; i < record->parts; i++)
        size += record->texts[i].length;
    kept = tz_pages(size);
    if (!kept)
        return NULL;
    kept->size = size;
    kept->record = *record;
    kept->record.values = memcpy(kept->values, record->values, record->values_length);
    text = kept->texts;
    for (unsigned i = 0; i < record->parts; i++) {
        kept->record.texts[i].data = memcpy(text, record->texts[i].data, record->texts[i].length);
        text += record->texts[i].length;
    }
    return kept;
}

bool tz_keep(const struct tz_record *record)
{
    struct kept *kept = NULL;

    if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) <= MOST)
        kept = copy_of(record);
    if (!kept) {
        __atomic_sub_fetch(&count, 1, __ATOMIC_RELAXED);
        return false;
    }
    kept->next = tz_load(&newest);
    while (!__atomic_compare_exchange_n(&newest, &kept->next, kept, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return true;
}

bool tz_any_kept(void)
{
    return tz_load(&newest) != NULL;
}

void tz_kept_each(void (*call)(const struct tz_record *record))
{
    struct kept *list, *first = NULL, *next;

    if (tz_likely(!tz_any_kept()))
        return;
    for (list = __atomic_exchange_n(&newest, NULL, __ATOMIC_ACQ_REL); list; list = next) {
        next = list->next;
        list->next = first;
        first = list;
    }
    for (; first; first = next) {
        next = first->next;
        call(&first->record);
        tz_pages_free(first, first->size);
        __atomic_sub_fetch(&count, 1, __ATOMIC_RELAXED);
    }
}

/* They are the parent's. */
void tz_kept_forked(void)
{
    newest = NULL;
    count = 0;
}
