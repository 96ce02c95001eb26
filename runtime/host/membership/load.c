#include "host/membership/load.h"

#include <stdlib.h>

#include "base/numbers.h"

/* A shard is reported if its load is at least 1/BUSY_PART of its host's load, and not below BUSY_MIN. */
#define BUSY_PART 16u
#define BUSY_MIN  20u
/* A sum is reported again if it changes by a fifth of the reported one, and by at least CHANGE_MIN; a shard's load, if
 * it changes by an eighth of the host's sum. */
#define CHANGE_PART       5u
#define CHANGE_MIN        50u
#define SHARD_CHANGE_PART 8u

void load_summary_add(struct load_summary *s, uint32_t shard, uint32_t load)
{
        uint32_t least = 0;
        s->is_known = true;
        s->total = (uint32_t)min_u64((uint64_t)s->total + load, LOAD_MAX);
        if (load < BUSY_MIN)
                return;
        if (s->busy_count < LOAD_BUSY_MAX) {
                s->busy[s->busy_count++] = (struct load_shard){ .shard = shard, .load = load };
                return;
        }
        for (uint32_t i = 1; i < LOAD_BUSY_MAX; i++)
                if (s->busy[i].load < s->busy[least].load)
                        least = i;
        if (load > s->busy[least].load)
                s->busy[least] = (struct load_shard){ .shard = shard, .load = load };
}

static int by_shard(const void *left, const void *right)
{
        const struct load_shard *a = left, *b = right;
        return (a->shard > b->shard) - (a->shard < b->shard);
}

void load_summary_end(struct load_summary *s)
{
        uint32_t kept = 0;
        s->is_known = true;
        for (uint32_t i = 0; i < s->busy_count; i++)
                if (s->busy[i].load >= s->total / BUSY_PART)
                        s->busy[kept++] = s->busy[i];
        s->busy_count = kept;
        qsort(s->busy, s->busy_count, sizeof(s->busy[0]), by_shard);
}

uint32_t load_summary_find(const struct load_summary *s, uint32_t shard)
{
        for (uint32_t i = 0; i < s->busy_count; i++)
                if (s->busy[i].shard == shard)
                        return s->busy[i].load;
        return 0;
}

static uint32_t distance(uint32_t a, uint32_t b)
{
        return a > b ? a - b : b - a;
}

/* Whether a shard of `a` has a load in `b` that differs by more than `limit`. */
static bool has_other_shard(const struct load_summary *a, const struct load_summary *b, uint32_t limit)
{
        for (uint32_t i = 0; i < a->busy_count; i++)
                if (distance(a->busy[i].load, load_summary_find(b, a->busy[i].shard)) > limit)
                        return true;
        return false;
}

bool load_summary_differs(const struct load_summary *told, const struct load_summary *now)
{
        if (told->is_known != now->is_known)
                return true;
        if (distance(told->total, now->total) > max_u64(told->total / CHANGE_PART, CHANGE_MIN))
                return true;
        uint32_t limit = (uint32_t)max_u64(max_u64(told->total, now->total) / SHARD_CHANGE_PART, CHANGE_MIN);
        return has_other_shard(told, now, limit) || has_other_shard(now, told, limit);
}
