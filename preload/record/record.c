/* Records: written, and changed where they are. */
#include "record/record.h"
#include "base/clock.h"

/* Two bytes for each text, filled up to a multiple of 8. */
static size_t lengths_size(const struct tz_record *record)
{
    return (2 * record->parts + 7) & ~7u;
}

size_t tz_record_length(const struct tz_record *record)
{
    size_t length = TZ_RECORD_HEAD + record->values_length + lengths_size(record);

    for (unsigned i = 0; i < record->parts; i++)
        length += record->texts[i].length;
    return (length + 7) & ~(size_t)7;
}

void tz_record_put(const struct tz_record *record, size_t length, uint8_t *p)
{
    uint8_t *text = p + TZ_RECORD_HEAD + record->values_length + lengths_size(record);

    tz_put16(p, record->type);
    tz_put16(p + 2, record->flags);
    tz_put32(p + 4, (uint32_t)length);
    tz_put64(p + 8, tz_now_ns());
    p += TZ_RECORD_HEAD;
    if (record->values_length)
        memcpy(p, record->values, record->values_length);
    p += record->values_length;
    for (unsigned i = 0; i < record->parts; i++) {
        tz_put16(p + 2 * i, (uint16_t)record->texts[i].length);
        if (record->texts[i].length)
            memcpy(text, record->texts[i].data, record->texts[i].length);
        text += record->texts[i].length;
    }
}

/* Sums up what was written through one description with what was written before through others. */
static void add_close(uint8_t *at, const struct tz_close_values *more)
{
    struct tz_close_values sum;

    memcpy(&sum, at, sizeof sum);
    if (more->written && sum.written) {
        bool touch = more->low <= sum.high && sum.low <= more->high;

        sum.segments = touch && sum.segments == 1 && more->segments == 1 ? 1 : sum.segments + more->segments;
        sum.written += more->written;
        sum.low = more->low < sum.low ? more->low : sum.low;
        sum.high = more->high > sum.high ? more->high : sum.high;
        sum.writes += more->writes;
    } else if (more->written) {
        uint64_t opened_ns = sum.opened_ns;

        sum = *more;
        sum.opened_ns = opened_ns;
    }
    sum.size = more->size;
    memcpy(at, &sum, sizeof sum);
}

bool tz_record_rewrite(const struct tz_record *record, size_t length, uint8_t *at)
{
    uint32_t space = tz_get32(at + 4);
    uint64_t first_ns = tz_get64(at + 8);

    if (record->type == TZ_CLOSE) {
        add_close(at + TZ_RECORD_HEAD, record->values);
        tz_put16(at + 2, (uint16_t)(tz_get16(at + 2) & record->flags));
        tz_put64(at + 8, tz_now_ns());
        return true;
    }
    if (length > space)
        return false;
    tz_record_put(record, space, at);
    tz_put64(at + 8, first_ns);
    return true;
}
