/* sha1.h: SHA-1 (FIPS 180-4), by which Redis names scripts.  Not for security. */
#ifndef QUIVER_BASE_SHA1_H
#define QUIVER_BASE_SHA1_H

#include <stddef.h>

#define SHA1_TEXT_SIZE 41u /* in hexadecimal, with its NUL */

void sha1_text(const void *data, size_t size, char ret_text[SHA1_TEXT_SIZE]);

#endif
