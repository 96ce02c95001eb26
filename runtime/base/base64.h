/* base64.h: bytes as text, as RFC 4648 says, with padding. */
#ifndef QUIVER_BASE_BASE64_H
#define QUIVER_BASE_BASE64_H

#include "base/buffer.h"
#include "base/span.h"

void base64_put(struct buffer *to, const void *data, size_t size);

/* Appends what the text stands for; padding may be missing.  0 or -EINVAL, and then some of it may be there. */
int base64_decode(struct span text, struct buffer *to);

/* Whether it is what base64_put() writes for some bytes, and how many these are: no text stands for the same bytes as
 * another, and no byte is left out. */
bool base64_is_exact(struct span text, size_t *ret_size);

#endif
