/* base64.h: base64 with padding, as in RFC 4648. */
#ifndef QUIVER_BASE_BASE64_H
#define QUIVER_BASE_BASE64_H

#include "base/buffer.h"
#include "base/span.h"

void base64_put(struct buffer *to, const void *data, size_t size);

/* Appends the decoded bytes; padding may be missing.  0, or -EINVAL after appending a part. */
int base64_decode(struct span text, struct buffer *to);

/* Whether the text is exactly what base64_put() writes for some bytes, and their number.  Every byte string has one
 * such text. */
bool base64_is_exact(struct span text, size_t *ret_size);

#endif
