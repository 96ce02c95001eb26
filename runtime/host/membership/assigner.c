#include "host/membership/assigner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

/* A round moves an eighth of the shards, but not fewer than ROUND_MIN. */
#define ROUND_PART 8
#define ROUND_MIN  16

void assigner_init(struct assigner *c, uint32_t shards_count, uint32_t members_max)
{
        *c = (struct assigner){ .shards_count = shards_count,
                .members_max = members_max,
                .urgent_ms = UINT64_MAX,
                .planned_ms = UINT64_MAX,
                .even_ms = UINT64_MAX };
}

static void free_member(struct assigner *c, struct assigner_member *m)
{
        HASH_DEL(c->members, m);
        free(m->stale);
        free(m);
}

void assigner_free(struct assigner *c)
{
        while (c->members)
                free_member(c, c->members);
        assignment_free(&c->current);
        assign_plan_free(&c->plan);
}

static void sooner(uint64_t *at_ms, uint64_t ms)
{
        if (ms < *at_ms)
                *at_ms = ms;
}

/* --- input --- */

void assigner_lead(struct assigner *c, bool is_leading, uint64_t now_ms)
{
        c->is_leading = is_leading;
        c->has_read = false;
        c->urgent_ms = is_leading ? now_ms : UINT64_MAX;
        c->planned_ms = is_leading ? now_ms + ASSIGNER_GATHER_MS : UINT64_MAX;
        c->even_ms = is_leading ? now_ms + ASSIGNER_EVEN_GATHER_MS : UINT64_MAX;
}

void assigner_even_load(struct assigner *c, bool evens_load, uint64_t now_ms)
{
        if (c->evens_load == evens_load)
                return;
        c->evens_load = evens_load;
        if (c->is_leading)
                sooner(&c->even_ms, now_ms + ASSIGNER_EVEN_GATHER_MS);
}

void assigner_know(struct assigner *c, bool is_known, uint64_t now_ms)
{
        c->is_known = is_known;
        if (is_known)
                sooner(&c->urgent_ms, now_ms);
}

void assigner_wait(struct assigner *c, uint64_t until_ms)
{
        c->wait_until_ms = until_ms;
}

void assigner_limit(struct assigner *c, uint32_t members_max, uint64_t now_ms)
{
        c->members_max = members_max;
        if (c->is_leading)
                sooner(&c->planned_ms, now_ms + ASSIGNER_GATHER_MS);
}

bool assigner_wants_read(const struct assigner *c)
{
        return c->is_leading && !c->has_read && !c->is_writing;
}

int assigner_read(struct assigner *c, bool has_assign, struct span assign, uint64_t version, struct span moves,
        uint64_t now_ms, struct error *error)
{
        struct assignment read = { 0 };
        struct error ignored;
        int r = has_assign ? assign_doc_parse(assign, &read, error) : 0;
        if (r == -EPROTO)
                return r;
        if (r == 0 && has_assign && read.shards_count != c->shards_count)
                r = error_set(error, -EBADMSG, "the assignment is for %u shards, the store has %u", read.shards_count,
                        c->shards_count);
        if (r == 0 && read.generation > ASSIGN_GENERATION_MAX)
                r = error_set(error, -EBADMSG, "the assignment's generation %" PRIu64 " is damaged: too high",
                        read.generation);
        if (r < 0)
                assignment_free(&read);
        assignment_free(&c->current);
        c->current = r == 0 ? read : (struct assignment){ 0 };
        c->version = version;
        c->exists = has_assign;
        c->has_read = true;
        if (moves_doc_parse(moves, &c->moves, &ignored) < 0)
                c->moves = (struct moves){ 0 };
        sooner(&c->urgent_ms, now_ms);
        sooner(&c->planned_ms, now_ms + ASSIGNER_GATHER_MS);
        return r;
}

void assigner_saw(struct assigner *c, uint64_t generation, uint64_t now_ms)
{
        if (!c->is_leading || !c->has_read || c->is_writing || generation == c->current.generation)
                return;
        c->has_read = false;
        sooner(&c->urgent_ms, now_ms);
}

/* Static because it is large; only one document is parsed at a time. */
static struct member_doc doc;

static struct assigner_member *make_member(struct assigner *c, const char *node)
{
        size_t size = strlen(node);
        struct assigner_member *m = memory_zero(1, sizeof(*m) + size + 1);
        memcpy(m->node, node, size);
        HASH_ADD_KEYPTR(hh, c->members, m->node, size, m);
        return m;
}

