/* A layout was refused: the application gets what it would have got without us. */
#pragma once

#include "place/create.h"

/* The file is ours and open at `fd`, without a layout. Returns the application's descriptor, or -1 with errno. */
int tz_refuse(struct tz_create *create, int fd, int error);

/* What the record says of a refusal; a mount that turns out not to be Lustre's is left alone from now on. */
void tz_refused(struct tz_create *create, int error);

/* The same where the open itself failed by `error`, and may have left the file behind without a layout. */
int tz_refuse_unopened(struct tz_create *create, int error);
