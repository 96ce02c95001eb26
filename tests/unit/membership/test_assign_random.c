/* Assignments over random histories: whatever happens to a fleet, the rules of assign.h hold at every step, and once
 * nothing happens any more the shares are right after the fewest possible moves.
 *
 *         QUIVER_TEST_SEED=N replays a run */
#include "assign_fixture.h"

#include <time.h>

#include "host/membership/assign_doc.h"

#define HISTORIES 300
#define EVENTS    60

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)((random_state >> 33) % n);
}

/* --- what the rules say, worked out again in the plainest way ------------------------------------------------------
 */

enum part { TAKES, KEEPS, GIVES };

struct expected {
        enum part parts[MEMBERSHIP_MAX];  /* by member */
        uint32_t have[MEMBERSHIP_MAX];    /* in the last document */
        bool is_listed[MEMBERSHIP_MAX];   /* there, as an owner */
        uint32_t weights[MEMBERSHIP_MAX]; /* that count */
        uint64_t weights_sum;
        uint32_t takers;
        uint32_t orphans;
        uint32_t shares; /* shards that takers share */
};

static bool comes_before(const struct membership *f, const struct expected *e, uint32_t a, uint32_t b)
{
        if (e->is_listed[a] != e->is_listed[b])
                return e->is_listed[a];
        return f->members[a].created < f->members[b].created;
}

/* How many of those that could own come before this one. */
static uint32_t rank(const struct membership *f, const struct expected *e, const enum part *parts, uint32_t member)
{
        uint32_t before = 0;
        for (uint32_t i = 0; i < f->count; i++)
                before += parts[i] != GIVES && i != member && comes_before(f, e, i, member);
        return before;
}

static void limit(const struct membership *f, struct expected *e)
{
        enum part parts[MEMBERSHIP_MAX];
        uint32_t first = MEMBERSHIP_MAX, in = 0;
        memcpy(parts, e->parts, sizeof(parts));
        for (uint32_t i = 0; i < f->count; i++) {
                if (parts[i] != TAKES)
                        continue;
                if (first == MEMBERSHIP_MAX || comes_before(f, e, i, first))
                        first = i;
                if (rank(f, e, parts, i) < f->input.members_max)
                        in++;
                else
                        e->parts[i] = GIVES;
        }
        if (!in && first != MEMBERSHIP_MAX)
                e->parts[first] = TAKES;
}

static void expect(const struct membership *f, struct expected *e)
{
        bool has_weight = false;
        *e = (struct expected){ .orphans = f->input.shards_count, .shares = f->input.shards_count };
        for (uint32_t i = 0; i < f->count; i++) {
                const struct assign_member *m = &f->members[i];
                has_weight |= m->sees_store && !m->is_draining && m->weight;
                e->have[i] = f->now.slots ? owned_by(&f->now, m) : 0;
                e->orphans -= e->have[i];
                for (uint32_t k = 0; k < f->now.owners_count; k++)
                        e->is_listed[i] |= !memcmp(f->now.owners[k].nonce, m->nonce, STORE_NONCE_SIZE);
        }
        for (uint32_t i = 0; i < f->count; i++) {
                const struct assign_member *m = &f->members[i];
                e->weights[i] = has_weight ? m->weight : 1;
                e->parts[i] = GIVES;
                if (!m->is_draining && m->sees_store && e->weights[i])
                        e->parts[i] = TAKES;
                if (!m->is_draining && !m->sees_store && e->have[i])
                        e->parts[i] = KEEPS;
        }
        if (f->input.members_max)
                limit(f, e);
        for (uint32_t i = 0; i < f->count; i++) {
                if (e->parts[i] == TAKES) {
                        e->weights_sum += e->weights[i];
                        e->takers++;
                } else if (e->parts[i] == KEEPS) {
                        e->shares -= e->have[i];
                }
        }
}

static uint32_t floor_of(const struct expected *e, uint32_t member)
{
        return (uint32_t)((uint64_t)e->shares * e->weights[member] / e->weights_sum);
}

