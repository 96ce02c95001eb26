#include "signature.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/base64.h"

#define PREFIX  "whsec_"
#define KEY_MIN 16

/* The bytes that the text stands for, allocated; NULL: it is no base64, or memory ran out. */
static char *key_bytes(const char *text, size_t *ret_size)
{
        bool is_base64 = !strncmp(text, PREFIX, strlen(PREFIX));
        char *bytes = strdup(is_base64 ? text + strlen(PREFIX) : text);
        if (!bytes)
                return NULL;
        long size = is_base64 ? base64_decode(bytes) : (long)strlen(bytes);
        if (size < 0) {
                free(bytes);
                return NULL;
        }
        *ret_size = (size_t)size;
        return bytes;
}

static void wipe(char *bytes, size_t size)
{
        explicit_bzero(bytes, size);
        free(bytes);
}

int signature_check_key(const char *key)
{
        size_t size;
        char *bytes = key_bytes(key, &size);
        if (!bytes)
                return -EINVAL;
        wipe(bytes, size);
        return size < KEY_MIN ? -EINVAL : 0;
}

void signature_put(
        struct bytes *to, const char *key, const char *id, long long timestamp, const void *body, size_t size)
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned digest_size = 0;
        size_t key_size = 0;
        struct bytes text = { 0 };
        char *bytes = key_bytes(key, &key_size);
        bytes_put_text(&text, id);
        bytes_printf(&text, ".%lld.", timestamp);
        bytes_put(&text, body, size);
        if (bytes && !text.is_broken &&
                HMAC(EVP_sha256(), bytes, (int)key_size, (const unsigned char *)text.data, text.size, digest,
                        &digest_size)) {
                bytes_put_text(to, "v1,");
                base64_put(to, digest, digest_size);
        } else {
                to->is_broken = true;
        }
        if (bytes)
                wipe(bytes, key_size);
        bytes_free(&text);
}
