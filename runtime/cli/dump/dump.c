/* dump.c: all tasks of a store, for another one. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/dump/dump.h"
#include "host/handler/reload_order.h"
#include "view/json.h"

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct dump_line {
        uint64_t seq;
        json_t *json;
};

static void write_bytes(struct dumping *d, const char *text, size_t size)
{
        d->sum = (uint32_t)crc32_z(d->sum, (const Bytef *)text, size);
        d->sum = (uint32_t)crc32_z(d->sum, (const Bytef *)"\n", 1);
        (void)fwrite(text, 1, size, stdout);
        (void)putchar('\n');
}

static size_t write_json(struct dumping *d, json_t *object)
{
        char *text = memory_or_abort(json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER));
        size_t size = strlen(text);
        d->is_too_long = d->is_too_long || size > DUMP_LINE_MAX;
        write_bytes(d, text, size);
        free(text);
        json_decref(object);
        return size;
}

void dump_end_chunk(struct dumping *d)
{
        char mark[DUMP_MARK_MAX];
        if (!d->chunk_lines)
                return;
        d->chunks++;
        write_bytes(d, mark, dump_chunk_mark(mark, d->chunks, d->chunk_lines, d->sum));
        d->chunk_lines = 0;
        d->chunk_bytes = 0;
}

void dump_write_line(struct dumping *d, json_t *object)
{
        d->chunk_bytes += write_json(d, object);
        if (++d->chunk_lines == DUMP_CHUNK_LINES || d->chunk_bytes >= DUMP_CHUNK_BYTES)
                dump_end_chunk(d);
}

/* --- one line each ------------------------------------------------------------------------------------------------ */

void dump_leave_out(struct dumping *d, const char *format, ...)
{
        va_list args;
        progress_end(&d->progress);
        (void)fprintf(stderr, "quiver dump: shard %" PRIu32 ": left out: ", d->shard);
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        (void)fputc('\n', stderr);
        d->left_out++;
}

static uint64_t time_in_range(uint64_t ms)
{
        return min_u64(ms, TASK_NUMBER_MAX / 2);
}

/* What is only known of a dead task.  Its envelope may be anything, and its id may come from there. */
static void put_death(json_t *o, const struct dumping *d, const struct store_listed *task, bool is_readable)
{
        char id[64];
        char reason[NOTE_TEXT_MAX + 1];
        size_t size = min_u64(task->reason.size, NOTE_TEXT_MAX);
        for (size_t i = 0; i < size; i++)
                reason[i] = (unsigned char)task->reason.data[i] < ' ' || task->reason.data[i] == 0x7f
                                    ? ' '
                                    : task->reason.data[i];
        (void)snprintf(id, sizeof(id), "dead.%" PRIu64 "-%" PRIu32, task->number, d->shard);
        if (task_id_check(task->id, NULL, NULL) == 0)
                view_json_span(o, "id", task->id);
        else
                (void)json_object_set_new(o, "id", json_string(id));
        view_json_span(o, "handler", is_readable ? task->envelope.handler : SPAN_TEXT("unknown"));
        view_json_bytes(o, "reason", reason, size);
        view_json_number(o, "at_ms", time_in_range(task->at_ms));
}

/* As the note goes along.  How long a debounced task still has to wait is not told: where it is loaded it waits anew,
 * rather than start before others could join it. */
static struct task_note note_to_dump(const struct store_listed *task)
{
        struct task_note note = task->note;
        if (task->state == STATE_PARKED && !note.attempts && !note.crashes && !note.interruptions && !note.laters)
                note.is_debounced = false;
        return note;
}

static json_t *task_json(const struct dumping *d, const struct store_listed *task)
{
        struct buffer bytes = { 0 };
        struct buffer note = { 0 };
        struct task_note kept = note_to_dump(task);
        json_t *o = json_object();
        bool is_readable = task->envelope.handler.size != 0;
        enum store_state state = task->state == STATE_DELAYED || task->state == STATE_DEAD ? task->state : STATE_QUEUED;
        (void)json_object_set_new(o, "state", json_string(store_state_name(state)));
        view_json_number(o, "shard", d->shard);
        (void)json_object_set_new(o, "lane", json_string(lane_name(is_readable ? task->envelope.lane : LANE_NORMAL)));
        if (is_readable)
                envelope_put(&bytes, &task->envelope);
        else
                buffer_put(&bytes, task->envelope.payload.data, task->envelope.payload.size);
        view_json_bytes(o, "envelope", bytes.data, bytes.size);
        if (!note_is_empty(&kept)) {
                note_put(&note, &kept);
                view_json_bytes(o, "note", note.data, note.size);
        }
        if (state == STATE_DELAYED)
                view_json_number(o, "due_in_ms", time_in_range(task->due_in_ms));
        if (state == STATE_DEAD)
                put_death(o, d, task, is_readable);
        buffer_free(&bytes);
        buffer_free(&note);
        return o;
}

