/* submit.c: one task from the command line, with or without waiting for what becomes of it. */
#include "cli/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "view/json.h"
#include "view/task.h"
#include "view/text.h"

enum {
        OPTION_LINES = OPTION_OWN,
        OPTION_JSON_LINES,
        OPTION_BATCH,
        OPTION_SKIP_BAD,
        OPTION_WAIT,
        OPTION_WAIT_FOR,
};

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        TASK_OPTION_ROWS,
        { OPTION_WAIT, "wait", NULL, "wait for the outcome; prints the result" },
        { OPTION_WAIT_FOR, "wait-for", "TIME", "the same, but no longer than TIME" },
        { OPTION_LINES, "lines", NULL, "read KEY<TAB>PAYLOAD lines from standard input; with --key just PAYLOAD" },
        { OPTION_JSON_LINES, "json-lines", NULL, "read {\"key\": …, \"payload\": …} lines; see below" },
        { OPTION_BATCH, "batch", "N", "lines submitted in one step, 1 to 1000 (1000)" },
        { OPTION_SKIP_BAD, "skip-bad", NULL, "name a bad line and go on, instead of stopping there" },
        OPTION_JSON_ROW,
};

/* --- the outcome -------------------------------------------------------------------------------------------------- */

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
        json_t *o = json_object();
        (void)json_object_set_new(o, "id", json_string(id));
        (void)json_object_set_new(o, "outcome", json_string(outcome->state == QV_CLIENT_DONE ? "done" : "dead"));
        if (outcome->result)
                view_json_bytes(o, "result", outcome->result, outcome->result_size);
        if (outcome->state == QV_CLIENT_DEAD) {
                view_json_bytes(o, "reason", outcome->reason, strlen(outcome->reason));
                view_json_bytes(o, "error", outcome->error, strlen(outcome->error));
                json_t *history = json_array();
                for (size_t i = 0; i < outcome->events_count; i++) {
                        struct note_event event = as_noted(&outcome->events[i]);
                        (void)json_array_append_new(history, event_as_json(&event));
                }
                (void)json_object_set_new(o, "history", history);
        }
        cli_json_print(o);
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
        int r = qv_client_wait(s->client, id, request->wait_ms, &outcome);
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

/* --- one task ----------------------------------------------------------------------------------------------------- */

