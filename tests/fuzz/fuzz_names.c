/* Templates: any key, job id and host name; the first bytes of the input say how long each is. */
#include "fuzz.h"
#include "core/template.h"

/* Its first half is the id of the array, its last byte the index of the task. */
static void array_of(struct tz_ident *ident, const char *job, size_t length)
{
    static char half[64];

    memcpy(half, job, length / 2);
    half[length / 2] = '\0';
    ident->array_job = half;
    ident->array_index = length ? job[length - 1] - '0' : -1;
}

static char *text(const uint8_t *data, size_t length)
{
    char *copy = (char *)fuzz_copy(data, length + 1);

    copy[length] = '\0';
    return copy;
}

static size_t digits(const char *s, size_t length)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++)
        n += s[i] >= '0' && s[i] <= '9';
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tz_names names, again;
    char *job, *host, *key;
    struct tz_ident ident;
    size_t jobs, hosts, length;

    if (size < 12)
        return 0;
    memcpy(&ident.rank, data, 4);
    memcpy(&ident.pid, data + 4, 4);
    jobs = data[8] % 64;
    hosts = data[9] % 64;
    data += 11; /* one byte stays before each text, so that the copies may read their NUL */
    size -= 12;
    jobs = jobs < size ? jobs : size;
    hosts = hosts < size - jobs ? hosts : size - jobs;
    length = size - jobs - hosts;
    job = text(data, jobs);
    host = text(data + jobs, hosts);
    ident.job_id = job;
    ident.host = host;
    array_of(&ident, job, jobs);
    key = (char *)fuzz_copy(data + jobs + hosts, length);
    if (tz_template(key, length, &ident, &names) == 0) {
        FUZZ_EXPECT(length < TZ_TEMPLATE_MAX);
        FUZZ_EXPECT(names.precise_length < TZ_TEMPLATE_MAX && names.precise[names.precise_length] == '\0');
        FUZZ_EXPECT(names.loose_length < TZ_TEMPLATE_MAX && names.loose[names.loose_length] == '\0');
        /* Digits are left in a loose template by nothing. */
        FUZZ_EXPECT((names.flags & TZ_NAME_RAW) || digits(names.loose, names.loose_length) == 0);
        if (names.flags & TZ_NAME_RAW)
            FUZZ_EXPECT(names.precise_length == length && memcmp(names.precise, key, length) == 0);
        FUZZ_EXPECT(tz_template(key, length, &ident, &again) == 0 && again.flags == names.flags &&
                    strcmp(again.precise, names.precise) == 0);
    } else {
        FUZZ_EXPECT(length >= TZ_TEMPLATE_MAX);
    }
    free(key);
    free(job);
    free(host);
    return 0;
}
