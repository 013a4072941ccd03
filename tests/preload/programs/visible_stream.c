/* Functions of streams. */
#include "visible.h"

#include <wchar.h>

static FILE *stream; /* so that SAY can assign it */

void fopen_(void)
{
	SAY_IF(stream = fopen("fopen", "w"));
	use_stream(stream, true);
	SAY_IF(stream = fopen("fopen", "a+"));
	use_stream(stream, false);
	SAY_IF(stream = fopen("fopen", "r+e"));
	if (stream) {
		SAY(fread(data, 1, 4, stream));
		SAY(fseek(stream, 0, SEEK_CUR));
		use_stream(stream, false);
	}
}
void fopen64_(void)
{
	SAY_IF(stream = fopen64("fopen64", "wx"));
	use_stream(stream, false);
	SAY_IF(stream = fopen64("fopen64.wide", "w,ccs=UTF-8"));
	if (stream) {
		SAY(fputws(L"wide", stream));
		SAY(fclose(stream));
	}
	SAY_IF(stream = fopen64("fopen64.large", "w+"));
	if (stream) {
		SAY(fwrite(data, 1, sizeof data, stream));
		see(stream);
		SAY(fclose(stream));
	}
	SAY_IF(stream = fopen64("fopen64.unbuffered", "w"));
	if (stream) {
		SAY(setvbuf(stream, NULL, _IONBF, 0));
		use_stream(stream, false);
	}
}
void freopen_(void)
{
	SAY_IF(stream = fopen("freopen", "w"));
	if (!stream)
		return;
	SAY(fputs("lost or not", stream));
	SAY_IF(stream = freopen("freopen.second", "w", stream));
	use_stream(stream, false);
}
void freopen64_(void)
{
	SAY_IF(stream = fopen("freopen64", "w"));
	if (!stream)
		return;
	SAY(fputs("lost or not", stream));
	SAY_IF(stream = freopen64("freopen64", "a", stream));
	use_stream(stream, true);
}
void fdopen_(void)
{
	int fd = (int)SAY(open("fdopen", NEW, 0644));

	SAY_IF(stream = fdopen(fd, "w"));
	use_stream(stream, false);
}
void fclose_(void)
{
	SAY_IF(stream = fopen("fclose", "w"));
	if (stream) {
		SAY(fputs("held until the end", stream));
		SAY(fclose(stream));
	}
	SAY_IF(stream = fopen("fclose", "a"));
	if (stream) {
		SAY(fputs("more", stream));
		SAY(fclose(stream));
	}
}
void fwrite_(void)
{
	SAY_IF(stream = fopen("fwrite", "w"));
	for (int i = 0; stream && i < 3; i++)
		SAY(fwrite(data, 7, 1000, stream));
	use_stream(stream, true);
}
#define SEEK(function, ...)                                                \
	void function##_(void)                                      \
	{                                                                  \
		SAY_IF(stream = fopen(#function, "w+"));                   \
		if (!stream)                                               \
			return;                                            \
		SAY(fputs("0123456789", stream));                          \
		__VA_ARGS__;                                               \
		use_stream(stream, false);                                 \
	}
SEEK(fseek, SAY(fseek(stream, 3, SEEK_SET)); SAY(fgetc(stream)); SAY(fseek(stream, 0, SEEK_END)))
SEEK(fseeko, SAY(fseeko(stream, 100, SEEK_SET)); SAY(fseeko(stream, -5, SEEK_CUR)))
SEEK(fseeko64, SAY(fseeko64(stream, 1, SEEK_END)))
SEEK(rewind, errno = UNTOUCHED; rewind(stream); say("rewind", 0))
