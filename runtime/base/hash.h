/* hash.h: FNV-1a, to tell values apart.  Not cryptographic: equal hashes do not prove equal input. */
#ifndef QUIVER_BASE_HASH_H
#define QUIVER_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Continues `hash` with these bytes; start with HASH_START. */
static inline uint64_t hash_bytes(uint64_t hash, const uint8_t *data, size_t size)
{
        for (size_t i = 0; i < size; i++)
                hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
        return hash;
}

#endif
