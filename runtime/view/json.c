#include "view/json.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/numbers.h"
#include "view/text.h"

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

void view_json_bytes(json_t *object, const char *name, const void *data, size_t size)
{
        json_t *text = json_stringn(size ? data : "", size);
        if (text) {
                (void)json_object_set_new(object, name, text);
                return;
        }
        struct buffer coded = { 0 };
        char field[64];
        base64_put(&coded, data, size);
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
        return base64_decode((struct span){ text, size }, to);
}
