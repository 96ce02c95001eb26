#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "cli/open.h"
#include "cli/try/try.h"

#define BENCH_PAYLOAD 100
#define ATTEMPTS_MAX  4 /* a handler's default */
#define KEY_MAX       255
#define READ_SIZE     65536

int try_source_open(struct try_source *s, const struct try_request *request, struct error *error)
{
        struct buffer *payload = &s->payload;
        int r = 0;
        *s = (struct try_source){ .request = request };
        if (request->payload && !strcmp(request->payload, "-"))
                r = cli_read_all(STDIN_FILENO, request->payload_max, payload);
        else if (request->payload)
                buffer_put(payload, request->payload, strlen(request->payload));
        else if (request->bench)
                buffer_printf(payload, "%0*d", BENCH_PAYLOAD, 0);
        (void)buffer_text(payload); /* tasks point to it: it does not move from here on */
        if (r == -EMSGSIZE)
                return error_set(error, r, "standard input is larger than --max-payload");
        return r < 0 ? error_set(error, r, "standard input: %s", strerror(-r)) : 0;
}

void try_source_close(struct try_source *s)
{
        buffer_free(&s->payload);
        buffer_free(&s->input);
}

static struct try_task *new_task(struct try_source *s)
{
        struct try_task *task = memory_zero(1, sizeof(*task));
        (void)snprintf(task->id, sizeof(task->id), "try-%" PRIu64, ++s->made);
        task->pool.owner = task;
        task->pool.task = (struct ring_task){
                .id = task->id,
                .key = s->request->key ? s->request->key : task->id,
                .handler = s->request->args.handler,
                .attempt = s->request->attempt,
                .attempts_max = (uint32_t)max_u64(s->request->attempt, ATTEMPTS_MAX),
                .headers = s->request->headers.data,
                .headers_size = s->request->headers.size,
                .checkpoint = s->request->checkpoint,
                .checkpoint_size = s->request->checkpoint ? strlen(s->request->checkpoint) : 0,
                .submitted_ms = clock_wall_ms(),
                .fence_epoch = 1,
                .fence_start = s->made,
                .timeout_ms = s->request->timeout_ms,
                .payload = (const char *)s->payload.data,
                .payload_size = s->payload.size,
        };
        return task;
}

void try_task_keep_checkpoint(struct try_task *task, const void *data, size_t size)
{
        free(task->checkpoint);
        task->checkpoint = text_copy_part(data, size);
        task->pool.task.checkpoint = task->checkpoint;
        task->pool.task.checkpoint_size = size;
}

void try_task_free(struct try_task *task)
{
        free(task->checkpoint);
        free(task->line);
        free(task);
}

static bool can_read_now(void)
{
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        return poll(&input, 1, 0) > 0;
}

static void read_more(struct try_source *s)
{
        struct buffer *b = &s->input;
        if (s->line_at)
                memmove(b->data, b->data + s->line_at, b->size - s->line_at);
        b->size -= s->line_at;
        s->looked_until -= s->line_at;
        s->line_at = 0;
        uint8_t *at = buffer_reserve(b, READ_SIZE);
        ssize_t n = read(STDIN_FILENO, at, READ_SIZE);
        if (n > 0)
                b->size += (size_t)n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
                s->is_at_end = true;
}

/* The next line without its newline, valid until the next call; NULL as try_source_next(). */
static char *next_line(struct try_source *s, size_t *ret_size, struct error *error)
{
        struct buffer *b = &s->input;
        s->is_waiting = false;
        for (;;) {
                uint8_t *newline = b->size > s->looked_until
                                           ? memchr(b->data + s->looked_until, '\n', b->size - s->looked_until)
                                           : NULL;
                size_t end = newline ? (size_t)(newline - b->data) : b->size;
                bool is_last = !newline && s->is_at_end;
                if (end - s->line_at > s->request->payload_max + KEY_MAX + 1) {
                        (void)error_set(error, -EMSGSIZE, "line %" PRIu64 ": the payload is larger than --max-payload",
                                s->line_number + 1);
                        return NULL;
                }
                if (newline || (is_last && end > s->line_at)) {
                        char *line = (char *)b->data + s->line_at;
                        *ret_size = end - s->line_at;
                        s->line_number++;
                        s->line_at = s->looked_until = newline ? end + 1 : end;
                        return line;
                }
                s->looked_until = end;
                s->is_waiting = !is_last && !s->is_patient && !can_read_now();
                if (is_last || s->is_waiting)
                        return NULL;
                read_more(s);
        }
}

/* KEY<TAB>PAYLOAD, or just PAYLOAD. */
static struct try_task *next_from_line(struct try_source *s, struct error *error)
{
        size_t n = 0;
        char *line = next_line(s, &n, error);
        if (!line)
                return NULL;
        char *tab = memchr(line, '\t', n);
        const char *payload = tab ? tab + 1 : line;
        size_t size = (size_t)(line + n - payload);
        if (size > s->request->payload_max) {
                (void)error_set(
                        error, -EMSGSIZE, "line %" PRIu64 ": the payload is larger than --max-payload", s->line_number);
                return NULL;
        }
        if (tab && (tab == line || tab - line > KEY_MAX)) {
                (void)error_set(error, -EINVAL, "line %" PRIu64 ": a key has 1 to 255 bytes", s->line_number);
                return NULL;
        }
        struct try_task *task = new_task(s);
        task->line = text_copy_part(line, n);
        if (tab) {
                task->line[tab - line] = 0;
                task->pool.task.key = task->line;
        }
        task->pool.task.payload = task->line + (payload - line);
        task->pool.task.payload_size = size;
        return task;
}

struct try_task *try_source_next(struct try_source *s, struct error *error)
{
        const struct try_request *q = s->request;
        if (q->is_lines)
                return next_from_line(s, error);
        return s->made < (q->bench ? q->bench : q->repeat) ? new_task(s) : NULL;
}
