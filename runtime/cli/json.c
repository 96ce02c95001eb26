#include "cli/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void print(json_t *object, size_t flags)
{
        (void)json_dumpf(object, stdout, flags | JSON_PRESERVE_ORDER);
        (void)putchar('\n');
        (void)fflush(stdout);
        json_decref(object);
}

void cli_json_print(json_t *object)
{
        print(object, JSON_COMPACT);
}

void cli_json_print_wide(json_t *object)
{
        print(object, JSON_INDENT(2));
}

json_t *cli_json_text(const char *text)
{
        json_t *json = json_string(text);
        return json ? json : json_string("(not UTF-8)");
}

void cli_json_bytes(json_t *object, const char *name, const void *data, size_t size)
{
        json_t *text = json_stringn(size ? data : "", size);
        if (text) {
                (void)json_object_set_new(object, name, text);
                return;
        }
        struct buffer coded = { 0 };
        const uint8_t *b = data;
        for (size_t i = 0; i < size; i += 3) {
                size_t left = size - i;
                uint32_t three =
                        (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0u);
                char four[4] = { digits[three >> 18], digits[three >> 12 & 63],
                        left > 1 ? digits[three >> 6 & 63] : '=', left > 2 ? digits[three & 63] : '=' };
                buffer_put(&coded, four, sizeof(four));
        }
        char field[64];
        (void)snprintf(field, sizeof(field), "%s_base64", name);
        (void)json_object_set_new(object, field, json_stringn((const char *)coded.data, coded.size));
        buffer_free(&coded);
}

void cli_json_span(json_t *object, const char *name, struct span bytes)
{
        cli_json_bytes(object, name, bytes.data, bytes.size);
}

void cli_json_number(json_t *object, const char *name, uint64_t value)
{
        (void)json_object_set_new(object, name, json_integer((json_int_t)value));
}

void cli_json_history(json_t *object, struct span events)
{
        json_t *list = json_array();
        struct note_event event;
        while (note_event_next(&events, &event)) {
                json_t *one = json_object();
                cli_json_number(one, "at_ms", event.at_ms);
                cli_json_span(one, "kind", event.kind);
                cli_json_span(one, "text", event.text);
                (void)json_array_append_new(list, one);
        }
        (void)json_object_set_new(object, "history", list);
}

int cli_base64_decode(const char *text, size_t size, struct buffer *to)
{
        while (size && text[size - 1] == '=')
                size--;
        uint32_t bits = 0;
        unsigned held = 0;
        for (size_t i = 0; i < size; i++) {
                const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
                if (!digit)
                        return -EINVAL;
                bits = bits << 6 | (uint32_t)(digit - digits);
                held += 6;
                if (held >= 8) {
                        held -= 8;
                        uint8_t byte = (uint8_t)(bits >> held);
                        buffer_put(to, &byte, 1);
                }
        }
        /* One digit alone stands for nothing. */
        return size % 4 == 1 ? -EINVAL : 0;
}
