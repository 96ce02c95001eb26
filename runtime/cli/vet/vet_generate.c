/* vet_generate.c: payloads that a handler does not expect. */
#include <string.h>

#include "cli/vet/vet.h"

/* Tried first, whatever the seed: they break the most. */
static const struct {
        const char *bytes;
        size_t size;
} classics[] = {
#define CLASSIC(text)                                                                                                  \
        {                                                                                                              \
                text, sizeof(text) - 1                                                                                 \
        }
        CLASSIC(""),
        CLASSIC("\0"),
        CLASSIC("\n"),
        CLASSIC(" "),
        CLASSIC("0"),
        CLASSIC("-1"),
        CLASSIC("18446744073709551616"),
        CLASSIC("1e999"),
        CLASSIC("null"),
        CLASSIC("{}"),
        CLASSIC("[]"),
        CLASSIC("{\"a\":"),
        CLASSIC("\"\\ud800\""),
        CLASSIC("%s%n%x"),
        CLASSIC("../../../etc/passwd"),
        CLASSIC("'; drop table t; --"),
        CLASSIC("\xff\xfe\xfd"),
        CLASSIC("\xc3"),
        CLASSIC("\xef\xbb\xbf{}"),
        CLASSIC("a\0b"),
#undef CLASSIC
};
#define CLASSICS (sizeof(classics) / sizeof(classics[0]))

/* splitmix64: a few lines, and every seed is a good one. */
static uint64_t next(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

uint64_t vet_below(uint64_t *state, uint64_t limit)
{
        return next(state) % limit;
}

/* Mostly small, some that do not fit beside a ring's entry, a few as large as they come. */
static size_t pick_size(uint64_t *state)
{
        switch (vet_below(state, 512)) {
        case 0:
                return VET_PAYLOAD_MAX;
        case 1:
        case 2:
        case 3:
                return (size_t)vet_below(state, 65536);
        default:
                return (size_t)vet_below(state, vet_below(state, 8) ? 64 : 2048);
        }
}

static void put_bytes(uint64_t *state, size_t size, struct buffer *to)
{
        while (size--)
                buffer_put(to, &(uint8_t){ (uint8_t)next(state) }, 1);
}

static void put_repeated(uint64_t *state, size_t size, struct buffer *to)
{
        static const char bytes[] = { 0, ' ', 'A', '[', '{', '"', '9', '\n', (char)0xff };
        char byte = bytes[vet_below(state, sizeof(bytes))];
        if (size)
                memset(buffer_reserve(to, size), byte, size);
        to->size += size;
}

static void put_ascii(uint64_t *state, size_t size, struct buffer *to)
{
        while (size--)
                buffer_put(to, &(uint8_t){ (uint8_t)(' ' + vet_below(state, 95)) }, 1);
}

static void put_utf8(uint64_t *state, size_t size, struct buffer *to)
{
        while (to->size + 4 <= size) {
                uint32_t c = (uint32_t)vet_below(state, 0x10ffff);
                if (c >= 0xd800 && c < 0xe000)
                        continue;
                uint8_t four[4] = { (uint8_t)(0xf0 | c >> 18), (uint8_t)(0x80 | (c >> 12 & 0x3f)),
                        (uint8_t)(0x80 | (c >> 6 & 0x3f)), (uint8_t)(0x80 | (c & 0x3f)) };
                if (c < 0x80) {
                        buffer_put(to, &(uint8_t){ (uint8_t)c }, 1);
                } else if (c < 0x800) {
                        four[2] |= 0x40;
                        buffer_put(to, four + 2, 2);
                } else if (c < 0x10000) {
                        four[1] = (uint8_t)(0xe0 | c >> 12);
                        buffer_put(to, four + 1, 3);
                } else {
                        buffer_put(to, four, 4);
                }
        }
}

/* Words of JSON in an order that a parser may or may not like. */
static void put_json_like(uint64_t *state, size_t size, struct buffer *to)
{
        static const char *const words[] = { "{", "}", "[", "]", ":", ",", "\"id\"", "\"name\"", "\"\"", "null", "true",
                "-0", "1e400", "9007199254740993", "\"\\u0000\"", "\"\\ud83d\"", " ", "\n" };
        if (vet_below(state, 2)) {
                buffer_printf(to, "{\"id\": %lld, \"name\": \"%c\", \"list\": [%s]}", (long long)next(state),
                        (char)('a' + vet_below(state, 26)), words[vet_below(state, sizeof(words) / sizeof(*words))]);
                return;
        }
        while (to->size < size) {
                const char *word = words[vet_below(state, sizeof(words) / sizeof(*words))];
                buffer_put(to, word, strlen(word));
        }
}

void vet_generate(uint64_t seed, uint64_t number, const struct vet_corpus *corpus, struct buffer *to)
{
        static void (*const kinds[])(uint64_t * state, size_t size, struct buffer * to) = { put_bytes, put_repeated,
                put_ascii, put_utf8, put_json_like };
        buffer_clear(to);
        if (number < corpus->count) {
                buffer_put(to, corpus->items[number].data, corpus->items[number].size);
                return;
        }
        if (number - corpus->count < CLASSICS) {
                const size_t i = (size_t)(number - corpus->count);
                buffer_put(to, classics[i].bytes, classics[i].size);
                return;
        }
        uint64_t state = seed ^ (number * UINT64_C(0xd6e8feb86659fd93));
        if (corpus->count && vet_below(&state, 2)) {
                vet_mutate(&state, corpus, to);
                return;
        }
        size_t size = pick_size(&state);
        kinds[vet_below(&state, sizeof(kinds) / sizeof(*kinds))](&state, size, to);
        if (to->size > VET_PAYLOAD_MAX)
                to->size = VET_PAYLOAD_MAX;
}
