/* tasks.c: `quiver tasks`: which tasks wait and for what, which run and where.
 *
 * What runs comes from the hosts' documents; all else from the store, a page at a time.  Bounded: LOOK_MAX tasks are
 * looked at, and the command says how far it looked. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "cli/admin/dead_pick.h"
#include "cli/admin/whereabouts_ask.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/json.h"
#include "view/table.h"
#include "view/task.h"
#include "view/text.h"

#define LIMIT        100u
#define LOOK_MAX     100000u
#define KEYS_MAX     10000u /* of one shard */
#define KEY_SHOWN    40u
#define REASON_SHOWN 80u

enum tasks_state { SHOW_ALL, SHOW_WAITING, SHOW_RUNNING, SHOW_DELAYED, SHOW_PARKED, SHOW_HELD, SHOW_DEAD };
static const struct option_choice states[] = { { "all", SHOW_ALL }, { "waiting", SHOW_WAITING },
        { "running", SHOW_RUNNING }, { "delayed", SHOW_DELAYED }, { "parked", SHOW_PARKED }, { "held", SHOW_HELD },
        { "dead", SHOW_DEAD }, { 0 } };

struct tasks_request {
        const char *config;
        int32_t state; /* enum tasks_state */
        const char *handler, *key, *host, *error;
        uint64_t older_ms, limit;
        bool has_json;
};

/* A key of the shard that is looked at, by its text. */
struct shard_keys {
        struct arena_chunk *arena;
        struct store_key_info *list;
        uint32_t count;
        json_t *places; /* key → its place in the list */
};

struct tasks_look {
        const struct tasks_request *q;
        struct whereabouts w;
        const struct store_counts *shard;
        struct shard_keys keys;
        struct table table;
        uint64_t now_ms;
        uint64_t shown, looked;
        bool has_more;
};

/* --- what fits --- */

static bool is_text(struct span bytes, const char *text)
{
        return span_is(bytes, span_of_text(text));
}

/* Since when it counts: submitted; of a dead one, since it is dead. */
static uint64_t age_of(const struct tasks_look *look, const struct store_listed *task)
{
        uint64_t since_ms = task->state == STATE_DEAD ? task->at_ms : task->envelope.submitted_ms;
        return since_ms && since_ms < look->now_ms ? look->now_ms - since_ms : 0;
}

static bool fits(const struct tasks_look *look, const struct store_listed *task)
{
        const struct tasks_request *q = look->q;
        struct span error = dead_last_error(task);
        if (q->handler && !is_text(task->envelope.handler, q->handler))
                return false;
        if (q->key && !is_text(task->key, q->key))
                return false;
        if (q->older_ms && age_of(look, task) < q->older_ms)
                return false;
        return !q->error || (error.size && memmem(error.data, error.size, q->error, strlen(q->error)));
}

/* What the whereabouts say is of the state and on the host that are asked for. */
static bool is_asked_for(const struct tasks_request *q, const json_t *where)
{
        const char *state = view_json_get_text(where, "state");
        const char *host = view_json_get_text(where, "host");
        if (q->host && strcmp(*host ? host : view_json_get_text(where, "claimed_by"), q->host) != 0)
                return false;
        if (q->state == SHOW_ALL)
                return true;
        /* Whatever is parked or held waits, too. */
        if (q->state == SHOW_WAITING)
                return strcmp(state, "running") != 0;
        return !strcmp(state, states[q->state].name);
}

/* --- showing --- */

static void add_row(struct tasks_look *look, const struct store_listed *task, const json_t *where)
{
        struct buffer words = { 0 };
        char age[UNITS_TEXT_MAX];
        if (task->state == STATE_DEAD)
                text_put_bytes(&words, dead_last_error(task).size ? dead_last_error(task) : task->reason, REASON_SHOWN);
        else if (task->state == STATE_DELAYED)
                buffer_printf(&words, "due in %s", units_format_ms(age, task->due_in_ms));
        else
                whereabouts_as_words(&words, where, look->now_ms);
        table_row(&look->table);
        table_put_text(&look->table, TONE_PLAIN, view_json_get_text(where, "state"));
        table_put(&look->table, TONE_PLAIN, task->id);
        table_put(&look->table, TONE_PLAIN, task->envelope.handler);
        table_put(&look->table, TONE_PLAIN, task->key);
        table_put_age(&look->table, TONE_PLAIN, age_of(look, task));
        table_put_number(&look->table, TONE_PLAIN, task->note.attempts + task->note.crashes);
        table_put(&look->table, TONE_PLAIN, (struct span){ (const char *)words.data, words.size });
        buffer_free(&words);
}

