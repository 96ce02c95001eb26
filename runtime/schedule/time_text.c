#include "schedule/time_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timestamp.h"
#include "schedule/calendar.h"

#define TIME_TEXT_MAX 40u

/* A time without a zone is parsed as UTC, which gives the local time of the zone. */
int time_parse(const char *text, const struct zone *zone, uint64_t *ret_ms, struct error *error)
{
        char whole[TIME_TEXT_MAX + sizeof("T00:00Z")];
        size_t size = strlen(text);
        bool has_time = size > 10;
        bool has_zone = has_time && strpbrk(text + 10, "Zz+-");
        uint64_t ms;
        if (size > TIME_TEXT_MAX)
                return error_set(error, -EINVAL, "%.40s… is no time", text);
        (void)snprintf(whole, sizeof(whole), "%s%s%s", text, has_time ? "" : "T00:00", has_zone ? "" : "Z");
        if (timestamp_parse(whole, false, 0, &ms, error) < 0)
                return error_set(
                        error, -EINVAL, "%s: a time is written as 2026-12-01T03:00:00Z or 2026-12-01 03:00", text);
        int64_t at = has_zone ? (int64_t)(ms / 1000) : zone_from_local(zone, (int64_t)(ms / 1000));
        if (at < 0)
                return error_set(error, -EINVAL, "%s: is before 1970", text);
        *ret_ms = (uint64_t)at * 1000;
        return 0;
}

void time_put(struct buffer *to, uint64_t ms, const struct zone *zone)
{
        int64_t until, year;
        int month, day;
        int64_t utc = (int64_t)(ms / 1000);
        int64_t offset = zone_offset(zone, utc, &until);
        int64_t days = calendar_day_of(utc + offset);
        int64_t rest = utc + offset - days * CALENDAR_DAY_S;
        calendar_date(days, &year, &month, &day);
        buffer_printf(to, "%04" PRId64 "-%02d-%02d %02d:%02d:%02d", year, month, day, (int)(rest / 3600),
                (int)(rest / 60 % 60), (int)(rest % 60));
        if (!strcmp(zone->name, "UTC") || !zone->name[0])
                buffer_printf(to, "Z");
        else
                buffer_printf(to, " %c%02d:%02d", offset < 0 ? '-' : '+', (int)(llabs(offset) / 3600),
                        (int)(llabs(offset) / 60 % 60));
}
