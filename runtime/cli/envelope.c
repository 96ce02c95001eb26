/* envelope.c: a task as the bytes that a store holds, read and written by hand.  Needs no store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "cli/task_options.h"
#include "view/json.h"
#include "view/task.h"
#include "view/text.h"

struct envelope_request {
        bool is_make;
        uint32_t shards; /* 0: not said */
        bool has_json;
        struct task_options task;
};

/* --- reading --- */

static int read_file(const char *path, struct buffer *to, struct error *error)
{
        int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
        int r = fd < 0 ? -errno : cli_read_all(fd, STORE_PAYLOAD_MAX + TASK_HEAD_MAX, to);
        if (fd > STDIN_FILENO)
                (void)close(fd);
        return r < 0 ? error_set(error, r, "%s: %s", path, strerror(-r)) : 0;
}

static void print_envelope(const struct envelope *e, const struct envelope_request *request)
{
        struct span ordered = e->key.size ? e->key : e->id;
        uint32_t shard = request->shards && e->key.size ? shard_of_key(ordered, request->shards) : 0;
        if (request->has_json) {
                json_t *o = json_object();
                view_json_span(o, "key", e->key);
                if (e->id.size)
                        view_json_span(o, "id", e->id);
                if (request->shards && e->key.size)
                        view_json_number(o, "shard", shard);
                envelope_as_json(o, e);
                cli_json_print_wide(o);
                return;
        }
        struct buffer text = { 0 };
        if (e->id.size)
                buffer_printf(&text, "%-12s %.*s\n", "task", (int)e->id.size, e->id.data);
        buffer_printf(&text, "%-12s ", "key");
        text_put_bytes(&text, e->key.size ? e->key : SPAN_TEXT("(none: unordered)"), TASK_KEY_MAX);
        if (request->shards && e->key.size)
                buffer_printf(&text, " (shard %u of %u)", shard, request->shards);
        buffer_put(&text, "\n", 1);
        envelope_as_text(&text, e);
        cli_text_print(&text);
}

static int show_file(const char *path, const struct envelope_request *request)
{
        struct buffer bytes = { 0 };
        struct envelope envelope;
        struct error error = { "" };
        int r = read_file(path, &bytes, &error);
        if (r == 0) {
                r = envelope_parse(bytes.data, bytes.size, &envelope, &error);
                if (r < 0)
                        (void)error_prefix(
                                &error, r, "%s is not an envelope", strcmp(path, "-") ? path : "standard input");
        }
        if (r == 0)
                print_envelope(&envelope, request);
        else
                (void)fprintf(stderr, "quiver envelope: %s\n", error.text);
        buffer_free(&bytes);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* --- writing --- */

static int write_envelope(const struct envelope_request *request, struct error *error)
{
        const struct qv_client_task *task = &request->task.task;
        struct buffer headers = { 0 };
        struct buffer bytes = { 0 };
        struct envelope envelope = { 0 };
        char id[TASK_ID_MAX + 1];
        int r = client_check_task(task, error);
        if (r == 0)
                r = client_task_envelope(task, &headers, &envelope, error);
        if (r < 0)
                goto out;
        envelope.submitted_ms = clock_wall_ms();
        if (task->delay_ms)
                envelope.not_before_ms = max_u64(envelope.not_before_ms, envelope.submitted_ms + task->delay_ms);
        if (request->shards) {
                uint32_t shard = envelope.key.size ? shard_of_key(envelope.key, request->shards)
                                                   : task_id_any_shard(request->shards);
                envelope.id = (struct span){ id, task_id_make(id, shard) };
        }
        envelope_put(&bytes, &envelope);
        if (fwrite(bytes.data, 1, bytes.size, stdout) != bytes.size || fflush(stdout) != 0)
                r = error_set(error, -EIO, "cannot write to standard output: %s", strerror(errno));
out:
        buffer_free(&headers);
        buffer_free(&bytes);
        return r;
}

static int make(const struct options *o, struct envelope_request *request)
{
        struct error error = { "" };
        if (!o->words_count || o->words_count > 2)
                return options_wrong(o, "which handler? quiver envelope --make HANDLER [PAYLOAD|-]");
        request->task.task.handler = o->words[0];
        int r = o->words_count == 2 ? task_options_take_payload(&request->task, o->words[1], &error) : 0;
        if (r == 0)
                r = write_envelope(request, &error);
        if (r < 0)
                (void)fprintf(stderr, "quiver envelope: %s\n", error.text);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

int cmd_envelope(int argc, char **argv)
{
        struct envelope_request q = { .task = TASK_OPTIONS_INIT };
        const struct option table[] = {
                OPT_FLAG("--make", &q.is_make, "write the envelope of HANDLER [PAYLOAD|-], with the options below"),
                OPT_NUMBER("--shards N", &q.shards, 1, SHARDS_MAX,
                        "say, or put in the id, which of N shards it belongs to"),
                TASK_OPTIONS(&q.task),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "envelope [FILE|-] | --make HANDLER [PAYLOAD|-]",
                .about = "Prints what is in an envelope, from a file or standard input; or writes one to standard "
                         "output.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver envelope task.qv1\n"
                            "  redis-cli LINDEX 'quiver:{demo:12}:normal' 0 | quiver envelope -\n"
                            "  quiver envelope --make mail --key user-17 hello > task.qv1\n",
        };
        int code;
        if (options_read(&o, argc, argv, &code)) {
                if (q.is_make)
                        code = make(&o, &q);
                else if (o.words_count > 1)
                        code = options_wrong(&o, "unexpected argument %s; it reads one file at a time", o.words[1]);
                else
                        code = show_file(o.words_count ? o.words[0] : "-", &q);
        }
        task_options_free(&q.task);
        return code;
}
