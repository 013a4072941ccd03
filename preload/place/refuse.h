/* A layout was refused: what the record says of it, and what liblustreapi leaves behind. */
#pragma once

#include "place/create.h"

/* What the record says; a mount that turns out not to be Lustre's is left alone from now on. */
void tz_refused(struct tz_create *create, int error);

/*
 * liblustreapi's open failed by `error`, and may have left the file behind without a layout. Returns the application's
 * descriptor, or -1 with errno.
 */
int tz_refuse_unopened(struct tz_create *create, int error);
