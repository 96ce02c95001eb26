/* load.c: what `dump` wrote, into this store: another kind, another number of shards. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/move.h"

static const struct option_spec specs[] = { OPTION_CONFIG_ROW };

/* Tasks that are to go in one request: consecutive ones of one shard. */
struct loading {
        struct cli_store *s;
        uint32_t shard;
        struct store_moved items[STORE_CALL_TASKS];
        struct buffer memory[STORE_CALL_TASKS][5]; /* bytes, note, id, handler, reason */
        uint32_t count;
        size_t bytes;
        uint64_t tasks;
        uint64_t line;
        struct error error;
};

static int flush(struct loading *l)
{
        int r = 0;
        if (l->count)
                r = client_import(l->s->client, l->shard, l->items, l->count, &l->error);
        for (uint32_t i = 0; i < l->count; i++)
                for (unsigned j = 0; j < 5; j++)
                        buffer_clear(&l->memory[i][j]);
        l->tasks += r ? 0 : l->count;
        l->count = 0;
        l->bytes = 0;
        return r;
}

/* The value of NAME, or of NAME_base64; -ENOENT if neither is there. */
static int take_bytes(const json_t *o, const char *name, struct buffer *to)
{
        char coded[64];
        const json_t *value = json_object_get(o, name);
        if (json_is_string(value)) {
                buffer_put(to, json_string_value(value), json_string_length(value));
                return 0;
        }
        (void)snprintf(coded, sizeof(coded), "%s_base64", name);
        value = json_object_get(o, coded);
        if (!json_is_string(value))
                return -ENOENT;
        return cli_base64_decode(json_string_value(value), json_string_length(value), to);
}

static struct span span_of(const struct buffer *b)
{
        return (struct span){ (const char *)b->data, b->size };
}

/* An id ends in its shard. */
static void id_move(struct span id, uint32_t shard, struct buffer *to)
{
        const char *dash = id.size ? memrchr(id.data, '-', id.size) : NULL;
        buffer_clear(to);
        buffer_put(to, id.data, dash ? (size_t)(dash - id.data) : id.size);
        buffer_printf(to, "-%" PRIu32, shard);
}

/* Where a task belongs here, and its envelope as it is here.  A malformed one stays as it is. */
static uint32_t place(const struct loading *l, uint32_t old_shard, struct buffer *bytes)
{
        struct envelope e;
        struct buffer id = { 0 };
        struct buffer moved = { 0 };
        uint32_t shards = l->s->info->shards;
        uint32_t shard = old_shard % shards;
        if (envelope_parse(bytes->data, bytes->size, &e, NULL))
                return shard;
        if (e.key.size)
                shard = shard_of_key(e.key, shards);
        if (e.id.size) {
                id_move(e.id, shard, &id);
                e.id = span_of(&id);
        }
        envelope_put(&moved, &e);
        buffer_free(bytes);
        *bytes = moved;
        buffer_free(&id);
        return shard;
}

static bool state_parse(const char *name, enum store_state *ret_state)
{
        for (unsigned i = 0; name && i < STATES; i++)
                if (!strcmp(name, store_state_name((enum store_state)i))) {
                        *ret_state = (enum store_state)i;
                        return true;
                }
        return false;
}

static uint64_t number_of(const json_t *o, const char *name)
{
        json_int_t value = json_integer_value(json_object_get(o, name));
        return value > 0 ? (uint64_t)value : 0;
}

