/* load_records.c: what a dump has besides tasks and comes after them: schedules. */
#include <inttypes.h>

#include "cli/dump/load.h"
#include "schedule/schedule.h"

/* As whoever sets a schedule finds its shard.  A definition that cannot be read names no key: its name is one. */
uint32_t load_schedule_shard(const struct store_schedule *schedule, uint32_t shards)
{
        struct schedule parsed;
        struct error error;
        if (schedule_parse(&parsed, schedule->definition, &error) < 0)
                return shard_of_key(schedule->name, shards);
        uint32_t shard = shard_of_key(schedule_key(&parsed, schedule->name), shards);
        schedule_free(&parsed);
        return shard;
}

static void leave_schedule(struct loading *l, struct span name, const char *why)
{
        progress_end(&l->progress);
        (void)fprintf(stderr, "quiver load: schedule %.*s: %s; it is left as it is\n", (int)name.size, name.data, why);
        l->left_out++;
}

/* One of the name whose tasks have another key: two records of a name would both fire. */
static bool is_elsewhere(const struct loading *l, uint32_t shard, struct span name)
{
        for (uint32_t i = 0; i < l->schedules.count; i++)
                if (l->schedules.list[i].shard != shard && span_is(l->schedules.list[i].stored.name, name))
                        return true;
        return false;
}

int load_schedule(struct loading *l, uint32_t shard, const struct store_schedule *schedule)
{
        struct error *error = &l->reader->error;
        struct store_schedule_set set = { .verb = SCHEDULE_LOAD,
                .shard = shard,
                .name = schedule->name,
                .version = schedule->version,
                .definition = schedule->definition,
                .next_ms = schedule->next_ms,
                .state = schedule->state,
                .last_ms = schedule->last_ms,
                .fired = schedule->fired,
                .skipped = schedule->skipped };
        int r = l->has_schedules ? 0 : client_schedules(l->s->client, l->s->info->shards, NULL, &l->schedules, error);
        if (r < 0)
                return r;
        l->has_schedules = true;
        if (is_elsewhere(l, shard, schedule->name)) {
                leave_schedule(l, schedule->name, "one of that name, with another key, is there");
                return 0;
        }
        r = client_schedule_set(l->s->client, &set, error);
        if (r < 0)
                return r;
        if (set.change == SCHEDULE_STALE)
                leave_schedule(l, schedule->name,
                        "a newer version is there or was deleted there, or another definition of the same version");
        l->records.schedules += set.change == SCHEDULE_CHANGED;
        return 0;
}
