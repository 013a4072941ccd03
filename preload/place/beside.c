/* A name of ours beside the one that the application asked for. */
#include "place/beside.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "process/config.h"
#include "process/scratch.h"

static void put_digits(char out[17], uint64_t value)
{
    for (int i = 0; i < 16; i++)
        out[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
    out[16] = '\0';
}

bool tz_beside(const struct tz_create *c, char out[TZ_PATH_MAX])
{
    static uint64_t made; /* atomic */
    const char *path = c->call.path, *last = strrchr(path, '/');
    size_t directory = last ? (size_t)(last + 1 - path) : 0;
    uint64_t seed = tz_now_ns() ^ (uint64_t)tz_config.ident.pid << 40;
    char step[17], number[17];

    if (!path[directory] || directory >= TZ_PATH_MAX || !c->scratch->map)
        return false;
    seed += __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    put_digits(step, tz_hash_exact(c->scratch->map->key, "", 0, "", 0));
    put_digits(number, tz_hash_text(tz_config.host, strlen(tz_config.host), seed));
    memcpy(out, path, directory);
    return tz_join(out + directory, TZ_PATH_MAX - directory, (const char *[]){".tarazu-", step, "-", number, NULL});
}
