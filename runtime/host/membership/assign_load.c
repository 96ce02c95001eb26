#include "host/membership/assign_load.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"

/* A member's load is uneven if it exceeds the mean by two fifths and by UNEVEN_MIN thousandths of a seat.  Loads are
 * reported again when they change by a fifth, so such a difference is real. */
#define UNEVEN_TIMES 14u
#define UNEVEN_OF    10u
#define UNEVEN_MIN   100u
/* An exchange leaves the busier of the two with at most seven eighths of what it had. */
#define BETTER_TIMES 7u
#define BETTER_OF    8u
/* Members above the mean that are tried: the load of the busiest may be a single shard, which no exchange improves. */
#define TRIED_MAX 8u
/* Loads are scaled to equal weights before they are compared. */
#define SCALE 1000u

struct load_member {
        bool takes_part;
        bool is_tried;
        uint64_t load;
        uint64_t listed;   /* the part of `load` that comes from shards with a known load */
        uint32_t unlisted; /* number of the other shards */
        uint32_t quiet;    /* its shard with the least load that may move; QUOTA_NONE: it has none */
        uint64_t quiet_load;
};

struct load_work {
        const struct assignment *previous;
        const struct assign_input *input;
        const struct quotas *quotas;
        struct load_member *members; /* as quotas->items */
        uint32_t *loads;             /* of each shard; 0: not known */
        bool *is_resting;            /* of each shard: it was moved a short time ago */
        uint64_t load, weight;       /* of all members that take part */
};

static uint32_t owner_of(const struct load_work *w, uint32_t shard)
{
        uint16_t owner = w->previous->slots[shard].owner;
        return owner == ASSIGN_NOBODY ? QUOTA_NONE : w->quotas->by_owner[owner];
}

static const struct load_summary *said_by(const struct load_work *w, uint32_t item)
{
        return &w->quotas->items[item].member->load;
}

/* A shard's load counts for the member that it is assigned to.  During a handover the former owner still reports it, so
 * it is moved in the sums; a load that several members report counts once. */
static void place_loads(struct load_work *w)
{
        for (uint32_t i = 0; i < w->quotas->count; i++) {
                const struct load_summary *said = said_by(w, i);
                struct load_member *m = &w->members[i];
                m->takes_part = said->is_known && w->quotas->items[i].role == QUOTA_TAKES;
                m->quiet = QUOTA_NONE;
                m->load += said->total;
                for (uint32_t j = 0; j < said->busy_count; j++) {
                        uint32_t shard = said->busy[j].shard;
                        if (shard >= w->input->shards_count)
                                continue;
                        uint32_t owner = owner_of(w, shard);
                        if (owner == i) {
                                w->loads[shard] = said->busy[j].load;
                                continue;
                        }
                        m->load -= min_u64(m->load, said->busy[j].load);
                        if (owner == QUOTA_NONE || w->loads[shard] || load_summary_find(said_by(w, owner), shard))
                                continue;
                        w->loads[shard] = said->busy[j].load;
                        w->members[owner].load += said->busy[j].load;
                }
        }
}

static void sum_up(struct load_work *w)
{
        for (uint32_t i = 0; i < w->quotas->count; i++) {
                if (!w->members[i].takes_part)
                        continue;
                w->load += w->members[i].load;
                w->weight += w->quotas->items[i].weight;
        }
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++) {
                uint32_t owner = owner_of(w, shard);
                if (owner == QUOTA_NONE)
                        continue;
                w->members[owner].listed += w->loads[shard];
                w->members[owner].unlisted += !w->loads[shard];
        }
        for (uint32_t i = 0; i < w->input->resting_count; i++)
                if (w->input->resting[i] < w->input->shards_count)
                        w->is_resting[w->input->resting[i]] = true;
}

/* The shard's reported load, or else an equal part of the rest of its owner's sum. */
static uint64_t likely_load(const struct load_work *w, uint32_t shard, const struct load_member *owner)
{
        if (w->loads[shard] || !owner->unlisted)
                return w->loads[shard];
        return (owner->load - min_u64(owner->load, owner->listed)) / owner->unlisted;
}

