#include "http/exchange.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const char *http_parameter(const struct http_exchange *x, const char *name)
{
        for (uint32_t i = 0; i < x->parameters_count; i++)
                if (!strcmp(x->parameters[i].name, name))
                        return x->parameters[i].value;
        return NULL;
}

bool http_is_asked(const struct http_exchange *x, const char *name)
{
        const char *value = http_parameter(x, name);
        return value && strcmp(value, "0") != 0;
}

static void answer_json_as(struct http_exchange *x, unsigned status, const char *type, json_t *object)
{
        char *text = memory_or_abort(json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15)));
        json_decref(object);
        struct buffer body = { 0 };
        buffer_put(&body, text, strlen(text));
        buffer_put(&body, "\n", 1);
        free(text);
        http_answer(x, status, type, (struct span){ (const char *)body.data, body.size });
        buffer_free(&body);
}

void http_answer_json(struct http_exchange *x, unsigned status, json_t *object)
{
        answer_json_as(x, status, "application/json", object);
}

void http_answer_problem(struct http_exchange *x, unsigned status, const char *format, ...)
{
        char detail[ERROR_TEXT_MAX];
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(detail, sizeof(detail), format, arguments);
        va_end(arguments);
        json_t *text = json_string(detail);
        answer_json_as(x, status, "application/problem+json",
                json_pack("{s:i, s:o}", "status", (int)status, "detail", text ? text : json_string("not UTF-8")));
}

void http_answer_store_problem(struct http_exchange *x, int status, const char *text)
{
        bool is_unknown = status == -ETIMEDOUT || status == -ECONNRESET;
        if (!is_unknown)
                http_answer_field(x, "Retry-After", "1");
        http_answer_problem(x, is_unknown ? 504 : 503, "%s; %s", text,
                is_unknown ? "it may or may not have been done" : "nothing was done");
}
