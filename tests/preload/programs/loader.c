/* loader LIBRARY how NAME: writes NAME through a library that is loaded in one of the ways there are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int flags = RTLD_NOW | (strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
	int (*function)(const char *);
	void *library;

	if (argc < 4)
		return 2;
	if (strcmp(argv[2], "deepbind") == 0)
		flags |= RTLD_DEEPBIND;
	library = strcmp(argv[2], "dlmopen") == 0 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : dlopen(argv[1], flags);
	if (!library) {
		fputs(dlerror(), stderr);
		return 3;
	}
	function = (int (*)(const char *))dlsym(library, "plugin_write");
	return function ? -function(argv[3]) : 4;
}