/* Nothing at all, which a foreign push may have left: neither a task nor any bytes to keep. */
static bool is_nothing(struct dumping *d, const struct store_listed *task)
{
        if (task->envelope.handler.size || task->envelope.payload.size)
                return false;
        dump_leave_out(d, "%s number %" PRIu64 " is empty", store_state_name(task->state), task->number);
        return true;
}

static void print_task(void *self, const struct store_listed *task)
{
        struct dumping *d = self;
        if (is_nothing(d, task))
                return;
        if (task->long_bytes) {
                dump_leave_out(d, "%.*s is too long (%" PRIu64 " bytes), and dead", (int)task->id.size, task->id.data,
                        task->long_bytes);
                return;
        }
        dump_write_line(d, task_json(d, task));
        progress_show(&d->progress, ++d->tasks);
}

/* Sorted later: in flight and parked ones of a key follow each other. */
static void keep_task(void *self, const struct store_listed *task)
{
        struct dumping *d = self;
        if (is_nothing(d, task))
                return;
        if (d->count == d->room) {
                d->room = d->room ? 2 * d->room : 256;
                struct dump_line *grown = memory_resize(d->lines, d->room * sizeof(*grown));
                d->lines = grown;
        }
        d->lines[d->count++] = (struct dump_line){ task->number, task_json(d, task) };
        progress_show(&d->progress, ++d->tasks);
}

static int by_seq(const void *a, const void *b)
{
        uint64_t x = ((const struct dump_line *)a)->seq;
        uint64_t y = ((const struct dump_line *)b)->seq;
        return (x > y) - (x < y);
}

static int dump_claimed(struct cli_store *s, struct dumping *d, struct error *error)
{
        struct span any = { 0 };
        int r = client_list(s->client, d->shard, STATE_IN_FLIGHT, any, UINT32_MAX, keep_task, d, error);
        if (r >= 0)
                r = client_list(s->client, d->shard, STATE_PARKED, any, UINT32_MAX, keep_task, d, error);
        if (d->count)
                qsort(d->lines, d->count, sizeof(*d->lines), by_seq);
        for (size_t i = 0; i < d->count; i++)
                dump_write_line(d, d->lines[i].json);
        free(d->lines);
        d->lines = NULL;
        d->count = d->room = 0;
        return r;
}

static void print_held(void *self, const struct store_key_info *key)
{
        if (key->state != KEY_HELD)
                return;
        if (task_key_check(key->key, NULL)) {
                dump_leave_out(self, "a hold of something that is no key");
                return;
        }
        json_t *o = json_object();
        view_json_span(o, "held", key->key);
        view_json_span(o, "reason", key->reason);
        dump_write_line(self, o);
}

/* An order to a host that runs now means nothing in another store. */
static bool is_order(struct span name)
{
        static const struct span prefix = SPAN_TEXT(RELOAD_ORDER_NAME);
        return name.size > prefix.size && !memcmp(name.data, prefix.data, prefix.size);
}

static void print_desired(void *self, const struct store_desired *item)
{
        if (is_order(item->name))
                return;
        if (!dump_desired_is_fit(item)) {
                dump_leave_out(self, "a desired state that no Quiver has written");
                return;
        }
        json_t *o = json_object();
        view_json_span(o, "desired", item->name);
        view_json_span(o, "value", item->value);
        dump_write_line(self, o);
}