static uint64_t remainder_of(const struct expected *e, uint32_t member)
{
        return (uint64_t)e->shares * e->weights[member] % e->weights_sum;
}

/* The fewest moves by which quotas can be reached, if those with equal remainders are chosen with that in mind: what is
 * above the whole part of a quota moves, except for one more at each that gets an extra and has it already. */
static uint32_t fewest_moves(const struct membership *f, const struct expected *e)
{
        uint32_t moves = e->orphans, extras = e->shares;
        bool has_extra[MEMBERSHIP_MAX] = { 0 };
        for (uint32_t i = 0; i < f->count; i++) {
                if (e->parts[i] == GIVES)
                        moves += e->have[i];
                if (e->parts[i] != TAKES)
                        continue;
                extras -= floor_of(e, i);
                if (e->have[i] > floor_of(e, i))
                        moves += e->have[i] - floor_of(e, i);
        }
        for (; extras; extras--) {
                uint32_t best = 0;
                while (e->parts[best] != TAKES || has_extra[best])
                        best++;
                for (uint32_t i = best + 1; i < f->count; i++) {
                        if (e->parts[i] != TAKES || has_extra[i])
                                continue;
                        if (remainder_of(e, i) > remainder_of(e, best) ||
                                (remainder_of(e, i) == remainder_of(e, best) && e->have[i] > floor_of(e, i)))
                                best = i;
                }
                has_extra[best] = true;
                moves -= e->have[best] > floor_of(e, best);
        }
        return moves;
}

/* --- what must hold ---------------------------------------------------------------------------------------------- */

static void assert_same(const struct assignment *a, const struct assignment *b)
{
        assert_int_equal(a->generation, b->generation);
        assert_int_equal(a->shards_count, b->shards_count);
        assert_int_equal(a->owners_count, b->owners_count);
        for (uint32_t i = 0; i < a->owners_count; i++) {
                assert_memory_equal(a->owners[i].nonce, b->owners[i].nonce, STORE_NONCE_SIZE);
                assert_string_equal(a->owners[i].name, b->owners[i].name);
                assert_int_equal(a->owners[i].is_draining, b->owners[i].is_draining);
        }
        assert_int_equal(a->givers_count, b->givers_count);
        if (a->givers_count)
                assert_memory_equal(a->givers, b->givers, a->givers_count * sizeof(a->givers[0]));
        for (uint32_t i = 0; i < a->shards_count; i++) {
                assert_int_equal(a->slots[i].owner, b->slots[i].owner);
                assert_int_equal(a->slots[i].epoch, b->slots[i].epoch);
                assert_int_equal(a->slots[i].is_firm, b->slots[i].is_firm);
        }
}

/* What would come out if the members stood in another order. */
static void assert_order_does_not_matter(const struct membership *f)
{
        struct assign_member shuffled[MEMBERSHIP_MAX];
        struct assign_input input = f->input;
        struct assign_plan plans[2];
        memcpy(shuffled, f->members, f->count * sizeof(shuffled[0]));
        for (uint32_t i = f->count; i > 1; i--) {
                uint32_t other = below(i);
                struct assign_member swapped = shuffled[other];
                shuffled[other] = shuffled[i - 1];
                shuffled[i - 1] = swapped;
        }
        input.members_count = f->count;
        input.members = f->members;
        assert_int_equal(assign_plan(membership_previous(f), &input, &plans[0], NULL), 0);
        input.members = shuffled;
        assert_int_equal(assign_plan(membership_previous(f), &input, &plans[1], NULL), 0);
        assert_same(&plans[0].next, &plans[1].next);
        assert_int_equal(plans[0].moves_left, plans[1].moves_left);
        assign_plan_free(&plans[0]);
        assign_plan_free(&plans[1]);
}

static void assert_written_and_read_is_the_same(const struct assignment *a)
{
        struct buffer text = { 0 };
        struct assignment back;
        struct error error = { 0 };
        assert_int_equal(assign_doc_put(&text, a, &error), 0);
        if (assign_doc_parse((struct span){ (const char *)text.data, text.size }, &back, &error))
                fail_msg("%s in:\n%s", error.text, buffer_text(&text));
        assert_same(a, &back);
        assignment_free(&back);
        buffer_free(&text);
}

