/* submit.c: one task from the command line, with or without waiting for what becomes of it. */
#include "cli/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "trace/context.h"
#include "view/json.h"
#include "view/task.h"
#include "view/text.h"

#define SILENT_MS 3000 /* how long --wait says nothing */

/* --- the outcome --- */

static struct note_event as_noted(const struct qv_client_event *event)
{
        return (struct note_event){
                .at_ms = event->at_ms,
                .kind = span_of_text(event->kind),
                .text = span_of_text(event->text),
        };
}

static void outcome_as_json(const char *id, const struct qv_client_outcome *outcome)
{
        struct buffer scratch = { 0 };
        json_t *o = json_object();
        (void)json_object_set_new(o, "id", json_string(id));
        (void)json_object_set_new(o, "outcome", json_string(outcome->state == QV_CLIENT_DONE ? "done" : "dead"));
        if (outcome->result)
                view_json_bytes(o, "result", outcome->result, outcome->result_size);
        if (outcome->state == QV_CLIENT_DEAD) {
                view_json_bytes(o, "reason", outcome->reason, strlen(outcome->reason));
                view_json_bytes(o, "error", outcome->error, strlen(outcome->error));
        }
        struct task_note note = cli_note(&(struct qv_client_history){ .attempts = outcome->attempts,
                                                 .crashes = outcome->crashes,
                                                 .interruptions = outcome->interruptions,
                                                 .laters = outcome->laters,
                                                 .events = outcome->events,
                                                 .events_count = outcome->events_count },
                &scratch);
        note_as_json(o, &note);
        cli_json_print(o);
        buffer_free(&scratch);
}

static void outcome_as_text(const char *id, const struct qv_client_outcome *outcome)
{
        struct buffer text = { 0 };
        if (outcome->state == QV_CLIENT_DONE) {
                (void)fwrite(outcome->result ? outcome->result : "", 1, outcome->result_size, stdout);
                if (outcome->result && isatty(STDOUT_FILENO))
                        (void)putchar('\n');
                return;
        }
        buffer_printf(&text, "quiver submit: task %s is dead (%s)", id, outcome->reason);
        text_put_between(&text, ": ", outcome->error, "\n");
        for (size_t i = 0; i < outcome->events_count; i++) {
                struct note_event event = as_noted(&outcome->events[i]);
                event_as_text(&text, &event);
        }
        buffer_printf(&text, "Look at it: quiver task %s; again: quiver dead requeue %s\n", id, id);
        (void)fputs(buffer_text(&text), stderr);
        buffer_free(&text);
}

static int wait_for_outcome(struct cli_store *s, const struct submit_request *request, const char *id)
{
        struct qv_client_outcome *outcome = NULL;
        uint64_t silent_ms = min_u64(request->wait_ms, SILENT_MS);
        int r = qv_client_wait(s->client, id, silent_ms, &outcome);
        if (r == -EAGAIN && silent_ms < request->wait_ms) {
                (void)fprintf(
                        stderr, "quiver submit: task %s has not ended yet; where it is: quiver task %s\n", id, id);
                r = qv_client_wait(s->client, id, request->wait_ms - silent_ms, &outcome);
        }
        if (r == -EAGAIN) {
                char text[UNITS_TEXT_MAX];
                (void)fprintf(stderr,
                        "quiver submit: task %s has not ended within %s; it stays. Where it is: quiver task %s; "
                        "is a host running? quiver status\n",
                        id, units_format_ms(text, request->wait_ms), id);
                return EXIT_FAILED;
        }
        if (r < 0)
                return cli_fail(s->command, r, qv_client_error());
        if (request->has_json)
                outcome_as_json(id, outcome);
        else
                outcome_as_text(id, outcome);
        int code = outcome->state == QV_CLIENT_DONE ? EXIT_DONE : EXIT_FAILED;
        qv_client_outcome_free(outcome);
        return code;
}

/* --- one task --- */

