/*
 * What the preload library and the testbed need to know of Lustre's user interface, under Lustre's own names
 * (lustre_user.h, lustreapi.h; the same in 2.12 to 2.17). Nothing of ours belongs here.
 */
#pragma once

#include <fcntl.h>
#include <linux/limits.h> /* XATTR_SIZE_MAX: no layout is longer */
#include <stdint.h>
#include <sys/ioctl.h>

#define LUSTRE_SUPER_MAGIC 0x0BD00BD0
#define LUSTRE_EOF UINT64_MAX

/* ---- opening a file whose layout is to be set, and setting it ---- */
#define O_LOV_DELAY_CREATE (O_NOCTTY | O_ASYNC)
#define XATTR_LUSTRE_LOV "lustre.lov"
#define LL_IOC_LOV_SETSTRIPE _IOW('f', 154, long)
#define LL_IOC_LOV_SETSTRIPE_NEW _IOWR('f', 154, struct lov_user_md_v1)
#define LL_IOC_LOV_GETSTRIPE _IOW('f', 155, long)
#define LL_IOC_LOV_GETSTRIPE_NEW _IOR('f', 155, struct lov_user_md_v1)

/* ---- directories and their MDTs (DNE) ---- */
#define LL_IOC_GET_MDTIDX _IOR('f', 175, int)
#define LL_IOC_LMV_SETSTRIPE _IOWR('f', 240, struct lmv_user_md) /* takes a struct obd_ioctl_data all the same */
#define LL_IOC_LMV_GETSTRIPE _IOWR('f', 241, struct lmv_user_md)
#define LL_IOC_LMV_SET_DEFAULT_STRIPE _IOWR('f', 246, struct lmv_user_md)
#define OBD_IOCTL_VERSION 0x00010004u
#define LMV_MAGIC_V1 0x0CD20CD0u            /* the stripes of a directory */
#define LMV_USER_MAGIC 0x0CD30CD0u          /* what is asked for, or the default of directories made below */
#define LMV_USER_MAGIC_SPECIFIC 0x0CD40CD0u /* asked for, with a list of MDTs */
#define LMV_MAGIC_FOREIGN 0x0CD50CD0u
#define LMV_OFFSET_DEFAULT 0xffffffffu /* Lustre chooses the MDT */
#define LMV_MAX_STRIPE_COUNT 2000
#define LMV_OVERSTRIPE_COUNT_MAX (-5)
#define LMV_HASH_TYPE_MASK 0x0000ffffu
#define LMV_HASH_TYPE_FNV_1A_64 2u
#define LMV_HASH_FLAG_KNOWN 0xbf000000u
#define LMV_TYPE_RAW 1u
#define LMV_INHERIT_UNLIMITED 0u
#define LMV_INHERIT_END 1u
#define LMV_INHERIT_MAX 250u
#define LMV_INHERIT_NONE 255u
#define LMV_INHERIT_RR_NONE 0u
#define LMV_INHERIT_RR_ROOT 3u
#define LMV_INHERIT_RR_UNLIMITED 255u

/* ---- limits ---- */
#define LOV_MIN_STRIPE_SIZE 65536u /* stripe sizes and the ends of extents are multiples of it */
#define LOV_MAX_STRIPE_COUNT 2000u
#define LOV_MAXPOOLNAME 15
#define SEL_UNIT_SIZE 1024ull /* of an extension size, which stands where other components have a stripe size */

/* ---- values of fields ---- */
#define LOV_USER_MAGIC_V1 0x0BD10BD0u
#define LOV_USER_MAGIC_V3 0x0BD30BD0u
#define LOV_USER_MAGIC_SPECIFIC 0x0BD50BD0u /* a v3 with a list of OSTs, when it is set */
#define LOV_USER_MAGIC_COMP_V1 0x0BD60BD0u

#define LOV_PATTERN_RAID0 0x001u
#define LOV_PATTERN_PARITY 0x004u
#define LOV_PATTERN_MDT 0x100u
#define LOV_PATTERN_OVERSTRIPING 0x200u
#define LOV_PATTERN_COMPRESS 0x800u
#define LOV_PATTERN_F_MASK 0xffff0000u
#define LOV_PATTERN_F_RELEASED 0x80000000u /* by HSM */

#define LOV_OFFSET_DEFAULT 0xffffu   /* no start index */
#define LOV_ALL_STRIPES 0xffffu      /* a stripe on each OST */
#define LOV_ALL_STRIPES_WIDE 0xffe0u /* 32 on each; the counts between them are in steps of one */

#define LCME_FL_STALE 0x01u
#define LCME_FL_PREF_RW 0x06u
#define LCME_FL_OFFLINE 0x08u
#define LCME_FL_INIT 0x10u /* the component has its objects */
#define LCME_FL_NOSYNC 0x20u
#define LCME_FL_EXTENSION 0x40u        /* the space into which the component before it grows (SEL) */
#define LCME_FL_PARITY 0x80u           /* of a component that is erasure coded (since 2.16) */
#define LCME_FL_COMPRESS 0x100u        /* since 2.16, as are the next two */
#define LCME_FL_PARTIAL 0x200u         /* not all of it is compressed */
#define LCME_FL_NOCOMPR 0x400u         /* it is not to be compressed */
#define LCME_FL_IS_LINK_ID 0x40000000u /* EC, after 2.17 */
#define LCME_FL_NEG 0x80000000u        /* with others: components without these */
#define LCM_FL_FLR_MASK 0x3u

