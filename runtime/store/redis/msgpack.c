#include "store/redis/msgpack.h"

#include <errno.h>

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

/* The number in `width` bytes, the highest first; false if they are not there. */
static bool take_number(struct span *packed, unsigned width, uint64_t *ret_value)
{
        uint64_t value = 0;
        if (packed->size < width)
                return false;
        for (unsigned i = 0; i < width; i++)
                value = value << 8 | (uint8_t)packed->data[i];
        packed->data += width;
        packed->size -= width;
        *ret_value = value;
        return true;
}

int64_t msgpack_take_array(struct span *packed)
{
        uint64_t type;
        uint64_t count;
        if (!take_number(packed, 1, &type))
                return -EBADMSG;
        if (type >> 4 == 0x9)
                return (int64_t)(type & 15);
        if ((type != 0xdc && type != 0xdd) || !take_number(packed, type == 0xdc ? 2 : 4, &count))
                return -EBADMSG;
        return (int64_t)count;
}

bool msgpack_take_bytes(struct span *packed, struct span *ret_bytes)
{
        uint64_t type;
        uint64_t size;
        if (!take_number(packed, 1, &type))
                return false;
        if (type >> 5 == 0x5)
                size = type & 31;
        else if (type < 0xd9 || type > 0xdb || !take_number(packed, 1u << (type - 0xd9), &size))
                return false;
        if (packed->size < size)
                return false;
        *ret_bytes = (struct span){ packed->data, size };
        packed->data += size;
        packed->size -= size;
        return true;
}
