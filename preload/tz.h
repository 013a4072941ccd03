/*
 * What every file of libtarazu shares: symbol versions, limits, atomics, raw system calls.
 *
 * libtarazu_core.so is built from core/ and the lustre.lov codec only and exports their API;
 * in libtarazu.so the same functions are hidden.
 */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* A preload that needs a newer libc than the program's kills the program: old versions are asked for by name. */
#if defined(__x86_64__)
#define TZ_OLD_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define TZ_OLD_GLIBC "GLIBC_2.17"
#endif
#ifdef TZ_OLD_GLIBC
#define TZ_SYMVER(name) __asm__(".symver " #name "," #name "@" TZ_OLD_GLIBC)
#else
#define TZ_SYMVER(name)
#endif

#ifdef TZ_CORE
#define TZ_API __attribute__((visibility("default")))
#else
#define TZ_API
#endif
#define TZ_EXPORT __attribute__((visibility("default")))

/* A thread's own, reached without a call: the library is there from the start. */
#define TZ_THREAD __thread __attribute__((tls_model("initial-exec")))

/*
 * Small variables share a page with those that have a value from the start, which each process writes to anyway. Behind
 * them lies what most processes touch, too, in two pages; then one of which they touch the beginning, which these pages
 * still hold; then what is large, and has pages of its own.
 */
#define TZ_MIDDLE __attribute__((section(".bss.m")))
#define TZ_AFTER_MIDDLE __attribute__((section(".bss.n")))
#define TZ_LARGE __attribute__((section(".bss.z")))

#define tz_likely(x) __builtin_expect(!!(x), 1)
#define tz_unlikely(x) __builtin_expect(!!(x), 0)

#define tz_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define tz_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define tz_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)

enum {
    TZ_KEY_MAX = 4096,      /* longest key, with its NUL */
    TZ_TEMPLATE_MAX = 8192, /* longest template, with its NUL */
    TZ_FS_MAX = 64,
    TZ_HOST_MAX = 64,
    TZ_JOB_MAX = 64,
    TZ_PATH_MAX = 4096, /* longest path, with its NUL */
};

/* How many characters of a text come before `end`. */
static inline size_t tz_until(const char *text, char end)
{
    size_t length = 0;

    while (text[length] && text[length] != end)
        length++;
    return length;
}

/* Built in even where -fno-builtin says otherwise: one instruction each. */
#define TZ_BYTES(bits)                                                                                                 \
    static inline uint##bits##_t tz_get##bits(const void *p)                                                           \
    {                                                                                                                  \
        uint##bits##_t v;                                                                                              \
                                                                                                                       \
        __builtin_memcpy(&v, p, sizeof v);                                                                             \
        return v;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    static inline void tz_put##bits(void *p, uint##bits##_t v)                                                         \
    {                                                                                                                  \
        __builtin_memcpy(p, &v, sizeof v);                                                                             \
    }

TZ_BYTES(16)
TZ_BYTES(32)
TZ_BYTES(64)
