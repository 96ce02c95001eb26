/* zone_io.c: reads the file of a time zone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/strings.h"
#include "schedule/zone.h"

#define ZONES "/usr/share/zoneinfo"

int zone_read(struct zone *zone, const char *name, struct error *error)
{
        const char *folder = getenv("TZDIR");
        struct buffer bytes = { 0 };
        *zone = (struct zone){ .name = "UTC" };
        if (!*name || !strcmp(name, "UTC"))
                return 0;
        if (!zone_name_is_good(name))
                return error_set(
                        error, -EINVAL, "%.64s is no name of a time zone; it is written as Europe/Berlin", name);
        char *path = text_printf("%s/%s", folder && *folder ? folder : ZONES, name);
        int r = file_read(path, ZONE_BYTES_MAX, &bytes, NULL, NULL, error);
        if (r == -ENOENT)
                r = error_set(error, r,
                        "there is no time zone %s: %s is not there; timedatectl list-timezones lists them, and "
                        "they are in Debian's package tzdata",
                        name, path);
        else if (r < 0)
                (void)error_prefix(error, r, "%s", path);
        else
                r = zone_parse(zone, name, (struct span){ (const char *)bytes.data, bytes.size }, error);
        buffer_free(&bytes);
        free(path);
        return r;
}
