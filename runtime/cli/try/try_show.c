#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/try/try.h"
#include "view/json.h"

#define SHOWN_MAX 2048 /* bytes of a result, a checkpoint or a follow-up's payload in text */

/* --- JSON: one object a line ------------------------------------------------------------------------------------- */

static json_t *submits_as_json(const struct ring_reply *reply)
{
        json_t *list = json_array();
        struct reader r;
        struct ring_submit submit;
        reader_init(&r, reply->submits, reply->submits_size);
        while (r.size && ring_next_submit(&r, &submit) == 0) {
                json_t *one = json_object();
                (void)json_object_set_new(one, "handler", json_string(submit.handler));
                if (*submit.key)
                        view_json_bytes(one, "key", submit.key, strlen(submit.key));
                (void)json_object_set_new(one, "lane", json_integer(submit.lane));
                (void)json_object_set_new(one, "delay_ms", json_integer((json_int_t)submit.delay_ms));
                if (submit.is_merge)
                        (void)json_object_set_new(one, "merge", json_true());
                if (submit.debounce_ms)
                        (void)json_object_set_new(one, "debounce_ms", json_integer((json_int_t)submit.debounce_ms));
                view_json_bytes(one, "payload", submit.payload, submit.payload_size);
                (void)json_array_append_new(list, one);
        }
        return list;
}

static void task_as_json(const struct try_task *task, const struct settled *settled)
{
        const struct ring_reply *reply = settled->reply;
        json_t *o = json_object();
        (void)json_object_set_new(o, "id", json_string(task->id));
        view_json_bytes(o, "key", task->pool.task.key, strlen(task->pool.task.key));
        (void)json_object_set_new(o, "outcome", json_string(outcome_name(settled->outcome)));
        if (reply && reply->ended_ns)
                (void)json_object_set_new(
                        o, "time_us", json_integer((json_int_t)((reply->ended_ns - reply->started_ns) / 1000)));
        if (*settled->error)
                view_json_bytes(o, "error", settled->error, strlen(settled->error));
        if (reply && reply->has_result)
                view_json_bytes(o, "result", reply->result, reply->result_size);
        if (reply && reply->submits_count)
                (void)json_object_set_new(o, "submits", submits_as_json(reply));
        if (reply && reply->has_retry_after)
                (void)json_object_set_new(o, "retry_after_ms", json_integer((json_int_t)reply->retry_after_ms));
        if (settled->checkpoint)
                view_json_bytes(o, "checkpoint", settled->checkpoint, settled->checkpoint_size);
        cli_json_print(o);
}

/* --- text -------------------------------------------------------------------------------------------------------- */

/* Under a heading, indented; bytes that a terminal should not get are shown as \xNN.  The end of what is long is left
 * out. */
static void print_bytes(const char *heading, const void *data, size_t all)
{
        const unsigned char *b = data;
        size_t size = all;
        if (all > SHOWN_MAX) {
                size = SHOWN_MAX;
                while (size > SHOWN_MAX - 3 && (b[size] & 0xc0) == 0x80) /* not in the middle of a character */
                        size--;
        }
        (void)printf("  %-10s ", heading);
        for (size_t i = 0; i < size; i++) {
                if (b[i] == '\n')
                        (void)printf(i + 1 < size ? "\n             " : "");
                else if (b[i] < ' ' || b[i] == 0x7f)
                        (void)printf("\\x%02x", b[i]);
                else
                        (void)putchar(b[i]);
        }
        (void)putchar('\n');
        if (size < all)
                (void)printf("             (%zu more bytes; --json shows all of them)\n", all - size);
}

static void print_submits(const struct ring_reply *reply)
{
        struct reader r;
        struct ring_submit submit;
        char delay[UNITS_TEXT_MAX];
        reader_init(&r, reply->submits, reply->submits_size);
        while (r.size && ring_next_submit(&r, &submit) == 0) {
                (void)printf("  %-10s handler=%s key=%s lane=%s", "submit", submit.handler,
                        *submit.key ? submit.key : "(its id)",
                        submit.lane > 0   ? "high"
                        : submit.lane < 0 ? "low"
                                          : "normal");
                if (submit.delay_ms)
                        (void)printf(" delay=%s", units_format_ms(delay, submit.delay_ms));
                if (submit.is_merge)
                        (void)printf(" merge");
                if (submit.debounce_ms)
                        (void)printf(" debounce=%s", units_format_ms(delay, submit.debounce_ms));
                (void)putchar('\n');
                print_bytes("", submit.payload, submit.payload_size);
        }
}