static void print_submitted(const struct submit_request *request, const char *id, bool is_duplicate)
{
        if (!request->has_json) {
                if (is_duplicate)
                        (void)fprintf(stderr, "quiver submit: %s\n",
                                request->task.task.idempotency_key
                                        ? "nothing new was stored; this task was taken before under this idempotency "
                                          "key:"
                                        : "nothing new was stored; the handler and key have this task already:");
                (void)printf("%s\n", id);
                return;
        }
        json_t *o = json_object();
        (void)json_object_set_new(o, "id", json_string(id));
        (void)json_object_set_new(o, "duplicate", json_boolean(is_duplicate));
        cli_json_print(o);
}

static int submit_one(struct cli_store *s, struct submit_request *request)
{
        struct qv_client_task *task = &request->task.task;
        struct qv_client_submitted submitted = { 0 };
        struct error error;
        if (request->payload && task_options_take_payload(&request->task, request->payload, &error) < 0)
                return cli_fail(s->command, -EINVAL, error.text);
        if (request->traceparent)
                task_options_add_trace(&request->task, request->traceparent, request->tracestate);
        if (request->has_wait) {
                /* The reply must outlast the wait, and be there for a client that asks a little late. */
                task->reply_ms = s->config.store.results.reply_ttl_ms;
                if (!request->wait_ms)
                        request->wait_ms = task->reply_ms;
                if (task->reply_ms < request->wait_ms)
                        task->reply_ms = request->wait_ms;
        }
        int r = qv_client_submit_many(s->client, task, 1, &submitted);
        if (r < 0 || (submitted.status && submitted.status != -EEXIST))
                return cli_fail(s->command, r < 0 ? r : submitted.status, qv_client_error());
        bool is_refused = submitted.status == -EEXIST;
        if (!request->has_wait || is_refused) {
                print_submitted(request, submitted.id, is_refused || submitted.is_repeat);
                return request->has_wait ? EXIT_FAILED : EXIT_DONE; /* nobody keeps an outcome for us */
        }
        return wait_for_outcome(s, request, submitted.id);
}

/* Only hosts know which handlers exist, but a misspelt name is likelier than one missing in this file. */
static void warn_unknown_handler(const struct cli_store *s, const char *handler)
{
        const struct config *config = &s->config;
        if (!handler || !config->handlers_count || config_serving(config, handler))
                return;
        const char **known = memory_zero(config->handlers_count, sizeof(*known));
        for (size_t i = 0; i < config->handlers_count; i++)
                known[i] = config->handlers[i].name;
        const char *nearest = error_nearest(handler, known, config->handlers_count);
        (void)fprintf(stderr, "quiver submit: warning: %s has no handler %s", config->path, handler);
        if (nearest)
                (void)fprintf(stderr, " (did you mean %s?)", nearest);
        (void)fprintf(stderr, "; the task waits until a host serves it\n");
        free(known);
}

/* --- the command --- */

static int submit(struct cli_store *s, void *self)
{
        struct submit_request *request = self;
        warn_unknown_handler(s, request->task.task.handler);
        return request->is_lines || request->is_json_lines ? submit_lines(s, request) : submit_one(s, request);
}

