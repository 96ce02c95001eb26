#include "cli/print_task.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "cli/json.h"
#include "cli/show.h"

#define PAYLOAD_SHOWN 2048

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void set_if(json_t *object, const char *name, uint64_t value)
{
        if (value)
                cli_json_number(object, name, value);
}

void envelope_as_json(json_t *object, const struct envelope *e)
{
        if (e->handler.size)
                cli_json_span(object, "handler", e->handler);
        (void)json_object_set_new(object, "lane", json_string(lane_name(e->lane)));
        set_if(object, "submitted_ms", e->submitted_ms);
        set_if(object, "not_before_ms", e->not_before_ms);
        set_if(object, "unique_ms", e->unique_ms);
        set_if(object, "timeout_ms", e->timeout_ms);
        set_if(object, "reply_ms", e->reply_ms);
        set_if(object, "attempts_max", e->attempts);
        if (e->headers.size) {
                json_t *headers = json_object();
                struct span rest = e->headers;
                struct span name;
                struct span value;
                while (header_next(&rest, &name, &value)) {
                        char text[TASK_HANDLER_MAX + 1];
                        (void)snprintf(text, sizeof(text), "%.*s", (int)name.size, name.data);
                        cli_json_span(headers, text, value);
                }
                (void)json_object_set_new(object, "headers", headers);
        }
        cli_json_span(object, "payload", e->payload);
}

json_t *listed_as_json(const struct store_listed *task)
{
        json_t *o = json_object();
        cli_json_span(o, "id", task->id);
        (void)json_object_set_new(o, "state", json_string(store_state_name(task->state)));
        cli_json_span(o, "key", task->key);
        if (task->state == STATE_DEAD) {
                cli_json_span(o, "reason", task->reason);
                cli_json_number(o, "at_ms", task->at_ms);
        }
        if (task->state == STATE_DELAYED)
                cli_json_number(o, "due_in_ms", task->due_in_ms);
        cli_json_number(o, "attempts", task->note.attempts);
        cli_json_number(o, "crashes", task->note.crashes);
        cli_json_number(o, "interruptions", task->note.interruptions);
        cli_json_history(o, task->note.events);
        if (task->note.checkpoint.size)
                cli_json_span(o, "checkpoint", task->note.checkpoint);
        envelope_as_json(o, &task->envelope);
        return o;
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static void print_time(const char *name, uint64_t unix_ms)
{
        char text[SHOW_TIME_MAX];
        if (unix_ms)
                (void)printf("%-12s %s\n", name, show_time(text, unix_ms));
}

static void print_duration(const char *name, uint64_t ms)
{
        char text[UNITS_TEXT_MAX];
        if (ms)
                (void)printf("%-12s %s\n", name, units_format_ms(text, ms));
}

static void print_bytes(const char *name, struct span bytes, size_t max)
{
        (void)printf("%-12s ", name);
        show_bytes(stdout, bytes, max);
        (void)putchar('\n');
}

void envelope_as_text(const struct envelope *e)
{
        struct span rest = e->headers;
        struct span name;
        struct span value;
        char size[UNITS_TEXT_MAX];
        if (e->handler.size)
                print_bytes("handler", e->handler, TASK_HANDLER_MAX);
        (void)printf("%-12s %s\n", "lane", lane_name(e->lane));
        print_time("submitted", e->submitted_ms);
        print_time("not before", e->not_before_ms);
        print_duration("unique", e->unique_ms);
        print_duration("timeout", e->timeout_ms);
        print_duration("reply kept", e->reply_ms);
        if (e->attempts)
                (void)printf("%-12s %u\n", "attempts max", e->attempts);
        while (header_next(&rest, &name, &value)) {
                (void)printf("%-12s %.*s=", "header", (int)name.size, name.data);
                show_bytes(stdout, value, value.size);
                (void)putchar('\n');
        }
        (void)printf("%-12s %s\n", "payload", units_format_bytes(size, e->payload.size));
        if (e->payload.size) {
                (void)printf("  ");
                show_bytes(stdout, e->payload, PAYLOAD_SHOWN);
                (void)putchar('\n');
        }
}

static void print_state(const struct store_listed *task)
{
        char text[UNITS_TEXT_MAX];
        char time[SHOW_TIME_MAX];
        (void)printf("%-12s %s", "state", store_state_name(task->state));
        if (task->state == STATE_DELAYED)
                (void)printf(", due in %s", units_format_ms(text, task->due_in_ms));
        if (task->state == STATE_DEAD)
                (void)printf(
                        " (%.*s) since %s", (int)task->reason.size, task->reason.data, show_time(time, task->at_ms));
        (void)putchar('\n');
}

static void print_what_to_do(const struct store_listed *task)
{
        int size = (int)task->id.size;
        const char *id = task->id.data;
        if (task->state == STATE_DEAD)
                (void)printf("\nAgain: quiver dead requeue %.*s; or away with it: quiver dead drop %.*s\n", size, id,
                        size, id);
        else if (task->state == STATE_PARKED) {
                (void)printf("\nWhat its key waits for: quiver key show ");
                show_word(stdout, task->key);
                (void)putchar('\n');
        }
}

void listed_as_text(const struct store_listed *task)
{
        print_bytes("task", task->id, TASK_ID_MAX);
        print_state(task);
        print_bytes("key", task->key, TASK_KEY_MAX);
        (void)printf("%-12s %u failed, %u crashed, %u interrupted\n", "starts", task->note.attempts, task->note.crashes,
                task->note.interruptions);
        envelope_as_text(&task->envelope);
        if (task->note.checkpoint.size)
                print_bytes("checkpoint", task->note.checkpoint, PAYLOAD_SHOWN);
        if (task->note.events.size)
                (void)printf("history\n");
        show_history(stdout, task->note.events);
        print_what_to_do(task);
}
