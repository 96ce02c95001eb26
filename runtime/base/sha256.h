/* sha256.h: SHA-256 (FIPS 180-4), for names and digests of untrusted input.  Not for passwords. */
#ifndef QUIVER_BASE_SHA256_H
#define QUIVER_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32u

/* Initialise with sha256_init(), feed it any number of times, end it once. */
struct sha256 {
        uint32_t state[8];
        uint64_t size; /* bytes fed so far */
        uint8_t block[64];
};

void sha256_init(struct sha256 *h);
void sha256_put(struct sha256 *h, const void *data, size_t size);
void sha256_end(struct sha256 *h, uint8_t ret_digest[SHA256_SIZE]);

#endif
