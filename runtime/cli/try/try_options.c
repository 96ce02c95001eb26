/* try_options.c: what `quiver try` was asked for. */
#include <errno.h>
#include <string.h>

#include <quiver/plugin.h>

#include "cli/try/try.h"
#include "task/envelope.h"

#define TIMEOUT_MS      30000
#define TIMEOUT_NOT_SET UINT64_MAX
#define HEADERS_SIZE    8192u /* of all together: the ring has room for them beside a payload */

static const char about[] =
        "Runs tasks through a plugin in a real runner, with no server.  Shows outcome, result, follow-ups, logs\n"
        "and time of each.  Exit code 0 only if all are DONE.";

static const char examples[] = "  quiver try plugins/echo.so --payload world --set greeting=hi\n"
                               "  printf 'alice\\tinsert\\nalice\\tdelete\\n' | quiver try ./mine.so --lines --json\n"
                               "  quiver try plugins/echo.so --bench 1000000\n"
                               "  gdb --args quiver try ./mine.so --here --payload crash-me\n";

/* A header as an envelope has it, as a runner gets it. */
static void pack_header(struct try_request *q, struct span line)
{
        struct task_header header;
        struct buffer name = { 0 };
        struct buffer value = { 0 };
        while (header_next(&line, &header)) {
                buffer_put(&name, header.name.data, header.name.size);
                header_put_value(&value, &header);
                ring_put_header(&q->headers, &(struct ring_task_header){ .name = buffer_text(&name),
                                                     .value = buffer_text(&value),
                                                     .value_size = value.size,
                                                     .is_bytes = header.is_base64 });
        }
        buffer_free(&name);
        buffer_free(&value);
}

/* What a host would not take is refused here too. */
static int take_any_header(struct try_request *q, const char *text, bool is_base64, struct error *error)
{
        struct buffer line = { 0 };
        const char *equals = strchr(text, '=');
        if (!equals)
                return error_set(error, -EINVAL, "%s has no =; say NAME=VALUE", text);
        struct span name = { text, (size_t)(equals - text) };
        struct span value = span_of_text(equals + 1);
        int r = is_base64 ? header_put_base64(&line, name, value, error) : header_put(&line, name, value, error);
        if (r == 0)
                pack_header(q, (struct span){ (const char *)line.data, line.size });
        buffer_free(&line);
        if (r < 0)
                return r;
        if (++q->headers_count > TASK_HEADERS_MAX || q->headers.size > HEADERS_SIZE)
                return error_set(
                        error, -EINVAL, "a task has at most %u headers, and here 8KiB of them", TASK_HEADERS_MAX);
        return 0;
}

static int take_header(void *self, const char *text, struct error *error)
{
        return take_any_header(self, text, false, error);
}

static int take_header64(void *self, const char *text, struct error *error)
{
        return take_any_header(self, text, true, error);
}

static int check_request(const struct options *o, const struct try_request *q)
{
        if (q->key && (!*q->key || strlen(q->key) > 255))
                return options_wrong(o, "--key: a key has 1 to 255 bytes");
        if (!q->payload_max || q->payload_max > UINT64_C(64) << 20)
                return options_wrong(o, "--max-payload: from 1 byte to 64MiB");
        if (q->is_lines && (q->payload || q->bench))
                return options_wrong(o, "--lines takes the payloads from standard input; leave out --payload and "
                                        "--bench");
        if (q->repeat > 1 && (q->is_lines || q->bench))
                return options_wrong(o, "--lines and --bench say how many tasks there are; leave out --repeat");
        if (q->checkpoint && strlen(q->checkpoint) > QV_CHECKPOINT_MAX)
                return options_wrong(o, "--checkpoint: at most 4096 bytes");
        if (q->is_here && (q->processes > 1 || q->threads > 1))
                return options_wrong(o, "--here has one seat in this process; leave out --threads and --processes");
        if (q->payload && strlen(q->payload) > q->payload_max)
                return options_wrong(o, "the payload is larger than --max-payload allows; raise it (at most 64MiB)");
        return EXIT_DONE;
}

