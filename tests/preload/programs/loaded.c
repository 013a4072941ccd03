/* Lists what is loaded by dl_iterate_phdr, also within a signal handler and a callback, between dlopen and dlclose. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int in_handler;

static int count(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size;
	++*(int *)data;
	return 0;
}

static int show(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *name = strrchr(info->dlpi_name, '/');
	int inner = 0;

	if (dl_iterate_phdr(count, &inner) || inner < 3 || size < sizeof *info)
		return -1;
	if (!strstr(info->dlpi_name, "libtarazu"))
		printf("%s %d\n", name ? name + 1 : "program", info->dlpi_phnum);
	return strcmp(info->dlpi_name, (const char *)data) == 0 ? 7 : 0;
}

static void handler(int signal)
{
	(void)signal;
	dl_iterate_phdr(count, &in_handler);
}

int main(void)
{
	int before = 0, during = 0, after = 0;
	void *frames[16], *library;

	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	printf("%d %d\n", dl_iterate_phdr(show, "nowhere"), dl_iterate_phdr(show, ""));
	dl_iterate_phdr(count, &before);
	library = dlopen("libutil.so.1", RTLD_NOW);
	dl_iterate_phdr(count, &during);
	if (library)
		dlclose(library);
	dl_iterate_phdr(count, &after);
	printf("%d %d %d %d\n", in_handler == before, during >= before, after >= before, backtrace(frames, 16) > 1);
	return 0;
}
