/* Finding job id, date, pid, host, rank and other numbers in a name. */
#include "core/template.h"
#include "base/text.h"

struct out {
    char *text;
    uint32_t length;
    bool full;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static size_t digit_run(const char *s, const char *end)
{
    const char *p = s;

    while (p < end && is_digit(*p))
        p++;
    return (size_t)(p - s);
}

static inline void put_char(struct out *o, char c)
{
    if (o->length + 1 >= TZ_TEMPLATE_MAX)
        o->full = true;
    else
        o->text[o->length++] = c;
}

static void put(struct out *o, const char *text, size_t length)
{
    if (o->length + length >= TZ_TEMPLATE_MAX) {
        o->full = true;
        return;
    }
    memcpy(o->text + o->length, text, length);
    o->length += (uint32_t)length;
}

/* Two digits in [low, high], or -1. */
static int two(const char *p, const char *end, int low, int high)
{
    int v;

    if (end - p < 2 || !is_digit(p[0]) || !is_digit(p[1]))
        return -1;
    v = (p[0] - '0') * 10 + p[1] - '0';
    return v >= low && v <= high ? v : -1;
}

/* Length of hhmm, hhmmss, hh-mm or hh-mm-ss at p that no further digit follows; 0 for none. */
static size_t time_length(const char *p, const char *end)
{
    size_t n = 2;
    bool separated;

    if (two(p, end, 0, 23) < 0)
        return 0;
    separated = end - p > 2 && strchr("-:_.", p[2]) && p[2];
    n += separated;
    if (two(p + n, end, 0, 59) < 0)
        return 0;
    n += 2;
    if (separated ? end - (p + n) > 2 && p[n] == p[2] && two(p + n + 1, end, 0, 60) >= 0
                  : two(p + n, end, 0, 60) >= 0) {
        size_t with = n + 2 + separated;

        if (p + with == end || !is_digit(p[with]))
            return with;
    }
    return p + n == end || !is_digit(p[n]) ? n : 0;
}

/* Length of a calendar date, with its time of day if there is one, at p; 0 for none. */
static size_t calendar_length(const char *p, const char *end)
{
    int century = two(p, end, 19, 20);
    size_t n = 4, t;
    bool separated;

    if (century < 0 || two(p + 2, end, 0, 99) < 0 || (century == 19 && p[2] < '7'))
        return 0;
    separated = end - p > 4 && p[4] && strchr("-_.", p[4]);
    n += separated;
    if (two(p + n, end, 1, 12) < 0)
        return 0;
    n += 2;
    if (separated) {
        if (end - p <= (ptrdiff_t)n || p[n] != p[4])
            return 0;
        n++;
    }
    if (two(p + n, end, 1, 31) < 0)
        return 0;
    n += 2;
    if (p + n < end && is_digit(p[n])) {
        t = time_length(p + n, end);
        return t ? n + t : 0;
    }
    if (p + n < end && strchr("T-_.", p[n]) && p[n]) {
        t = time_length(p + n + 1, end);
        if (t)
            return n + 1 + t;
    }
    return n;
}

/* A number of (milli)seconds since 1970 between 2014 and 2049: its length, else 0. */
static size_t epoch_length(const char *p, size_t digits)
{
    uint64_t v;

    if (digits != 10 && digits != 13)
        return 0;
    v = tz_number_of(p, 10, 10);
    return v >= 1388534400ULL && v < 2524608000ULL ? digits : 0;
}

/* Is text at p, not inside a longer word (or, at an end that is a digit, not inside a longer number)? */
static bool word_at(const char *key, const char *p, const char *end, const char *text, size_t length, bool strict)
{
    const char *after = p + length;

    if (length == 0 || (size_t)(end - p) < length || memcmp(p, text, length) != 0)
        return false;
    if (p > key && (strict || !is_digit(text[0]) ? is_word(p[-1]) : is_digit(p[-1])))
        return false;
    return after == end || !(strict || !is_digit(text[length - 1]) ? is_word(*after) : is_digit(*after));
}

static size_t host_length(const char *key, const char *p, const char *end, const char *host)
{
    size_t whole, brief;

    if (!host || *host != *p || (whole = strlen(host)) < 2)
        return 0;
    if (word_at(key, p, end, host, whole, true))
        return whole;
    brief = tz_until(host, '.');
    return brief >= 2 && brief < whole && word_at(key, p, end, host, brief, true) ? brief : 0;
}

static size_t whole_job_length(const char *key, const char *p, const char *end, const char *job)
{
    size_t whole = strlen(job), digits;

    if (whole < 3)
        return 0;
    if (word_at(key, p, end, job, whole, false))
        return whole;
    digits = digit_run(job, job + whole);
    return digits >= 3 && digits < whole && word_at(key, p, end, job, digits, false) ? digits : 0;
}

static inline size_t job_length(const char *key, const char *p, const char *end, const char *job)
{
    return job && *job == *p ? whole_job_length(key, p, end, job) : 0;
}

/* The token for the number of `digits` digits at p; NULL when it stays as it is. */
static const char *number_token(const char *p, const char *end, size_t digits, const struct tz_ident *ident,
                                size_t *used, uint32_t *flags)
{
    *used = calendar_length(p, end);
    if (!*used)
        *used = epoch_length(p, digits);
    if (*used) {
        *flags |= TZ_NAME_VOLATILE;
        return "{date}";
    }
    *used = digits;
    /* A small pid (first processes of a container) would be taken for any small number. */
    if (ident->pid >= 100 && p[0] != '0' && tz_number_of(p, digits, 10) == (uint64_t)ident->pid) {
        *flags |= TZ_NAME_VOLATILE;
        return "{pid}";
    }
    if (ident->rank >= 0 && tz_number_of(p, digits, 10) == (uint64_t)ident->rank)
        return "{rank}";
    return ident->array_index >= 0 && tz_number_of(p, digits, 10) == (uint64_t)ident->array_index ? "{array}" : NULL;
}

static inline void both(struct out *precise, struct out *loose, const char *text, size_t length)
{
    put(precise, text, length);
    put(loose, text, length);
}

/* The digits of a text become one `#` a run, the rest is kept. */
static void put_loosely(struct out *loose, const char *p, size_t length)
{
    const char *end = p + length;

    while (p < end) {
        size_t digits = digit_run(p, end);

        put_char(loose, digits ? '#' : *p);
        p += digits ? digits : 1;
    }
}

/* The letter that a text begins with; ends of runs are looked for at digits anyway. */
static char letter(const char *text)
{
    return text && !is_digit(*text) ? *text : '\0';
}

/* What cannot be the beginning of a token: copied at once. */
static size_t plain_run(const char *p, const char *end, char host, char job, char array)
{
    const char *q = p;

    if (!job && !array) /* as nearly all ids are */
        while (q < end && !is_digit(*q) && *q != host)
            q++;
    else
        while (q < end && !is_digit(*q) && *q != host && *q != job && *q != array)
            q++;
    return (size_t)(q - p);
}

int tz_template(const char *key, size_t length, const struct tz_ident *ident, struct tz_names *names)
{
    struct out precise = {names->precise, 0, false}, loose = {names->loose, 0, false};
    const char *p = key, *end = key + length, *token;
    char host = letter(ident->host), job = letter(ident->job_id), array = letter(ident->array_job);
    size_t used, digits;

    names->flags = 0;
    if (length >= TZ_TEMPLATE_MAX)
        return ENAMETOOLONG;
    while (p < end) {
        used = plain_run(p, end, host, job, array);
        if (used) {
            both(&precise, &loose, p, used);
        } else if ((used = host_length(key, p, end, ident->host)) != 0) {
            names->flags |= TZ_NAME_VOLATILE;
            both(&precise, &loose, "{host}", 6);
        } else if ((used = job_length(key, p, end, ident->job_id)) != 0 ||
                   (used = job_length(key, p, end, ident->array_job)) != 0) {
            names->flags |= TZ_NAME_VOLATILE;
            put(&precise, "{job}", 5);
            if (digit_run(p, p + used) == used)
                put_char(&loose, '#');
            else
                put(&loose, "{job}", 5);
        } else if ((digits = digit_run(p, end)) != 0) {
            token = number_token(p, end, digits, ident, &used, &names->flags);
            if (token)
                put(&precise, token, strlen(token));
            else
                put(&precise, p, used);
            if (used == digits)
                put_char(&loose, '#');
            else
                put_loosely(&loose, p, used);
        } else {
            used = 1; /* as frequent as the letter that the host's name begins with: no call of memcpy */
            put_char(&precise, *p);
            put_char(&loose, *p);
        }
        p += used;
    }
    if (precise.full || loose.full) {
        names->flags = TZ_NAME_RAW;
        memcpy(names->precise, key, length);
        memcpy(names->loose, key, length);
        precise.length = loose.length = (uint32_t)length;
    }
    names->precise[names->precise_length = precise.length] = '\0';
    names->loose[names->loose_length = loose.length] = '\0';
    return 0;
}
