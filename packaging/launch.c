/*
 * What /usr/bin/tarazu and the daemons' names are in the packages: starts their own Python, which lies beside it.
 *
 *   ROOT/bin/NAME        this program, once for each name; /usr/bin/NAME is a symbolic link to it
 *   ROOT/bin/python3     the interpreter; it finds its library and its shared libraries by its own place
 *   ROOT/names/NAME      symbolic link to it: what the kernel shows in `ps` and `top`
 *   ROOT/scripts/NAME    the Python program
 *
 * The environment goes on as it is: what a site's modules set for other Pythons (PYTHONPATH, PYTHONHOME) is not looked
 * at (-I), and jobs see nothing of ours.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char own[PATH_MAX], names[2 * PATH_MAX], python[2 * PATH_MAX], script[2 * PATH_MAX];

int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    char *name = length > 0 ? strrchr(own, '/') : NULL;
    if (!name) {
        fprintf(stderr, "tarazu: /proc/self/exe: expected the program's own path, found: %s\n", strerror(errno));
        return 127;
    }
    *name++ = '\0';
    char *bin = strrchr(own, '/');
    if (!bin) {
        fprintf(stderr, "tarazu: expected a program in DIRECTORY/bin, found it in %s\n", own);
        return 127;
    }
    *bin = '\0';
    snprintf(names, sizeof names, "%s/names/%s", own, name);
    snprintf(python, sizeof python, "%s/bin/python3", own);
    snprintf(script, sizeof script, "%s/scripts/%s", own, name);

    char **words = calloc((size_t)argc + 3, sizeof *words);
    if (!words) {
        fprintf(stderr, "tarazu: no memory\n");
        return 127;
    }
    words[0] = python;
    words[1] = "-I";
    words[2] = script;
    for (int i = 1; i < argc; i++)
        words[i + 2] = argv[i];
    execv(names, words);
    fprintf(stderr, "tarazu: %s: %s\n", names, strerror(errno));
    return 127;
}
