#include "task/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"

/* Letters, digits, . _ and -: a bit for each character up to 127. */
static bool is_id_character(unsigned char c)
{
        static const uint64_t good[2] = { UINT64_C(0x03ff600000000000), UINT64_C(0x07fffffe87fffffe) };
        return c < 128 && good[c / 64] >> c % 64 & 1;
}

int task_id_check(struct span id, uint32_t *ret_shard, struct error *error)
{
        if (!id.size || id.size > TASK_ID_MAX)
                return error_set(error, -EINVAL, "id: %zu bytes, 3 to %u are allowed", id.size, TASK_ID_MAX);
        for (size_t i = 0; i < id.size; i++)
                if (!is_id_character((unsigned char)id.data[i]))
                        return error_set(error, -EINVAL, "id: only letters, digits, . _ and - are allowed");
        size_t at = id.size;
        uint32_t shard = 0;
        uint32_t scale = 1;
        while (at && id.data[at - 1] >= '0' && id.data[at - 1] <= '9' && scale <= SHARDS_MAX) {
                shard += (uint32_t)(id.data[--at] - '0') * scale;
                scale *= 10;
        }
        bool has_zero = at < id.size && id.data[at] == '0' && id.size - at > 1;
        if (at == id.size || at < 2 || id.data[at - 1] != '-' || shard >= SHARDS_MAX || has_zero)
                return error_set(
                        error, -EINVAL, "id: does not end in - and a shard's number (0 to %u)", SHARDS_MAX - 1);
        if (ret_shard)
                *ret_shard = shard;
        return 0;
}

/* splitmix64 over a state of this thread's own, seeded by the kernel: one id costs no system call.  The clock goes in
 * so that a forked child and its parent part ways. */
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

static char *put_base32(char *at, uint64_t value, unsigned digits)
{
        static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
        for (unsigned i = digits; i-- > 0; value >>= 5)
                at[i] = alphabet[value & 31];
        return at + digits;
}

size_t task_id_make(char id[TASK_ID_MAX + 1], uint32_t shard)
{
        char *at = put_base32(id, clock_wall_ms(), 9);
        at = put_base32(at, chance(), 11);
        return (size_t)(at - id) + (size_t)snprintf(at, 8, "-%u", shard);
}

uint32_t task_id_any_shard(uint32_t shards)
{
        return (uint32_t)(chance() % shards);
}
