/* json.h: texts, bytes and numbers as JSON, and reading members of untrusted documents. */
#ifndef QUIVER_VIEW_JSON_H
#define QUIVER_VIEW_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

/* A JSON string.  Text that is not UTF-8 (a file name, a plugin's text, a text that was cut within a character) is
 * escaped as in text_put_bytes(). */
json_t *view_json_text(const char *text);
json_t *view_json_text_span(struct span text);
void view_json_set_text(json_t *object, const char *name, const char *text);

/* Bytes as text if they are UTF-8, else in base64 under NAME_base64. */
void view_json_bytes(json_t *object, const char *name, const void *data, size_t size);
void view_json_span(json_t *object, const char *name, struct span bytes);
/* Numbers beyond JSON's signed 64 bits are shown as the largest. */
void view_json_number(json_t *object, const char *name, uint64_t value);

/* A member of an object; "" or 0 if it is not an object, or the member is missing, of another type or negative. */
const char *view_json_get_text(const json_t *object, const char *name);
uint64_t view_json_get_number(const json_t *object, const char *name);

/* Appends the decoded bytes.  0 or -EINVAL. */
int view_base64_decode(const char *text, size_t size, struct buffer *to);

#endif
