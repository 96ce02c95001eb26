#include "cli/admin/dead_pick.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "view/text.h"

/* --- filters ------------------------------------------------------------------------------------------------------ */

bool dead_filter_is_set(const struct tasks_filter *f)
{
        return f->handler || f->reason || f->error || f->key || f->before_ms;
}

void dead_filter_print(FILE *out, const struct tasks_filter *f)
{
        char time[TEXT_TIME_MAX];
        const char *separator = "";
        const struct {
                const char *what;
                const char *value;
        } parts[] = { { "of handler", f->handler }, { "for the reason", f->reason }, { "with the error", f->error },
                { "of key", f->key }, { "dead before", f->before_ms ? text_time(time, f->before_ms) : NULL } };
        for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
                if (!parts[i].value)
                        continue;
                struct buffer value = { 0 };
                text_put_bytes(&value, (struct span){ parts[i].value, strlen(parts[i].value) }, TASK_KEY_MAX);
                (void)fprintf(out, "%s %s %s", separator, parts[i].what, buffer_text(&value));
                buffer_free(&value);
                separator = ",";
        }
}

int dead_before_parse(const char *text, uint64_t now_ms, uint64_t *ret_ms, struct error *error)
{
        static const char *const formats[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                "%Y-%m-%d %H:%M", "%Y-%m-%d" };
        uint64_t age_ms = 0;
        for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
                struct tm tm = { 0 };
                unsigned ms = 0;
                int used = 0;
                const char *rest = strptime(text, formats[i], &tm);
                if (rest && *rest == '.' && sscanf(rest, ".%3u%n", &ms, &used) == 1 && used == 4)
                        rest += used;
                time_t seconds = rest && (!*rest || !strcmp(rest, "Z")) ? timegm(&tm) : -1;
                if (seconds <= 0)
                        continue;
                *ret_ms = (uint64_t)seconds * 1000 + ms;
                return 0;
        }
        if (units_duration_ms(text, &age_ms, NULL) < 0 || age_ms >= now_ms)
                return error_set(error, -EINVAL,
                        "%s is neither an age (90s, 2h, 3d) nor a time in UTC (2026-11-16, 2026-11-16 10:00:00)", text);
        *ret_ms = now_ms - age_ms;
        return 0;
}

void dead_filter_shards(
        const struct tasks_filter *f, const struct store_info *info, uint32_t *ret_first, uint32_t *ret_end)
{
        struct span key = { f->key, f->key ? strlen(f->key) : 0 };
        /* A task without a key has its id as one, and is in the shard that this says. */
        bool is_in_one = f->key && task_id_check(key, NULL, NULL) < 0;
        *ret_first = is_in_one ? shard_of_key(key, info->shards) : 0;
        *ret_end = is_in_one ? *ret_first + 1 : info->shards;
}

/* --- all shards --------------------------------------------------------------------------------------------------- */

struct surveying {
        const struct tasks_filter *filter;
        struct dead_survey *survey;
        struct dead_picked *picked;
        size_t room;
        uint64_t last; /* numbers above it were given after we began */
};

static void see(void *self, const struct store_listed *task)
{
        struct surveying *s = self;
        if (task->number > s->last)
                return;
        s->survey->seen++;
        if (!tasks_filter_fits(s->filter, task, 0))
                return;
        s->survey->matched++;
        if (s->picked->count == s->room) {
                s->room = s->room ? 2 * s->room : 256;
                s->picked->numbers = memory_resize(s->picked->numbers, s->room * sizeof(*s->picked->numbers));
        }
        s->picked->numbers[s->picked->count++] = task->number;
}

int dead_survey(struct cli_store *s, const struct tasks_filter *f, struct dead_survey *ret_survey, struct error *error)
{
        struct dead_survey survey = { 0 };
        uint32_t first;
        uint32_t end;
        int r = 0;
        dead_filter_shards(f, s->info, &first, &end);
        uint64_t *last = memory_zero(end - first, sizeof(*last));
        survey.shards = memory_zero(end - first, sizeof(*survey.shards));
        for (uint32_t i = first; i < end && r >= 0; i++) {
                struct store_dead dead = { 0 };
                r = client_dead_id(s->client, i, DEAD_REQUEUE, (struct span){ 0 }, &dead, error);
                last[i - first] = dead.last;
        }
        for (uint32_t i = first; i < end && r >= 0; i++) {
                struct dead_picked *picked = &survey.shards[survey.shards_count++];
                struct surveying look = { .filter = f, .survey = &survey, .picked = picked, .last = last[i - first] };
                /* There are at most as many as numbers were given: those who die meanwhile cannot keep us here. */
                uint32_t max = (uint32_t)min_u64(look.last, UINT32_MAX);
                picked->shard = i;
                if (max)
                        r = client_list(s->client, i, STATE_DEAD, (struct span){ 0 }, max, see, &look, error);
        }
        free(last);
        if (r < 0) {
                dead_survey_free(&survey);
                return r;
        }
        *ret_survey = survey;
        return 0;
}

void dead_survey_free(struct dead_survey *survey)
{
        for (uint32_t i = 0; i < survey->shards_count; i++)
                free(survey->shards[i].numbers);
        free(survey->shards);
        *survey = (struct dead_survey){ 0 };
}
