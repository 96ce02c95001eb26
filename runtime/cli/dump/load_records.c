/* load_records.c: what a dump has besides tasks and comes after them: schedules and rooms. */
#include <errno.h>
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

/* --- rooms -------------------------------------------------------------------------------------------------------- */

static bool is_left(const struct loading *l, struct span name)
{
        return span_is((struct span){ (const char *)l->left_room.data, l->left_room.size }, name);
}

static void leave_room(struct loading *l, struct span name)
{
        if (is_left(l, name))
                return;
        buffer_clear(&l->left_room);
        buffer_put(&l->left_room, name.data, name.size);
        progress_end(&l->progress);
        (void)fprintf(stderr, "quiver load: room %.*s: it is there already, with other entries; it is left as it is\n",
                (int)name.size, name.data);
        l->left_out++;
}

/* The room remembers up to which number it has this dump: whatever is sent again is a repeat. */
static int append(struct loading *l, struct span name, struct store_room_append *append)
{
        append->name = name;
        append->source = (struct span){ l->reader->name, DUMP_NAME_SIZE };
        append->source_number = append->begin + append->entries_count;
        int r = client_room_append(l->s->client, append, &l->reader->error);
        if (r != -ESTALE)
                return r;
        leave_room(l, name);
        return 0;
}

int load_room(struct loading *l, const struct store_room *room)
{
        struct store_room_append begin = { .begin = room->first };
        struct store_room_set set = { .name = room->name,
                .entries_max = room->entries_max,
                .bytes_max = room->bytes_max,
                .age_ms = room->age_ms };
        int r = append(l, room->name, &begin);
        if (r < 0 || is_left(l, room->name))
                return r;
        l->records.rooms++;
        return client_room_set(l->s->client, &set, &l->reader->error);
}

int load_entries(struct loading *l, uint32_t line, uint32_t *ret_lines)
{
        const struct dump_record *first = &l->reader->lines[line];
        struct span entries[DUMP_CHUNK_LINES];
        uint64_t times[DUMP_CHUNK_LINES];
        struct store_room_append some = { .entries = entries, .at_ms = times, .begin = first->entry.number };
        size_t bytes = 0;
        for (uint32_t i = line; i < l->reader->lines_count; i++) {
                const struct dump_record *next = &l->reader->lines[i];
                uint32_t count = some.entries_count;
                if (next->kind != DUMP_ENTRY || !span_is(next->name, first->name) ||
                        next->entry.number != some.begin + count ||
                        (count && bytes + next->entry.bytes.size > STORE_CALL_BYTES))
                        break;
                bytes += next->entry.bytes.size;
                entries[count] = next->entry.bytes;
                times[count] = next->entry.at_ms;
                some.entries_count++;
        }
        *ret_lines = some.entries_count;
        return is_left(l, first->name) ? 0 : append(l, first->name, &some);
}
