#include "base/sha1.h"

#include <stdint.h>
#include <string.h>

#include "base/units.h"

#define BLOCK 64u

static uint32_t turn(uint32_t x, unsigned bits)
{
        return x << bits | x >> (32 - bits);
}

static uint32_t mix(unsigned round, const uint32_t s[5])
{
        static const uint32_t constants[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
        uint32_t chosen = round < 20   ? (s[1] & s[2]) | (~s[1] & s[3])
                          : round < 40 ? s[1] ^ s[2] ^ s[3]
                          : round < 60 ? (s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])
                                       : s[1] ^ s[2] ^ s[3];
        return chosen + constants[round / 20];
}

static void block_add(uint32_t state[5], const uint8_t *block)
{
        uint32_t w[80];
        uint32_t s[5];
        for (unsigned i = 0; i < 16; i++)
                w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
        for (unsigned i = 16; i < 80; i++)
                w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        memcpy(s, state, sizeof(s));
        for (unsigned i = 0; i < 80; i++) {
                uint32_t first = turn(s[0], 5) + mix(i, s) + s[4] + w[i];
                memmove(s + 1, s, 4 * sizeof(*s));
                s[2] = turn(s[2], 30);
                s[0] = first;
        }
        for (unsigned i = 0; i < 5; i++)
                state[i] += s[i];
}

void sha1_text(const void *data, size_t size, char ret_text[SHA1_TEXT_SIZE])
{
        uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
        uint8_t last[2 * BLOCK] = { 0 };
        uint8_t digest[20];
        size_t whole = size / BLOCK * BLOCK;
        size_t rest = size - whole;
        for (size_t at = 0; at < whole; at += BLOCK)
                block_add(state, (const uint8_t *)data + at);
        if (rest)
                memcpy(last, (const uint8_t *)data + whole, rest);
        last[rest] = 0x80;
        size_t end = rest + 9 > BLOCK ? 2 * BLOCK : BLOCK;
        for (unsigned i = 0; i < 8; i++)
                last[end - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
        for (size_t at = 0; at < end; at += BLOCK)
                block_add(state, last + at);
        for (unsigned i = 0; i < sizeof(digest); i++)
                digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
        (void)units_hex(ret_text, digest, sizeof(digest));
}
