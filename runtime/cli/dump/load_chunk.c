/* load_chunk.c: a chunk of a dump, divided among the shards of this store. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/dump/load.h"

/* An owner takes up a hold with its next advance, at the latest when it renews its lease. */
#define HOLD_WAIT_MS 60000u
#define HOLD_LOOK_MS 20u

static struct span span_of(const struct buffer *b)
{
        return (struct span){ (const char *)b->data, b->size };
}

/* --- where it belongs --------------------------------------------------------------------------------------------- */

/* A task that was pushed without an id is called by its place, "normal.17"; one that died with an id which is none,
 * "dead.17". */
static bool id_is_made(struct span id)
{
        static const char *const places[] = { "high.", "normal.", "low.", "dead." };
        for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                size_t size = strlen(places[i]);
                if (id.size > size && !memcmp(id.data, places[i], size))
                        return true;
        }
        return false;
}

/* An id ends in its shard.  One that was made from a place gets the dump's name: here somebody else has that place. */
static void id_move(const struct loading *l, struct span id, uint32_t old_shard, uint32_t shard, struct buffer *to)
{
        char suffix[16];
        const char *dash = id.size ? memrchr(id.data, '-', id.size) : NULL;
        size_t stem = dash ? (size_t)(dash - id.data) : id.size;
        size_t suffix_size = (size_t)snprintf(suffix, sizeof(suffix), "-%" PRIu32, shard);
        buffer_clear(to);
        if (id_is_made(id))
                buffer_printf(to, "d%.12s.%" PRIu32 ".", l->reader->name, old_shard);
        /* The longest ids lose their first letters: those that were made one after the other differ in their last. */
        size_t room = TASK_ID_MAX - to->size - suffix_size;
        size_t over = stem > room ? stem - room : 0;
        buffer_put(to, id.data + over, stem - over);
        buffer_put(to, suffix, suffix_size);
}

/* Where its name will be looked for.  Its id becomes that of the task, which may be elsewhere if it has no key. */
static uint32_t place_name(const struct loading *l, struct dump_record *line)
{
        struct buffer id = { 0 };
        uint32_t shards = l->s->info->shards;
        struct span key = line->value;
        id_move(l, line->remembered.id, line->shard, key.size ? shard_of_key(key, shards) : line->shard % shards, &id);
        buffer_free(&line->memory[2]);
        line->memory[2] = id;
        line->remembered.id = span_of(&line->memory[2]);
        return shard_of_key(key.size ? key : line->name, shards);
}

/* The line's shard here; its envelope and id say so afterwards.  A malformed envelope stays as it is. */
static uint32_t place(const struct loading *l, struct dump_record *line)
{
        struct envelope e;
        struct buffer id = { 0 };
        uint32_t shards = l->s->info->shards;
        uint32_t shard = line->shard % shards;
        if (line->kind == DUMP_HELD)
                return shard_of_key(line->name, shards);
        if (line->kind == DUMP_DESIRED)
                return 0;
        if (line->kind == DUMP_NAME)
                return place_name(l, line);
        if (line->kind == DUMP_SCHEDULE)
                return load_schedule_shard(&line->schedule, shards);
        if (line->kind == DUMP_ROOM || line->kind == DUMP_ENTRY)
                return shard_of_key(line->kind == DUMP_ROOM ? line->room.name : line->name, shards);
        if (!envelope_parse(line->task.bytes.data, line->task.bytes.size, &e, NULL)) {
                struct buffer moved = { 0 };
                if (e.key.size)
                        shard = shard_of_key(e.key, shards);
                if (e.id.size) {
                        id_move(l, e.id, line->shard, shard, &id);
                        e.id = span_of(&id);
                }
                envelope_put(&moved, &e);
                buffer_free(&line->memory[0]);
                line->memory[0] = moved;
                line->task.bytes = span_of(&line->memory[0]);
        }
        if (line->task.state == STATE_DEAD) {
                id_move(l, line->task.id, line->shard, shard, &id);
                buffer_clear(&line->memory[2]);
                buffer_put(&line->memory[2], id.data, id.size);
                line->task.id = span_of(&line->memory[2]);
        }
        buffer_free(&id);
        return shard;
}

/* --- what is not a task ------------------------------------------------------------------------------------------- */

static void take_state(void *self, const struct store_key_info *key)
{
        *(bool *)self = key->state == KEY_HELD;
}

/* The owner has been told.  Its key's tasks must not come before it has done it.  If nobody is there to do it, whoever
 * comes does it before it claims anything, as long as one call can do all that waits. */
static int await_hold(struct loading *l, uint32_t shard, struct span key)
{
        const struct timespec pause = { .tv_nsec = HOLD_LOOK_MS * NS_PER_MS };
        struct error *error = &l->reader->error;
        uint64_t until_ms = clock_boot_ms() + HOLD_WAIT_MS;
        while (clock_boot_ms() < until_ms) {
                struct store_counts counts = { 0 };
                bool is_held = false;
                int r = client_count(l->s->client, shard, 1, &counts, error);
                if (r >= 0)
                        r = client_keys(l->s->client, shard, key, 1, take_state, &is_held, error);
                if (r < 0)
                        return r;
                bool is_owned = counts.is_held && counts.left_ms;
                if (is_held || (!is_owned && counts.controls <= STORE_CALL_CONTROLS))
                        return 0;
                if (!is_owned)
                        break;
                (void)nanosleep(&pause, NULL);
        }
        return error_set(error, -EAGAIN,
                "shard %" PRIu32 ": the dump has the key %.*s held, and no owner has held it here yet; start a host, "
                "or see what its owner does: quiver status",
                shard, (int)key.size, key.data);
}

