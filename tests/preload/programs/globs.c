/* Random globs and names: prints where the library and fnmatch(3) differ, and ends with how often they do. */
#include "base/glob.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

static void fill(char *out, const char *letters, int most)
{
	int length = rand() % (most + 1);

	for (int i = 0; i < length; i++)
		out[i] = letters[(size_t)rand() % strlen(letters)];
	out[length] = '\0';
}

int main(void)
{
	int different = 0, matched = 0;
	char glob[16], name[16];

	for (int i = 0; i < 1000000 && different < 20; i++) {
		bool expected;

		fill(glob, "ab*?[]!-^/c", 9);
		fill(name, "ab/c.]-", 6);
		expected = fnmatch(glob, name, 0) == 0;
		matched += expected;
		if (expected == tz_glob(glob, strlen(glob), name))
			continue;
		printf("%s %s: %d\n", glob, name, expected);
		different++;
	}
	return matched > 1000 ? different : -1;
}
