/* Where findings go, said once the runtime can bear calls: with log_path it makes directories before it knows libc's. */
#include <sanitizer/common_interface_defs.h>

__attribute__((constructor)) static void report(void)
{
    __sanitizer_set_report_path(REPORTS);
}
