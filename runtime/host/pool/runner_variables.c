#include "host/pool/runner_variables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

/* Variables that programs need to find files, to choose a language and to load their libraries.  QUIVER_* are for the
 * runner itself, which wipes them before it loads the plugin.  A name that ends with an underscore is a prefix. */
static const char *const usual[] = { "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_", "TZ", "TMPDIR",
        "LD_", "MALLOC_", "GLIBC_TUNABLES", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS",
        "QUIVER_" };

static bool is_named(const char *variable, const char *name, bool may_begin)
{
        size_t size = strlen(name);
        if (strncmp(variable, name, size) != 0)
                return false;
        return variable[size] == '=' || (may_begin && size && name[size - 1] == '_');
}

static bool is_allowed(const char *variable, const char *const *more, size_t more_count)
{
        for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
                if (is_named(variable, usual[i], true))
                        return true;
        for (size_t i = 0; i < more_count; i++)
                if (is_named(variable, more[i], false))
                        return true;
        return false;
}

char **variables_for_runner(const char *const *more, size_t more_count, char *mark)
{
        size_t count = 0;
        while (environ && environ[count])
                count++;
        char **list = memory_zero(count + 2, sizeof(*list));
        char **to = list;
        if (*mark)
                *to++ = mark;
        for (size_t i = 0; i < count; i++)
                if (is_allowed(environ[i], more, more_count) && !is_named(environ[i], "QUIVER_RUNNER", false))
                        *to++ = environ[i];
        return list;
}
