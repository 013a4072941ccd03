/* Which sanitizer's runtime is in the process: by names that only it gives, which stay NULL without it. */
#include "process/sanitizer.h"

#include <link.h>
#include <sys/auxv.h>

void __asan_handle_no_return(void) __attribute__((weak));
void __hwasan_init(void) __attribute__((weak));
void __msan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));
void *__tls_get_addr(void *index) __attribute__((weak));

bool tz_address_sanitizer(void)
{
    return __asan_handle_no_return != NULL;
}

static bool in_program(const void *address)
{
    const ElfW(Phdr) *part = (const void *)getauxval(AT_PHDR);
    uintptr_t at = (uintptr_t)address, base = 0;
    size_t count = part ? getauxval(AT_PHNUM) : 0;

    for (size_t i = 0; i < count; i++)
        if (part[i].p_type == PT_PHDR)
            base = (uintptr_t)part - part[i].p_vaddr;
    for (size_t i = 0; i < count; i++)
        if (part[i].p_type == PT_LOAD && at - base - part[i].p_vaddr < part[i].p_memsz)
            return true;
    return false;
}

/*
 * gcc's -static-libasan and -static-libtsan leave only the names of the functions that are replaced: among them this
 * one of the loader, which no program has of its own.
 */
static bool linked_in(void)
{
    return __tls_get_addr && in_program((const void *)__tls_get_addr);
}

bool tz_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false; /* the library itself is what is examined */
#else
    return tz_address_sanitizer() || __hwasan_init || __msan_init || __tsan_init || linked_in();
#endif
}
