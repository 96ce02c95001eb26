/* key.c: what a key waits for, and what a person can do about it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/admin/whereabouts_ask.h"
#include "cli/command.h"
#include "cli/keep.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/json.h"
#include "view/key.h"
#include "view/text.h"

#define KEYS_SHOWN   1000u
#define CLAIMED_SEEN 4096u /* tasks in flight that are looked at for a key's */
/* Behind more tasks than this the first of a side queue is not looked for: that would take long. */
#define HEAD_BEHIND_MAX 100000u

/* A key's tasks that are claimed. */
struct key_queue {
        struct span key;
        const struct whereabouts *w;
        struct store_counts shard;
        uint64_t claimed;
        json_t *first; /* where the first of them is, with its id; NULL: none is claimed */
};

static const struct verb {
        const char *name;
        enum store_control_verb verb;
        const char *done;
} verbs[] = {
        { "hold", CONTROL_HOLD, "is held: no more of its tasks are started" },
        { "unhold", CONTROL_UNHOLD, "is not held any more" },
        { "retry", CONTROL_RETRY, "is tried again now" },
        { "skip", CONTROL_SKIP, "goes on without its first task, which is dead now" },
};

/* --- looking ------------------------------------------------------------------------------------------------------ */

struct key_show {
        bool has_json;
        bool is_list;
        const struct whereabouts *w; /* NULL: in a list */
        const struct key_queue *queue;
};

static void show_key(void *self, const struct store_key_info *key)
{
        const struct key_show *show = self;
        struct buffer text = { 0 };
        struct key_more more = { 0 };
        if (show->queue)
                more = (struct key_more){ .w = show->w, .claimed = show->queue->claimed, .first = show->queue->first };
        if (show->has_json)
                cli_json_print(key_more_as_json(key_as_json(key), &more));
        else if (show->is_list)
                key_as_line(&text, key);
        else
                key_as_text(&text, key, &more, clock_wall_ms());
        cli_text_print(&text);
}

static bool see_claimed(void *self, const struct store_listed *task)
{
        struct key_queue *queue = self;
        if (!span_is(task->key, queue->key))
                return true;
        queue->claimed++;
        if (!queue->first) {
                struct whereabouts_place place = { .shard = &queue->shard };
                queue->first = whereabouts_of(queue->w, task, &place);
                view_json_span(queue->first, "id", task->id);
        }
        return true;
}

/* What is claimed of it: those a store does not count by key. */
static int queue_read(struct cli_store *s, struct key_queue *queue, uint32_t shard, struct error *error)
{
        int r = client_count(s->client, shard, 1, &queue->shard, error);
        if (r == 0 && queue->shard.in_flight)
                r = client_scan(s->client, shard, STATE_IN_FLIGHT, CLAIMED_SEEN, see_claimed, queue, error);
        return r;
}

/* If none is claimed, the first of its side queue is what the others wait for. */
static int head_read(
        struct cli_store *s, struct key_queue *queue, const struct store_key_info *key, struct error *error)
{
        struct kept_task head = { 0 };
        uint64_t others = store_counts_queued(&queue->shard) + queue->shard.delayed;
        if (queue->first || !key->head.size || others > HEAD_BEHIND_MAX)
                return 0;
        int r = client_find(s->client, key->head, keep_task, &head, error);
        if (r == 0) {
                struct whereabouts_place place = { .shard = &queue->shard, .key = key };
                queue->first = whereabouts_of(queue->w, &head.task, &place);
                view_json_span(queue->first, "id", head.task.id);
        }
        arena_free(head.arena);
        return r == -ENOENT ? 0 : r;
}