static void show(struct tasks_look *look, const struct store_listed *task, json_t *where)
{
        look->shown++;
        if (look->q->has_json) {
                json_t *o = listed_as_json(task);
                (void)json_object_update(o, where);
                cli_json_print(o);
        } else {
                add_row(look, task, where);
        }
}

static const struct store_key_info *key_of(const struct tasks_look *look, struct span key)
{
        json_t *text = view_json_text_span(key);
        const json_t *place = json_object_get(look->keys.places, json_string_value(text));
        json_decref(text);
        return place ? &look->keys.list[json_integer_value(place)] : NULL;
}

static bool see_task(void *self, const struct store_listed *task)
{
        struct tasks_look *look = self;
        struct whereabouts_place place = { .shard = look->shard, .key = key_of(look, task->key) };
        look->looked++;
        if (!fits(look, task))
                return true;
        json_t *where = whereabouts_of(&look->w, task, &place);
        if (is_asked_for(look->q, where)) {
                look->has_more = look->shown == look->q->limit;
                if (!look->has_more)
                        show(look, task, where);
        }
        json_decref(where);
        return !look->has_more;
}

/* --- looking --- */

static void see_key(void *self, const struct store_key_info *key)
{
        struct shard_keys *keys = self;
        struct store_key_info *to = &keys->list[keys->count];
        json_t *text = view_json_text_span(key->key);
        *to = *key;
        to->key = arena_copy(&keys->arena, key->key);
        to->reason = arena_copy(&keys->arena, key->reason);
        to->head = arena_copy(&keys->arena, key->head);
        to->name = arena_copy(&keys->arena, key->name);
        (void)json_object_set_new(keys->places, json_string_value(text), json_integer(keys->count++));
        json_decref(text);
}

static void keys_free(struct shard_keys *keys)
{
        arena_free(keys->arena);
        free(keys->list);
        json_decref(keys->places);
        *keys = (struct shard_keys){ 0 };
}

static int keys_read(struct cli_store *s, struct tasks_look *look, struct error *error)
{
        uint32_t max = (uint32_t)min_u64(look->shard->keys, KEYS_MAX);
        struct span only = look->q->key ? span_of_text(look->q->key) : (struct span){ 0 };
        look->keys =
                (struct shard_keys){ .list = memory_zero(max + 1, sizeof(*look->keys.list)), .places = json_object() };
        int r = max ? client_keys(s->client, look->shard->shard, only, only.size ? 1 : max, see_key, &look->keys, error)
                    : 0;
        return r < 0 ? r : 0;
}

/* Which of the store's states can have what is asked for, and how many tasks are in it. */
static uint64_t total_of(const struct tasks_request *q, const struct store_counts *c, enum store_state state)
{
        bool is_all = q->state == SHOW_ALL;
        bool is_waiting = is_all || q->state == SHOW_WAITING;
        bool is_behind = c->keys && (q->state == SHOW_PARKED || q->state == SHOW_HELD);
        switch (state) {
        case STATE_QUEUED:
                return is_waiting || is_behind ? store_counts_queued(c) : 0;
        case STATE_DELAYED:
                return is_all || q->state == SHOW_DELAYED ? c->delayed : 0;
        case STATE_IN_FLIGHT:
                return is_waiting || is_behind || q->state == SHOW_RUNNING ? c->in_flight : 0;
        case STATE_PARKED:
                return is_waiting || is_behind ? c->parked : 0;
        case STATE_DEAD:
                return q->state == SHOW_DEAD ? c->dead : 0;
        default:
                return 0;
        }
}

static int look_at(struct cli_store *s, struct tasks_look *look, const struct store_counts *c, struct error *error)
{
        static const enum store_state order[] = { STATE_IN_FLIGHT, STATE_PARKED, STATE_QUEUED, STATE_DELAYED,
                STATE_DEAD };
        look->shard = c;
        int r = c->keys ? keys_read(s, look, error) : 0;
        for (size_t i = 0; r == 0 && i < STATES && !look->has_more; i++)
                if (total_of(look->q, c, order[i]) && look->looked < LOOK_MAX)
                        r = client_scan(s->client, c->shard, order[i], LOOK_MAX - look->looked, see_task, look, error);
        keys_free(&look->keys);
        return r;
}