static void print_submitted(const struct submit_request *request, const char *id, bool is_duplicate)
{
        if (!request->has_json) {
                if (is_duplicate)
                        (void)fprintf(stderr, "quiver submit: not taken, one is there already:\n");
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
        char id[QV_CLIENT_ID_SIZE] = "";
        struct error error;
        if (request->payload && task_options_take_payload(&request->task, request->payload, &error) < 0)
                return cli_fail(s->command, -EINVAL, error.text);
        if (request->has_wait) {
                /* It must outlast the wait, and whoever asks a moment late. */
                task->reply_ms = s->config.store.results.reply_ttl_ms;
                if (!request->wait_ms)
                        request->wait_ms = task->reply_ms;
                if (task->reply_ms < request->wait_ms)
                        task->reply_ms = request->wait_ms;
        }
        int r = qv_client_submit(s->client, task, id);
        if (r < 0 && r != -EEXIST)
                return cli_fail(s->command, r, qv_client_error());
        if (!request->has_wait || r == -EEXIST) {
                print_submitted(request, id, r == -EEXIST);
                return request->has_wait ? EXIT_FAILED : EXIT_DONE; /* nobody keeps an outcome for us */
        }
        return wait_for_outcome(s, request, id);
}

/* Only the hosts know which handlers there are; but a misspelt name is likelier than one that is not written down. */
static void warn_unknown_handler(const struct cli_store *s, const char *handler)
{
        const struct config *config = &s->config;
        if (!handler || !config->handlers_count || config_serving(config, handler))
                return;
        const char **known = calloc(config->handlers_count, sizeof(*known));
        if (!known)
                abort();
        for (size_t i = 0; i < config->handlers_count; i++)
                known[i] = config->handlers[i].name;
        const char *nearest = error_nearest(handler, known, config->handlers_count);
        (void)fprintf(stderr, "quiver submit: warning: %s has no handler %s", config->path, handler);
        if (nearest)
                (void)fprintf(stderr, " (did you mean %s?)", nearest);
        (void)fprintf(stderr, "; the task waits until a host serves it\n");
        free(known);
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static int take_option(struct options *o, struct submit_request *request, int id)
{
        struct error error;
        uint64_t number = 0;
        int r = task_options_take(&request->task, id, o->value, &error);
        if (r < 0)
                return options_wrong(o, "--%s", error.text);
        if (r)
                return EXIT_DONE;
        switch (id) {
        case OPTION_WAIT:
                request->has_wait = true;
                break;
        case OPTION_WAIT_FOR:
                request->has_wait = true;
                if (units_duration_ms(o->value, &request->wait_ms, &error) < 0 || !request->wait_ms)
                        return options_wrong(o, "--wait-for: %s is not a time like 10s", o->value);
                break;
        case OPTION_LINES:
                request->is_lines = true;
                break;
        case OPTION_JSON_LINES:
                request->is_json_lines = true;
                break;
        case OPTION_BATCH:
                if (!options_number(o->value, 1, STORE_SUBMIT_TASKS, &number))
                        return options_wrong(
                                o, "--batch: %s is not a number from 1 to %u", o->value, STORE_SUBMIT_TASKS);
                request->batch = (uint32_t)number;
                break;
        case OPTION_SKIP_BAD:
                request->has_skip_bad = true;
                break;
        case OPTION_JSON:
                request->has_json = true;
                break;
        default:
                return EXIT_USAGE;
        }
        return EXIT_DONE;
}

static int take_word(struct options *o, struct submit_request *request)
{
        if (!request->task.task.handler)
                request->task.task.handler = o->value;
        else if (!request->payload)
                request->payload = o->value;
        else
                return options_wrong(o, "what is %s? A payload with spaces needs quotes", o->value);
        return EXIT_DONE;
}

static int check_words(struct options *o, const struct submit_request *request)
{
        bool is_stream = request->is_lines || request->is_json_lines;
        if (request->is_lines && request->is_json_lines)
                return options_wrong(o, "--lines or --json-lines, not both");
        if (!request->task.task.handler && !request->is_json_lines)
                return options_wrong(o, "which handler? quiver submit HANDLER [PAYLOAD]");
        if (is_stream && request->payload)
                return options_wrong(o, "payloads come from standard input; what is %s?", request->payload);
        if (is_stream && request->has_wait)
                return options_wrong(o, "--wait is for one task; results of many: quiver results");
        if (!is_stream && request->has_skip_bad)
                return options_wrong(o, "--skip-bad is for --lines and --json-lines");
        return EXIT_DONE;
}

static const char about[] =
        "Submits one task, or one per line of standard input, and prints its id. PAYLOAD - is standard input.\n"
        "When it returns the task is kept. A JSON line has payload (a text, or any JSON) or payload_base64, and may "
        "have\n"
        "handler, key, lane, delay, unique, attempts, timeout and headers; they win over the options.";

int cmd_submit(int argc, char **argv)
{
        struct options o = {
                .usage = "submit HANDLER [--key KEY] [PAYLOAD|-]",
                .about = about,
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver submit mail --key user-17 '{\"subject\": \"hello\"}'\n"
                            "  quiver submit resize --wait < photo.jpg -\n"
                            "  quiver submit mail --key user-17 --delay 10m --unique 1h reminder\n"
                            "  printf 'user-17\\thello\\nuser-18\\thello\\n' | quiver submit mail --lines\n"
                            "  echo '{\"handler\": \"mail\", \"key\": \"user-17\", \"payload\": {\"n\": 1}}' |\n"
                            "          quiver submit --json-lines\n",
        };
        struct submit_request request = { .batch = STORE_SUBMIT_TASKS };
        const char *given = NULL;
        struct cli_store s;
        int code = EXIT_DONE;
        task_options_init(&request.task);
        options_start(&o, argc, argv);
        for (int id = options_next(&o); id != OPTIONS_END && code == EXIT_DONE; id = options_next(&o)) {
                if (id == OPTIONS_HELP)
                        return EXIT_DONE;
                if (id == 'c')
                        given = o.value;
                else if (id == OPTIONS_WORD)
                        code = take_word(&o, &request);
                else
                        code = take_option(&o, &request, id);
        }
        if (code == EXIT_DONE)
                code = check_words(&o, &request);
        if (code == EXIT_DONE)
                code = cli_open(&s, "submit", given);
        if (code == EXIT_DONE) {
                warn_unknown_handler(&s, request.task.task.handler);
                code = request.is_lines || request.is_json_lines ? submit_lines(&s, &request)
                                                                 : submit_one(&s, &request);
                cli_close(&s);
        }
        task_options_free(&request.task);
        return code;
}
