/*
 * The tables that a loader looks into (System V ABI, "Dynamic Linking"; the GNU hash table): of the list of libraries
 * that it keeps for debuggers. Nothing here waits or takes memory.
 */
#include "base/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

extern struct r_debug _r_debug __attribute__((weak)); /* the loader's, unless the program has one of this name */
extern __typeof__(dlsym) dlsym __attribute__((weak)); /* libc before 2.34 has it in a library of its own */
TZ_SYMVER(dlsym);

enum { HIDDEN = 0x8000, FIRST_VERSION = 2 };

struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Half) * versions;          /* NULL: it has none */
    const uint32_t *gnu_hash, *sysv_hash; /* one of them */
};

static ElfW(Addr) distance(ElfW(Addr) a, ElfW(Addr) b)
{
    return a > b ? a - b : b - a;
}

/*
 * Most loaders have added the distance by which the library was moved, some leave it to the reader: of the two it is
 * what lies nearer to the library's dynamic section. The distance can be a negative one.
 */
static const void *at(const struct link_map *library, ElfW(Addr) address)
{
    ElfW(Addr) here = (ElfW(Addr))library->l_ld, moved = address + library->l_addr;

    return (const void *)(distance(moved, here) < distance(address, here) ? moved : address);
}

static bool read_tables(const struct link_map *library, struct tables *t)
{
    *t = (struct tables){0};
    for (const ElfW(Dyn) *d = library->l_ld; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            t->symbols = at(library, d->d_un.d_ptr);
        else if (d->d_tag == DT_STRTAB)
            t->names = at(library, d->d_un.d_ptr);
        else if (d->d_tag == DT_VERSYM)
            t->versions = at(library, d->d_un.d_ptr);
        else if (d->d_tag == DT_GNU_HASH)
            t->gnu_hash = at(library, d->d_un.d_ptr);
        else if (d->d_tag == DT_HASH)
            t->sysv_hash = at(library, d->d_un.d_ptr);
    }
    return t->symbols && t->names && (t->gnu_hash || t->sysv_hash);
}

/* No call: a sanitizer's runtime may be at its own beginning, and has a strcmp of its own. */
static bool equal(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        ;
    return *a == *b;
}

/* As dlsym has it: of several versions the one that programs are linked with today. */
static bool is_wanted(const struct tables *t, uint32_t i, const char *name)
{
    const ElfW(Sym) *s = &t->symbols[i];
    unsigned binding = ELF64_ST_BIND(s->st_info), type = ELF64_ST_TYPE(s->st_info);
    unsigned visibility = ELF64_ST_VISIBILITY(s->st_other);
    unsigned version = t->versions ? t->versions[i] : 0;

    return s->st_shndx != SHN_UNDEF && s->st_value && (binding == STB_GLOBAL || binding == STB_WEAK) &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED) &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           ((version & ~(unsigned)HIDDEN) < FIRST_VERSION || !(version & HIDDEN)) && equal(t->names + s->st_name, name);
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;

    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Buckets hold the first of their symbols; a chain's last hash has bit 0. */
static uint32_t find_by_gnu_hash(const struct tables *t, const char *name, uint32_t hash)
{
    const uint32_t *head = t->gnu_hash, count = head[0], first = head[1], words = head[2], shift = head[3];
    const ElfW(Addr) *bloom = (const void *)(head + 4);
    const uint32_t *buckets = (const void *)(bloom + words), *chain = buckets + count;
    const uint32_t bits = 8 * sizeof *bloom;
    ElfW(Addr) word;
    uint32_t i;

    if (!count || !words)
        return 0;
    word = bloom[hash / bits % words];
    if (!(word >> hash % bits & word >> (hash >> shift) % bits & 1) || (i = buckets[hash % count]) < first)
        return 0;
    for (;; i++) {
        uint32_t here = chain[i - first];

        if ((here | 1) == (hash | 1) && is_wanted(t, i, name))
            return i;
        if (here & 1)
            return 0;
    }
}

static uint32_t find_by_sysv_hash(const struct tables *t, const char *name)
{
    const uint32_t *head = t->sysv_hash, *buckets = head + 2, *chain = buckets + head[0];
    uint32_t hash = 0, high, i;

    if (!head[0])
        return 0;
    for (const char *p = name; *p; p++) {
        hash = (hash << 4) + (unsigned char)*p;
        high = hash & 0xf0000000;
        hash = (hash ^ high >> 24) & ~high;
    }
    for (i = buckets[hash % head[0]]; i && !is_wanted(t, i, name); i = chain[i])
        ;
    return i;
}

static inline void *find(const struct link_map *library, const struct tables *t, const char *name, uint32_t hash)
{
    uint32_t i = t->gnu_hash ? find_by_gnu_hash(t, name, hash) : find_by_sysv_hash(t, name);
    uintptr_t found;

    if (!i)
        return NULL;
    found = library->l_addr + t->symbols[i].st_value;
    /* A function that chooses one for this processor. */
    if (ELF64_ST_TYPE(t->symbols[i].st_info) == STT_GNU_IFUNC)
        return ((void *(*)(unsigned long))found)(getauxval(AT_HWCAP));
    return (void *)found;
}

void *tz_symbol_of(const void *library, const char *name)
{
    struct tables t;

    return read_tables(library, &t) ? find(library, &t, name, gnu_hash_of(name)) : NULL;
}

/* Where the loader tells a debugger of its list: in the program's dynamic section. */
static const struct r_debug *told_by_program(void)
{
    const ElfW(Phdr) *parts = (const void *)getauxval(AT_PHDR);
    size_t count = parts ? getauxval(AT_PHNUM) : 0, self = 0;

    while (self < count && parts[self].p_type != PT_PHDR)
        self++;
    for (size_t i = 0; self < count && i < count; i++) {
        uintptr_t moved = (uintptr_t)parts - parts[self].p_vaddr;

        if (parts[i].p_type != PT_DYNAMIC)
            continue;
        for (const ElfW(Dyn) *d = (const void *)(moved + parts[i].p_vaddr); d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_DEBUG)
                return (const void *)d->d_un.d_ptr;
    }
    return NULL;
}

/* This library in the loader's list. */
static const struct link_map *own(void)
{
    const struct r_debug *told = told_by_program();
    const struct link_map *library;

    if (!told)
        told = &_r_debug;
    library = told ? told->r_map : NULL;
    while (library && library->l_ld != _DYNAMIC) /* this library's */
        library = library->l_next;
    return library;
}

void tz_symbols_behind(const char *const *names, void **found, unsigned count)
{
    const struct link_map *library = own();
    uint32_t hashes[TZ_SYMBOLS_AT_ONCE];
    unsigned missing = count;
    struct tables t;

    if (!library && dlsym) {
        for (unsigned i = 0; i < count; i++)
            found[i] = found[i] ? found[i] : dlsym(RTLD_NEXT, names[i]);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        hashes[i] = gnu_hash_of(names[i]);
    while (missing && library && (library = library->l_next) != NULL) {
        if (!read_tables(library, &t))
            continue;
        missing = 0;
        for (unsigned i = 0; i < count; i++) {
            found[i] = found[i] ? found[i] : find(library, &t, names[i], hashes[i]);
            missing += !found[i];
        }
    }
}

/* Of one alone, as a hook may need it on the stack of a signal handler. */
void *tz_symbol_behind(const char *name)
{
    const struct link_map *library = own();
    void *found = NULL;

    if (!library && dlsym)
        return dlsym(RTLD_NEXT, name);
    while (!found && library && (library = library->l_next) != NULL)
        found = tz_symbol_of(library, name);
    return found;
}
