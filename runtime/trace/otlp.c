#include "trace/otlp.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

/* --- JSON -------------------------------------------------------------------------------------------------------- */

static void put(struct buffer *to, const char *text)
{
        buffer_put(to, text, strlen(text));
}

static bool is_plain(unsigned char c)
{
        return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static void put_string(struct buffer *to, struct span text)
{
        static const char hex[] = "0123456789abcdef";
        size_t size = text.size < TRACE_TEXT_MAX ? text.size : TRACE_TEXT_MAX;
        put(to, "\"");
        for (size_t i = 0; i < size;) {
                size_t run = 0;
                while (i + run < size && is_plain((unsigned char)text.data[i + run]))
                        run++;
                buffer_put(to, text.data + i, run);
                i += run;
                if (i == size)
                        break;
                const unsigned char *c = (const unsigned char *)text.data + i;
                size_t n = utf8_size(c, text.size - i);
                if (*c == '"' || *c == '\\')
                        buffer_put(to, (char[]){ '\\', (char)*c }, 2);
                else if (*c < ' ' || *c == 0x7f)
                        buffer_put(to, (char[]){ '\\', 'u', '0', '0', hex[*c >> 4], hex[*c & 15] }, 6);
                else if (!n)
                        buffer_put(to, "\xef\xbf\xbd", 3);
                else
                        buffer_put(to, c, n);
                i += n ? n : 1;
        }
        put(to, "\"");
}

static void put_text(struct buffer *to, const char *name, struct span text)
{
        put(to, "\"");
        put(to, name);
        put(to, "\":");
        put_string(to, text);
}

static void put_attributes(struct buffer *to, const struct trace_attributes *all)
{
        put(to, "\"attributes\":[");
        for (uint32_t i = 0; i < all->count; i++) {
                const struct trace_attribute *a = &all->list[i];
                put(to, i ? ",{\"key\":\"" : "{\"key\":\"");
                put(to, a->name);
                put(to, "\",\"value\":{");
                if (a->text.data)
                        put_text(to, "stringValue", a->text);
                else
                        buffer_printf(to, "\"intValue\":\"%" PRIu64 "\"", a->number);
                put(to, "}}");
        }
        put(to, "]");
}

/* --- spans ------------------------------------------------------------------------------------------------------- */

void trace_add_text(struct trace_attributes *to, const char *name, struct span text)
{
        if (to->count < TRACE_ATTRIBUTES_MAX)
                to->list[to->count++] = (struct trace_attribute){ name, { text.data ? text.data : "", text.size }, 0 };
}

void trace_add_number(struct trace_attributes *to, const char *name, uint64_t number)
{
        if (to->count < TRACE_ATTRIBUTES_MAX)
                to->list[to->count++] = (struct trace_attribute){ .name = name, .number = number };
}

static void put_ids(struct buffer *to, const struct trace_context *context)
{
        char trace[TRACE_ID_TEXT], span[TRACE_SPAN_ID_TEXT];
        buffer_printf(to, "\"traceId\":\"%s\",\"spanId\":\"%s\"", trace_id_put(trace, context->trace),
                trace_span_id_put(span, context->span));
}

static void put_events(struct buffer *to, const struct trace_span *span)
{
        put(to, ",\"events\":[");
        for (uint32_t i = 0; i < span->events_count; i++) {
                const struct trace_event *event = &span->events[i];
                buffer_printf(to, "%s{\"timeUnixNano\":\"%" PRIu64 "\",\"name\":\"%s\",", i ? "," : "", event->at_ns,
                        event->name);
                put_attributes(to, &event->attributes);
                put(to, "}");
        }
        put(to, "]");
}

void otlp_put_span(struct buffer *to, const struct trace_span *span)
{
        char parent[TRACE_SPAN_ID_TEXT];
        put(to, "{");
        put_ids(to, &span->context);
        if (span->state.size) {
                put(to, ",");
                put_text(to, "traceState", span->state);
        }
        if (trace_context_has_span(&span->parent))
                buffer_printf(to, ",\"parentSpanId\":\"%s\"", trace_span_id_put(parent, span->parent.span));
        put(to, ",");
        put_text(to, "name", span_of_text(span->name));
        buffer_printf(to, ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64 "\",",
                (int)span->kind, span->start_ns, span->end_ns);
        put_attributes(to, &span->attributes);
        if (span->events_count)
                put_events(to, span);
        if (span->has_link && trace_context_has_span(&span->parent)) {
                put(to, ",\"links\":[{");
                put_ids(to, &span->parent);
                put(to, "}]");
        }
        put(to, ",\"status\":{");
        if (span->error) {
                put(to, "\"code\":2,");
                put_text(to, "message", span_of_text(span->error));
        }
        buffer_printf(to, "},\"flags\":%u}", span->context.flags);
}

/* --- a request --------------------------------------------------------------------------------------------------- */

void otlp_put_head(struct buffer *to, const struct trace_attributes *resource, const char *version)
{
        put(to, "{\"resourceSpans\":[{\"resource\":{");
        put_attributes(to, resource);
        put(to, "},\"scopeSpans\":[{\"scope\":{\"name\":\"quiver\",");
        put_text(to, "version", span_of_text(version));
        put(to, "},\"spans\":[");
}

void otlp_put_tail(struct buffer *to)
{
        put(to, "]}]}]}");
}

uint64_t otlp_rejected(struct span reply)
{
        json_t *o = reply.size ? json_loadb(reply.data, reply.size, 0, NULL) : NULL;
        const json_t *count = json_object_get(json_object_get(o, "partialSuccess"), "rejectedSpans");
        uint64_t rejected = 0;
        if (json_is_string(count))
                rejected = strtoull(json_string_value(count), NULL, 10);
        else if (json_is_integer(count) && json_integer_value(count) > 0)
                rejected = (uint64_t)json_integer_value(count);
        json_decref(o);
        return rejected;
}
