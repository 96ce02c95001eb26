/* Checks names and paths, whether they come from a caller, the authority or a file. */
#include <errno.h>
#include <string.h>

#include "coord/driver.h"

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@%+-"

bool coord_name_is_good(struct span name)
{
        if (!name.size || name.size > COORD_NAME_MAX)
                return false;
        for (size_t i = 0; i < name.size; i++)
                if (!name.data[i] || !strchr(NAME_BYTES, name.data[i]))
                        return false;
        return !span_is(name, SPAN_TEXT(".")) && !span_is(name, SPAN_TEXT(".."));
}

int coord_path_check(const char *path, struct error *error)
{
        if (!path || !path[0])
                return error_set(error, -EINVAL, "a path is needed");
        if (strlen(path) >= COORD_PATH_MAX)
                return error_set(error, -E2BIG, "path: at most %u bytes", COORD_PATH_MAX - 1);
        for (const char *name = path;; name++) {
                size_t size = strcspn(name, "/");
                if (!coord_name_is_good((struct span){ name, size }))
                        return error_set(error, -EINVAL,
                                "path \"%s\": names are 1 to %u of A-Z a-z 0-9 . _ : @ %% + -, joined by /", path,
                                COORD_NAME_MAX);
                name += size;
                if (!*name)
                        return 0;
        }
}
