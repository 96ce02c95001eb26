/* shard_set.h: a set of shards, one bit for each. */
#ifndef QUIVER_HOST_SHARD_SHARD_SET_H
#define QUIVER_HOST_SHARD_SHARD_SET_H

#include <stdbool.h>
#include <stdint.h>

#define SHARD_SET_MAX  4096u
#define SHARD_SET_NONE UINT32_MAX

struct shard_set {
        uint32_t words_count;
        uint64_t words[SHARD_SET_MAX / 64];
};

/* For shards below `shards`, which is at most SHARD_SET_MAX. */
static inline void shard_set_init(struct shard_set *set, uint32_t shards)
{
        *set = (struct shard_set){ .words_count = (shards + 63) / 64 };
}

static inline void shard_set_add(struct shard_set *set, uint32_t shard)
{
        set->words[shard / 64] |= UINT64_C(1) << shard % 64;
}

static inline void shard_set_remove(struct shard_set *set, uint32_t shard)
{
        set->words[shard / 64] &= ~(UINT64_C(1) << shard % 64);
}

static inline void shard_set_put(struct shard_set *set, uint32_t shard, bool is_in)
{
        if (is_in)
                shard_set_add(set, shard);
        else
                shard_set_remove(set, shard);
}

static inline bool shard_set_has(const struct shard_set *set, uint32_t shard)
{
        return set->words[shard / 64] >> shard % 64 & 1;
}

/* Adds all members of `from`. */
static inline void shard_set_join(struct shard_set *set, const struct shard_set *from)
{
        for (uint32_t i = 0; i < set->words_count; i++)
                set->words[i] |= from->words[i];
}

static inline uint32_t shard_set_count(const struct shard_set *set)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < set->words_count; i++)
                count += (uint32_t)__builtin_popcountll(set->words[i]);
        return count;
}

/* The first member at or after `from`; SHARD_SET_NONE. */
static inline uint32_t shard_set_from(const struct shard_set *set, uint32_t from)
{
        uint64_t mask = ~UINT64_C(0) << from % 64;
        for (uint32_t i = from / 64; i < set->words_count; i++, mask = ~UINT64_C(0))
                if (set->words[i] & mask)
                        return i * 64 + (uint32_t)__builtin_ctzll(set->words[i] & mask);
        return SHARD_SET_NONE;
}

/* The first member at or after `from`, or else the first of all: for round robin. */
static inline uint32_t shard_set_round(const struct shard_set *set, uint32_t from)
{
        uint32_t shard = shard_set_from(set, from);
        return shard == SHARD_SET_NONE && from ? shard_set_from(set, 0) : shard;
}

static inline bool shard_set_is_empty(const struct shard_set *set)
{
        return shard_set_from(set, 0) == SHARD_SET_NONE;
}

#endif