/* ---- the attribute lustre.lov, little-endian ---- */
#define LUSTRE_STRUCT __attribute__((packed, may_alias))

struct lu_fid {
    uint64_t f_seq;
    uint32_t f_oid, f_ver;
} LUSTRE_STRUCT;

struct ost_id {
    union {
        struct {
            uint64_t oi_id, oi_seq;
        } oi;
        struct lu_fid oi_fid;
    };
} LUSTRE_STRUCT;

struct lmv_user_mds_data {
    struct lu_fid lum_fid;
    uint32_t lum_padding, lum_mds;
} LUSTRE_STRUCT;

struct lmv_user_md {
    uint32_t lum_magic;
    int32_t lum_stripe_count;
    uint32_t lum_stripe_offset, lum_hash_type, lum_type;
    uint8_t lum_max_inherit, lum_max_inherit_rr;
    uint16_t lum_padding1;
    uint32_t lum_padding2, lum_padding3;
    char lum_pool_name[LOV_MAXPOOLNAME + 1];
    struct lmv_user_mds_data lum_objects[];
} LUSTRE_STRUCT;

/* What ioctls of Lustre's tools take (lustre_ioctl.h). Behind it are the inline buffers, each at a multiple of 8. */
struct obd_ioctl_data {
    uint32_t ioc_len, ioc_version;
    uint64_t ioc_cookie;
    uint32_t ioc_conn1, ioc_conn2;
    unsigned char ioc_obdo1[208], ioc_obdo2[208];
    uint64_t ioc_count, ioc_offset;
    uint32_t ioc_dev, ioc_command;
    uint64_t ioc_nid;
    uint32_t ioc_nal, ioc_type;
    uint32_t ioc_plen1;
    char *ioc_pbuf1;
    uint32_t ioc_plen2;
    char *ioc_pbuf2;
    uint32_t ioc_inllen1;
    char *ioc_inlbuf1;
    uint32_t ioc_inllen2;
    char *ioc_inlbuf2;
    uint32_t ioc_inllen3;
    char *ioc_inlbuf3;
    uint32_t ioc_inllen4;
    char *ioc_inlbuf4;
    char ioc_bulk[];
};

_Static_assert(sizeof(struct lmv_user_md) == 48 && sizeof(struct obd_ioctl_data) == 576, "as on 64-bit Linux");

struct lov_user_ost_data_v1 {
    struct ost_id l_ost_oi;
    uint32_t l_ost_gen, l_ost_idx;
} LUSTRE_STRUCT;

/* A lov_user_md is one of the next two, and its objects behind it. */
struct lov_user_md_v1 {
    uint32_t lmm_magic, lmm_pattern;
    struct ost_id lmm_oi;
    uint32_t lmm_stripe_size;
    uint16_t lmm_stripe_count, lmm_stripe_offset;
} LUSTRE_STRUCT;

struct lov_user_md_v3 {
    uint32_t lmm_magic, lmm_pattern;
    struct ost_id lmm_oi;
    uint32_t lmm_stripe_size;
    uint16_t lmm_stripe_count, lmm_stripe_offset;
    char lmm_pool_name[LOV_MAXPOOLNAME + 1];
} LUSTRE_STRUCT;

struct lov_comp_md_entry_v1 {
    uint32_t lcme_id, lcme_flags;
    struct {
        uint64_t e_start, e_end;
    } lcme_extent;
    uint32_t lcme_offset, lcme_size; /* of the component's lov_user_md, from the attribute's beginning */
    uint32_t lcme_layout_gen;
    uint64_t lcme_time_and_id;
    uint8_t lcme_dstripe_count, lcme_cstripe_count, lcme_compr_type, lcme_compr_level;
} LUSTRE_STRUCT;

struct lov_comp_md_v1 {
    uint32_t lcm_magic, lcm_size, lcm_layout_gen;
    uint16_t lcm_flags, lcm_entry_count;
    uint16_t lcm_mirror_count; /* less one */
    uint8_t lcm_padding[14];
    struct lov_comp_md_entry_v1 lcm_entries[];
} LUSTRE_STRUCT;

_Static_assert(sizeof(struct lov_user_ost_data_v1) == 24 && sizeof(struct lov_user_md_v1) == 32 &&
                   sizeof(struct lov_user_md_v3) == 48 && sizeof(struct lov_comp_md_entry_v1) == 48 &&
                   sizeof(struct lov_comp_md_v1) == 32,
               "as long as Lustre's own");

/* ---- liblustreapi.so.1 ---- */
#define LLAPI_LAYOUT_INVALID 0x1000000000000001ull
#define LLAPI_LAYOUT_DEFAULT (LLAPI_LAYOUT_INVALID + 1)
#define LLAPI_LAYOUT_WIDE_MIN (LLAPI_LAYOUT_DEFAULT + 1) /* as LOV_ALL_STRIPES */
#define LLAPI_LAYOUT_WIDE_MAX (LLAPI_LAYOUT_DEFAULT + 32)
#define LLAPI_LAYOUT_RAID0 0x0ull
#define LLAPI_LAYOUT_MDT 0x2ull
#define LLAPI_LAYOUT_OVERSTRIPING 0x4ull
#define LLAPI_LAYOUT_SPECIFIC 0x2000000000000000ull
#define LLAPI_LAYOUT_IDX_MAX 0xFFFFFFFFull