/* Holds come first: a store whose hosts run takes the key before its tasks. */
static int dump_shard(struct cli_store *s, struct dumping *d, struct error *error)
{
        static const enum store_state rest[] = { STATE_QUEUED, STATE_DELAYED, STATE_DEAD };
        int r = client_keys(s->client, d->shard, (struct span){ 0 }, UINT32_MAX, print_held, d, error);
        if (r >= 0)
                r = dump_names(s, d, error);
        if (r >= 0)
                r = dump_claimed(s, d, error);
        for (unsigned i = 0; i < sizeof(rest) / sizeof(rest[0]) && r >= 0; i++)
                r = client_list(s->client, d->shard, rest[i], (struct span){ 0 }, UINT32_MAX, print_task, d, error);
        return r;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* How often each shard was taken so far; the caller frees it. */
static int epochs_get(struct cli_store *s, uint64_t **ret_epochs, uint64_t *ret_tasks, struct error *error)
{
        uint32_t shards = s->info->shards;
        struct store_counts *counts = memory_zero(shards, sizeof(*counts));
        uint64_t *epochs = memory_zero(shards, sizeof(*epochs));
        int r = client_count(s->client, 0, shards, counts, error);
        *ret_tasks = 0;
        for (uint32_t i = 0; i < shards; i++) {
                const struct store_counts *c = &counts[i];
                epochs[i] = c->epoch;
                *ret_tasks += store_counts_queued(c) + c->delayed + c->in_flight + store_counts_parked(c) + c->dead;
        }
        free(counts);
        if (r < 0)
                free(epochs);
        else
                *ret_epochs = epochs;
        return r;
}

/* A host that came meanwhile has moved tasks from what was not read yet to what was, or the other way round. */
static int check_undisturbed(struct cli_store *s, const uint64_t *before, struct error *error)
{
        uint64_t *after = NULL;
        uint64_t tasks;
        int r = epochs_get(s, &after, &tasks, error);
        for (uint32_t i = 0; r >= 0 && i < s->info->shards; i++)
                if (after[i] != before[i])
                        r = error_set(error, -EAGAIN,
                                "a host took shard %" PRIu32 " meanwhile; the dump has no end mark and cannot be "
                                "loaded: stop all hosts of the app and write it anew",
                                i);
        free(after);
        return r;
}

static void write_head(struct cli_store *s, struct dumping *d)
{
        json_t *head = json_object();
        (void)json_object_set_new(head, "quiver", json_string("dump"));
        view_json_number(head, "version", DUMP_VERSION);
        (void)json_object_set_new(head, "name", json_string(d->name));
        (void)json_object_set_new(head, "app", json_string(s->info->app));
        view_json_number(head, "shards", s->info->shards);
        (void)write_json(d, head);
}

static int write_all(struct cli_store *s, struct dumping *d, struct error *error)
{
        uint64_t *epochs = NULL;
        char mark[DUMP_MARK_MAX];
        int r = epochs_get(s, &epochs, &d->progress.all, error);
        if (r < 0)
                return r;
        write_head(s, d);
        r = client_desired(s->client, print_desired, d, NULL, error);
        for (; d->shard < s->info->shards && r >= 0; d->shard++)
                r = dump_shard(s, d, error);
        if (r >= 0)
                r = dump_schedules(s, d, error);
        if (r >= 0)
                r = dump_rooms(s, d, error);
        if (r >= 0 && d->is_too_long)
                r = error_set(error, -E2BIG, "a task is too large for a dump: more than %u MiB", DUMP_LINE_MAX >> 20);
        if (r >= 0)
                r = check_undisturbed(s, epochs, error);
        free(epochs);
        if (r < 0)
                return r;
        dump_end_chunk(d);
        write_bytes(d, mark, dump_end_mark(mark, d->chunks, d->tasks, d->sum));
        if (fflush(stdout) || ferror(stdout))
                return error_set(error, -EINVAL, "the dump could not be written whole: %s", strerror(errno));
        return 0;
}

static int dump(struct cli_store *s, void *self)
{
        bool has_json = *(const bool *)self;
        int code = dump_check_idle(s);
        if (code != EXIT_DONE)
                return code;
        struct error error = { "" };
        struct dumping d = { .progress = { .what = "dump", .unit = "tasks" } };
        uint8_t random[DUMP_NAME_SIZE / 2];
        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                abort();
        (void)units_hex(d.name, random, sizeof(random));
        int r = write_all(s, &d, &error);
        progress_end(&d.progress);
        if (r < 0)
                return cli_fail("dump", r, error.text);
        if (has_json)
                (void)fprintf(stderr,
                        "{\"name\":\"%s\",\"tasks\":%" PRIu64 ",\"idempotency_keys\":%" PRIu64 ",\"schedules\":%" PRIu64
                        ",\"rooms\":%" PRIu64 ",\"chunks\":%" PRIu64 ",\"shards\":%" PRIu32 ",\"left_out\":%" PRIu64
                        "}\n",
                        d.name, d.tasks, d.records.names, d.records.schedules, d.records.rooms, d.chunks,
                        s->info->shards, d.left_out);
        else
                (void)fprintf(stderr, "%" PRIu64 " tasks%s in %" PRIu64 " chunks, dump %s\n", d.tasks,
                        dump_records_text(&d.records, (char[DUMP_RECORDS_TEXT]){ 0 }), d.chunks, d.name);
        return EXIT_DONE;
}

int cmd_dump(int argc, char **argv)
{
        const char *config = NULL;
        bool has_json = false;
        const struct option table[] = { OPT_CONFIG(&config), OPT_JSON(&has_json) };
        struct options o = {
                .usage = "dump > FILE",
                .about =
                        "Writes every task of the store, with its history, one JSON object a line: queued, delayed, in "
                        "flight, parked and\ndead ones, keys that are held, what is paused, idempotency keys of "
                        "submits with the time that is left of them,\nschedules, and rooms.  Not results, nor the "
                        "state of "
                        "limits.\n"
                        "Refused while a host works on the store.\nThe last line is an end mark: without it, load "
                        "refuses the "
                        "dump.  A summary goes to standard error.",
                OPTIONS_TABLE(table),
                .examples = "  quiver dump -c old.cfg > tasks && quiver load -c new.cfg tasks\n",
        };
        int code;
        return options_read(&o, argc, argv, &code) ? cli_act(&o, config, dump, &has_json) : code;
}
