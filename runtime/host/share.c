#include "host/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_u64(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

static int compare_nonces(const struct share *a, const struct share *b)
{
        return memcmp(a->member->nonce, b->member->nonce, STORE_NONCE_SIZE);
}

/* The newer of two with one nonce comes first, and stays. */
static int by_nonce(const void *left, const void *right)
{
        const struct share *a = left, *b = right;
        int order = compare_nonces(a, b);
        return order ? order : compare_u64(b->member->created, a->member->created);
}

static void sort_by_nonce(struct shares *shares)
{
        uint32_t kept = 0;
        qsort(shares->items, shares->count, sizeof(shares->items[0]), by_nonce);
        for (uint32_t i = 0; i < shares->count; i++)
                if (!kept || compare_nonces(&shares->items[kept - 1], &shares->items[i]) != 0)
                        shares->items[kept++] = shares->items[i];
        shares->count = kept;
}

static uint32_t find(const struct shares *shares, const uint8_t nonce[STORE_NONCE_SIZE])
{
        uint32_t low = 0, high = shares->count;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = memcmp(shares->items[middle].member->nonce, nonce, STORE_NONCE_SIZE);
                if (!order)
                        return middle;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return SHARE_NONE;
}

static void count_shards(struct shares *shares, const struct assignment *previous)
{
        for (uint32_t i = 0; i < previous->owners_count; i++) {
                shares->by_owner[i] = find(shares, previous->owners[i].nonce);
                if (shares->by_owner[i] != SHARE_NONE)
                        shares->items[shares->by_owner[i]].is_listed = true;
        }
        for (uint32_t i = 0; i < previous->givers_count; i++) {
                uint32_t item = find(shares, previous->givers[i].nonce);
                if (item != SHARE_NONE)
                        shares->items[item].is_giver = true;
                else
                        shares->has_lost_giver = true;
        }
        for (uint32_t shard = 0; shard < previous->shards_count; shard++) {
                uint16_t owner = previous->slots[shard].owner;
                uint32_t item = owner == ASSIGN_NOBODY ? SHARE_NONE : shares->by_owner[owner];
                if (item != SHARE_NONE)
                        shares->items[item].have++;
        }
        for (uint32_t i = 0; i < shares->count; i++)
                shares->items[i].had = shares->items[i].have;
}

/* --- who takes part ---------------------------------------------------------------------------------------------- */

static bool can_take(const struct share *share)
{
        return share->member->sees_store && !share->member->is_draining;
}

/* The role of each, were there no limit. */
static void choose_roles(struct shares *shares)
{
        bool has_weight = false;
        for (uint32_t i = 0; i < shares->count; i++)
                has_weight |= can_take(&shares->items[i]) && shares->items[i].member->weight;
        for (uint32_t i = 0; i < shares->count; i++) {
                struct share *share = &shares->items[i];
                share->weight = has_weight ? share->member->weight : 1;
                if (can_take(share) && share->weight)
                        share->role = SHARE_TAKES;
                else if (share->have && !share->member->sees_store && !share->member->is_draining)
                        share->role = SHARE_KEEPS;
                else
                        share->role = SHARE_GIVES;
        }
}

/* Owners first, then whoever was a member first.  An owner whose quota is 0 is one too: did it lose its place with its
 * last shard, the quotas would change for the sake of who came in. */
static int by_claim(const void *left, const void *right)
{
        const struct share *a = *(struct share *const *)left, *b = *(struct share *const *)right;
        if (a->is_listed != b->is_listed)
                return a->is_listed ? -1 : 1;
        int order = compare_u64(a->member->created, b->member->created);
        return order ? order : compare_nonces(a, b);
}

static void limit_members(struct shares *shares, struct share **scratch, uint32_t members_max)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < shares->count; i++)
                if (shares->items[i].role != SHARE_GIVES)
                        scratch[count++] = &shares->items[i];
        qsort(scratch, count, sizeof(struct share *), by_claim);
        bool has_taker = false;
        for (uint32_t i = 0; i < count; i++) {
                if (scratch[i]->role != SHARE_TAKES)
                        continue;
                if (i >= members_max && has_taker)
                        scratch[i]->role = SHARE_GIVES;
                has_taker = true;
        }
}

/* --- how many each ----------------------------------------------------------------------------------------------- */

static int by_remainder(const void *left, const void *right)
{
        const struct share *a = *(struct share *const *)left, *b = *(struct share *const *)right;
        int order = compare_u64(b->remainder, a->remainder);
        if (order)
                return order;
        bool a_has = a->have > a->quota, b_has = b->have > b->quota;
        if (a_has != b_has)
                return a_has ? -1 : 1;
        return compare_nonces(a, b);
}

static void set_quotas(struct shares *shares, struct share **scratch, uint32_t shards_count)
{
        uint32_t count = 0;
        uint32_t shards = shards_count;
        uint64_t weights = 0;
        for (uint32_t i = 0; i < shares->count; i++) {
                struct share *share = &shares->items[i];
                if (share->role == SHARE_KEEPS) {
                        shards -= share->have;
                } else if (share->role == SHARE_TAKES) {
                        scratch[count++] = share;
                        weights += share->weight;
                }
        }
        uint32_t left = shards;
        for (uint32_t i = 0; i < count; i++) {
                uint64_t part = (uint64_t)shards * scratch[i]->weight;
                scratch[i]->quota = (uint32_t)(part / weights);
                scratch[i]->remainder = part % weights;
                left -= scratch[i]->quota;
        }
        qsort(scratch, count, sizeof(struct share *), by_remainder);
        for (uint32_t i = 0; count && i < left; i++)
                scratch[i]->quota++;
}

/* --- both -------------------------------------------------------------------------------------------------------- */

int shares_init(struct shares *shares, const struct assignment *previous, const struct assign_input *input)
{
        uint32_t owners_count = previous ? previous->owners_count : 0;
        struct share **scratch = calloc(input->members_count + 1, sizeof(struct share *));
        *shares = (struct shares){ .count = input->members_count };
        shares->items = calloc(input->members_count + 1, sizeof(shares->items[0]));
        shares->by_owner = calloc(owners_count + 1, sizeof(shares->by_owner[0]));
        if (!scratch || !shares->items || !shares->by_owner) {
                free(scratch);
                shares_free(shares);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < input->members_count; i++)
                shares->items[i].member = &input->members[i];
        sort_by_nonce(shares);
        if (previous)
                count_shards(shares, previous);
        choose_roles(shares);
        if (input->members_max)
                limit_members(shares, scratch, input->members_max);
        set_quotas(shares, scratch, input->shards_count);
        free(scratch);
        return 0;
}

void shares_free(struct shares *shares)
{
        free(shares->items);
        free(shares->by_owner);
        *shares = (struct shares){ 0 };
}

struct share *shares_neediest(const struct shares *shares)
{
        struct share *neediest = NULL;
        for (uint32_t i = 0; i < shares->count; i++) {
                struct share *share = &shares->items[i];
                if (share->role != SHARE_TAKES || share->have >= share->quota)
                        continue;
                if (!neediest || share->quota - share->have > neediest->quota - neediest->have)
                        neediest = share;
        }
        return neediest;
}
