#include "host/membership/assign.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/membership/assign_load.h"
#include "host/membership/assign_quota.h"

/* A shard while the next assignment is made. */
struct assign_place {
        const struct assign_slot *before;
        const struct assign_owner *owner; /* in the previous assignment; NULL: none */
        struct member_quota *owner_quota; /* the owner's quota; NULL: there is no owner, or it is no member any more */
        uint32_t shard;
        bool is_bumped; /* the store has a higher epoch, so the shard gets a new one */

        struct member_quota *to; /* the new owner; NULL: the shard stays */
        enum assign_reason reason;
};

struct assign_work {
        const struct assignment *previous; /* NULL: none */
        const struct assign_input *input;
        struct quotas quotas;
        struct assign_place *places;   /* by shard */
        struct assign_place **planned; /* shards of planned moves, which go in rounds */
        uint64_t generation;           /* of the next document, if one is written */
        uint32_t moved;
        uint32_t left;
        bool is_uneven;
};

static const struct assign_slot no_slot = { .owner = ASSIGN_NOBODY };

static void work_free(struct assign_work *w)
{
        quotas_free(&w->quotas);
        free(w->places);
        free(w->planned);
}

static void work_init(struct assign_work *w, const struct assignment *previous, const struct assign_input *input)
{
        *w = (struct assign_work){ .previous = previous, .input = input };
        quotas_init(&w->quotas, previous, input);
        w->places = memory_zero(input->shards_count, sizeof(w->places[0]));
        w->planned = memory_zero(input->shards_count, sizeof(struct assign_place *));
        for (uint32_t shard = 0; shard < input->shards_count; shard++) {
                struct assign_place *place = &w->places[shard];
                place->shard = shard;
                place->before = previous ? &previous->slots[shard] : &no_slot;
                if (place->before->owner == ASSIGN_NOBODY)
                        continue;
                uint32_t item = w->quotas.by_owner[place->before->owner];
                place->owner = &previous->owners[place->before->owner];
                place->owner_quota = item == QUOTA_NONE ? NULL : &w->quotas.items[item];
        }
}

static int check(const struct assignment *previous, const struct assign_input *input, struct error *error)
{
        if (!input->shards_count || input->shards_count > SHARDS_MAX)
                return error_set(error, -EINVAL, "assign: %u shards, not 1 to %u", input->shards_count, SHARDS_MAX);
        if (previous && previous->shards_count != input->shards_count)
                return error_set(error, -EINVAL, "assign: the document is for %u shards, the store has %u",
                        previous->shards_count, input->shards_count);
        if (input->members_count > ASSIGN_MEMBERS_MAX)
                return error_set(error, -E2BIG, "assign: %u members, at most %u can share an app", input->members_count,
                        ASSIGN_MEMBERS_MAX);
        for (uint32_t i = 0; i < input->members_count; i++)
                if (input->members[i].weight > ASSIGN_WEIGHT_MAX)
                        return error_set(error, -EINVAL, "assign: member %s has weight %u, at most %u is possible",
                                input->members[i].name, input->members[i].weight, ASSIGN_WEIGHT_MAX);
        return 0;
}

/* --- generation -------------------------------------------------------------------------------------------------- */

/* The next generation is above the previous one and above the epochs that the store has, and not below the time: so the
 * first document after a loss starts above the lost one. */
static int choose_generation(struct assign_work *w, struct error *error)
{
        w->generation = w->previous ? w->previous->generation + 1 : 1;
        if (w->generation < w->input->unix_s)
                w->generation = w->input->unix_s;
        for (uint32_t i = 0; i < w->input->stale_count; i++) {
                const struct assign_stale *stale = &w->input->stale[i];
                if (stale->shard >= w->input->shards_count || stale->epoch >= ASSIGN_STALE_MAX)
                        continue;
                struct assign_place *place = &w->places[stale->shard];
                if (!place->owner || stale->epoch < place->before->epoch)
                        continue;
                place->is_bumped = true;
                if (w->generation <= stale->epoch)
                        w->generation = stale->epoch + 1;
        }
        if (w->generation > TASK_NUMBER_MAX)
                return error_set(error, -EOVERFLOW, "assign: no generation is left above the document's; delete it");
        return 0;
}

/* --- moves ------------------------------------------------------------------------------------------------------- */

