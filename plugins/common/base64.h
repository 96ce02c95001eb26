/* base64.h: bytes as text, for what can only hold lines: fields of a frame, variables of an environment. */
#ifndef QUIVER_PLUGINS_BASE64_H
#define QUIVER_PLUGINS_BASE64_H

#include "bytes.h"

/* Appends the bytes in base64, with padding. */
void base64_put(struct bytes *to, const void *data, size_t size);

/* Replaces the text by what it stands for and returns how many bytes these are, or -1 if it is not base64; padding may
 * be missing. */
long base64_decode(char *text);

#endif