static void task_as_text(const struct try_task *task, const struct settled *settled)
{
        const struct ring_reply *reply = settled->reply;
        char time[UNITS_TEXT_MAX] = "-";
        if (reply && reply->ended_ns)
                (void)units_format_ns(time, reply->ended_ns - reply->started_ns);
        (void)printf(
                "%-11s id=%s key=%s time=%s\n", outcome_name(settled->outcome), task->id, task->pool.task.key, time);
        if (*settled->error)
                print_bytes("error", settled->error, strlen(settled->error));
        if (reply && reply->has_result)
                print_bytes("result", reply->result, reply->result_size);
        if (reply)
                print_submits(reply);
        if (reply && reply->has_retry_after)
                (void)printf("  %-10s %s\n", "retry in", units_format_ms(time, reply->retry_after_ms));
        if (settled->checkpoint)
                print_bytes("checkpoint", settled->checkpoint, settled->checkpoint_size);
}

void try_show_settled(const struct try_request *request, struct try_counts *counts, const struct try_task *task,
        const struct settled *settled)
{
        counts->total++;
        counts->outcomes[settled->outcome]++;
        if (request->bench && settled->outcome == OUTCOME_DONE)
                return;
        if (request->is_json)
                task_as_json(task, settled);
        else
                task_as_text(task, settled);
}

void try_show_log(const struct try_request *request, const struct runner_log *log, const char *task_id)
{
        static const char *const sources[] = { "log", "stdout", "stderr" };
        if (request->is_quiet)
                return;
        (void)fflush(stdout);
        const char *source = log->source < 3 ? sources[log->source] : "log";
        if (log->dropped)
                (void)fprintf(stderr, "%s: %" PRIu32 " lines dropped: over the rate limit\n", source, log->dropped);
        if (log->source == LOG_SERVICE)
                (void)fprintf(stderr, "%s: %s: %s\n", task_id ? task_id : request->args.handler,
                        log_level_name((int)log->level), log->text);
        else
                (void)fprintf(stderr, "%s: %s\n", source, log->text);
}

void try_show_error(const struct try_request *request, const char *text)
{
        (void)fflush(stdout);
        if (request->is_json)
                cli_json_print(json_pack("{s:s}", "error", text));
        else
                (void)fprintf(stderr, "quiver try: %s\n", text);
}

static void show_total(const struct try_request *request, const struct try_counts *counts)
{
        struct buffer text = { 0 };
        if (counts->total < 2 || request->is_json)
                return;
        plugin_session_put_outcomes(counts->outcomes, " ", &text);
        (void)printf("%" PRIu64 " tasks: %s\n", counts->total, buffer_text(&text));
        buffer_free(&text);
}

static void show_bench(const struct try_request *request, const struct try_bench *b)
{
        double seconds = (double)b->elapsed_ns / 1e9;
        double rate = seconds > 0 ? (double)b->tasks / seconds : 0;
        double each_us = b->tasks ? (double)b->elapsed_ns / 1e3 / (double)b->tasks : 0;
        if (request->is_json) {
                cli_json_print(json_pack("{s:I,s:f,s:f,s:f,s:f,s:I,s:i,s:i,s:i}", "tasks", (json_int_t)b->tasks,
                        "seconds", seconds, "tasks_per_second", rate, "us_per_task", each_us, "first_task_ms",
                        (double)b->first_ns / 1e6, "runner_bytes", (json_int_t)b->runner_bytes, "processes",
                        (int)request->processes, "threads", (int)request->threads, "batch", (int)request->batch));
                return;
        }
        char first[UNITS_TEXT_MAX];
        char memory[UNITS_TEXT_MAX];
        (void)printf("%" PRIu64 " tasks in %.2f s: %.0f tasks/s, %.2f us per task\n", b->tasks, seconds, rate, each_us);
        (void)printf("%" PRIu32 " process%s x %" PRIu32 " thread%s, batch %" PRIu32
                     "; first answer after %s; a runner takes %s\n",
                request->processes, request->processes == 1 ? "" : "es", request->threads,
                request->threads == 1 ? "" : "s", request->batch, units_format_ns(first, b->first_ns),
                units_format_bytes(memory, b->runner_bytes));
}

void try_show_end(const struct try_request *request, const struct try_counts *counts, const struct try_bench *bench)
{
        if (request->bench && bench)
                show_bench(request, bench);
        else
                show_total(request, counts);
}