static int show_one(struct cli_store *s, bool has_json, struct span key)
{
        struct error error = { "" };
        struct whereabouts w;
        struct key_queue queue = { .key = key, .w = &w };
        struct key_show show = { .has_json = has_json, .w = &w, .queue = &queue };
        uint32_t shard = shard_of_key(key, s->info->shards);
        struct kept_key found = { .key = { .shard = shard, .key = key, .state = KEY_FREE } };
        int r = whereabouts_ask(s, &w, &error);
        if (r == 0)
                r = queue_read(s, &queue, shard, &error);
        if (r == 0)
                r = client_keys(s->client, shard, key, 1, keep_key, &found, &error);
        if (r >= 0)
                r = head_read(s, &queue, &found.key, &error);
        if (r == 0)
                show_key(&show, &found.key);
        json_decref(queue.first);
        arena_free(found.arena);
        whereabouts_free(&w);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static int list(struct cli_store *s, bool has_json)
{
        struct error error = { "" };
        struct key_show show = { .has_json = has_json, .is_list = true };
        uint32_t left = KEYS_SHOWN;
        struct store_counts *counts = memory_zero(s->info->shards, sizeof(*counts));
        int r = client_count(s->client, 0, s->info->shards, counts, &error);
        for (uint32_t i = 0; r >= 0 && left && i < s->info->shards; i++) {
                if (!counts[i].keys)
                        continue;
                r = client_keys(s->client, i, (struct span){ 0 }, left, show_key, &show, &error);
                left -= r > 0 ? (uint32_t)r : 0;
        }
        free(counts);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (!has_json && left == KEYS_SHOWN)
                (void)printf("no key waits for a retry, a person or its turn\n");
        if (!has_json && !left)
                (void)printf("… only the first %u are shown\n", KEYS_SHOWN);
        return EXIT_DONE;
}

/* --- acting ------------------------------------------------------------------------------------------------------- */

static int act(struct cli_store *s, const struct verb *verb, struct span key, const char *reason, bool has_json)
{
        struct error error = { "" };
        bool is_pending = false;
        struct span why = { reason, reason ? strlen(reason) : 0 };
        int r = client_key_act(s->client, verb->verb, key, why, &is_pending, &error);
        if (r == -ENOENT)
                (void)error_set(&error, r,
                        "key %.*s is neither parked nor held, nor does it wait for a name; there is nothing to %s",
                        (int)key.size, key.data, verb->name);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (has_json) {
                json_t *o = json_object();
                view_json_span(o, "key", key);
                (void)json_object_set_new(o, "verb", json_string(verb->name));
                (void)json_object_set_new(o, "pending", json_boolean(is_pending));
                cli_json_print(o);
                return EXIT_DONE;
        }
        struct buffer text = { 0 };
        buffer_printf(&text, "key ");
        text_put_bytes(&text, key, TASK_KEY_MAX);
        if (is_pending)
                buffer_printf(&text, ": its owner has been told to %s it\n", verb->name);
        else
                buffer_printf(&text, " %s\n", verb->done);
        cli_text_print(&text);
        return EXIT_DONE;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

struct key_request {
        const char *config;
        const char *reason;
        bool has_json;
        const struct verb *verb; /* NULL: look at it, or at all */
        bool is_list;
        struct span key;
};

static int run(struct cli_store *s, void *self)
{
        const struct key_request *q = self;
        if (q->is_list)
                return list(s, q->has_json);
        return q->verb ? act(s, q->verb, q->key, q->reason, q->has_json) : show_one(s, q->has_json, q->key);
}

int cmd_key(int argc, char **argv)
{
        struct key_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_TEXT("--reason TEXT", &q.reason, "hold: why, as quiver key shows it"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "key [show] KEY | list | hold KEY | unhold KEY | retry KEY | skip KEY",
                .about = "Says what a key waits for, since when and why; holds it, lets it go on, tries its first task "
                         "now,\nor gives that one up. list: all keys that wait for a retry, a person or their turn.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver key user-17\n"
                            "  quiver key hold user-17 --reason 'being migrated'\n"
                            "  quiver key skip user-17\n",
        };
        struct error error = { "" };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        const char *first = o.words_count ? o.words[0] : "";
        q.is_list = o.words_count == 1 && !strcmp(first, "list");
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (!strcmp(verbs[i].name, first))
                        q.verb = &verbs[i];
        bool has_verb = q.verb || !strcmp(first, "show");
        if (!q.is_list && o.words_count != 1u + has_verb)
                return options_wrong(&o, "which key? quiver key %s%sKEY", has_verb ? first : "", has_verb ? " " : "");
        if (q.reason && (!q.verb || q.verb->verb != CONTROL_HOLD))
                return options_wrong(&o, "--reason is for hold only: quiver key hold KEY --reason TEXT");
        q.key = (struct span){ o.words[has_verb], strlen(o.words[has_verb]) };
        if (!q.is_list && task_key_check(q.key, &error) < 0)
                return options_wrong(&o, "%s", error.text);
        return cli_act(&o, q.config, run, &q);
}