static bool is_same_owner(const struct assign_owner *a, const struct assign_owner *b)
{
        return a && b ? !memcmp(a->nonce, b->nonce, STORE_NONCE_SIZE) : a == b;
}

static uint32_t member_of(const struct membership *f, const struct assign_owner *owner)
{
        for (uint32_t i = 0; owner && i < f->count; i++)
                if (!memcmp(f->members[i].nonce, owner->nonce, STORE_NONCE_SIZE))
                        return i;
        return MEMBERSHIP_MAX;
}

/* One shard, before and after.  Returns whether it was a planned move. */
static bool assert_step(
        const struct membership *f, const struct expected *e, const struct assignment *before, uint32_t shard)
{
        const struct assign_owner *from = before ? assignment_owner(before, shard) : NULL;
        const struct assign_owner *to = assignment_owner(&f->now, shard);
        const struct assign_slot *slot = &f->now.slots[shard];
        uint64_t epoch = before ? before->slots[shard].epoch : 0;
        if (is_same_owner(from, to)) {
                assert_true(slot->epoch == epoch || slot->epoch == f->now.generation);
                assert_true(slot->epoch >= epoch);
                assert_true(!e->takers || member_of(f, to) != MEMBERSHIP_MAX);
                return false;
        }
        assert_int_equal(slot->epoch, f->now.generation);
        assert_true(slot->epoch > epoch);
        assert_int_equal(e->parts[member_of(f, to)], TAKES);
        bool is_orphan = from && member_of(f, from) == MEMBERSHIP_MAX;
        assert_int_equal(slot->is_firm, is_orphan);
        if (!from || is_orphan)
                return false;
        assert_int_not_equal(e->parts[member_of(f, from)], KEEPS);
        return true;
}

static void assert_moves_listed(const struct membership *f, const struct assignment *before)
{
        uint32_t changed = 0;
        for (uint32_t shard = 0; shard < f->now.shards_count; shard++) {
                const struct assign_owner *from = before ? assignment_owner(before, shard) : NULL;
                changed += !is_same_owner(from, assignment_owner(&f->now, shard));
        }
        assert_int_equal(changed, f->plan.moves_count);
        for (uint32_t i = 0; i < f->plan.moves_count; i++) {
                const struct assign_move *move = &f->plan.moves[i];
                const struct assign_owner *from = before ? assignment_owner(before, move->shard) : NULL;
                assert_true(!i || f->plan.moves[i - 1].shard < move->shard);
                assert_true(is_same_owner(from ? &move->from : NULL, from));
                assert_true(is_same_owner(&move->to, assignment_owner(&f->now, move->shard)));
                assert_int_equal(move->epoch, f->now.slots[move->shard].epoch);
        }
}

/* Makes the next document and checks it against the last.  Returns how many shards moved. */
static uint32_t step(struct membership *f)
{
        struct expected e;
        struct assignment before = f->now;
        bool has_before = before.slots;
        expect(f, &e);
        assert_order_does_not_matter(f);
        /* membership_assign() frees the last one when there is a new one: keep ours. */
        if (has_before) {
                assignment_init(&before, f->now.shards_count, f->now.owners_count, 0);
                before.generation = f->now.generation;
                memcpy(before.slots, f->now.slots, before.shards_count * sizeof(before.slots[0]));
                memcpy(before.owners, f->now.owners, before.owners_count * sizeof(before.owners[0]));
        }
        membership_assign(f);
        assert_true(has_before || f->plan.is_changed);
        assert_true(!has_before || !f->plan.is_changed || f->now.generation > before.generation);
        uint32_t planned = 0;
        for (uint32_t shard = 0; shard < f->now.shards_count; shard++)
                planned += assert_step(f, &e, has_before ? &before : NULL, shard);
        assert_true(!planned || f->input.may_plan);
        assert_true(!f->input.round_max || planned <= f->input.round_max);
        assert_moves_listed(f, has_before ? &before : NULL);
        assert_written_and_read_is_the_same(&f->now);
        if (has_before)
                assignment_free(&before);
        return f->plan.moves_count;
}

