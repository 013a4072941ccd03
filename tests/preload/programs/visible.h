/* What the files of `visible` share: how a call is made and said, and what is done with a descriptor or a stream. */
#ifndef VISIBLE_H
#define VISIBLE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { NEW = O_CREAT | O_EXCL | O_RDWR, UNTOUCHED = 4711 };

extern const char *here; /* the function that is called */
extern char data[70000];

long say(const char *step, long result);
#define SAY(call) (errno = UNTOUCHED, say(#call, (long)(call)))
#define SAY_IF(call) (errno = UNTOUCHED, say(#call, (call) != NULL))

void look(int fd);
void use(int fd);
void see(FILE *f);
void use_stream(FILE *f, bool flush);
int made(const char *name);

/* Each wrapped function, on a file of its own. */
#define TZ_WRAP(result, name, parameters) void name##_(void);
#include "wrap.def"
#undef TZ_WRAP
void exit_(void);

#endif
