/*
 * dl_iterate_phdr. The runtime of the address sanitizer ends the program unless it is the first library in this list:
 * where there is such a runtime, this library comes last in it, and is still there for all who unwind or look.
 */
#include "base/real.h"
#include "process/sanitizer.h"

typedef int visitor(struct dl_phdr_info *info, size_t size, void *data);

extern const char __ehdr_start[]
    __attribute__((visibility("hidden"))); /* where this library is loaded, by the linker */

struct visit {
    visitor *callback;
    void *data;
    struct dl_phdr_info own;
    size_t own_size;
};

static int visit_other(struct dl_phdr_info *info, size_t size, void *data)
{
    struct visit *visit = data;

    if (info->dlpi_addr != (ElfW(Addr))__ehdr_start)
        return visit->callback(info, size, visit->data);
    visit->own_size = size < sizeof visit->own ? size : sizeof visit->own;
    memcpy(&visit->own, info, visit->own_size);
    return 0;
}

static int visit_own_last(visitor *callback, void *data)
{
    struct visit visit = {.callback = callback, .data = data};
    int result = REAL(dl_iterate_phdr)(visit_other, &visit);

    return result || !visit.own_size ? result : callback(&visit.own, visit.own_size, data);
}

/* A jump to the real one, elsewhere: by the address that it returns to libc knows whose libraries are asked for. */
TZ_EXPORT int dl_iterate_phdr(visitor *callback, void *data)
{
    if (tz_unlikely(tz_address_sanitizer()))
        return visit_own_last(callback, data);
    return REAL(dl_iterate_phdr)(callback, data);
}

/* Later on there may be no room for it: on the stack of a signal handler, or while a sanitizer reports. */
__attribute__((constructor)) static void look_up(void)
{
    tz_resolve_all();
}