/* Each taker has its quota: whole part or one more, and the extras are with the larger remainders. */
static void assert_shares_are_right(const struct membership *f)
{
        struct expected e;
        expect(f, &e);
        for (uint32_t a = 0; a < f->count; a++) {
                if (e.parts[a] == GIVES && e.takers)
                        assert_int_equal(e.have[a], 0);
                if (e.parts[a] != TAKES)
                        continue;
                assert_true(e.have[a] == floor_of(&e, a) || e.have[a] == floor_of(&e, a) + 1);
                for (uint32_t b = 0; b < f->count; b++)
                        if (e.parts[b] == TAKES && e.have[a] > floor_of(&e, a) && e.have[b] == floor_of(&e, b))
                                assert_true(remainder_of(&e, a) >= remainder_of(&e, b));
        }
}

/* Nothing happens any more: rounds follow each other until all is right, in the fewest moves, and then it stays so. */
static void settle(struct membership *f)
{
        struct expected e;
        f->input.may_plan = true;
        expect(f, &e);
        uint32_t fewest = e.takers ? fewest_moves(f, &e) : 0;
        uint32_t moved = 0;
        for (uint32_t round = 0; round <= fewest; round++) {
                moved += step(f);
                assert_int_equal(moved + f->plan.moves_left, fewest);
                if (!f->plan.moves_left)
                        break;
        }
        assert_int_equal(moved, fewest);
        assert_shares_are_right(f);
        assert_int_equal(step(f), 0);
        assert_false(f->plan.is_changed);
}

/* --- what may happen --------------------------------------------------------------------------------------------- */

static uint32_t next_number;

static void happen(struct membership *f, struct assign_stale *stale)
{
        static const uint32_t weights[] = { 0, 1, 1, 1, 1, 5, 999, 1000 };
        struct assign_member *someone = f->count ? &f->members[below(f->count)] : NULL;
        switch (below(10)) {
        case 0:
        case 1:
                if (f->count < 12)
                        membership_join(f, ++next_number, weights[below(COUNT(weights))]);
                break;
        case 2:
                if (someone)
                        *someone = f->members[--f->count];
                break;
        case 3:
                if (someone)
                        someone->is_draining = !someone->is_draining;
                break;
        case 4:
                if (someone)
                        someone->weight = weights[below(COUNT(weights))];
                break;
        case 5:
                if (someone)
                        someone->sees_store = !someone->sees_store;
                break;
        case 6:
                f->input.members_max = below(3) ? below(5) : 0;
                break;
        case 7:
                *stale = (struct assign_stale){ below(f->input.shards_count + 2), f->now.generation + below(20) - 10 };
                f->input.stale_count = 1;
                break;
        case 8:
                f->input.may_plan = below(3);
                f->input.round_max = below(6);
                break;
        default:
                f->input.unix_s += below(100);
        }
}

static void every_history_ends_in_the_right_shares_after_the_fewest_moves(void **state)
{
        (void)state;
        const char *given = getenv("QUIVER_TEST_SEED");
        uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
        print_message("QUIVER_TEST_SEED=%llu\n", (unsigned long long)seed);
        random_state = seed;
        static struct membership f;
        for (uint32_t history = 0; history < HISTORIES; history++) {
                struct assign_stale stale = { 0 };
                membership_open(&f, 1 + below(history % 10 ? 40 : 300));
                f.input.stale = &stale;
                for (uint32_t event = 0; event < EVENTS; event++) {
                        happen(&f, &stale);
                        step(&f);
                        f.input.stale_count = 0;
                        if (!below(4))
                                settle(&f);
                }
                settle(&f);
                membership_close(&f);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_history_ends_in_the_right_shares_after_the_fewest_moves),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
