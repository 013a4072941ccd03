/* Files that the program before this one has opened (a shell's redirection). */
#pragma once

/* Follows standard output and error. */
void tz_adopt(void);
