#include "schedule/words.h"

#include <errno.h>
#include <string.h>

#include "base/strings.h"
#include "schedule/time_text.h"

static int read_time(const char *text, const char *name, const struct zone *zone, uint64_t *ret_ms, struct error *error)
{
        if (!text || time_parse(text, zone, ret_ms, error) == 0)
                return 0;
        return error_prefix(error, -EINVAL, "%s", name);
}

int schedule_make(const struct schedule_words *words, struct schedule *ret, struct error *error)
{
        struct schedule made = { .every_ms = words->every_ms,
                .overlap = words->overlap,
                .catchup = words->catchup,
                .catchup_ms = words->catchup_ms,
                .jitter_ms = words->jitter_ms,
                .runs_max = words->runs_max,
                .lane = words->lane,
                .cron = text_copy(words->cron),
                .handler = text_copy(words->handler),
                .key = text_copy(words->key),
                .from = text_copy(words->from) };
        if (words->payload.size)
                made.payload =
                        (struct span){ text_copy_part(words->payload.data, words->payload.size), words->payload.size };
        int r = 0;
        if (words->zone && strlen(words->zone) > ZONE_NAME_MAX)
                r = error_set(error, -EINVAL, "zone: is too long");
        else if (words->zone)
                memcpy(made.zone_name, words->zone, strlen(words->zone));
        if (r == 0)
                r = schedule_read_zone(&made, error);
        if (r == 0)
                r = read_time(words->at, "at", &made.zone, &made.at_ms, error);
        if (r == 0)
                r = read_time(words->start, "start", &made.zone, &made.start_ms, error);
        if (r == 0)
                r = read_time(words->end, "end", &made.zone, &made.end_ms, error);
        if (r == 0)
                r = schedule_check(&made, error);
        if (r < 0)
                schedule_free(&made);
        else
                *ret = made;
        return r;
}