/* The quietest shard of each member; among equal ones the shard that its owner has had longest. */
static void find_quiet(struct load_work *w)
{
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++) {
                uint32_t owner = owner_of(w, shard);
                if (owner == QUOTA_NONE || w->is_resting[shard])
                        continue;
                struct load_member *m = &w->members[owner];
                uint64_t load = likely_load(w, shard, m);
                const struct assign_slot *slots = w->previous->slots;
                if (m->quiet != QUOTA_NONE &&
                        (load > m->quiet_load ||
                                (load == m->quiet_load && slots[shard].epoch >= slots[m->quiet].epoch)))
                        continue;
                m->quiet = shard;
                m->quiet_load = load;
        }
}

static uint64_t for_weight(const struct load_work *w, uint32_t item, uint64_t load)
{
        return load * SCALE / w->quotas->items[item].weight;
}

static bool is_uneven(const struct load_work *w, uint32_t item)
{
        uint64_t load = w->members[item].load, weight = w->quotas->items[item].weight;
        uint64_t mean = w->load * weight / w->weight;
        return load * UNEVEN_OF > mean * UNEVEN_TIMES && load - mean >= UNEVEN_MIN;
}

/* The busiest member above the mean that was not tried; QUOTA_NONE: there is none. */
static uint32_t next_uneven(struct load_work *w)
{
        uint32_t found = QUOTA_NONE;
        uint64_t most = 0;
        for (uint32_t i = 0; i < w->quotas->count; i++) {
                if (!w->members[i].takes_part || w->members[i].is_tried || !is_uneven(w, i))
                        continue;
                if (found != QUOTA_NONE && for_weight(w, i, w->members[i].load) <= most)
                        continue;
                found = i;
                most = for_weight(w, i, w->members[i].load);
        }
        if (found != QUOTA_NONE)
                w->members[found].is_tried = true;
        return found;
}

/* The best exchange for that member: the one after which the busier of the two has the least load. */
static bool find_exchange(const struct load_work *w, uint32_t from, struct load_exchange *ret_exchange)
{
        const struct load_member *giver = &w->members[from];
        uint64_t least = for_weight(w, from, giver->load) * BETTER_TIMES / BETTER_OF + 1;
        bool is_found = false;
        for (uint32_t shard = 0; shard < w->input->shards_count; shard++) {
                if (!w->loads[shard] || w->is_resting[shard] || owner_of(w, shard) != from)
                        continue;
                for (uint32_t to = 0; to < w->quotas->count; to++) {
                        const struct load_member *taker = &w->members[to];
                        if (to == from || !taker->takes_part || taker->quiet == QUOTA_NONE ||
                                w->loads[shard] <= taker->quiet_load)
                                continue;
                        uint64_t moved = min_u64(w->loads[shard] - taker->quiet_load, giver->load);
                        uint64_t after = max_u64(
                                for_weight(w, from, giver->load - moved), for_weight(w, to, taker->load + moved));
                        if (after >= least)
                                continue;
                        least = after;
                        is_found = true;
                        *ret_exchange =
                                (struct load_exchange){ .busy = shard, .quiet = taker->quiet, .from = from, .to = to };
                }
        }
        return is_found;
}

bool assign_load_find(const struct assignment *previous, const struct assign_input *input, const struct quotas *quotas,
        struct load_exchange *ret_exchange, bool *ret_is_uneven)
{
        struct load_work w = { .previous = previous, .input = input, .quotas = quotas };
        uint32_t from = QUOTA_NONE;
        bool is_found = false;
        w.members = memory_zero(quotas->count, sizeof(w.members[0]));
        w.loads = memory_zero(input->shards_count, sizeof(w.loads[0]));
        w.is_resting = memory_zero(input->shards_count, sizeof(w.is_resting[0]));
        place_loads(&w);
        sum_up(&w);
        find_quiet(&w);
        *ret_is_uneven = false;
        for (uint32_t i = 0; i < TRIED_MAX && !is_found && w.weight && (from = next_uneven(&w)) != QUOTA_NONE; i++) {
                *ret_is_uneven = true;
                is_found = find_exchange(&w, from, ret_exchange);
        }
        free(w.members);
        free(w.loads);
        free(w.is_resting);
        return is_found;
}
