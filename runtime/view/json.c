#include "view/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "view/text.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* --- writing --- */

json_t *view_json_text(const char *text)
{
        return view_json_text_span(span_of_text(text));
}

json_t *view_json_text_span(struct span text)
{
        json_t *json = json_stringn(text.size ? text.data : "", text.size);
        if (json)
                return json;
        struct buffer escaped = { 0 };
        text_put_bytes(&escaped, text, text.size);
        json = json_stringn((const char *)escaped.data, escaped.size);
        buffer_free(&escaped);
        return json;
}

void view_json_set_text(json_t *object, const char *name, const char *text)
{
        (void)json_object_set_new(object, name, view_json_text(text));
}

static void put_base64(struct buffer *to, const uint8_t *b, size_t size)
{
        for (size_t i = 0; i < size; i += 3) {
                size_t left = size - i;
                uint32_t three =
                        (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0u);
                char four[4] = { digits[three >> 18], digits[three >> 12 & 63],
                        left > 1 ? digits[three >> 6 & 63] : '=', left > 2 ? digits[three & 63] : '=' };
                buffer_put(to, four, sizeof(four));
        }
}

void view_json_bytes(json_t *object, const char *name, const void *data, size_t size)
{
        json_t *text = json_stringn(size ? data : "", size);
        if (text) {
                (void)json_object_set_new(object, name, text);
                return;
        }
        struct buffer coded = { 0 };
        char field[64];
        put_base64(&coded, data, size);
        (void)snprintf(field, sizeof(field), "%s_base64", name);
        (void)json_object_set_new(object, field, json_stringn((const char *)coded.data, coded.size));
        buffer_free(&coded);
}

void view_json_span(json_t *object, const char *name, struct span bytes)
{
        view_json_bytes(object, name, bytes.data, bytes.size);
}

void view_json_number(json_t *object, const char *name, uint64_t value)
{
        (void)json_object_set_new(object, name, json_integer((json_int_t)min_u64(value, INT64_MAX)));
}

/* --- reading --- */

const char *view_json_get_text(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

uint64_t view_json_get_number(const json_t *object, const char *name)
{
        json_int_t value = json_integer_value(json_object_get(object, name));
        return value > 0 ? (uint64_t)value : 0;
}

int view_base64_decode(const char *text, size_t size, struct buffer *to)
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
