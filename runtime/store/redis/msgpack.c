#include "store/redis/msgpack.h"

/* A type byte, then `width` bytes of `value`, the highest first. */
static void put(struct buffer *to, uint8_t type, uint64_t value, unsigned width)
{
        uint8_t *at = buffer_reserve(to, 1 + width);
        at[0] = type;
        for (unsigned i = 0; i < width; i++)
                at[width - i] = (uint8_t)(value >> 8 * i);
        to->size += 1 + width;
}

void msgpack_array(struct buffer *to, uint32_t count)
{
        if (count < 16)
                put(to, (uint8_t)(0x90 | count), 0, 0);
        else
                put(to, 0xdd, count, 4);
}

void msgpack_number(struct buffer *to, uint64_t value)
{
        if (value < 128)
                put(to, (uint8_t)value, 0, 0);
        else if (value <= UINT32_MAX)
                put(to, 0xce, value, 4);
        else
                put(to, 0xcf, value, 8);
}

void msgpack_bytes(struct buffer *to, struct span bytes)
{
        if (bytes.size < 32)
                put(to, (uint8_t)(0xa0 | bytes.size), 0, 0);
        else
                put(to, 0xdb, bytes.size, 4);
        buffer_put(to, bytes.data, bytes.size);
}

/* --- reading --- */

/* One encoding of a value's head: a type byte from `first` to `last`, then a big-endian number of `width` bytes.  With
 * width 0 the number is the type byte minus `first`. */
struct msgpack_head {
        uint8_t first, last;
        uint8_t width;
};

static bool take_head(struct span *from, const struct msgpack_head *heads, size_t count, uint64_t *ret_value)
{
        const uint8_t *at = (const uint8_t *)from->data;
        for (size_t i = 0; i < count && from->size; i++) {
                const struct msgpack_head *h = &heads[i];
                if (at[0] < h->first || at[0] > h->last)
                        continue;
                if (from->size < 1u + h->width)
                        return false;
                uint64_t value = h->width ? 0 : (uint64_t)at[0] - h->first;
                for (unsigned byte = 1; byte <= h->width; byte++)
                        value = value << 8 | at[byte];
                from->data += 1 + h->width;
                from->size -= 1u + h->width;
                *ret_value = value;
                return true;
        }
        return false;
}
#define TAKE_HEAD(from, heads, ret) take_head(from, heads, sizeof(heads) / sizeof((heads)[0]), ret)

bool msgpack_take_array(struct span *from, uint32_t *ret_count)
{
        static const struct msgpack_head heads[] = { { 0x90, 0x9f, 0 }, { 0xdc, 0xdc, 2 }, { 0xdd, 0xdd, 4 } };
        uint64_t count;
        if (!TAKE_HEAD(from, heads, &count))
                return false;
        *ret_count = (uint32_t)count;
        return true;
}

bool msgpack_take_number(struct span *from, uint64_t *ret_value)
{
        static const struct msgpack_head heads[] = { { 0x00, 0x7f, 0 }, { 0xcc, 0xcc, 1 }, { 0xcd, 0xcd, 2 },
                { 0xce, 0xce, 4 }, { 0xcf, 0xcf, 8 } };
        return TAKE_HEAD(from, heads, ret_value);
}

bool msgpack_take_bytes(struct span *from, struct span *ret_bytes)
{
        static const struct msgpack_head heads[] = { { 0xa0, 0xbf, 0 }, { 0xd9, 0xd9, 1 }, { 0xda, 0xda, 2 },
                { 0xdb, 0xdb, 4 } };
        struct span rest = *from;
        uint64_t size;
        if (!TAKE_HEAD(&rest, heads, &size) || size > rest.size)
                return false;
        *ret_bytes = (struct span){ rest.data, (size_t)size };
        *from = (struct span){ rest.data + size, rest.size - (size_t)size };
        return true;
}
