#include "cli/take/work_environment.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buffer.h"

static void add(struct strings *env, const char *name, const char *value)
{
        char *line = text_printf("%s=%s", name, value);
        strings_add(env, line);
        free(line);
}

static void add_number(struct strings *env, const char *name, uint64_t value)
{
        char text[24];
        (void)snprintf(text, sizeof(text), "%" PRIu64, value);
        add(env, name, text);
}

static bool is_of_trace(const char *name)
{
        return !strcmp(name, "TRACEPARENT") || !strcmp(name, "TRACESTATE");
}

/* As in CGI: X-Trace-Id becomes QUIVER_HEADER_X_TRACE_ID, or QUIVER_HEADER64_X_TRACE_ID if it was given as bytes. */
static void add_header(struct strings *env, const struct qv_client_header2 *header, bool is_text)
{
        struct buffer value = { 0 };
        char *name = text_printf("%s_%s", is_text ? "QUIVER_HEADER" : "QUIVER_HEADER64", header->name);
        for (char *c = name; *c; c++)
                *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
        if (is_text)
                buffer_put(&value, header->value, header->value_size);
        else
                base64_put(&value, header->value, header->value_size);
        add(env, name, buffer_text(&value));
        /* Tools that trace look for these two by their own names. */
        if (is_text && is_of_trace(name + strlen("QUIVER_HEADER_")))
                add(env, name + strlen("QUIVER_HEADER_"), buffer_text(&value));
        buffer_free(&value);
        free(name);
}

/* Whether a variable of ours is one of a task: a worker that runs inside another hands none of them on. */
static bool is_of_a_task(const char *line)
{
        static const char *const names[] = { "QUIVER_ID=", "QUIVER_KEY=", "QUIVER_HANDLER=", "QUIVER_ATTEMPT=",
                "QUIVER_FENCE=", "QUIVER_FENCE_EPOCH=", "QUIVER_FENCE_START=", "QUIVER_DEADLINE_MS=", "QUIVER_HEADER",
                "TRACEPARENT=", "TRACESTATE=" };
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (!strncmp(line, names[i], strlen(names[i])))
                        return true;
        return false;
}

void work_environment(const struct qv_client_work *work, struct strings *ret_env)
{
        for (char **line = environ; *line; line++)
                if (!is_of_a_task(*line))
                        strings_add(ret_env, *line);
        add(ret_env, "QUIVER_ID", work->id);
        add(ret_env, "QUIVER_KEY", work->key);
        add(ret_env, "QUIVER_HANDLER", work->handler);
        add(ret_env, "QUIVER_FENCE", work->fence);
        add_number(ret_env, "QUIVER_ATTEMPT", work->attempt);
        add_number(ret_env, "QUIVER_FENCE_EPOCH", work->fence_epoch);
        add_number(ret_env, "QUIVER_FENCE_START", work->fence_start);
        for (size_t i = 0; i < work->headers_count; i++)
                add_header(ret_env, &work->headers[i], i < work->headers_text_count);
        /* A NULL behind the last one, as execve() wants it. */
        ret_env->items = array_grow(ret_env->items, ret_env->count, sizeof(*ret_env->items));
}
