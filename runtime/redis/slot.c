#include <string.h>

#include "redis/redis.h"

/* CRC-16/XMODEM, as the Cluster specification defines it.  Computed bit by bit: keys are short, and only Cluster needs
 * it. */
static uint16_t crc16(const char *data, size_t size)
{
        uint16_t crc = 0;
        for (size_t i = 0; i < size; i++) {
                crc ^= (uint16_t)((uint16_t)(uint8_t)data[i] << 8);
                for (int bit = 0; bit < 8; bit++)
                        crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
        }
        return crc;
}

uint16_t redis_slot(const char *key, size_t size)
{
        const char *open = memchr(key, '{', size);
        if (open) {
                size_t rest = size - (size_t)(open + 1 - key);
                const char *close = memchr(open + 1, '}', rest);
                /* "{}" is no tag: the whole key is hashed. */
                if (close && close > open + 1)
                        return crc16(open + 1, (size_t)(close - open - 1)) & 16383;
        }
        return crc16(key, size) & 16383;
}
