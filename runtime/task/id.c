#include "task/id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

/* Characters that an id may hold.  A table, because every claimed id is checked. */
static const bool is_good[256] = {
        ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['.'] = true, ['_'] = true, ['-'] = true
};

int task_id_shard(struct span id, uint32_t *ret_shard)
{
        size_t at = id.size;
        uint32_t shard = 0;
        uint32_t scale = 1;
        while (at && id.data[at - 1] >= '0' && id.data[at - 1] <= '9' && scale <= SHARDS_MAX) {
                shard += (uint32_t)(id.data[--at] - '0') * scale;
                scale *= 10;
        }
        bool has_zero = at < id.size && id.data[at] == '0' && id.size - at > 1;
        if (at == id.size || at < 2 || id.data[at - 1] != '-' || shard >= SHARDS_MAX || has_zero)
                return -EINVAL;
        *ret_shard = shard;
        return 0;
}

int task_id_check(struct span id, uint32_t *ret_shard, struct error *error)
{
        uint32_t shard;
        if (!id.size || id.size > TASK_ID_MAX)
                return error_set(error, -EINVAL, "id: %zu bytes, 3 to %u are allowed", id.size, TASK_ID_MAX);
        for (size_t i = 0; i < id.size; i++)
                if (!is_good[(unsigned char)id.data[i]])
                        return error_set(error, -EINVAL, "id: only letters, digits, . _ and - are allowed");
        if (task_id_shard(id, &shard))
                return error_set(
                        error, -EINVAL, "id: does not end in - and a shard's number (0 to %u)", SHARDS_MAX - 1);
        if (ret_shard)
                *ret_shard = shard;
        return 0;
}

/* splitmix64 over per-thread state that getrandom() seeds once, so an id costs no system call.  The clock is mixed in
 * so that a forked child does not repeat its parent's ids. */
static uint64_t chance(void)
{
        static _Thread_local uint64_t state;
        static _Thread_local bool is_seeded;
        if (!is_seeded) {
                if (getrandom(&state, sizeof(state), 0) != (ssize_t)sizeof(state))
                        abort();
                is_seeded = true;
        }
        uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15) + clock_boot_ns();
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

#define MS_DIGITS     9u
#define CHANCE_DIGITS 11u
#define MS_SIZE       6u /* bytes, packed */

static char *put_base32(char *at, uint64_t value, unsigned digits)
{
        for (unsigned i = digits; i-- > 0; value >>= 5)
                at[i] = alphabet[value & 31];
        return at + digits;
}

static char *put_shard(char *at, uint32_t shard)
{
        char digits[10];
        unsigned count = 0;
        *at++ = '-';
        do
                digits[count++] = (char)('0' + shard % 10);
        while (shard /= 10);
        while (count)
                *at++ = digits[--count];
        *at = 0;
        return at;
}

static size_t put_id(char id[TASK_ID_MADE_ROOM], uint64_t ms, uint64_t number, uint32_t shard)
{
        char *at = put_base32(id, ms, MS_DIGITS);
        at = put_base32(at, number, CHANCE_DIGITS);
        return (size_t)(put_shard(at, shard) - id);
}

size_t task_id_make(char id[TASK_ID_MAX + 1], uint32_t shard)
{
        return put_id(id, clock_wall_ms(), chance(), shard);
}

/* --- packed ------------------------------------------------------------------------------------------------------ */

static bool take_base32(const char *at, unsigned digits, uint64_t *ret_value)
{
        /* The value of each character, plus 1; 0 marks a character that is no digit. */
        static const uint8_t values[256] = { ['0'] = 1,
                ['1'] = 2,
                ['2'] = 3,
                ['3'] = 4,
                ['4'] = 5,
                ['5'] = 6,
                ['6'] = 7,
                ['7'] = 8,
                ['8'] = 9,
                ['9'] = 10,
                ['a'] = 11,
                ['b'] = 12,
                ['c'] = 13,
                ['d'] = 14,
                ['e'] = 15,
                ['f'] = 16,
                ['g'] = 17,
                ['h'] = 18,
                ['j'] = 19,
                ['k'] = 20,
                ['m'] = 21,
                ['n'] = 22,
                ['p'] = 23,
                ['q'] = 24,
                ['r'] = 25,
                ['s'] = 26,
                ['t'] = 27,
                ['v'] = 28,
                ['w'] = 29,
                ['x'] = 30,
                ['y'] = 31,
                ['z'] = 32 };
        uint64_t value = 0;
        for (unsigned i = 0; i < digits; i++) {
                uint8_t digit = values[(unsigned char)at[i]];
                if (!digit)
                        return false;
                value = value << 5 | (uint64_t)(digit - 1);
        }
        *ret_value = value;
        return true;
}

static void put_bytes(uint8_t *to, uint64_t value, unsigned size)
{
        for (; size; value >>= 8)
                to[--size] = (uint8_t)value;
}

static uint64_t take_bytes(const uint8_t *from, unsigned size)
{
        uint64_t value = 0;
        for (unsigned i = 0; i < size; i++)
                value = value << 8 | from[i];
        return value;
}

bool task_id_pack(struct span id, uint32_t shard, uint8_t ret_packed[TASK_ID_PACKED_SIZE], uint64_t *ret_made_ms)
{
        char end[16];
        uint64_t ms;
        uint64_t number;
        size_t digits = MS_DIGITS + CHANCE_DIGITS;
        size_t end_size = (size_t)(put_shard(end, shard) - end);
        if (id.size != digits + end_size || memcmp(id.data + digits, end, end_size) != 0 ||
                !take_base32(id.data, MS_DIGITS, &ms) || !take_base32(id.data + MS_DIGITS, CHANCE_DIGITS, &number))
                return false;
        put_bytes(ret_packed, ms, MS_SIZE);
        put_bytes(ret_packed + MS_SIZE, number, TASK_ID_PACKED_SIZE - MS_SIZE);
        *ret_made_ms = ms;
        return true;
}

size_t task_id_unpack(
        const uint8_t packed[TASK_ID_PACKED_SIZE], uint32_t shard, char id[TASK_ID_MADE_ROOM], uint64_t *ret_made_ms)
{
        *ret_made_ms = take_bytes(packed, MS_SIZE);
        return put_id(id, *ret_made_ms, take_bytes(packed + MS_SIZE, TASK_ID_PACKED_SIZE - MS_SIZE), shard);
}

uint32_t task_id_any_shard(uint32_t shards)
{
        return (uint32_t)(chance() % shards);
}
