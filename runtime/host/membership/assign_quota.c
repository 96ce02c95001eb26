#include "host/membership/assign_quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int compare_u64(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

static int compare_nonces(const struct member_quota *a, const struct member_quota *b)
{
        return memcmp(a->member->nonce, b->member->nonce, STORE_NONCE_SIZE);
}

/* Of two members with the same nonce the newer one comes first and is kept. */
static int by_nonce(const void *left, const void *right)
{
        const struct member_quota *a = left, *b = right;
        int order = compare_nonces(a, b);
        return order ? order : compare_u64(b->member->created, a->member->created);
}

static void sort_by_nonce(struct quotas *quotas)
{
        uint32_t kept = 0;
        qsort(quotas->items, quotas->count, sizeof(quotas->items[0]), by_nonce);
        for (uint32_t i = 0; i < quotas->count; i++)
                if (!kept || compare_nonces(&quotas->items[kept - 1], &quotas->items[i]) != 0)
                        quotas->items[kept++] = quotas->items[i];
        quotas->count = kept;
}

static uint32_t find(const struct quotas *quotas, const uint8_t nonce[STORE_NONCE_SIZE])
{
        uint32_t low = 0, high = quotas->count;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = memcmp(quotas->items[middle].member->nonce, nonce, STORE_NONCE_SIZE);
                if (!order)
                        return middle;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return QUOTA_NONE;
}

static void count_shards(struct quotas *quotas, const struct assignment *previous)
{
        for (uint32_t i = 0; i < previous->owners_count; i++) {
                quotas->by_owner[i] = find(quotas, previous->owners[i].nonce);
                if (quotas->by_owner[i] != QUOTA_NONE)
                        quotas->items[quotas->by_owner[i]].is_listed = true;
        }
        for (uint32_t i = 0; i < previous->givers_count; i++) {
                uint32_t item = find(quotas, previous->givers[i].nonce);
                if (item != QUOTA_NONE)
                        quotas->items[item].is_giver = true;
                else
                        quotas->has_lost_giver = true;
        }
        for (uint32_t shard = 0; shard < previous->shards_count; shard++) {
                uint16_t owner = previous->slots[shard].owner;
                uint32_t item = owner == ASSIGN_NOBODY ? QUOTA_NONE : quotas->by_owner[owner];
                if (item != QUOTA_NONE)
                        quotas->items[item].have++;
        }
        for (uint32_t i = 0; i < quotas->count; i++)
                quotas->items[i].had = quotas->items[i].have;
}

/* --- participants ------------------------------------------------------------------------------------------------ */

static bool can_take(const struct member_quota *q)
{
        return q->member->sees_store && !q->member->is_draining;
}

/* Chooses the role of each member, not considering members_max. */
static void choose_roles(struct quotas *quotas)
{
        bool has_weight = false;
        for (uint32_t i = 0; i < quotas->count; i++)
                has_weight |= can_take(&quotas->items[i]) && quotas->items[i].member->weight;
        for (uint32_t i = 0; i < quotas->count; i++) {
                struct member_quota *q = &quotas->items[i];
                q->weight = has_weight ? q->member->weight : 1;
                if (can_take(q) && q->weight)
                        q->role = QUOTA_TAKES;
                else if (q->have && !q->member->sees_store && !q->member->is_draining)
                        q->role = QUOTA_KEEPS;
                else
                        q->role = QUOTA_GIVES;
        }
}

/* Owners first, then the oldest members.  An owner whose quota is 0 counts too: if it lost its place with its last
 * shard, another member would take it, and the quotas would change again. */
static int by_claim(const void *left, const void *right)
{
        const struct member_quota *a = *(struct member_quota *const *)left, *b = *(struct member_quota *const *)right;
        if (a->is_listed != b->is_listed)
                return a->is_listed ? -1 : 1;
        int order = compare_u64(a->member->created, b->member->created);
        return order ? order : compare_nonces(a, b);
}

static void limit_members(struct quotas *quotas, struct member_quota **scratch, uint32_t members_max)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < quotas->count; i++)
                if (quotas->items[i].role != QUOTA_GIVES)
                        scratch[count++] = &quotas->items[i];
        qsort(scratch, count, sizeof(struct member_quota *), by_claim);
        bool has_taker = false;
        for (uint32_t i = 0; i < count; i++) {
                if (scratch[i]->role != QUOTA_TAKES)
                        continue;
                if (i >= members_max && has_taker)
                        scratch[i]->role = QUOTA_GIVES;
                has_taker = true;
        }
}

/* --- the quotas -------------------------------------------------------------------------------------------------- */

static int by_remainder(const void *left, const void *right)
{
        const struct member_quota *a = *(struct member_quota *const *)left, *b = *(struct member_quota *const *)right;
        int order = compare_u64(b->remainder, a->remainder);
        if (order)
                return order;
        bool a_has = a->have > a->quota, b_has = b->have > b->quota;
        if (a_has != b_has)
                return a_has ? -1 : 1;
        return compare_nonces(a, b);
}

static void set_quotas(struct quotas *quotas, struct member_quota **scratch, uint32_t shards_count)
{
        uint32_t count = 0;
        uint32_t shards = shards_count;
        uint64_t weights = 0;
        for (uint32_t i = 0; i < quotas->count; i++) {
                struct member_quota *q = &quotas->items[i];
                if (q->role == QUOTA_KEEPS) {
                        shards -= q->have;
                } else if (q->role == QUOTA_TAKES) {
                        scratch[count++] = q;
                        weights += q->weight;
                }
        }
        uint32_t left = shards;
        for (uint32_t i = 0; i < count; i++) {
                uint64_t part = (uint64_t)shards * scratch[i]->weight;
                scratch[i]->quota = (uint32_t)(part / weights);
                scratch[i]->remainder = part % weights;
                left -= scratch[i]->quota;
        }
        qsort(scratch, count, sizeof(struct member_quota *), by_remainder);
        for (uint32_t i = 0; count && i < left; i++)
                scratch[i]->quota++;
}

/* --- both -------------------------------------------------------------------------------------------------------- */

void quotas_init(struct quotas *quotas, const struct assignment *previous, const struct assign_input *input)
{
        uint32_t owners_count = previous ? previous->owners_count : 0;
        struct member_quota **scratch = memory_zero(input->members_count, sizeof(struct member_quota *));
        *quotas = (struct quotas){ .count = input->members_count };
        quotas->items = memory_zero(input->members_count, sizeof(quotas->items[0]));
        quotas->by_owner = memory_zero(owners_count, sizeof(quotas->by_owner[0]));
        for (uint32_t i = 0; i < input->members_count; i++)
                quotas->items[i].member = &input->members[i];
        sort_by_nonce(quotas);
        if (previous)
                count_shards(quotas, previous);
        choose_roles(quotas);
        if (input->members_max)
                limit_members(quotas, scratch, input->members_max);
        set_quotas(quotas, scratch, input->shards_count);
        free(scratch);
}

void quotas_free(struct quotas *quotas)
{
        free(quotas->items);
        free(quotas->by_owner);
        *quotas = (struct quotas){ 0 };
}

struct member_quota *quotas_neediest(const struct quotas *quotas)
{
        struct member_quota *neediest = NULL;
        for (uint32_t i = 0; i < quotas->count; i++) {
                struct member_quota *q = &quotas->items[i];
                if (q->role != QUOTA_TAKES || q->have >= q->quota)
                        continue;
                if (!neediest || q->quota - q->have > neediest->quota - neediest->have)
                        neediest = q;
        }
        return neediest;
}
