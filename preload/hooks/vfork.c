/*
 * Calls that are noted, and go on as they came. vfork and clone make a process which shares this one's memory, told
 * apart from it only by a system call: all other hooks must know when to ask. prctl and syscall set a list of the
 * system calls that are allowed from then on (seccomp).
 *
 * vfork returns twice on one stack: nothing of ours may lie there. The wrappers jump to the real functions with the
 * stack and all arguments as they found them.
 */
#include "base/real.h"
#include "life/withdraw.h"
#include "process/state.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define BEGIN "endbr64\n"
#define SAVE                                                                                                           \
    "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %rax\n"                                      \
    ".cfi_adjust_cfa_offset 56\n"
#define CALL(function) "call " function "\nmov %rax, %r11\n"
#define RESTORE                                                                                                        \
    "pop %rax\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"                                             \
    ".cfi_adjust_cfa_offset -56\n"
#define JUMP "jmp *%r11\n"
#elif defined(__aarch64__)
#define BEGIN "hint 34\n"
#define SAVE                                                                                                           \
    "stp x0, x1, [sp, #-80]!\nstp x2, x3, [sp, #16]\nstp x4, x5, [sp, #32]\nstp x6, x7, [sp, #48]\n"                   \
    "str x30, [sp, #64]\n.cfi_adjust_cfa_offset 80\n.cfi_rel_offset x30, 64\n"
#define CALL(function) "bl " function "\nmov x16, x0\n"
#define RESTORE                                                                                                        \
    "ldr x30, [sp, #64]\nldp x6, x7, [sp, #48]\nldp x4, x5, [sp, #32]\nldp x2, x3, [sp, #16]\n"                        \
    "ldp x0, x1, [sp], #80\n.cfi_adjust_cfa_offset -80\n.cfi_restore x30\n"
#define JUMP "br x16\n"
#else
#error "how a function with any arguments is jumped to on this processor is not known here"
#endif

#define NOTED(name, note)                                                                                              \
    __asm__(".text\n.globl " name "\n.type " name ", %function\n" name ":\n.cfi_startproc\n" BEGIN SAVE CALL(note)     \
                RESTORE JUMP ".cfi_endproc\n.size " name ", .-" name "\n")

__attribute__((used, visibility("hidden"))) void *tz_note_vfork(void)
{
    tz_uncertain = 1;
    return (void *)REAL(vfork);
}

__attribute__((used, visibility("hidden"))) void *tz_note_clone(int (*function)(void *), void *stack, int flags)
{
    (void)function;
    (void)stack;
    if ((flags & CLONE_VM) && !(flags & CLONE_THREAD)) {
        /* With vfork's semantics this thread stands still meanwhile; otherwise both run. */
        if ((flags & CLONE_VFORK) && !(flags & CLONE_SETTLS))
            tz_uncertain = 1;
        else
            tz_store(&tz_memory_shared, 1);
    }
    return (void *)REAL(clone);
}

/* With no list it is only asked whether one could be set. */
__attribute__((used, visibility("hidden"))) void *tz_note_prctl(int option, unsigned long mode, const void *list)
{
    if (tz_unlikely(option == PR_SET_SECCOMP) && (mode == SECCOMP_MODE_STRICT || list))
        tz_withdraw();
    return (void *)REAL(prctl);
}

/* The library's own calls come by here too. */
__attribute__((used, visibility("hidden"))) void *tz_note_syscall(long number, unsigned long first,
                                                                  unsigned long second, const void *third)
{
#ifdef SYS_seccomp
    if (tz_unlikely(number == SYS_seccomp) && (first == 0 || (first == 1 && third)))
        tz_withdraw();
#endif
    if (tz_unlikely(number == SYS_prctl))
        tz_note_prctl((int)first, second, third);
    return (void *)REAL(syscall);
}

NOTED("prctl", "tz_note_prctl");
NOTED("syscall", "tz_note_syscall");
NOTED("vfork", "tz_note_vfork");
NOTED("clone", "tz_note_clone");