/* Whether the two members differ at most in load. */
static bool is_same_member(const struct assign_member *a, const struct assign_member *b)
{
        return !memcmp(a->nonce, b->nonce, sizeof(a->nonce)) && !strcmp(a->name, b->name) && a->weight == b->weight &&
               a->is_draining == b->is_draining && a->sees_store == b->sees_store && a->created == b->created;
}

static void take_stale(struct assigner_member *m, uint64_t now_ms, struct assigner *c)
{
        free(m->stale);
        m->stale = NULL;
        m->stale_count = doc.stale_count;
        if (!doc.stale_count)
                return;
        m->stale = memory_alloc(doc.stale_count * sizeof(*m->stale));
        memcpy(m->stale, doc.stale, doc.stale_count * sizeof(*m->stale));
        /* Urgent: the member cannot acquire the shard that it was assigned, so nobody works on it. */
        sooner(&c->urgent_ms, now_ms);
}

int assigner_member(
        struct assigner *c, const char *node, uint64_t created, struct span data, uint64_t now_ms, struct error *error)
{
        struct assigner_member *m = NULL;
        int r = member_doc_parse(data, &doc, error);
        HASH_FIND(hh, c->members, node, strlen(node), m);
        if (r < 0 && r != -EPROTO) {
                if (m)
                        free_member(c, m);
                return r;
        }
        if (!m)
                m = make_member(c, node);
        bool was_foreign = m->is_foreign;
        m->is_foreign = r < 0;
        doc.member.created = created;
        bool is_same = r == 0 && !was_foreign && is_same_member(&m->member, &doc.member);
        if (r == 0) {
                m->member = doc.member;
                take_stale(m, now_ms, c);
        }
        /* A change of load alone, which is frequent in a large fleet, only schedules an exchange. */
        if (is_same)
                sooner(&c->even_ms, now_ms + ASSIGNER_EVEN_GATHER_MS);
        else
                sooner(&c->planned_ms, now_ms + ASSIGNER_GATHER_MS);
        return r;
}

void assigner_left(struct assigner *c, const char *node, uint64_t now_ms)
{
        struct assigner_member *m = NULL;
        HASH_FIND(hh, c->members, node, strlen(node), m);
        if (!m)
                return;
        /* The member announced that it leaves, perhaps after the last document was written: it did not crash. */
        for (uint32_t i = 0; i < c->current.owners_count; i++)
                if (!m->is_foreign && m->member.is_draining &&
                        !memcmp(c->current.owners[i].nonce, m->member.nonce, sizeof(m->member.nonce)))
                        c->current.owners[i].is_draining = true;
        free_member(c, m);
        sooner(&c->urgent_ms, now_ms);
        sooner(&c->planned_ms, now_ms + ASSIGNER_GATHER_MS);
}

/* --- decisions --- */

static bool can_plan(const struct assigner *c)
{
        return c->is_leading && c->has_read && c->is_known && !c->is_writing;
}

uint64_t assigner_due_ms(const struct assigner *c)
{
        if (!can_plan(c))
                return UINT64_MAX;
        uint64_t due_ms = min_u64(c->urgent_ms, c->planned_ms);
        /* While other moves are planned, an exchange waits for them: it would only add a document. */
        if (c->evens_load && c->planned_ms == UINT64_MAX)
                due_ms = min_u64(due_ms, c->even_ms);
        return max_u64(due_ms, max_u64(c->wait_until_ms, c->spread_until_ms));
}

/* How long ago `at_ms` was.  A time slightly ahead of ours, by another host's clock, counts as now; one far ahead is
 * damaged data and counts as long ago. */
static uint64_t age_ms(uint64_t at_ms, uint64_t unix_ms)
{
        if (at_ms <= unix_ms)
                return unix_ms - at_ms;
        return at_ms - unix_ms < ASSIGNER_EVEN_REST_MS ? 0 : UINT64_MAX;
}

/* The shards that were exchanged a short time ago; *ret_last_ms is the age of the latest exchange. */
static uint32_t find_resting(
        const struct assigner *c, uint64_t unix_ms, uint32_t ret_shards[MOVES_MAX], uint64_t *ret_last_ms)
{
        uint32_t count = 0;
        *ret_last_ms = UINT64_MAX;
        for (uint32_t i = 0; i < c->moves.count; i++) {
                uint64_t age = age_ms(c->moves.items[i].at_ms, unix_ms);
                if (c->moves.items[i].move.reason != ASSIGN_LOAD || age >= ASSIGNER_EVEN_REST_MS)
                        continue;
                ret_shards[count++] = c->moves.items[i].move.shard;
                *ret_last_ms = min_u64(*ret_last_ms, age);
        }
        return count;
}

