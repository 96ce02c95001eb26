#include "view/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/headers.h"
#include "view/json.h"
#include "view/text.h"
#include "view/whereabouts.h"

#define PAYLOAD_SHOWN 2048
#define KIND_COLUMNS  12
#define EVENT_INDENT  "      " /* for the second and further lines of an event */

/* The envelope's numbers; 0 means not set. */
static const struct number {
        const char *json;
        const char *label;
        size_t offset;
        bool is_time; /* else a duration */
} numbers[] = {
        { "submitted_ms", "submitted", offsetof(struct envelope, submitted_ms), true },
        { "not_before_ms", "not before", offsetof(struct envelope, not_before_ms), true },
        { "unique_ms", "unique", offsetof(struct envelope, unique_ms), false },
        { "timeout_ms", "timeout", offsetof(struct envelope, timeout_ms), false },
        { "reply_ms", "reply kept", offsetof(struct envelope, reply_ms), false },
        { "debounce_ms", "debounce", offsetof(struct envelope, debounce_ms), false },
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static uint64_t number_of(const struct envelope *e, const struct number *number)
{
        return *(const uint64_t *)((const char *)e + number->offset);
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void set_line(json_t *object, struct span name, struct span value)
{
        char text[TASK_HANDLER_MAX + 2]; /* room for the longest name with its `!` */
        (void)snprintf(text, sizeof(text), "%.*s", (int)name.size, name.data);
        view_json_span(object, text, value);
}

static json_t *others_as_json(struct span lines)
{
        json_t *object = json_object();
        struct span name;
        struct span value;
        while (others_next(&lines, &name, &value))
                set_line(object, name, value);
        return object;
}

void envelope_as_json(json_t *object, const struct envelope *e)
{
        if (e->handler.size)
                view_json_span(object, "handler", e->handler);
        view_json_set_text(object, "lane", lane_name(e->lane));
        for (size_t i = 0; i < NUMBERS; i++)
                if (number_of(e, &numbers[i]))
                        view_json_number(object, numbers[i].json, number_of(e, &numbers[i]));
        if (e->attempts)
                view_json_number(object, "attempts_max", e->attempts);
        if (e->is_merge)
                (void)json_object_set_new(object, "merge", json_true());
        headers_as_json(object, e->headers);
        if (e->others.size)
                (void)json_object_set_new(object, "unknown", others_as_json(e->others));
        view_json_span(object, "payload", e->payload);
}

#define WORKER_SHOWN 64

/* Parses NOTE_WHERE_WORKER_FORMAT or NOTE_WHERE_FORMAT, perhaps with NOTE_WHERE_SEAT.  A host's name may contain
 * spaces, so it is everything before the rest. */
static void set_where(json_t *o, struct span where)
{
        char text[NOTE_TEXT_MAX + 1];
        unsigned pid;
        unsigned generation;
        char hash[9];
        char version[NOTE_VERSION_MAX + 1] = "";
        (void)snprintf(text, sizeof(text), "%.*s", (int)where.size, where.size ? where.data : "");
        char worker[WORKER_SHOWN + 1];
        int at = 0;
        if (sscanf(text, "worker %64s (via %n", worker, &at) == 1 && at && text[strlen(text) - 1] == ')') {
                text[strlen(text) - 1] = 0;
                view_json_set_text(o, "worker", worker);
                view_json_set_text(o, "host", text + at);
                return;
        }
        size_t size = strlen(text);
        size_t seat = sizeof(NOTE_WHERE_SEAT) - 1;
        bool is_seat = size > seat && !strcmp(text + size - seat, NOTE_WHERE_SEAT);
        if (is_seat) {
                text[size - seat] = 0;
                (void)json_object_set_new(o, "borrowed", json_true());
        }
        char *pid_at = strstr(text, " pid=");
        if (is_seat && !pid_at)
                view_json_set_text(o, "host", text);
        if (!pid_at || sscanf(pid_at, " pid=%9u generation=%9u plugin=%8[0-9a-f] version=%32[!-~]", &pid, &generation,
                               hash, version) < 3)
                return;
        *pid_at = 0;
        view_json_set_text(o, "host", text);
        view_json_number(o, "pid", pid);
        view_json_number(o, "generation", generation);
        view_json_set_text(o, "hash", hash);
        if (*version)
                view_json_set_text(o, "version", version);
}

static json_t *event_as_json(const struct note_event *event)
{
        json_t *o = json_object();
        view_json_number(o, "at_ms", event->at_ms);
        view_json_span(o, "kind", event->kind);
        struct buffer lines = { 0 };
        note_put_lines(&lines, event->text);
        view_json_bytes(o, "text", lines.data, lines.size);
        buffer_free(&lines);
        set_where(o, event->where);
        return o;
}

static json_t *history_of(const struct task_note *note)
{
        json_t *list = json_array();
        struct span rest = note->events;
        struct note_event event;
        while (note_event_next(&rest, &event))
                (void)json_array_append_new(list, event_as_json(&event));
        return list;
}

void note_as_json(json_t *object, const struct task_note *note)
{
        view_json_number(object, "attempts", note->attempts);
        view_json_number(object, "crashes", note->crashes);
        view_json_number(object, "interruptions", note->interruptions);
        view_json_number(object, "laters", note->laters);
        if (note->merged) {
                view_json_number(object, "merged", note->merged);
                view_json_number(object, "merged_at_ms", note->merged_ms);
        }
        (void)json_object_set_new(object, "history", history_of(note));
}

json_t *listed_as_json(const struct store_listed *task)
{
        json_t *o = json_object();
        view_json_span(o, "id", task->id);
        view_json_set_text(o, "state", store_state_name(task->state));
        view_json_span(o, "key", task->key);
        if (task->state == STATE_DEAD) {
                view_json_span(o, "reason", task->reason);
                view_json_number(o, "at_ms", task->at_ms);
        }
        if (task->state == STATE_DELAYED)
                view_json_number(o, "due_in_ms", task->due_in_ms);
        note_as_json(o, &task->note);
        if (task->note.checkpoint.size)
                view_json_span(o, "checkpoint", task->note.checkpoint);
        envelope_as_json(o, &task->envelope);
        return o;
}

json_t *result_as_json(const struct store_result *result)
{
        json_t *o = json_object();
        view_json_span(o, "id", result->id);
        view_json_span(o, "key", result->key);
        view_json_span(o, "handler", result->handler);
        view_json_number(o, "at_ms", result->at_ms);
        note_as_json(o, &result->note);
        view_json_span(o, "data", result->data);
        return o;
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static void put_line(struct buffer *to, const char *label, struct span name, struct span value)
{
        buffer_printf(to, "%-12s ", label);
        text_put_bytes(to, name, name.size);
        buffer_put(to, "=", 1);
        text_put_bytes(to, value, value.size);
        buffer_put(to, "\n", 1);
}

static void others_as_text(struct buffer *to, struct span lines)
{
        struct span name;
        struct span value;
        while (others_next(&lines, &name, &value))
                put_line(to, "unknown", name, value);
}

static void headers_as_text(struct buffer *to, struct span lines)
{
        struct task_header header;
        struct buffer value = { 0 };
        while (header_next(&lines, &header)) {
                buffer_clear(&value);
                header_put_value(&value, &header);
                put_line(to, "header", header.name, (struct span){ (const char *)value.data, value.size });
        }
        buffer_free(&value);
}

void envelope_as_text(struct buffer *to, const struct envelope *e)
{
        char text[TEXT_TIME_MAX + UNITS_TEXT_MAX];
        if (e->handler.size)
                text_put_field(to, "handler", e->handler, TASK_HANDLER_MAX);
        buffer_printf(to, "%-12s %s\n", "lane", lane_name(e->lane));
        for (size_t i = 0; i < NUMBERS; i++) {
                uint64_t ms = number_of(e, &numbers[i]);
                if (ms)
                        buffer_printf(to, "%-12s %s\n", numbers[i].label,
                                numbers[i].is_time ? text_time(text, ms) : units_format_ms(text, ms));
        }
        if (e->attempts)
                buffer_printf(to, "%-12s %u\n", "attempts max", e->attempts);
        if (e->is_merge)
                buffer_printf(to, "%-12s with those of its handler and key that wait\n", "merge");
        others_as_text(to, e->others);
        headers_as_text(to, e->headers);
        buffer_printf(to, "%-12s %s\n", "payload", units_format_bytes(text, e->payload.size));
        if (e->payload.size) {
                buffer_printf(to, "  ");
                text_put_bytes(to, e->payload, PAYLOAD_SHOWN);
                buffer_put(to, "\n", 1);
        }
}

/* Puts the first line beside the time, the others below it. */
static void put_event_lines(struct buffer *to, struct span text)
{
        while (text.size) {
                struct span line = note_first_line(text);
                text_put_bytes(to, line, NOTE_TEXT_MAX);
                size_t size = line.size + (line.size < text.size ? 1 : 0);
                text.data += size;
                text.size -= size;
                if (text.size)
                        buffer_printf(to, "\n" EVENT_INDENT);
        }
}

/* The new time of a delayed task; 0: it is another kind of event. */
static uint64_t rescheduled_to(const struct note_event *event)
{
        char digits[24];
        if (!span_is(event->kind, SPAN_TEXT("rescheduled")) || !event->text.size || event->text.size >= sizeof(digits))
                return 0;
        (void)snprintf(digits, sizeof(digits), "%.*s", (int)event->text.size, event->text.data);
        return strtoull(digits, NULL, 10);
}

void event_as_text(struct buffer *to, const struct note_event *event)
{
        char time[TEXT_TIME_MAX];
        bool has_lines = note_first_line(event->text).size < event->text.size;
        buffer_printf(to, "  %s  ", text_time(time, event->at_ms));
        (void)text_put_column(to, event->kind, KIND_COLUMNS, SIZE_MAX);
        buffer_put(to, " ", 1);
        uint64_t due_ms = rescheduled_to(event);
        if (due_ms)
                buffer_printf(to, "to %s", text_time(time, due_ms));
        else
                put_event_lines(to, event->text);
        if (event->where.size) {
                buffer_printf(to, "%s(on ", has_lines ? "\n" EVENT_INDENT : event->text.size ? "  " : "");
                text_put_bytes(to, event->where, NOTE_TEXT_MAX);
                buffer_put(to, ")", 1);
        }
        buffer_put(to, "\n", 1);
}

static void put_state(struct buffer *to, const struct store_listed *task, const json_t *where)
{
        char text[UNITS_TEXT_MAX];
        char time[TEXT_TIME_MAX];
        const char *state = view_json_get_text(where, "state");
        buffer_printf(to, "%-12s %s", "state", *state ? state : store_state_name(task->state));
        if (task->state == STATE_DELAYED)
                buffer_printf(to, ", due in %s", units_format_ms(text, task->due_in_ms));
        if (task->state == STATE_DEAD) {
                buffer_printf(to, " (");
                text_put_bytes(to, task->reason, NOTE_TEXT_MAX);
                buffer_printf(to, ") since %s", text_time(time, task->at_ms));
        }
        buffer_put(to, "\n", 1);
}

static void put_commands(struct buffer *to, const struct store_listed *task)
{
        if (task->state == STATE_DEAD) {
                buffer_printf(to, "\nAgain: quiver dead requeue ");
                text_put_word(to, task->id);
                buffer_printf(to, "; or away with it: quiver dead drop ");
                text_put_word(to, task->id);
                buffer_put(to, "\n", 1);
        } else if (task->state == STATE_PARKED) {
                buffer_printf(to, "\nWhat its key waits for: quiver key show ");
                text_put_word(to, task->key);
                buffer_put(to, "\n", 1);
        }
}

static void put_merged(struct buffer *to, const struct task_note *note)
{
        char time[TEXT_TIME_MAX];
        if (note->merged)
                buffer_printf(to, "%-12s %u merged into it, the last at %s\n", "merged", note->merged,
                        text_time(time, note->merged_ms));
}

json_t *merged_as_json(struct span id, struct span into, uint64_t at_ms)
{
        json_t *o = json_object();
        view_json_span(o, "id", id);
        view_json_set_text(o, "state", "merged");
        view_json_span(o, "into", into);
        view_json_number(o, "at_ms", at_ms);
        return o;
}

void merged_as_text(struct buffer *to, struct span id, struct span into, uint64_t at_ms)
{
        char time[TEXT_TIME_MAX];
        text_put_field(to, "task", id, TASK_ID_MAX);
        buffer_printf(to, "%-12s merged into ", "state");
        text_put_word(to, into);
        buffer_printf(to, " at %s\n\nWhat became of that: quiver task ", text_time(time, at_ms));
        text_put_word(to, into);
        buffer_put(to, "\n", 1);
}

void listed_as_text(struct buffer *to, const struct store_listed *task, const json_t *where, uint64_t now_ms)
{
        struct span rest = task->note.events;
        struct note_event event;
        text_put_field(to, "task", task->id, TASK_ID_MAX);
        put_state(to, task, where);
        whereabouts_as_text(to, where, now_ms);
        text_put_field(to, "key", task->key, TASK_KEY_MAX);
        buffer_printf(to, "%-12s %u failed, %u crashed, %u interrupted", "starts", task->note.attempts,
                task->note.crashes, task->note.interruptions);
        if (task->note.laters)
                buffer_printf(to, ", %u said later", task->note.laters);
        buffer_put(to, "\n", 1);
        put_merged(to, &task->note);
        envelope_as_text(to, &task->envelope);
        if (task->note.checkpoint.size)
                text_put_field(to, "checkpoint", task->note.checkpoint, PAYLOAD_SHOWN);
        if (rest.size)
                buffer_printf(to, "history\n");
        while (note_event_next(&rest, &event))
                event_as_text(to, &event);
        put_commands(to, task);
}

void result_as_text(struct buffer *to, const struct store_result *result)
{
        text_put_bytes(to, result->id, TASK_ID_MAX);
        buffer_put(to, "\t", 1);
        text_put_bytes(to, result->key, TASK_KEY_MAX);
        buffer_put(to, "\t", 1);
        text_put_bytes(to, result->handler, TASK_HANDLER_MAX);
        buffer_put(to, "\t", 1);
        text_put_bytes(to, result->data, result->data.size);
        buffer_put(to, "\n", 1);
}