static int load_task(struct loading *l, const json_t *o)
{
        struct buffer bytes = { 0 };
        struct buffer dead_id = { 0 };
        struct store_moved item = { .due_in_ms = number_of(o, "due_in_ms"), .at_ms = number_of(o, "at_ms") };
        const char *lane = json_string_value(json_object_get(o, "lane"));
        if (!state_parse(json_string_value(json_object_get(o, "state")), &item.state) || !lane ||
                !lane_parse((struct span){ lane, strlen(lane) }, &item.lane) || take_bytes(o, "envelope", &bytes)) {
                buffer_free(&bytes);
                return error_set(&l->error, -EINVAL, "that is no task");
        }
        uint32_t shard = place(l, (uint32_t)number_of(o, "shard"), &bytes);
        int r = 0;
        if (shard != l->shard || l->count == STORE_CALL_TASKS || l->bytes >= STORE_CALL_BYTES)
                r = flush(l);
        l->shard = shard;
        struct buffer *memory = l->memory[l->count];
        buffer_put(&memory[0], bytes.data, bytes.size);
        (void)take_bytes(o, "note", &memory[1]);
        if (!take_bytes(o, "id", &dead_id))
                id_move(span_of(&dead_id), shard, &memory[2]);
        (void)take_bytes(o, "handler", &memory[3]);
        (void)take_bytes(o, "reason", &memory[4]);
        item.bytes = span_of(&memory[0]);
        item.note = span_of(&memory[1]);
        item.id = span_of(&memory[2]);
        item.handler = span_of(&memory[3]);
        item.reason = span_of(&memory[4]);
        l->items[l->count++] = item;
        l->bytes += bytes.size;
        buffer_free(&bytes);
        buffer_free(&dead_id);
        return r;
}

static int load_held(struct loading *l, const json_t *o)
{
        struct buffer key = { 0 };
        struct buffer reason = { 0 };
        bool is_pending;
        (void)take_bytes(o, "held", &key);
        (void)take_bytes(o, "reason", &reason);
        int r = client_key_act(l->s->client, CONTROL_HOLD, span_of(&key), span_of(&reason), &is_pending, &l->error);
        buffer_free(&key);
        buffer_free(&reason);
        return r;
}

static int load_desired(struct loading *l, const json_t *o)
{
        const char *name = json_string_value(json_object_get(o, "desired"));
        const char *value = json_string_value(json_object_get(o, "value"));
        if (!name || !value)
                return error_set(&l->error, -EINVAL, "that is no desired state");
        int r = qv_client_set_desired(l->s->client, name, value);
        return r < 0 ? error_set(&l->error, r, "%s", qv_client_error()) : 0;
}

static int load_line(struct loading *l, const json_t *o)
{
        if (l->line == 1) {
                const char *what = json_string_value(json_object_get(o, "quiver"));
                if (!what || strcmp(what, "dump") != 0 || number_of(o, "version") != MOVE_VERSION)
                        return error_set(&l->error, -EINVAL, "this was not written by quiver dump, or by a newer one");
                return 0;
        }
        if (json_object_get(o, "state"))
                return load_task(l, o);
        if (json_object_get(o, "desired"))
                return load_desired(l, o);
        return load_held(l, o);
}

static int load(struct loading *l)
{
        char *text = NULL;
        size_t room = 0;
        int r = 0;
        while (r >= 0 && getline(&text, &room, stdin) > 0) {
                json_t *o = json_loads(text, JSON_ALLOW_NUL, NULL);
                l->line++;
                r = o ? load_line(l, o) : error_set(&l->error, -EINVAL, "not JSON");
                json_decref(o);
        }
        free(text);
        if (r >= 0)
                r = flush(l);
        if (r >= 0 && !l->line)
                r = error_set(&l->error, -EINVAL, "there is nothing to load");
        if (r < 0)
                (void)error_prefix(&l->error, r, "line %" PRIu64 ", after %" PRIu64 " tasks", l->line, l->tasks);
        for (uint32_t i = 0; i < STORE_CALL_TASKS; i++)
                for (unsigned j = 0; j < 5; j++)
                        buffer_free(&l->memory[i][j]);
        return r;
}

int cmd_load(int argc, char **argv)
{
        struct options o = {
                .usage = "load < FILE",
                .about = "Puts what quiver dump wrote into this store, behind what is there, in order; it may be of "
                         "another "
                         "kind and have\nanother number of shards.  What was in flight or parked is queued, with its "
                         "history.  A host must have made the store;\nrefused while one works on it.",
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
        else if (!w.is_over && (code = cli_open(&s, "load", w.config)) == EXIT_DONE) {
                struct loading *l = calloc(1, sizeof(*l));
                if (!l)
                        abort();
                l->s = &s;
                code = move_check_idle(&s);
                if (code == EXIT_DONE) {
                        int r = load(l);
                        code = r < 0 ? cli_fail("load", r, l->error.text) : EXIT_DONE;
                        if (code == EXIT_DONE)
                                (void)printf("%" PRIu64 " tasks\n", l->tasks);
                }
                free(l);
                cli_close(&s);
        }
        cli_words_free(&w);
        return code;
}