static int load_held(struct loading *l, uint32_t shard, const struct dump_record *line)
{
        bool is_pending = false;
        int r = client_key_act(l->s->client, CONTROL_HOLD, line->name, line->value, &is_pending, &l->reader->error);
        return r < 0 || !is_pending ? r : await_hold(l, shard, line->name);
}

static int load_desired(struct loading *l, const struct dump_record *line)
{
        char name[256];
        char value[STORE_DESIRED_VALUE_MAX + 1];
        (void)snprintf(name, sizeof(name), "%.*s", (int)line->name.size, line->name.data);
        (void)snprintf(value, sizeof(value), "%.*s", (int)line->value.size, line->value.size ? line->value.data : "");
        int r = qv_client_set_desired(l->s->client, name, value);
        return r < 0 ? error_set(&l->reader->error, r, "%s", qv_client_error()) : 0;
}

/* A line that is no task; *ret_lines: how many lines it was, with those right after it. */
static int load_other(struct loading *l, uint32_t shard, uint32_t index, uint32_t *ret_lines)
{
        const struct dump_record *line = &l->reader->lines[index];
        *ret_lines = 1;
        switch (line->kind) {
        case DUMP_HELD:
                return load_held(l, shard, line);
        case DUMP_DESIRED:
                return load_desired(l, line);
        case DUMP_SCHEDULE:
                return load_schedule(l, shard, &line->schedule);
        case DUMP_ROOM:
                return load_room(l, &line->room);
        case DUMP_ENTRY:
                return load_entries(l, index, ret_lines);
        default:
                return 0;
        }
}

/* --- one shard's part --------------------------------------------------------------------------------------------- */

static void leave_names(struct loading *l, uint32_t shard, uint32_t names)
{
        progress_end(&l->progress);
        (void)fprintf(stderr,
                "quiver load: shard %" PRIu32 ": %" PRIu32
                " idempotency key%s name%s other tasks here; %s left as %s\n",
                shard, names, names == 1 ? "" : "s", names == 1 ? "s" : "", names == 1 ? "it is" : "they are",
                names == 1 ? "it is" : "they are");
        l->left_out += names;
}

/* Puts the part in and remembers its number, in one step; what is not a task comes before that, and may be repeated. */
static int load_part(struct loading *l, uint32_t shard)
{
        struct dump_reader *r = l->reader;
        uint32_t count = 0;
        uint32_t names = 0;
        uint64_t after = l->last[shard];
        bool is_there = r->chunk <= l->taken[shard];
        l->last[shard] = r->chunk;
        for (uint32_t i = 0, lines = 1; i < r->lines_count; i += lines, lines = 1) {
                struct dump_record *line = &r->lines[i];
                int result = 0;
                if (l->shard_of[i] != shard)
                        continue;
                if (line->kind == DUMP_TASK)
                        l->items[count++] = line->task;
                else if (line->kind == DUMP_NAME)
                        l->names[names++] = line->remembered;
                else if (!is_there)
                        result = load_other(l, shard, i, &lines);
                if (result < 0)
                        return result;
        }
        if (is_there) {
                l->were_there += count;
                return 0;
        }
        struct store_import import = { .shard = shard,
                .source = { r->name, DUMP_NAME_SIZE },
                .number = r->chunk,
                .after = after,
                .items = l->items,
                .items_count = count,
                .names = l->names,
                .names_count = names };
        int result = client_import(l->s->client, &import, &r->error);
        if (result < 0)
                return result;
        *(import.is_repeat ? &l->were_there : &l->loaded) += count;
        if (!import.is_repeat)
                l->records.names += names - import.names_left;
        if (import.names_left)
                leave_names(l, shard, import.names_left);
        progress_show(&l->progress, l->loaded + l->were_there);
        return 0;
}

static int load_chunk(struct loading *l)
{
        struct dump_reader *r = l->reader;
        for (uint32_t i = 0; i < r->lines_count; i++)
                l->shard_of[i] = place(l, &r->lines[i]);
        for (uint32_t i = 0; i < r->lines_count; i++) {
                bool is_first = true;
                for (uint32_t j = 0; j < i && is_first; j++)
                        is_first = l->shard_of[j] != l->shard_of[i];
                int result = is_first ? load_part(l, l->shard_of[i]) : 0;
                if (result < 0)
                        return result;
        }
        return 0;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

int loading_start(struct loading *l)
{
        uint32_t shards = l->s->info->shards;
        l->taken = memory_zero(shards, sizeof(*l->taken));
        l->last = memory_zero(shards, sizeof(*l->last));
        l->shard_of = memory_zero(DUMP_CHUNK_LINES, sizeof(*l->shard_of));
        l->items = memory_zero(DUMP_CHUNK_LINES, sizeof(*l->items));
        l->names = memory_zero(DUMP_CHUNK_LINES, sizeof(*l->names));
        for (uint32_t i = 0; i < shards; i++) {
                struct store_import look = { .shard = i, .source = { l->reader->name, DUMP_NAME_SIZE } };
                int r = client_import(l->s->client, &look, &l->reader->error);
                if (r < 0)
                        return r;
                l->taken[i] = look.taken;
                l->has_begun = l->has_begun || look.taken;
        }
        return 0;
}

int loading_run(struct loading *l)
{
        struct dump_reader *r = l->reader;
        int result = 0;
        while (result == 0 && !r->is_end) {
                result = dump_read_chunk(r);
                if (result == 0 && !r->is_end)
                        result = load_chunk(l);
        }
        return result;
}

void loading_free(struct loading *l)
{
        free(l->taken);
        free(l->last);
        free(l->shard_of);
        free(l->items);
        free(l->names);
        kept_schedules_free(&l->schedules);
        buffer_free(&l->left_room);
}
