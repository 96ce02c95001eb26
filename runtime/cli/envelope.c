/* envelope.c: a task as the bytes that a store holds, read and written by hand.  Needs no store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "cli/task_options.h"
#include "view/json.h"
#include "view/task.h"
#include "view/text.h"

enum { OPTION_MAKE = OPTION_OWN, OPTION_SHARDS };

static const struct option_spec specs[] = {
        { OPTION_MAKE, "make", NULL, "write the envelope of HANDLER [PAYLOAD|-], with the options below" },
        { OPTION_SHARDS, "shards", "N", "say, or put in the id, which of N shards it belongs to" },
        TASK_OPTION_ROWS,
        OPTION_JSON_ROW,
};

struct envelope_request {
        bool is_make;
        uint32_t shards; /* 0: not said */
        struct task_options task;
};

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int read_file(const char *path, struct buffer *to, struct error *error)
{
        int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
        ssize_t n = fd < 0 ? -1 : 1;
        while (n > 0 && to->size <= STORE_PAYLOAD_MAX + TASK_HEAD_MAX) {
                n = read(fd, buffer_reserve(to, 65536), 65536);
                to->size += n > 0 ? (size_t)n : 0;
        }
        int r = n < 0 ? error_set(error, -errno, "%s: %s", path, strerror(errno)) : 0;
        if (fd > STDIN_FILENO)
                (void)close(fd);
        return r;
}

static void print_envelope(const struct envelope *e, const struct envelope_request *request, bool has_json)
{
        struct span ordered = e->key.size ? e->key : e->id;
        uint32_t shard = request->shards && e->key.size ? shard_of_key(ordered, request->shards) : 0;
        if (has_json) {
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

static int show_file(const char *path, const struct envelope_request *request, bool has_json)
{
        struct buffer bytes = { 0 };
        struct envelope envelope;
        struct error error = { "" };
        int r = read_file(path, &bytes, &error);
        if (r == 0) {
                r = envelope_parse(bytes.data, bytes.size, &envelope, &error);
                if (r < 0)
                        (void)error_prefix(&error, r, "%s is not an envelope", strcmp(path, "-") ? path : "this");
        }
        if (r == 0)
                print_envelope(&envelope, request, has_json);
        else
                (void)fprintf(stderr, "quiver envelope: %s\n", error.text);
        buffer_free(&bytes);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

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
                envelope.not_before_ms = envelope.submitted_ms + task->delay_ms;
        if (request->shards) {
                uint32_t shard = envelope.key.size ? shard_of_key(envelope.key, request->shards)
                                                   : task_id_any_shard(request->shards);
                envelope.id = (struct span){ id, task_id_make(id, shard) };
        }
        envelope_put(&bytes, &envelope);
        if (fwrite(bytes.data, 1, bytes.size, stdout) != bytes.size || fflush(stdout) != 0)
                r = error_set(error, -EIO, "cannot write: %s", strerror(errno));
out:
        buffer_free(&headers);
        buffer_free(&bytes);
        return r;
}

static int make(struct options *o, struct envelope_request *request, const struct cli_words *w)
{
        struct error error = { "" };
        if (!w->count || w->count > 2)
                return options_wrong(o, "which handler? quiver envelope --make HANDLER [PAYLOAD|-]");
        request->task.task.handler = w->words[0];
        int r = w->count == 2 ? task_options_take_payload(&request->task, w->words[1], &error) : 0;
        if (r == 0)
                r = write_envelope(request, &error);
        if (r < 0)
                (void)fprintf(stderr, "quiver envelope: %s\n", error.text);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

static int take_option(struct options *o, struct envelope_request *request, int id)
{
        struct error error = { "" };
        uint64_t number = 0;
        int r = task_options_take(&request->task, id, o->value, &error);
        if (r < 0)
                return options_wrong(o, "--%s", error.text);
        if (id == OPTION_MAKE)
                request->is_make = true;
        if (id == OPTION_SHARDS) {
                if (!options_number(o->value, 1, SHARDS_MAX, &number))
                        return options_wrong(o, "--shards: %s is not a number from 1 to %u", o->value, SHARDS_MAX);
                request->shards = (uint32_t)number;
        }
        return EXIT_DONE;
}

int cmd_envelope(int argc, char **argv)
{
        struct options o = {
                .usage = "envelope [FILE|-] | --make HANDLER [PAYLOAD|-]",
                .about = "Prints what is in an envelope, from a file or standard input; or writes one to standard "
                         "output.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver envelope task.qv1\n"
                            "  redis-cli LINDEX 'quiver:{demo:12}:normal' 0 | quiver envelope -\n"
                            "  quiver envelope --make mail --key user-17 hello > task.qv1\n",
        };
        struct cli_words w = { 0 };
        struct envelope_request request = { 0 };
        int code = EXIT_DONE;
        task_options_init(&request.task);
        options_start(&o, argc, argv);
        for (int id; code == EXIT_DONE && (id = cli_words_next(&w, &o)) != OPTIONS_END;)
                code = take_option(&o, &request, id);
        if (w.is_over)
                code = w.code;
        else if (code == EXIT_DONE && request.is_make)
                code = make(&o, &request, &w);
        else if (code == EXIT_DONE && w.count > 1)
                code = options_wrong(&o, "one file at a time; what is %s?", w.words[1]);
        else if (code == EXIT_DONE)
                code = show_file(w.count ? w.words[0] : "-", &request, w.has_json);
        task_options_free(&request.task);
        cli_words_free(&w);
        return code;
}
