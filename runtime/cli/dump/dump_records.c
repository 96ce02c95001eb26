/* dump_records.c: what a dump has besides tasks and comes after them: schedules. */
#include <inttypes.h>

#include "cli/dump/dump.h"
#include "view/json.h"

static void print_schedule(struct dumping *d, const struct kept_schedule *kept)
{
        const struct store_schedule *schedule = &kept->stored;
        d->shard = kept->shard;
        if (!dump_schedule_is_fit(schedule)) {
                dump_leave_out(d, "a schedule that no Quiver has written");
                return;
        }
        json_t *o = json_object();
        view_json_span(o, "schedule", schedule->name);
        view_json_number(o, "version", schedule->version);
        (void)json_object_set_new(o, "is_paused", json_boolean(schedule->state == SCHEDULE_PAUSED));
        if (schedule->next_ms != STORE_NEVER)
                view_json_number(o, "next_ms", schedule->next_ms);
        view_json_number(o, "last_ms", schedule->last_ms);
        view_json_number(o, "fired", schedule->fired);
        view_json_number(o, "skipped", schedule->skipped);
        view_json_span(o, "definition", schedule->definition);
        dump_write_line(d, o);
        d->records.schedules++;
}

int dump_schedules(struct cli_store *s, struct dumping *d, struct error *error)
{
        struct kept_schedules kept = { 0 };
        int r = client_schedules(s->client, s->info->shards, NULL, &kept, error);
        if (r < 0)
                return r;
        /* A chunk's other lines are loaded before its tasks: a schedule must not fire before them. */
        dump_end_chunk(d);
        for (uint32_t i = 0; i < kept.count; i++)
                print_schedule(d, &kept.list[i]);
        if (kept.unreadable) {
                progress_end(&d->progress);
                (void)fprintf(stderr,
                        "quiver dump: left out: schedules whose records cannot be read: %" PRIu32
                        "; quiver fsck names them\n",
                        kept.unreadable);
                d->left_out += kept.unreadable;
        }
        kept_schedules_free(&kept);
        return 0;
}