/* When to look at the load again, after a plan that was allowed to even it out. */
static uint64_t next_even_ms(const struct assign_plan *plan, uint64_t now_ms)
{
        if (plan->moves_count || plan->moves_left)
                return now_ms + ASSIGNER_EVEN_ROUND_MS;
        return plan->is_uneven ? now_ms + ASSIGNER_EVEN_AGAIN_MS : UINT64_MAX;
}

/* Collects the input of assign_plan(); the caller frees the arrays. */
static void gather(const struct assigner *c, struct assign_member **ret_members, uint32_t *ret_members_count,
        struct assign_stale **ret_stale, uint32_t *ret_stale_count)
{
        uint32_t stale_count = 0;
        for (const struct assigner_member *m = c->members; m; m = m->hh.next)
                stale_count += m->stale_count;
        struct assign_member *members = memory_zero(HASH_COUNT(c->members) + 1, sizeof(*members));
        struct assign_stale *stale = memory_zero(stale_count + 1, sizeof(*stale));
        *ret_members_count = *ret_stale_count = 0;
        for (const struct assigner_member *m = c->members; m; m = m->hh.next) {
                if (m->is_foreign)
                        continue;
                members[(*ret_members_count)++] = m->member;
                for (uint32_t i = 0; i < m->stale_count; i++)
                        stale[(*ret_stale_count)++] = m->stale[i];
        }
        *ret_members = members;
        *ret_stale = stale;
}

static int decide(struct assigner *c, uint64_t now_ms, uint64_t unix_ms)
{
        struct assign_member *members;
        struct assign_stale *stale;
        uint32_t resting[MOVES_MAX];
        uint64_t last_ms;
        struct assign_input input = { .shards_count = c->shards_count, .members_max = c->members_max };
        gather(c, &members, &input.members_count, &stale, &input.stale_count);
        input.members = members;
        input.stale = stale;
        input.unix_s = unix_ms / 1000;
        input.may_plan = now_ms >= c->planned_ms;
        input.round_max = max_u64(c->shards_count / ROUND_PART, ROUND_MIN);
        input.resting = resting;
        input.resting_count = find_resting(c, unix_ms, resting, &last_ms);
        bool is_even_due = c->evens_load && now_ms >= c->even_ms;
        input.may_even = is_even_due && last_ms >= ASSIGNER_EVEN_ROUND_MS;
        assign_plan_free(&c->plan);
        int r = assign_plan(c->current.shards_count ? &c->current : NULL, &input, &c->plan, &c->failure);
        free(members);
        free(stale);
        if (r < 0)
                c->plan = (struct assign_plan){ 0 };
        else
                c->failure.text[0] = 0;
        c->urgent_ms = UINT64_MAX;
        if (is_even_due)
                c->even_ms = input.may_even && r == 0
                                     ? next_even_ms(&c->plan, now_ms)
                                     : now_ms + ASSIGNER_EVEN_ROUND_MS - min_u64(last_ms, ASSIGNER_EVEN_ROUND_MS - 1);
        if (input.may_plan)
                c->planned_ms = r == 0 && c->plan.moves_left ? now_ms + ASSIGNER_ROUND_MS : UINT64_MAX;
        return r;
}

bool assigner_plan(
        struct assigner *c, uint64_t now_ms, uint64_t unix_ms, struct buffer *ret_assign, struct buffer *ret_moves)
{
        if (now_ms < assigner_due_ms(c) || decide(c, now_ms, unix_ms) < 0 || !c->plan.is_changed)
                return false;
        buffer_clear(ret_assign);
        buffer_clear(ret_moves);
        if (assign_doc_put(ret_assign, &c->plan.next, &c->failure) < 0)
                return false;
        c->next_moves = c->moves;
        moves_add(&c->next_moves, unix_ms, c->plan.moves, c->plan.moves_count);
        moves_doc_put(ret_moves, &c->next_moves);
        c->document_bytes = ret_assign->size;
        c->is_writing = true;
        return true;
}

void assigner_wrote(struct assigner *c, int status, uint64_t version, uint64_t now_ms)
{
        if (!c->is_writing)
                return;
        c->is_writing = false;
        if (status < 0) {
                /* The write may have succeeded, or another leader may have written: the document is read again. */
                c->has_read = false;
                sooner(&c->urgent_ms, now_ms);
                sooner(&c->planned_ms, now_ms + ASSIGNER_GATHER_MS);
                return;
        }
        c->spread_until_ms = now_ms + c->document_bytes * HASH_COUNT(c->members) / ASSIGNER_BYTES_PER_MS;
        c->moves = c->next_moves;
        assignment_free(&c->current);
        c->current = c->plan.next;
        c->plan.next = (struct assignment){ 0 };
        c->version = version;
        c->exists = true;
}