static void say_how_far(const struct tasks_look *look, uint64_t total)
{
        FILE *to = look->q->has_json ? stderr : stdout;
        if (look->has_more)
                (void)fprintf(to,
                        "… the first %" PRIu64 " are shown; %" PRIu64 " of %" PRIu64
                        " tasks were looked at. More: --limit\n",
                        look->shown, look->looked, total);
        else if (look->looked >= LOOK_MAX && look->looked < total)
                (void)fprintf(to,
                        "… %" PRIu64 " of %" PRIu64
                        " tasks were looked at, the most at once; --key looks at one key's shard only\n",
                        look->looked, total);
        else if (!look->shown && !look->q->has_json)
                (void)fprintf(to, "no such task; %" PRIu64 " were looked at\n", look->looked);
        if (look->w.more)
                (void)fprintf(to, "… and %" PRIu64 " that run, which the documents of their hosts have no room for\n",
                        look->w.more);
}

static int list(struct cli_store *s, struct tasks_look *look, struct error *error)
{
        uint32_t shards = s->info->shards;
        uint64_t total = 0;
        struct store_counts *counts = memory_zero(shards, sizeof(*counts));
        uint32_t only = look->q->key ? shard_of_key(span_of_text(look->q->key), shards) : shards;
        int r = client_count(s->client, 0, shards, counts, error);
        for (uint32_t i = 0; r == 0 && i < shards; i++)
                for (unsigned state = 0; state < STATES && (only == shards || only == i); state++)
                        total += total_of(look->q, &counts[i], (enum store_state)state);
        for (uint32_t i = 0; r == 0 && i < shards && !look->has_more; i++)
                if (only == shards || only == i)
                        r = look_at(s, look, &counts[i], error);
        free(counts);
        if (r == 0 && !look->q->has_json && look->shown) {
                struct buffer text = { 0 };
                table_print(&look->table, &text);
                cli_text_print(&text);
        }
        if (r == 0)
                say_how_far(look, total);
        return r;
}

static int act(struct cli_store *s, void *self)
{
        const struct tasks_request *q = self;
        struct error error = { "" };
        struct tasks_look look = { .q = q, .now_ms = clock_wall_ms(), .table.has_color = cli_has_color() };
        static const char *const titles[] = { "state", "task", "handler", "key" };
        for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
                table_text_column(&look.table, titles[i], i == 3 ? KEY_SHOWN : 0);
        table_number_column(&look.table, "age");
        table_number_column(&look.table, "failed");
        table_text_column(&look.table, q->state == SHOW_DEAD ? "error" : "where, or what it waits for", 0);
        int r = whereabouts_ask(s, &look.w, &error);
        if (r == 0)
                r = list(s, &look, &error);
        whereabouts_free(&look.w);
        table_free(&look.table);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

int cmd_tasks(int argc, char **argv)
{
        struct tasks_request q = { .limit = LIMIT };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_CHOICE("--state STATE", &q.state, states,
                        "waiting (also parked and held), running, delayed, parked, held, dead; else all but dead"),
                OPT_TEXT("--handler NAME", &q.handler, "only this handler's"),
                OPT_TEXT("--key KEY", &q.key, "only this key's; looks at its shard only"),
                OPT_TEXT("--host NAME", &q.host, "only what that host runs or has claimed"),
                OPT_TEXT("--error TEXT", &q.error, "only those whose last error has the text in it"),
                OPT_DURATION("--older TIME", &q.older_ms, 1, "only those submitted (dead: given up) so long ago"),
                OPT_NUMBER("--limit N", &q.limit, 1, UINT32_MAX, "show at most N; else 100"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "tasks [--state STATE] [--handler NAME] [--key KEY] [--host NAME] [--error TEXT] [--older "
                         "TIME]",
                .about = "Lists tasks: which wait and for what, which run, where and for how long. A task shows as "
                         "running when\nits host has said so, after about a second. At most 100 000 tasks are looked "
                         "at; it says how far it looked.",
                OPTIONS_TABLE(table),
                .examples = "  quiver tasks --state running\n"
                            "  quiver tasks --state waiting --handler mail --older 5m\n"
                            "  quiver tasks --key user-17 --json\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        return cli_act(&o, q.config, act, &q);
}
