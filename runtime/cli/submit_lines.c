/* submit_lines.c: standard input as tasks, a batch of lines at a time.
 *
 * A bad line stops everything before its batch is sent, so that what was submitted is always a whole number of lines
 * from the start; --skip-bad leaves it out instead.  Either way it is named by its number. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/submit.h"
#include "view/json.h"
#include "view/text.h"

#define REFUSED_SHOWN 20

/* One line and the task on it. */
struct submit_line {
        uint64_t number;
        char *text;
        size_t size;
        json_t *json;
        struct task_options task;
};

struct stream {
        struct cli_store *store;
        const struct submit_request *request;
        struct submit_line *lines; /* room for a batch */
        struct qv_client_task *tasks;
        struct qv_client_submitted *submitted;
        uint32_t count;

        uint64_t number; /* of the line read last */
        uint64_t bytes;
        uint64_t bytes_all; /* 0: not known */
        uint64_t stored;
        uint64_t duplicates;
        uint64_t skipped;
        uint64_t refused;
        struct cli_progress progress;
};

/* --- one line --- */

static int parse_plain(struct submit_line *line, struct error *error)
{
        struct qv_client_task *task = &line->task.task;
        char *payload = line->text;
        if (!task->key) {
                char *tab = memchr(line->text, '\t', line->size);
                if (!tab)
                        return error_set(
                                error, -EINVAL, "has no tab; it is KEY<TAB>PAYLOAD, with an empty key for none");
                if (memchr(line->text, 0, (size_t)(tab - line->text)))
                        return error_set(error, -EINVAL, "key: has a control character");
                *tab = 0;
                task->key = tab == line->text ? NULL : line->text;
                payload = tab + 1;
        }
        task->payload = payload;
        task->payload_size = (size_t)(line->text + line->size - payload);
        return 0;
}

