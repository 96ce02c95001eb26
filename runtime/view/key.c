#include "view/key.h"

#include <inttypes.h>
#include <stdio.h>

#include "store/names.h"
#include "task/note.h"
#include "view/json.h"
#include "view/text.h"

#define REASON_SHOWN 100

/* The first line of the reason: that of a retry is an error and its place, on several lines; `quiver task` shows all of
 * it. */
static struct span reason_of(const struct store_key_info *key)
{
        struct span reason = key->reason;
        (void)note_take_where(&reason);
        return reason;
}

json_t *key_as_json(const struct store_key_info *key)
{
        json_t *o = json_object();
        view_json_span(o, "key", key->key);
        view_json_number(o, "shard", key->shard);
        view_json_set_text(o, "state", store_key_state_name(key->state));
        view_json_span(o, "reason", reason_of(key));
        view_json_number(o, "since_ms", key->since_ms);
        view_json_number(o, "due_in_ms", key->due_in_ms);
        view_json_number(o, "tasks", key->tasks);
        if (key->state == KEY_NAMED)
                view_json_span(o, "waits_for", key->name);
        if (key->head.size)
                view_json_span(o, "head", key->head);
        return o;
}

static void put_command(struct buffer *to, const char *verb, struct span key, const char *what)
{
        buffer_printf(to, "  quiver key %-6s ", verb);
        text_put_word(to, key);
        buffer_printf(to, "   %s\n", what);
}

static void put_commands(struct buffer *to, const struct store_key_info *key)
{
        bool is_stopped = key->state == KEY_HELD || key->state == KEY_PARKED || key->state == KEY_NAMED;
        buffer_printf(to, "\nWhat can be done:\n");
        if (key->state == KEY_HELD)
                put_command(to, "unhold", key->key, "let it go on");
        else
                put_command(to, "hold", key->key, "start no more of its tasks");
        if (is_stopped)
                put_command(to, "retry", key->key, "try its first task now");
        if (is_stopped && key->head.size)
                put_command(to, "skip", key->key, "give its first task up, and go on with the next");
        if (key->head.size) {
                buffer_printf(to, "  quiver task ");
                text_put_word(to, key->head);
                buffer_printf(to, "   look at its first task\n");
        }
}

json_t *key_more_as_json(json_t *object, const struct key_more *more)
{
        if (more->w)
                view_json_number(object, "claimed", more->claimed);
        if (more->first)
                (void)json_object_set(object, "first", (json_t *)(uintptr_t)more->first);
        return object;
}

/* A key that is neither parked nor held waits for the same as its first task. */
static void put_waits_for(struct buffer *to, const struct store_key_info *key, const struct key_more *more)
{
        static const char *const what[] = {
                [KEY_FREE] = "nothing",
                [KEY_WAITING] = "its turn: it has more tasks than a host takes of one key at once",
                [KEY_PARKED] = "its first task's retry, in ",
                [KEY_HELD] = "a person",
        };
        char due[UNITS_TEXT_MAX];
        const char *first = view_json_get_text(more->first, "waits_for");
        if (key->state == KEY_NAMED && !*first) {
                text_put_field(to, "waits for", key->name, STORE_NAME_MAX);
                return;
        }
        bool is_stopped = key->state == KEY_HELD || key->state == KEY_PARKED;
        buffer_printf(to, "%-12s ", "waits for");
        if (!is_stopped && *first)
                text_put_between(to, "", first, "\n");
        else if (!is_stopped && more->first)
                buffer_printf(to, "its first task, which runs\n");
        else
                buffer_printf(to, "%s%s\n",
                        whereabouts_said_later(key)        ? "its time, in "
                        : (unsigned)key->state <= KEY_HELD ? what[key->state]
                                                           : "unknown",
                        key->state == KEY_PARKED ? units_format_ms(due, key->due_in_ms) : "");
}

static void put_first(struct buffer *to, const struct key_more *more, uint64_t now_ms)
{
        if (!more->first)
                return;
        text_put_between(to, "first task   ", view_json_get_text(more->first, "id"), "\n");
        if (json_object_get(more->first, "pid")) {
                buffer_printf(to, "%-12s ", "runs");
                whereabouts_as_words(to, more->first, now_ms);
                buffer_put(to, "\n", 1);
        }
}

void key_as_text(struct buffer *to, const struct store_key_info *key, const struct key_more *more, uint64_t now_ms)
{
        char time[TEXT_TIME_MAX];
        char ago[UNITS_TEXT_MAX];
        bool is_running = json_object_get(more->first, "pid");
        uint64_t waiting = key->tasks + more->claimed - (is_running && more->claimed);
        buffer_printf(to, "%-12s ", "key");
        text_put_bytes(to, key->key, TASK_KEY_MAX);
        buffer_printf(to, " (shard %u)\n%-12s %s\n", key->shard, "state", store_key_state_name(key->state));
        put_waits_for(to, key, more);
        /* The store's default reason, which the line above says better. */
        if (reason_of(key).size && !span_is(key->reason, SPAN_TEXT("more than its share")))
                text_put_field(to, "reason", note_first_line(reason_of(key)), NOTE_TEXT_MAX);
        put_first(to, more, now_ms);
        if (key->since_ms)
                buffer_printf(to, "%-12s %s (%s ago)\n", "since", text_time(time, key->since_ms),
                        units_format_ms(ago, now_ms > key->since_ms ? now_ms - key->since_ms : 0));
        buffer_printf(to, "%-12s %" PRIu64 " task%s\n", "waiting", waiting, text_plural(waiting));
        put_commands(to, key);
}

void key_as_line(struct buffer *to, const struct store_key_info *key)
{
        char due[UNITS_TEXT_MAX];
        bool has_time = key->state != KEY_HELD && key->state != KEY_NAMED;
        buffer_printf(to, "%-8s %8" PRIu64 " waiting  due %-8s ", store_key_state_name(key->state), key->tasks,
                has_time ? units_format_ms(due, key->due_in_ms) : "-");
        text_put_bytes(to, key->key, TASK_KEY_MAX);
        buffer_printf(to, "  ");
        if (key->state == KEY_NAMED) {
                text_put_bytes(to, key->name, STORE_NAME_MAX);
                buffer_printf(to, ": ");
        }
        text_put_bytes(to, note_first_line(reason_of(key)), REASON_SHOWN);
        buffer_put(to, "\n", 1);
}
