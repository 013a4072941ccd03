/* Matching from left to right; after a mismatch the last `*` takes one more character. */
#include "base/glob.h"

/* How many bytes the character at `p` has: bytes of its rest begin with the bits 10. */
static size_t width(const char *p)
{
    size_t n = 1;

    while (((unsigned char)p[0] & 0xc0) == 0xc0 && ((unsigned char)p[n] & 0xc0) == 0x80 && n < 4)
        n++;
    return n;
}

/* Behind the `]` of the set that begins at `p`; NULL where none ends it, and the bracket is one like any other. */
static const char *end_of_set(const char *p, const char *end)
{
    p++;
    p += p < end && (*p == '!' || *p == '^');
    p += p < end && *p == ']';
    while (p < end && *p != ']')
        p += *p == '\\' ? 2 : 1;
    return p < end ? p + 1 : NULL;
}

/* Characters of a set are compared as the bytes that they are. */
static int compare(const char *a, size_t a_width, const char *b, size_t b_width)
{
    int order = memcmp(a, b, a_width < b_width ? a_width : b_width);

    return order ? order : (int)a_width - (int)b_width;
}

static bool in_set(const char *p, const char *end, const char *c)
{
    bool other = p[1] == '!' || p[1] == '^', found = false;
    const char *first, *last;

    p += 1 + other;
    for (; p < end - 1; p += width(p)) {
        if (*p == '\\' && p + 1 < end - 1)
            p++;
        first = last = p;
        if (p[width(p)] == '-' && p + width(p) + 1 < end - 1)
            last = p += width(p) + 1;
        found |= compare(first, width(first), c, width(c)) <= 0 && compare(c, width(c), last, width(last)) <= 0;
    }
    return found != other;
}

/* Behind the part of the glob that matches the character at `c`; NULL where it does not. */
static const char *match_one(const char *glob, const char *end, const char *c)
{
    const char *behind = *glob == '[' ? end_of_set(glob, end) : NULL;

    if (*glob == '?')
        return glob + 1;
    if (behind)
        return in_set(glob, behind, c) ? behind : NULL;
    if (*glob == '\\' && glob + 1 < end)
        glob++;
    return compare(glob, width(glob), c, width(c)) == 0 ? glob + width(glob) : NULL;
}

bool tz_glob(const char *glob, size_t length, const char *text)
{
    const char *end = glob + length, *star = NULL, *taken = NULL, *next;

    while (*text) {
        if (glob < end && *glob == '*') {
            star = ++glob;
            taken = text;
            continue;
        }
        next = glob < end ? match_one(glob, end, text) : NULL;
        if (next) {
            glob = next;
            text += width(text);
        } else if (star) {
            glob = star;
            text = taken += width(taken);
        } else {
            return false;
        }
    }
    while (glob < end && *glob == '*')
        glob++;
    return glob == end;
}
