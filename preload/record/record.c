/* Records: written, and changed where they are. */
#include "record/record.h"

#include "base/clock.h"

size_t tz_record_length(const struct tz_record *record)
{
    size_t length = TZ_RECORD_HEAD + record->fixed_length;

    for (int i = 0; i < TZ_PARTS; i++)
        length += record->texts[i].length;
    return (length + 7) & ~(size_t)7;
}

void tz_record_put(const struct tz_record *record, size_t length, uint8_t *p)
{
    tz_put16(p, record->type);
    tz_put16(p + 2, record->flags);
    tz_put32(p + 4, (uint32_t)length);
    tz_put64(p + 8, tz_now_ns());
    p += TZ_RECORD_HEAD;
    if (record->fixed_length)
        memcpy(p, record->fixed, record->fixed_length);
    p += record->fixed_length;
    for (int i = 0; i < TZ_PARTS; i++) {
        if (record->texts[i].length)
            memcpy(p, record->texts[i].data, record->texts[i].length);
        p += record->texts[i].length;
    }
}

/* Sums up what was written through one description with what was written before through others. */
static void add_close(uint8_t *old, const uint8_t *new)
{
    uint64_t low = tz_get64(old + TZ_CLOSE_LOW), high = tz_get64(old + TZ_CLOSE_HIGH),
             written = tz_get64(new + TZ_CLOSE_WRITTEN);
    uint64_t new_low = tz_get64(new + TZ_CLOSE_LOW), new_high = tz_get64(new + TZ_CLOSE_HIGH);
    uint32_t segments = tz_get32(old + TZ_CLOSE_SEGMENTS), more = tz_get32(new + TZ_CLOSE_SEGMENTS);

    tz_put64(old + TZ_CLOSE_SIZE, tz_get64(new + TZ_CLOSE_SIZE));
    if (written == 0)
        return;
    if (tz_get64(old + TZ_CLOSE_WRITTEN) == 0) {
        memcpy(old + TZ_CLOSE_WRITTEN, new + TZ_CLOSE_WRITTEN, TZ_CLOSE_OPENED - TZ_CLOSE_WRITTEN);
        return;
    }
    segments = segments == 1 && more == 1 && new_low <= high && low <= new_high ? 1 : segments + more;
    tz_put64(old + TZ_CLOSE_WRITTEN, tz_get64(old + TZ_CLOSE_WRITTEN) + written);
    tz_put64(old + TZ_CLOSE_LOW, new_low < low ? new_low : low);
    tz_put64(old + TZ_CLOSE_HIGH, new_high > high ? new_high : high);
    tz_put32(old + TZ_CLOSE_WRITES, tz_get32(old + TZ_CLOSE_WRITES) + tz_get32(new + TZ_CLOSE_WRITES));
    tz_put32(old + TZ_CLOSE_SEGMENTS, segments);
}

bool tz_record_rewrite(const struct tz_record *record, size_t length, uint8_t *at)
{
    uint32_t space = tz_get32(at + 4);
    uint64_t first_ns = tz_get64(at + 8);

    if (record->type == TZ_CLOSE) {
        add_close(at + TZ_RECORD_HEAD, record->fixed);
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
