/* json.h: texts, bytes and numbers as JSON, and what a document that may say anything says. */
#ifndef QUIVER_VIEW_JSON_H
#define QUIVER_VIEW_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

/* A string.  A file name or a plugin's words need not be UTF-8, and a text that was cut may end within a character:
 * then it is escaped as in text_put_bytes(). */
json_t *view_json_text(const char *text);
json_t *view_json_text_span(struct span text);
void view_json_set_text(json_t *object, const char *name, const char *text);

/* Bytes as text where they are UTF-8, else in base64 under NAME_base64. */
void view_json_bytes(json_t *object, const char *name, const void *data, size_t size);
void view_json_span(json_t *object, const char *name, struct span bytes);
/* JSON has signed numbers: what is larger than the largest is shown as that. */
void view_json_number(json_t *object, const char *name, uint64_t value);

/* A member of an object; "" or 0 if the object is none, or the member is missing, of another type or negative. */
const char *view_json_get_text(const json_t *object, const char *name);
uint64_t view_json_get_number(const json_t *object, const char *name);

/* Appends what the base64 text stands for.  0 or -EINVAL. */
int view_base64_decode(const char *text, size_t size, struct buffer *to);

#endif