/* Takes the trace from the environment, as tools pass it on; ignores an invalid traceparent there. */
static int take_trace(const struct options *o, struct submit_request *request)
{
        struct trace_context context;
        const char *parent = getenv("TRACEPARENT");
        const char *state = getenv("TRACESTATE");
        if (request->traceparent && !trace_context_parse(span_of_text(request->traceparent), &context))
                return options_wrong(o, "--traceparent %s is none; say 00-TRACE-SPAN-FLAGS, such as %s",
                        request->traceparent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        if (request->traceparent || !parent || !trace_context_parse(span_of_text(parent), &context))
                return EXIT_DONE;
        request->traceparent = parent;
        if (state && *state && strlen(state) <= TASK_HEADER_MAX)
                request->tracestate = state;
        return EXIT_DONE;
}

static int check_words(const struct options *o, struct submit_request *request)
{
        bool is_stream = request->is_lines || request->is_json_lines;
        request->has_wait |= request->wait_ms != 0;
        if (o->words_count)
                request->task.task.handler = o->words[0];
        if (o->words_count > 1)
                request->payload = o->words[1];
        if (request->is_lines && request->is_json_lines)
                return options_wrong(o, "--lines or --json-lines, not both");
        if (!request->task.task.handler && !request->is_json_lines)
                return options_wrong(o, "which handler? quiver submit HANDLER [PAYLOAD]");
        if (is_stream && request->payload)
                return options_wrong(
                        o, "unexpected argument %s; the payloads come from standard input", request->payload);
        if (is_stream && request->has_wait)
                return options_wrong(o, "--wait is for one task; results of many: quiver results");
        if (request->is_lines && request->task.task.idempotency_key)
                return options_wrong(o, "--idempotency-key is for one task; a JSON line has its own: idempotency_key");
        if (!is_stream && request->has_skip_bad)
                return options_wrong(o, "--skip-bad is for --lines and --json-lines");
        return take_trace(o, request);
}

static const char about[] =
        "Submits one task, or one per line of standard input, and prints its id. PAYLOAD - is standard input.\n"
        "When it returns the task is kept. A JSON line has payload (a text, or any JSON) or payload_base64, and may "
        "have\n"
        "handler, key, lane, delay, at, unique, merge, debounce, attempts, timeout, headers and idempotency_key; they "
        "win "
        "over the "
        "options.\n"
        "With --idempotency-key a submit that got no answer may be repeated: the task is taken once, and both print "
        "its "
        "id.";

static const char examples[] = "  quiver submit mail --key user-17 '{\"subject\": \"hello\"}'\n"
                               "  quiver submit resize --wait < photo.jpg -\n"
                               "  quiver submit mail --key user-17 --delay 10m --unique 1h reminder\n"
                               "  quiver submit mail --key user-17 --at 2026-11-20T09:00:00+01:00 reminder\n"
                               "  quiver submit reindex --key user-17 --debounce 2s\n"
                               "  quiver submit charge --key user-17 --idempotency-key order-4711 '{\"cents\": 950}'\n"
                               "  printf 'user-17\\thello\\nuser-18\\thello\\n' | quiver submit mail --lines\n"
                               "  echo '{\"handler\": \"mail\", \"key\": \"user-17\", \"payload\": {\"n\": 1}}' |\n"
                               "          quiver submit --json-lines\n";

int cmd_submit(int argc, char **argv)
{
        struct submit_request q = { .batch = STORE_SUBMIT_TASKS, .task = TASK_OPTIONS_INIT };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                TASK_OPTIONS(&q.task),
                OPT_TEXT("--idempotency-key KEY", &q.task.task.idempotency_key,
                        "safe to repeat within a day: taken once"),
                OPT_TEXT("--traceparent TEXT", &q.traceparent, "the trace that it is part of, instead of $TRACEPARENT"),
                OPT_FLAG("--wait", &q.has_wait, "wait for the outcome; prints the result"),
                OPT_DURATION("--wait-for TIME", &q.wait_ms, 1, "the same, but no longer than TIME"),
                OPT_FLAG("--lines", &q.is_lines,
                        "read KEY<TAB>PAYLOAD lines from standard input; with --key just PAYLOAD"),
                OPT_FLAG("--json-lines", &q.is_json_lines, "read {\"key\": …, \"payload\": …} lines; see above"),
                OPT_NUMBER(
                        "--batch N", &q.batch, 1, STORE_SUBMIT_TASKS, "lines submitted in one step, 1 to 1000 (1000)"),
                OPT_FLAG("--skip-bad", &q.has_skip_bad, "name a bad line and go on, instead of stopping there"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "submit HANDLER [--key KEY] [PAYLOAD|-]",
                .about = about,
                OPTIONS_TABLE(table),
                .words_max = 2,
                .hint = "a payload with spaces needs quotes",
                .examples = examples,
        };
        int code;
        if (options_read(&o, argc, argv, &code) && (code = check_words(&o, &q)) == EXIT_DONE)
                code = cli_act(&o, q.config, submit, &q);
        task_options_free(&q.task);
        return code;
}
