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