static void move(struct assign_work *w, struct assign_place *place, enum assign_reason reason)
{
        struct member_quota *to = quotas_neediest(&w->quotas);
        /* Quotas add up to all shards that are not kept: a surplus of one member is missing at another. */
        assert(to);
        place->to = to;
        place->reason = reason;
        to->have++;
        if (place->owner_quota)
                place->owner_quota->have--;
        w->moved++;
}

static void move_orphans(struct assign_work *w)
{
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++) {
                struct assign_place *place = &w->places[shard];
                if (place->owner_quota)
                        continue;
                if (!place->owner) {
                        move(w, place, ASSIGN_JOIN);
                        continue;
                }
                move(w, place, place->owner->is_draining ? ASSIGN_LEAVE : ASSIGN_CRASH);
                if (place->reason == ASSIGN_CRASH && !strcmp(place->to->member->name, place->owner->name))
                        place->reason = ASSIGN_RESTART;
        }
}

/* Shards of draining owners come first, then those of owners with no quota, then those above a quota. */
static int urgency(const struct assign_place *place)
{
        if (place->owner_quota->role == QUOTA_GIVES)
                return place->owner_quota->member->is_draining ? 0 : 1;
        return 2;
}

static int by_urgency(const void *left, const void *right)
{
        const struct assign_place *a = *(struct assign_place *const *)left, *b = *(struct assign_place *const *)right;
        int order = urgency(a) - urgency(b);
        if (order)
                return order;
        if (a->before->epoch != b->before->epoch)
                return a->before->epoch < b->before->epoch ? -1 : 1;
        return a->shard < b->shard ? -1 : 1;
}

static bool is_above_quota(const struct member_quota *q)
{
        return q->role == QUOTA_GIVES || (q->role == QUOTA_TAKES && q->have > q->quota);
}

static enum assign_reason planned_reason(const struct assign_work *w, const struct assign_place *place)
{
        if (place->owner_quota->member->is_draining)
                return ASSIGN_DRAIN;
        return quotas_neediest(&w->quotas)->had ? ASSIGN_REBALANCE : ASSIGN_JOIN;
}

static void move_planned(struct assign_work *w)
{
        uint32_t count = 0;
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++)
                if (w->places[shard].owner_quota && is_above_quota(w->places[shard].owner_quota))
                        w->planned[count++] = &w->places[shard];
        qsort(w->planned, count, sizeof(struct assign_place *), by_urgency);

        uint32_t room = w->input->round_max ? w->input->round_max : UINT32_MAX;
        if (!w->input->may_plan)
                room = 0;
        for (uint32_t i = 0; i < count && room; i++) {
                struct assign_place *place = w->planned[i];
                if (!is_above_quota(place->owner_quota))
                        continue;
                move(w, place, planned_reason(w, place));
                room--;
        }
}

static void count_left(struct assign_work *w)
{
        for (uint32_t i = 0; i < w->quotas.count; i++) {
                const struct member_quota *q = &w->quotas.items[i];
                if (is_above_quota(q))
                        w->left += q->role == QUOTA_GIVES ? q->have : q->have - q->quota;
        }
}

static void give(struct assign_work *w, uint32_t shard, uint32_t to)
{
        w->places[shard].to = &w->quotas.items[to];
        w->places[shard].reason = ASSIGN_LOAD;
        w->moved++;
}

/* Load comes last: while members join, leave or drain, loads change by themselves. */
static void even_load(struct assign_work *w)
{
        struct load_exchange e;
        if (!w->input->may_even || !w->previous || w->moved || w->left)
                return;
        if (!assign_load_find(w->previous, w->input, &w->quotas, &e, &w->is_uneven))
                return;
        give(w, e.busy, e.to);
        give(w, e.quiet, e.from);
}

/* --- the next document ------------------------------------------------------------------------------------------- */

static struct assign_owner owner_of(const struct assign_member *member)
{
        struct assign_owner owner = { .is_draining = member->is_draining };
        memcpy(owner.nonce, member->nonce, STORE_NONCE_SIZE);
        memcpy(owner.name, member->name, sizeof(owner.name));
        return owner;
}

static int by_owner_nonce(const void *left, const void *right)
{
        const struct assign_owner *a = left, *b = right;
        return memcmp(a->nonce, b->nonce, STORE_NONCE_SIZE);
}

static bool is_owner(const struct member_quota *q)
{
        return q->have || q->role == QUOTA_TAKES;
}

/* Owners are all members that have shards or may get some, and owners that are gone and could not be replaced.  A
 * member that had shards and has none now is a giver. */