bool try_options(struct try_request *q, int argc, char **argv, int *ret_code)
{
        *q = (struct try_request){
                .processes = 1, .threads = 1, .batch = 1, .timeout_ms = TIMEOUT_NOT_SET, .grace_ms = 5000
        };
        q->repeat = q->attempt = 1;
        q->init_ms = 10000;
        q->payload_max = UINT64_C(1) << 20;
        const struct option table[] = {
                PLUGIN_OPTIONS(&q->args),
                OPT_TEXT("-k, --key KEY", &q->key, "the task's key (default: its id)"),
                OPT_TEXT("-p, --payload TEXT", &q->payload, "the payload; - reads it from standard input"),
                OPT_CALL("--header NAME=VALUE", take_header, q, "a header of each task; say it again for more"),
                OPT_CALL("--header64 NAME=BASE64", take_header64, q, "the same, for any bytes"),
                OPT_NUMBER("--attempt N", &q->attempt, 1, 1000000, "as if N - 1 attempts had failed (default 1)"),
                OPT_TEXT("--checkpoint TEXT", &q->checkpoint, "as if an earlier attempt had saved it"),
                OPT_NUMBER("--repeat N", &q->repeat, 1, 1000000, "the same task N times, with an id each (default 1)"),
                OPT_FLAG("--lines", &q->is_lines, "a task per line of standard input: KEY<TAB>PAYLOAD or PAYLOAD"),
                OPT_NUMBER("--processes N", &q->processes, 1, 64, "runners (default 1)"),
                OPT_NUMBER("--threads N", &q->threads, 1, RING_SEATS_MAX, "seats in each runner (default 1)"),
                OPT_NUMBER("--batch N", &q->batch, 1, TRY_BATCH_MAX, "up to N tasks in one handle_many (default 1)"),
                OPT_DURATION("--timeout TIME", &q->timeout_ms, 0,
                        "raise the stop flag after this time (default 30s, with --here never; 0: never)"),
                OPT_DURATION("--grace TIME", &q->grace_ms, 0,
                        "kill a runner that goes on so long after its stop flag was raised (default 5s)"),
                OPT_DURATION("--init-timeout TIME", &q->init_ms, 0,
                        "give up on a plugin that is not ready by then (default 10s)"),
                OPT_SIZE("--max-payload SIZE", &q->payload_max, "largest payload (default 1MiB, at most 64MiB)"),
                OPT_SIZE("--memory SIZE", &q->memory_max,
                        "a runner's heap, stacks and data at most (default: no limit)"),
                OPT_SIZE("--core SIZE", &q->core_max,
                        "let a crash leave a core dump of at most this size (default: none)"),
                OPT_NUMBER("--max-processes N", &q->processes_max, 1, 1 << 22,
                        "processes and threads of the user at most; not for root"),
                OPT_FLAG("--here", &q->is_here, "load the plugin into this process, for gdb and valgrind"),
                OPT_NUMBER("--bench N", &q->bench, 1, UINT64_C(1) << 40, "pass N tasks of 100 bytes and say how fast"),
                OPT_FLAG("--json", &q->is_json, "one JSON object per task"),
                OPT_FLAG("-q, --quiet", &q->is_quiet, "do not show the handler's log and output"),
        };
        struct options o = {
                .usage = "try PLUGIN.so [options]",
                .about = about,
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = examples,
        };
        if (!options_read(&o, argc, argv, ret_code))
                return false;
        *ret_code = plugin_args_finish(&q->args, &o);
        if (*ret_code == EXIT_DONE)
                *ret_code = check_request(&o, q);
        /* A person with a debugger takes longer than any default. */
        if (q->timeout_ms == TIMEOUT_NOT_SET)
                q->timeout_ms = q->is_here ? 0 : TIMEOUT_MS;
        return *ret_code == EXIT_DONE;
}

void try_request_free(struct try_request *q)
{
        plugin_args_free(&q->args);
        buffer_free(&q->headers);
}
