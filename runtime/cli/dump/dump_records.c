/* dump_records.c: what a dump has besides tasks: idempotency keys, and after all tasks schedules and rooms. */
#include <errno.h>
#include <inttypes.h>

#include "base/units.h"
#include "cli/dump/dump.h"
#include "view/json.h"

static void print_name(void *self, const struct store_remembered *record)
{
        struct dumping *d = self;
        char hex[2 * SHA256_SIZE + 1];
        struct span name;
        struct span key;
        if (!idempotency_scope_split(record->scope, &name, &key))
                return; /* the store says only what can be read */
        json_t *o = json_object();
        view_json_span(o, "idempotency", name);
        if (key.size)
                view_json_span(o, "key", key);
        view_json_number(o, "shard", d->shard);
        view_json_span(o, "id", record->id);
        (void)json_object_set_new(o, "digest", json_string(units_hex(hex, record->digest.data, SHA256_SIZE)));
        view_json_number(o, "left_ms", record->left_ms);
        dump_write_line(d, o);
        d->records.names++;
}

int dump_names(struct cli_store *s, struct dumping *d, struct error *error)
{
        uint32_t unreadable = 0;
        int r = client_remembered(s->client, d->shard, print_name, d, &unreadable, error);
        if (r >= 0 && unreadable)
                dump_leave_out(d, "idempotency keys whose records cannot be read: %" PRIu32 "; quiver fsck names them",
                        unreadable);
        return r;
}

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

/* --- rooms -------------------------------------------------------------------------------------------------------- */

struct dumping_room {
        struct dumping *d;
        struct store_room room; /* `first` is set by its first page */
        uint64_t next;          /* the number of the next entry; 0: nothing was read yet */
        uint64_t last;          /* what is appended meanwhile is left out */
        bool is_torn;
};

static void print_room(struct dumping *d, const struct store_room *room)
{
        json_t *o = json_object();
        view_json_span(o, "room", room->name);
        view_json_number(o, "first", room->first);
        view_json_number(o, "entries_max", room->entries_max);
        view_json_number(o, "bytes_max", room->bytes_max);
        view_json_number(o, "age_ms", room->age_ms);
        dump_write_line(d, o);
        d->records.rooms++;
}

static void print_page(void *self, const struct store_room_read *read)
{
        struct dumping_room *r = self;
        if (!r->next) {
                r->room.first = r->next = read->first;
                r->last = read->last;
                if (!dump_room_is_fit(&r->room))
                        r->last = 0;
                else if (read->is_there)
                        print_room(r->d, &r->room);
        }
        for (uint32_t i = 0; i < read->entries_count && r->next <= r->last && !r->is_torn; i++) {
                const struct store_room_entry *entry = &read->entries[i];
                r->is_torn = entry->number != r->next++;
                json_t *o = json_object();
                view_json_span(o, "entry", r->room.name);
                view_json_number(o, "number", entry->number);
                view_json_number(o, "at_ms", entry->at_ms);
                view_json_span(o, "bytes", entry->bytes);
                dump_write_line(r->d, o);
        }
        r->is_torn = r->is_torn || (!read->entries_count && r->next <= r->last);
}

static int dump_room(struct cli_store *s, struct dumping *d, const struct store_room *room, struct error *error)
{
        struct dumping_room r = { .d = d, .room = *room };
        int result = 0;
        if (!dump_room_is_fit(room)) {
                dump_leave_out(d, "a room whose record cannot be read; quiver fsck names it");
                return 0;
        }
        do
                result = client_room_read(s->client, room->name, r.next, print_page, &r, error);
        while (result == 0 && !r.is_torn && r.next <= r.last);
        /* Before its first line was written it can still be left out. */
        if (result == -EPROTO && !r.next) {
                dump_leave_out(d, "%s", error->text);
                return 0;
        }
        if (result == 0 && r.is_torn)
                return error_set(error, -EAGAIN,
                        "room %.*s: entries went while it was read; the dump has no end mark and cannot be loaded: "
                        "write it anew",
                        (int)room->name.size, room->name.data);
        if (result == 0 && !dump_room_is_fit(&r.room))
                dump_leave_out(d, "a room whose numbers are at their end");
        return result;
}

int dump_rooms(struct cli_store *s, struct dumping *d, struct error *error)
{
        int r = 0;
        for (d->shard = 0; d->shard < s->info->shards && r == 0; d->shard++) {
                struct kept_rooms kept = { 0 };
                r = client_rooms(s->client, d->shard, &kept, error);
                for (uint32_t i = 0; i < kept.count && r == 0; i++)
                        r = dump_room(s, d, &kept.list[i], error);
                kept_rooms_free(&kept);
        }
        return r;
}
