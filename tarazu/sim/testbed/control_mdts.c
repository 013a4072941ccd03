/* MDTs, as the testbed's Python side sees them. */
#include "tb.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

/* After testbed_format, before anybody else is there. */
PUBLIC int testbed_set_mdts(const char *fs_name, uint32_t count, uint64_t bytes, uint64_t files)
{
    if (count == 0 || count > TB_MAX_MDTS || strlen(fs_name) >= sizeof(tb_state->fs_name))
        return -EINVAL;
    strcpy(tb_state->fs_name, fs_name);
    tb_state->n_mdts = count;
    for (uint32_t i = 0; i < count; i++) {
        tb_state->mdt[i].total = bytes;
        tb_state->mdt[i].files_total = files;
    }
    for (uint32_t i = 0; i <= TB_MAX_MDT_CLIENTS; i++)
        tb_state->lmv[i].rr_index = i % count;
    return 0;
}

static uint64_t *field(const char *name, uint32_t mdt)
{
    struct tb_mdt *of = &tb_state->mdt[mdt];

    if (strcmp(name, "total") == 0)
        return &of->total;
    if (strcmp(name, "base") == 0)
        return &of->base;
    if (strcmp(name, "files_total") == 0)
        return &of->files_total;
    return strcmp(name, "files_base") == 0 ? &of->files_base : NULL;
}

/* Fields by name: of an MDT, or for all of them `wait_ms`. */
PUBLIC int testbed_mdt_set(const char *name, uint32_t mdt, uint64_t value)
{
    uint64_t *wide = mdt < tb_state->n_mdts ? field(name, mdt) : NULL;

    if (wide)
        *wide = value;
    else if (strcmp(name, "wait_ms") == 0)
        tb_state->mdt_wait_ms = (uint32_t)value;
    else if (strcmp(name, "rr_index") == 0 && mdt <= TB_MAX_MDT_CLIENTS) /* of a client */
        tb_state->lmv[mdt].rr_index = (uint32_t)value;
    else if (mdt < tb_state->n_mdts && strcmp(name, "flags") == 0)
        tb_state->mdt[mdt].flags = (uint32_t)value;
    else if (mdt < tb_state->n_mdts && (strcmp(name, "files") == 0 || strcmp(name, "directories") == 0))
        *(name[0] == 'f' ? &tb_state->mdt[mdt].files : &tb_state->mdt[mdt].directories) = (int64_t)value;
    else
        return -EINVAL;
    return 0;
}

PUBLIC int testbed_mdt_get(const char *name, uint32_t mdt, uint64_t *value)
{
    uint64_t *wide = mdt < tb_state->n_mdts ? field(name, mdt) : NULL;

    if (wide)
        *value = *wide;
    else if (strcmp(name, "count") == 0)
        *value = tb_state->n_mdts;
    else if (strcmp(name, "rr_index") == 0 && mdt <= TB_MAX_MDT_CLIENTS) /* of a client */
        *value = tb_state->lmv[mdt].rr_index;
    else if (mdt < tb_state->n_mdts && strcmp(name, "flags") == 0)
        *value = tb_state->mdt[mdt].flags;
    else if (mdt < tb_state->n_mdts && (strcmp(name, "files") == 0 || strcmp(name, "directories") == 0)) {
        int64_t made = name[0] == 'f' ? tb_state->mdt[mdt].files : tb_state->mdt[mdt].directories;

        *value = made > 0 ? (uint64_t)made : 0;
    } else
        return -EINVAL;
    return 0;
}

/* How often each client (0: nobody knows which) has had each kind of request (enum tb_md) done by this MDT. */
PUBLIC int testbed_mdt_done(uint32_t mdt, uint64_t *counts)
{
    if (mdt >= tb_state->n_mdts)
        return -EINVAL;
    memcpy(counts, tb_state->mdt[mdt].done, sizeof(tb_state->mdt[mdt].done));
    return TB_MD_OPS;
}

/* The MDT of a directory, or of the file's; a negative errno. */
PUBLIC int testbed_mdt_of(const char *path)
{
    int fd = real_open(path, O_PATH | O_NOFOLLOW, 0), mdt;

    if (fd < 0)
        return -errno;
    mdt = (int)place_of_fd(fd);
    real_close(fd);
    return mdt;
}
