/* dump.c: all tasks of a store, for another one. */
#include "cli/move.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/json.h"

static const struct option_spec specs[] = { OPTION_CONFIG_ROW };

int move_check_idle(struct cli_store *s)
{
        struct error error = { "" };
        struct store_counts *counts = calloc(s->info->shards, sizeof(*counts));
        if (!counts)
                abort();
        int code = EXIT_DONE;
        int r = client_count(s->client, 0, s->info->shards, counts, &error);
        if (r < 0)
                code = cli_fail(s->command, r, error.text);
        for (uint32_t i = 0; i < s->info->shards && code == EXIT_DONE; i++) {
                if (!counts[i].is_held || !counts[i].left_ms)
                        continue;
                (void)fprintf(stderr, "quiver %s: a host works on shard %u; stop all hosts of the app first\n",
                        s->command, i);
                code = EXIT_FAILED;
        }
        free(counts);
        return code;
}

/* --- tasks that were claimed: sorted, since in flight and parked ones of a key follow each other --- */

struct line {
        uint64_t seq;
        json_t *json;
};

struct dumping {
        uint32_t shard;
        struct line *lines; /* NULL: printed as they come */
        size_t count;
        size_t room;
        uint64_t tasks;
};

static json_t *task_json(const struct dumping *d, const struct store_listed *task)
{
        struct buffer bytes = { 0 };
        struct buffer note = { 0 };
        json_t *o = json_object();
        bool is_readable = task->envelope.handler.size != 0;
        enum store_state state = task->state == STATE_DELAYED || task->state == STATE_DEAD ? task->state : STATE_QUEUED;
        (void)json_object_set_new(o, "state", json_string(store_state_name(state)));
        cli_json_number(o, "shard", d->shard);
        (void)json_object_set_new(o, "lane", json_string(lane_name(is_readable ? task->envelope.lane : LANE_NORMAL)));
        if (is_readable)
                envelope_put(&bytes, &task->envelope);
        else
                buffer_put(&bytes, task->envelope.payload.data, task->envelope.payload.size);
        cli_json_bytes(o, "envelope", bytes.data, bytes.size);
        if (!note_is_empty(&task->note)) {
                note_put(&note, &task->note);
                cli_json_bytes(o, "note", note.data, note.size);
        }
        if (state == STATE_DELAYED)
                cli_json_number(o, "due_in_ms", task->due_in_ms);
        if (state == STATE_DEAD) {
                cli_json_span(o, "id", task->id);
                cli_json_span(o, "handler", is_readable ? task->envelope.handler : SPAN_TEXT("unknown"));
                cli_json_span(o, "reason", task->reason);
                cli_json_number(o, "at_ms", task->at_ms);
        }
        buffer_free(&bytes);
        buffer_free(&note);
        return o;
}

static void print_task(void *self, const struct store_listed *task)
{
        struct dumping *d = self;
        if (task->long_bytes) {
                (void)fprintf(stderr, "quiver dump: %.*s is left out: too long (%" PRIu64 " bytes), and dead\n",
                        (int)task->id.size, task->id.data, task->long_bytes);
                return;
        }
        cli_json_print(task_json(d, task));
        d->tasks++;
}

static void keep_task(void *self, const struct store_listed *task)
{
        struct dumping *d = self;
        if (d->count == d->room) {
                d->room = d->room ? 2 * d->room : 256;
                struct line *grown = realloc(d->lines, d->room * sizeof(*grown));
                if (!grown)
                        abort();
                d->lines = grown;
        }
        d->lines[d->count++] = (struct line){ task->number, task_json(d, task) };
        d->tasks++;
}

static int by_seq(const void *a, const void *b)
{
        uint64_t x = ((const struct line *)a)->seq;
        uint64_t y = ((const struct line *)b)->seq;
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
                cli_json_print(d->lines[i].json);
        free(d->lines);
        d->lines = NULL;
        d->count = d->room = 0;
        return r;
}

static void print_held(void *self, const struct store_key_info *key)
{
        (void)self;
        if (key->state != KEY_HELD)
                return;
        json_t *o = json_object();
        cli_json_span(o, "held", key->key);
        cli_json_span(o, "reason", key->reason);
        cli_json_print(o);
}

static void print_desired(void *self, const struct store_desired *item)
{
        (void)self;
        json_t *o = json_object();
        cli_json_span(o, "desired", item->name);
        cli_json_span(o, "value", item->value);
        cli_json_print(o);
}

static int dump_shard(struct cli_store *s, struct dumping *d, struct error *error)
{
        static const enum store_state rest[] = { STATE_QUEUED, STATE_DELAYED, STATE_DEAD };
        int r = dump_claimed(s, d, error);
        for (unsigned i = 0; i < sizeof(rest) / sizeof(rest[0]) && r >= 0; i++)
                r = client_list(s->client, d->shard, rest[i], (struct span){ 0 }, UINT32_MAX, print_task, d, error);
        if (r >= 0)
                r = client_keys(s->client, d->shard, (struct span){ 0 }, UINT32_MAX, print_held, NULL, error);
        return r;
}

static int dump(struct cli_store *s)
{
        struct error error = { "" };
        struct dumping d = { 0 };
        json_t *head = json_object();
        (void)json_object_set_new(head, "quiver", json_string("dump"));
        cli_json_number(head, "version", MOVE_VERSION);
        (void)json_object_set_new(head, "app", json_string(s->info->app));
        cli_json_number(head, "shards", s->info->shards);
        cli_json_print(head);
        int r = client_desired(s->client, print_desired, NULL, NULL, &error);
        for (; d.shard < s->info->shards && r >= 0; d.shard++)
                r = dump_shard(s, &d, &error);
        if (r < 0)
                return cli_fail("dump", r, error.text);
        (void)fprintf(stderr, "%" PRIu64 " tasks\n", d.tasks);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

int cmd_dump(int argc, char **argv)
{
        struct options o = {
                .usage = "dump > FILE",
                .about =
                        "Writes every task of the store, with its history, one JSON object a line: queued, delayed, in "
                        "flight, parked and\ndead ones, keys that are held, and what is paused.  Not results.  Refused "
                        "while a host works on the store.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver dump -c old.cfg > tasks && quiver load -c new.cfg < tasks\n",
        };
        struct cli_words w = { 0 };
        struct cli_store s;
        options_start(&o, argc, argv);
        (void)cli_words_next(&w, &o);
        int code = w.code;
        if (!w.is_over && w.count)
                code = options_wrong(&o, "what is %s?", w.words[0]);
        else if (!w.is_over && (code = cli_open(&s, "dump", w.config)) == EXIT_DONE) {
                code = move_check_idle(&s);
                if (code == EXIT_DONE)
                        code = dump(&s);
                cli_close(&s);
        }
        cli_words_free(&w);
        return code;
}
