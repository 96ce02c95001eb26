/* signature.h: proves to the receiver who sent a request, and when.
 *
 * As the Standard Webhooks specification has it, for which there are libraries in many languages:
 * base64(HMAC-SHA256(key, ID "." TIMESTAMP "." BODY)), written "v1,BASE64"; one for each key, with blanks between. */
#ifndef QUIVER_WEBHOOK_SIGNATURE_H
#define QUIVER_WEBHOOK_SIGNATURE_H

#include "../common/bytes.h"

/* A key is the text of its file; behind "whsec_" it stands in base64.  0, or -EINVAL: shorter than 16 bytes, or no
 * base64. */
int signature_check_key(const char *key);

/* Appends "v1,BASE64". */
void signature_put(
        struct bytes *to, const char *key, const char *id, long long timestamp, const void *body, size_t size);

#endif