static void collect_owners(const struct assign_work *w, struct assignment *next)
{
        uint32_t gone_count = w->previous ? w->previous->owners_count : 0;
        assignment_init(next, w->input->shards_count, w->quotas.count + gone_count, w->quotas.count);
        next->owners_count = next->givers_count = 0;
        for (uint32_t i = 0; i < w->quotas.count; i++) {
                const struct member_quota *q = &w->quotas.items[i];
                if (is_owner(q))
                        next->owners[next->owners_count++] = owner_of(q->member);
                else if (q->is_listed || q->is_giver)
                        memcpy(next->givers[next->givers_count++].nonce, q->member->nonce, STORE_NONCE_SIZE);
        }
        bool *is_kept = memory_zero(gone_count, sizeof(bool));
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++)
                if (w->places[shard].owner && !w->places[shard].owner_quota && !w->places[shard].to)
                        is_kept[w->places[shard].before->owner] = true;
        for (uint32_t i = 0; i < gone_count; i++)
                if (is_kept[i])
                        next->owners[next->owners_count++] = w->previous->owners[i];
        free(is_kept);
        qsort(next->owners, next->owners_count, sizeof(next->owners[0]), by_owner_nonce);
}

static uint16_t index_of(const struct assignment *next, const uint8_t nonce[STORE_NONCE_SIZE])
{
        struct assign_owner key = { 0 };
        memcpy(key.nonce, nonce, STORE_NONCE_SIZE);
        const struct assign_owner *found = bsearch(&key, next->owners, next->owners_count, sizeof(key), by_owner_nonce);
        assert(found);
        return (uint16_t)(found - next->owners);
}

static void fill_slots(const struct assign_work *w, struct assignment *next)
{
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++) {
                const struct assign_place *place = &w->places[shard];
                struct assign_slot *slot = &next->slots[shard];
                *slot = *place->before;
                if (place->to) {
                        slot->owner = index_of(next, place->to->member->nonce);
                        slot->is_firm = place->owner && !place->owner_quota;
                } else if (place->owner) {
                        slot->owner = index_of(next, place->owner->nonce);
                }
                if (place->to || place->is_bumped)
                        slot->epoch = w->generation;
        }
}

static void list_moves(const struct assign_work *w, struct assign_plan *plan)
{
        plan->moves = memory_zero(w->moved, sizeof(plan->moves[0]));
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++) {
                const struct assign_place *place = &w->places[shard];
                if (!place->to)
                        continue;
                struct assign_move *listed = &plan->moves[plan->moves_count++];
                *listed = (struct assign_move){ .shard = shard, .epoch = w->generation, .reason = place->reason };
                listed->to = owner_of(place->to->member);
                if (place->owner)
                        listed->from = *place->owner;
        }
}

/* Whether the document must be written: for moves, a new owner without shards yet, a giver that is gone, a new epoch,
 * or an owner that has begun or ceased to drain (a later leader must know whether it left or crashed). */
static bool has_news(const struct assign_work *w)
{
        if (!w->previous || w->moved || w->quotas.has_lost_giver)
                return true;
        for (uint32_t i = 0; i < w->quotas.count; i++)
                if (w->quotas.items[i].role == QUOTA_TAKES && !w->quotas.items[i].is_listed)
                        return true;
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++) {
                const struct assign_place *place = &w->places[shard];
                if (place->is_bumped)
                        return true;
                if (place->owner_quota && place->owner_quota->member->is_draining != place->owner->is_draining)
                        return true;
        }
        return false;
}

int assign_plan(const struct assignment *previous, const struct assign_input *input, struct assign_plan *ret_plan,
        struct error *error)
{
        struct assign_work w;
        struct assign_plan plan = { 0 };
        int r = check(previous, input, error);
        if (r)
                return r;
        work_init(&w, previous, input);
        r = choose_generation(&w, error);
        if (r)
                goto out;
        if (quotas_neediest(&w.quotas)) {
                move_orphans(&w);
                move_planned(&w);
                count_left(&w);
        }
        even_load(&w);
        collect_owners(&w, &plan.next);
        list_moves(&w, &plan);
        fill_slots(&w, &plan.next);
        plan.is_changed = has_news(&w);
        plan.next.generation = plan.is_changed ? w.generation : previous->generation;
        plan.moves_left = w.left;
        plan.is_uneven = w.is_uneven;
        *ret_plan = plan;
out:
        work_free(&w);
        return r;
}