static int parse_json(struct submit_line *line, struct error *error)
{
        json_error_t wrong;
        line->json = json_loadb(line->text, line->size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
        if (!line->json)
                return error_set(error, -EINVAL, "is not JSON: %s", wrong.text);
        return task_options_take_json(&line->task, line->json, error);
}

static int check(const struct stream *st, const struct submit_line *line, struct error *error)
{
        const struct qv_client_task *task = &line->task.task;
        uint64_t max = st->store->config.store.payload_max_bytes;
        if (!task->handler)
                return error_set(
                        error, -EINVAL, "handler: is missing; name it in the line, or as quiver submit HANDLER");
        if (task->payload_size > max)
                return error_set(error, -EMSGSIZE, "payload: %zu bytes, store.max_payload allows %" PRIu64,
                        task->payload_size, max);
        return client_check_task(task, error);
}

/* What was said on the command line, for each line anew.  Headers are borrowed, so only the texts that were made for
 * them are left out. */
static void start_line(const struct stream *st, struct submit_line *line)
{
        const struct task_options *from = &st->request->task;
        line->task = (struct task_options){ .task = from->task };
        memcpy(line->task.headers, from->headers, sizeof(from->headers));
        memcpy(line->task.headers2, from->headers2, sizeof(from->headers2));
        line->task.task.headers = line->task.headers;
        line->task.task.headers2 = line->task.headers2;
}

static void free_line(struct submit_line *line)
{
        task_options_free(&line->task);
        json_decref(line->json);
        free(line->text);
        *line = (struct submit_line){ 0 };
}

/* 1: there is a line; 0: the input has ended; -errno: it cannot be read. */
static int read_line(struct stream *st, struct submit_line *line, struct error *error)
{
        size_t room = 0;
        errno = 0;
        ssize_t n = getline(&line->text, &room, stdin);
        if (n < 0)
                return ferror(stdin) ? error_set(error, -EIO, "standard input: %s", strerror(errno)) : 0;
        st->bytes += (uint64_t)n;
        line->number = ++st->number;
        line->size = (size_t)n;
        if (line->size && line->text[line->size - 1] == '\n')
                line->text[--line->size] = 0;
        return 1;
}

/* --- a batch --- */

static void say_bad(struct stream *st, uint64_t number, const char *text)
{
        progress_end(&st->progress);
        (void)fprintf(stderr, "quiver submit: line %" PRIu64 ": %s\n", number, text);
}

/* Lines until the batch is full or the input ends.  *ret_is_end.  -EINVAL after it named a bad line. */
static int gather(struct stream *st, bool *ret_is_end)
{
        struct error error = { "" };
        while (st->count < st->request->batch) {
                struct submit_line *line = &st->lines[st->count];
                start_line(st, line);
                int r = read_line(st, line, &error);
                if (r <= 0) {
                        free_line(line);
                        *ret_is_end = true;
                        if (r < 0)
                                (void)cli_fail(st->store->command, r, error.text);
                        return r;
                }
                r = st->request->is_json_lines ? parse_json(line, &error) : parse_plain(line, &error);
                if (r == 0 && st->request->traceparent)
                        task_options_add_trace(&line->task, st->request->traceparent, st->request->tracestate);
                if (r == 0)
                        r = check(st, line, &error);
                if (r == 0) {
                        st->tasks[st->count++] = line->task.task;
                        continue;
                }
                say_bad(st, line->number, error.text);
                free_line(line);
                if (!st->request->has_skip_bad)
                        return -EINVAL;
                st->skipped++;
        }
        return 0;
}

static void note_refused(struct stream *st, const struct submit_line *line, int status)
{
        if (status == -EEXIST) {
                st->duplicates++;
                return;
        }
        if (st->refused++ >= REFUSED_SHOWN)
                return;
        char text[128];
        if (status == -EDQUOT)
                (void)snprintf(text, sizeof(text), "not taken: its shard's backlog is full (store.max_backlog)");
        else if (status == -ENOTUNIQ)
                (void)snprintf(text, sizeof(text), "not taken: its idempotency key was used for another task");
        else if (status == -ETIMEDOUT || status == -ECONNRESET)
                (void)snprintf(text, sizeof(text), "no answer: it may have been taken or not");
        else
                (void)snprintf(text, sizeof(text), "not taken by the store: %s", strerror(-status));
        say_bad(st, line->number, text);
}

static int send(struct stream *st)
{
        int r = qv_client_submit_many(st->store->client, st->tasks, st->count, st->submitted);
        for (uint32_t i = 0; r >= 0 && i < st->count; i++) {
                if (st->submitted[i].status)
                        note_refused(st, &st->lines[i], st->submitted[i].status);
                else if (st->submitted[i].is_repeat)
                        st->duplicates++;
                else
                        st->stored++;
        }
        return r < 0 ? r : 0;
}

static void forget(struct stream *st)
{
        for (uint32_t i = 0; i < st->count; i++)
                free_line(&st->lines[i]);
        st->count = 0;
}

/* --- the whole input --- */

static int report(struct stream *st)
{
        progress_end(&st->progress);
        if (st->refused > REFUSED_SHOWN)
                (void)fprintf(stderr, "quiver submit: and %" PRIu64 " more\n", st->refused - REFUSED_SHOWN);
        if (st->request->has_json) {
                json_t *o = json_object();
                view_json_number(o, "submitted", st->stored);
                view_json_number(o, "duplicates", st->duplicates);
                view_json_number(o, "skipped", st->skipped);
                view_json_number(o, "refused", st->refused);
                cli_json_print(o);
        } else {
                (void)printf("%" PRIu64 " submitted", st->stored);
                if (st->duplicates)
                        (void)printf(", %" PRIu64 " there already", st->duplicates);
                if (st->skipped)
                        (void)printf(", %" PRIu64 " bad line%s skipped", st->skipped, text_plural(st->skipped));
                if (st->refused)
                        (void)printf(", %" PRIu64 " refused", st->refused);
                (void)printf("\n");
        }
        return st->refused ? EXIT_FAILED : EXIT_DONE;
}

/* Where the next try must start, since nothing says so if it is not us. */
static void say_where(const struct stream *st, uint64_t whole_lines, bool is_sent)
{
        const char *rest = is_sent ? "it is not known" : "nothing was taken";
        if (whole_lines)
                (void)fprintf(stderr, "quiver submit: lines 1 to %" PRIu64 " are done; from line %" PRIu64 " on %s\n",
                        whole_lines, whole_lines + 1, rest);
        else
                (void)fprintf(stderr, "quiver submit: %s\n", rest);
        if (!is_sent && !st->request->has_skip_bad)
                (void)fprintf(stderr, "Correct it and start again from line %" PRIu64 ", or say --skip-bad\n",
                        whole_lines + 1);
}

static int run(struct stream *st)
{
        bool is_end = false;
        while (!is_end) {
                uint64_t whole_lines = st->number;
                int r = gather(st, &is_end);
                if (r < 0) {
                        forget(st);
                        say_where(st, whole_lines, false);
                        return EXIT_FAILED;
                }
                r = st->count ? send(st) : 0;
                forget(st);
                if (r < 0) {
                        int code = cli_fail(st->store->command, r, qv_client_error());
                        say_where(st, whole_lines, true);
                        return code;
                }
                progress_show_part(&st->progress, st->stored, st->bytes, st->bytes_all);
        }
        return report(st);
}

int submit_lines(struct cli_store *s, const struct submit_request *request)
{
        struct stat input;
        struct stream st = {
                .store = s,
                .request = request,
                .lines = memory_zero(request->batch, sizeof(*st.lines)),
                .tasks = memory_zero(request->batch, sizeof(*st.tasks)),
                .submitted = memory_zero(request->batch, sizeof(*st.submitted)),
                .progress = { .what = "submit", .unit = "tasks" },
        };
        if (fstat(STDIN_FILENO, &input) == 0 && S_ISREG(input.st_mode))
                st.bytes_all = (uint64_t)input.st_size;
        int code = run(&st);
        free(st.lines);
        free(st.tasks);
        free(st.submitted);
        return code;
}
