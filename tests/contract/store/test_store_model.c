/* A driver against the model: random operations with crashes and lost answers, compared step by step.
 *
 *         QUIVER_SEED=N replays a run; QUIVER_STEPS=N makes it longer. */
#include "harness.h"
#include "model.h"

#include <time.h>

/* Another driver's test includes this file. */
#ifndef CONTRACT
#define CONTRACT sqlite_contract
#define STEPS    20000
#endif
const struct contract_driver *driver = &CONTRACT;

#define HOSTS    3
#define BATCH    12
#define REPLY_MS UINT64_C(1000000000000) /* longer than any run */
#define ALIVE    300                     /* above it, nothing is submitted */

static struct model m;

/* What a host of the test knows: its lease, its tasks, and a call whose answer it lost. */
struct host {
        uint64_t epoch;
        uint64_t call;
        struct {
                unsigned number;
                uint64_t seq;
        } tasks[MODEL_TASKS];
        unsigned count;

        bool has_lost;
        struct model_outcome outcomes[BATCH];
        unsigned outcomes_count;
        unsigned want[LANES];
};

static struct host hosts[HOSTS];
static struct {
        char id[TASK_ID_MAX + 1];
        unsigned key;
        uint64_t submitted_ms; /* as the first owner has read it; no merge changes it */
} * known;                     /* by number */
static unsigned last_number;
static uint64_t last_epoch;
static uint64_t random_state;
static unsigned step;
static unsigned led_on; /* answers that are those of another task */
static unsigned busy;   /* tasks that somebody else may still run, as hosts are told */

static unsigned below(unsigned n)
{
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned)((random_state >> 33) % n);
}

static struct span key_name(struct world *w, unsigned key)
{
        return F(w, "key-%c", (char)('a' + key));
}

static struct owner lease_of(unsigned host)
{
        struct owner o = owner_of(0, hosts[host].epoch ? hosts[host].epoch : 1, (uint8_t)(host + 1));
        o.call = hosts[host].call;
        return o;
}

/* --- comparing --------------------------------------------------------------------------------------------------- */

static void compare_counts(struct world *w)
{
        struct store_counts c = counts(w, 0);
        assert_int_equal(c.queued[0] + c.queued[1] + c.queued[2], model_count(&m, MODEL_QUEUED));
        assert_int_equal(c.delayed, model_count(&m, MODEL_DELAYED));
        assert_int_equal(c.in_flight, model_count(&m, MODEL_FLIGHT));
        assert_int_equal(store_counts_parked(&c), model_count(&m, MODEL_PARKED));
        assert_int_equal(c.dead, model_count(&m, MODEL_DEAD));
        assert_int_equal(c.keys, model_keys(&m));
        assert_int_equal(c.controls, m.controls_count);
        assert_int_equal(c.submitted, m.submitted);
        assert_int_equal(c.done, m.done);
        assert_int_equal(c.dropped, m.dropped);
        assert_int_equal(c.merged, m.merged);
        assert_int_equal(c.epoch, m.epoch);
        assert_int_equal(c.is_held, m.is_held);
}

static unsigned read_number(struct span from)
{
        char text[16] = "";
        assert_true(from.size < sizeof(text));
        memcpy(text, from.data, from.size);
        return (unsigned)atoi(text);
}

static unsigned number_of(const struct store_task *task)
{
        struct span id = task->envelope.id;
        return read_number((struct span){ id.data + 1, id.size - 1 });
}

/* What becomes of a task that others are merged into. */
static void compare_merged(const struct store_task *task, const struct model_task *t)
{
        const struct envelope *e = &task->envelope;
        assert_int_equal(read_number(e->payload), t->payload);
        assert_int_equal(e->is_merge, t->may_merge);
        assert_int_equal(e->debounce_ms, t->debounce_ms);
        assert_int_equal(e->reply_ms, t->has_reply ? REPLY_MS : 0);
        assert_int_equal(task->note.merged, t->merged);
        assert_int_equal(task->note.is_debounced, t->is_debounced);
        if (!known[t->number].submitted_ms)
                known[t->number].submitted_ms = e->submitted_ms;
        assert_int_equal(e->submitted_ms, known[t->number].submitted_ms);
}

/* Of any task, or of one that was merged. */
static void compare_reply_record(struct world *w)
{
        unsigned kept = m.merged < STORE_MERGED_KEPT ? m.merged : STORE_MERGED_KEPT;
        if (!last_number)
                return;
        unsigned number = kept && below(2) ? m.merges[below(kept)].number : 1 + below(last_number);
        struct model_reply expected = model_reply(&m, number);
        struct store_reply got = reply(w, T(known[number].id), 0);
        assert_int_equal(got.state, expected.state);
        if (got.state == REPLY_PENDING)
                return;
        led_on += expected.number != number;
        assert_int_equal(got.note.merged, expected.merged);
        if (got.state == REPLY_DONE)
                assert_true(got.has_data && span_is(got.data, F(w, "%u", expected.number)));
}

static void compare_merge_record(struct world *w)
{
        unsigned kept = m.merged < STORE_MERGED_KEPT ? m.merged : STORE_MERGED_KEPT;
        if (!kept)
                return;
        unsigned number = m.merges[below(kept)].number;
        struct span into = find_merged(w, T(known[number].id)).merged_into;
        assert_true(span_is(into, T(known[model_merged_into(&m, number)].id)));
}

static void learn(unsigned host, const struct store_task *tasks, uint32_t count)
{
        struct host *h = &hosts[host];
        for (uint32_t i = 0; i < count; i++) {
                struct model_task *t = model_find(&m, number_of(&tasks[i]));
                assert_non_null(t);
                assert_int_equal(t->attempts, tasks[i].note.attempts);
                assert_int_equal(t->interruptions, tasks[i].note.interruptions);
                compare_merged(&tasks[i], t);
                assert_int_equal(t->lane, STORE_SEQ_LANE(tasks[i].seq));
                char holder[32] = "";
                if (t->holder)
                        (void)snprintf(holder, sizeof(holder), "worker-%u", t->holder);
                assert_true(span_is(tasks[i].note.holder, T(holder)));
                assert_int_equal(tasks[i].busy_ms, t->until_ms > m.now_ms ? t->until_ms - m.now_ms : 0);
                if (tasks[i].busy_ms)
                        busy++;
                h->tasks[h->count].number = t->number;
                h->tasks[h->count++].seq = tasks[i].seq;
        }
}

static void compare_reply(struct world *w, const struct store_advance *a)
{
        (void)w;
        assert_int_equal(a->tasks_count, m.last_count);
        for (uint32_t i = 0; i < a->tasks_count; i++)
                assert_int_equal(number_of(&a->tasks[i]), m.last[i]);
        assert_int_equal(a->controls_count, m.last_controls_count);
        for (uint32_t i = 0; i < a->controls_count; i++)
                assert_int_equal(a->controls[i].verb, m.last_controls[i].verb);
        assert_int_equal(a->gone, m.last_gone);
}

/* --- what hosts do ----------------------------------------------------------------------------------------------- */

/* The task stays in flight. */
static bool is_kept(enum store_outcome_kind kind)
{
        return kind == STORE_START || kind == STORE_INTERRUPTED || kind == STORE_MERGE;
}

static struct store_ref ref_of(struct world *w, const struct host *h, unsigned number)
{
        const struct model_task *t = model_find(&m, number);
        struct store_ref ref = { .id = T(known[number].id),
                .key = key_name(w, known[number].key),
                .handler = T("h"),
                .reply_ms = t && t->has_reply ? REPLY_MS : 0 };
        for (unsigned i = 0; i < h->count; i++)
                if (h->tasks[i].number == number)
                        ref.seq = h->tasks[i].seq;
        return ref;
}

static void set_merged(
        struct world *w, const struct host *h, const struct model_outcome *from, struct store_outcome *to)
{
        struct store_ref *refs = arena_take(&w->memory, from->merged_count * sizeof(*refs));
        for (unsigned i = 0; i < from->merged_count; i++)
                refs[i] = ref_of(w, h, from->merged[i]);
        if (from->is_one_gone)
                refs[from->merged_count - 1].seq += UINT64_C(1) << 40; /* a number that no task has */
        to->merged = refs;
        to->merged_count = from->merged_count;
}

static struct store_outcome outcome_of(
        struct world *w, unsigned host, const struct model_outcome *from, struct store_follow_up *follow_up)
{
        struct store_outcome to = { .kind = from->kind,
                .task = ref_of(w, &hosts[host], from->number),
                .cost = from->is_interruption                               ? COST_INTERRUPTION
                        : is_kept(from->kind) || from->kind == STORE_DIVERT ? COST_NONE
                                                                            : COST_ATTEMPT,
                .holder = from->holder ? F(w, "worker-%u", from->holder) : (struct span){ 0 },
                .until_ms = from->until_ms,
                .delay_ms = from->delay_ms,
                .refill = from->refill,
                .name = from->name ? F(w, "name:%u", from->name) : (struct span){ 0 },
                .is_debounce = from->is_debounce,
                .reason = T("tested"),
                .error = T("no") };
        if (from->merged_count)
                set_merged(w, &hosts[host], from, &to);
        if (from->kind == STORE_DONE && to.task.reply_ms) {
                to.has_result = true;
                to.result = F(w, "%u", from->number);
        }
        if (from->follow_up) {
                *follow_up = (struct store_follow_up){ .envelope = { .key = to.task.key,
                                                               .handler = T("h"),
                                                               .id = T(known[from->follow_up].id),
                                                               .payload = F(w, "%u", from->follow_up),
                                                               .lane = STORE_SEQ_LANE(to.task.seq) } };
                to.follow_ups = follow_up;
                to.follow_ups_count = 1;
        }
        return to;
}

static unsigned new_number(unsigned key)
{
        unsigned number = ++last_number;
        void *grown = realloc(known, (number + 1) * sizeof(*known));
        assert_non_null(grown);
        known = grown;
        known[number].key = key;
        known[number].submitted_ms = 0;
        (void)snprintf(known[number].id, sizeof(known[number].id), "t%u-0", number);
        return number;
}

/* Neighbours behind the task that the host holds, too; false if there are none. */
static bool choose_merged(const struct host *h, struct model_outcome *o, bool *is_chosen)
{
        unsigned next = o->number;
        while (o->merged_count < MODEL_MERGE && (next = model_next_to_merge(&m, next)) &&
                (!o->merged_count || below(3))) {
                unsigned i = 0;
                while (i < h->count && h->tasks[i].number != next)
                        i++;
                if (i == h->count || is_chosen[i])
                        break;
                is_chosen[i] = true;
                o->merged[o->merged_count++] = next;
        }
        o->is_one_gone = o->merged_count && !below(10);
        return o->merged_count;
}

/* Random outcomes of tasks that the host holds; each task at most once. */
static void choose_outcomes(struct host *h)
{
        bool is_chosen[MODEL_TASKS] = { false };
        h->outcomes_count = 0;
        for (unsigned i = 0; i < h->count && h->outcomes_count < BATCH; i++) {
                if (is_chosen[i] || below(3))
                        continue;
                is_chosen[i] = true;
                static const enum store_outcome_kind kinds[] = { STORE_DONE, STORE_DONE, STORE_DONE, STORE_RETRY,
                        STORE_RETRY, STORE_DEAD, STORE_HOLD, STORE_DIVERT, STORE_DIVERT, STORE_DONE, STORE_DONE,
                        STORE_DONE, STORE_START, STORE_START, STORE_INTERRUPTED, STORE_MERGE, STORE_MERGE, STORE_MERGE,
                        STORE_MERGE, STORE_MERGE };
                struct model_outcome o = { .kind = kinds[below(20)], .number = h->tasks[i].number };
                if (o.kind == STORE_MERGE && !choose_merged(h, &o, is_chosen))
                        o.kind = STORE_DONE;
                o.delay_ms = below(2) ? below(500) : 0;
                o.refill = below(9);
                o.name = o.kind == STORE_DIVERT && below(4) ? 1 + below(2) : 0;
                o.is_debounce = o.kind == STORE_DIVERT && !o.name && below(2);
                o.is_interruption = o.kind == STORE_DIVERT && !below(4);
                o.holder = o.kind == STORE_START ? 1 + below(2) : 0;
                o.until_ms = o.holder && below(3) ? 1 + below(2 * TTL_MS) : 0;
                if (o.kind == STORE_DONE && !below(8) && m.count < ALIVE)
                        o.follow_up = new_number(known[o.number].key);
                h->outcomes[h->outcomes_count++] = o;
        }
        for (unsigned lane = 0; lane < LANES; lane++)
                h->want[lane] = below(3) ? below(10) : below(6) ? 0 : below(40);
}

static void forget(struct host *h, unsigned number)
{
        for (unsigned i = 0; i < h->count; i++)
                if (h->tasks[i].number == number) {
                        h->tasks[i] = h->tasks[--h->count];
                        break;
                }
}

static void forget_settled(struct host *h)
{
        for (unsigned i = 0; i < h->outcomes_count; i++) {
                const struct model_outcome *o = &h->outcomes[i];
                if (!is_kept(o->kind))
                        forget(h, o->number);
                for (unsigned j = 0; j < o->merged_count && !o->is_one_gone; j++)
                        forget(h, o->merged[j]);
        }
}

static void do_advance(struct world *w, unsigned host)
{
        struct host *h = &hosts[host];
        struct owner o = lease_of(host);
        struct store_outcome outcomes[BATCH];
        struct store_follow_up follow_ups[BATCH];
        if (!h->has_lost)
                choose_outcomes(h);
        for (unsigned i = 0; i < h->outcomes_count; i++)
                outcomes[i] = outcome_of(w, host, &h->outcomes[i], &follow_ups[i]);
        bool is_lost = !below(10);
        w->lose_next = is_lost;
        w->calls_again = h->call % 3 == 0; /* what is said of it must not matter */
        struct store_advance a = advance_lanes(w, &o, h->call + 1, outcomes, h->outcomes_count, h->want);
        enum store_verdict verdict =
                model_advance(&m, host, o.lease.epoch, h->call + 1, TTL_MS, h->outcomes, h->outcomes_count, h->want);
        assert_int_equal(a.request.status, is_lost ? -ETIMEDOUT : 0);
        if (is_lost) {
                h->has_lost = true;
                return;
        }
        assert_int_equal(a.verdict, verdict);
        h->has_lost = false;
        if (verdict == STORE_FENCED) {
                assert_int_equal(a.tasks_count, 0);
                h->count = 0;
                return;
        }
        h->call++;
        forget_settled(h);
        compare_reply(w, &a);
        learn(host, a.tasks, a.tasks_count);
}

static void do_wake(struct world *w, unsigned host)
{
        struct host *h = &hosts[host];
        struct owner o = lease_of(host);
        unsigned name = 1 + below(2);
        unsigned woken = 0;
        bool has_more = false;
        if (h->has_lost)
                return; /* its number is that call's */
        struct store_wake wake = wake_call(w, &o, h->call + 1, F(w, "name:%u", name), below(4));
        enum store_verdict verdict =
                model_wake(&m, host, o.lease.epoch, h->call + 1, name, wake.max, &woken, &has_more);
        assert_int_equal(wake.request.status, 0);
        assert_int_equal(wake.verdict, verdict);
        if (verdict == STORE_FENCED)
                return;
        assert_int_equal(wake.woken, woken);
        assert_int_equal(wake.has_more, has_more);
        h->call++;
}

/* What a new owner finds, or an old one again. */
static void take_over(struct world *w, unsigned host, const struct owner *o)
{
        static unsigned expected[MODEL_TASKS];
        struct host *h = &hosts[host];
        unsigned count = model_flight(&m, expected);
        uint64_t after = 0;
        uint32_t found = 0;
        struct store_page page = o->granted.page;
        h->count = 0;
        for (;;) {
                for (uint32_t i = 0; i < page.tasks_count; i++) {
                        assert_true(found < count);
                        assert_int_equal(number_of(&page.tasks[i]), expected[found++]);
                        assert_int_equal(page.tasks[i].is_key_waiting, model_is_waiting(&m, expected[found - 1]));
                        after = page.tasks[i].seq;
                }
                learn(host, page.tasks, page.tasks_count);
                if (!page.has_more)
                        break;
                page = in_flight_page(w, o, after, 1 + below(20));
        }
        assert_int_equal(found, count);
}

static void do_acquire(struct world *w, unsigned host)
{
        struct host *h = &hosts[host];
        uint64_t epoch = below(3) || !h->epoch ? last_epoch + below(2) : h->epoch;
        struct owner o = owner_of(0, epoch ? epoch : 1, (uint8_t)(host + 1));
        if (o.lease.epoch > last_epoch)
                last_epoch = o.lease.epoch;
        assert_int_equal(acquire(w, &o), 0);
        enum store_grant grant = model_acquire(&m, host, o.lease.epoch, TTL_MS);
        assert_int_equal(o.granted.grant, grant);
        if (grant != STORE_GRANTED)
                return;
        h->epoch = o.lease.epoch;
        h->call = o.granted.call;
        h->has_lost = false;
        assert_int_equal(h->call, m.call);
        take_over(w, host, &o);
}

static void do_release(struct world *w, unsigned host)
{
        struct owner o = lease_of(host);
        enum store_verdict verdict = release(w, &o);
        assert_int_equal(verdict, model_release(&m, host, o.lease.epoch, hosts[host].call + 1));
        if (verdict == STORE_OK)
                hosts[host].call++;
        hosts[host].count = 0;
        hosts[host].has_lost = false;
}

/* --- what others do ---------------------------------------------------------------------------------------------- */

static void do_submit(struct world *w)
{
        struct store_submission items[8];
        unsigned count = m.count < ALIVE ? 1 + below(8) : 0;
        for (unsigned i = 0; i < count; i++) {
                unsigned key = below(3) ? below(MODEL_KEYS) : 0;
                unsigned number = new_number(key);
                enum lane lane = below(2) ? LANE_NORMAL : (enum lane)below(LANES);
                uint64_t delay_ms = below(6) ? 0 : 1 + below(3000);
                items[i] = (struct store_submission){ .envelope = { .key = key_name(w, key),
                                                              .handler = T("h"),
                                                              .payload = F(w, "%u", number),
                                                              .lane = lane },
                        .delay_ms = delay_ms };
                items[i].envelope.id = F(w, "%s", known[number].id);
                struct model_task *t = model_submit(&m, number, key, lane, delay_ms);
                t->may_merge = below(3);
                t->debounce_ms = t->may_merge && below(2) ? 1 + below(500) : 0;
                t->has_reply = below(2);
                items[i].envelope.is_merge = t->may_merge;
                items[i].envelope.debounce_ms = t->debounce_ms;
                items[i].envelope.reply_ms = t->has_reply ? REPLY_MS : 0;
        }
        assert_int_equal(submit_items(w, items, count), 0);
        for (unsigned i = 0; i < count; i++)
                assert_int_equal(items[i].status, 0);
}

static unsigned any_alive(void)
{
        return m.count ? m.tasks[below(m.count)].number : 0;
}

static unsigned any_dead(void)
{
        for (unsigned i = 0; i < m.count; i++)
                if (m.tasks[i].state == MODEL_DEAD && !below(3))
                        return m.tasks[i].number;
        return any_alive();
}

static void do_admin(struct world *w)
{
        unsigned what = below(8);
        unsigned number = what < 2 ? any_alive() : any_dead();
        unsigned key = below(MODEL_KEYS);
        enum store_control_verb verb = (enum store_control_verb)(CONTROL_HOLD + (int)below(4));
        /* Most of the time someone ends what a hold has stopped. */
        for (unsigned i = 0; i < MODEL_KEYS && below(8); i++)
                if (m.keys[i].state == KEY_HELD && below(2)) {
                        key = i;
                        verb = below(4) ? CONTROL_UNHOLD : verb;
                }
        switch (what) {
        case 0:
        case 7:
                if (m.controls_count < 200)
                        assert_int_equal(key_act(w, verb, key_name(w, key).data), model_key_act(&m, verb, key));
                break;
        case 1:
                if (number && m.controls_count < 200)
                        assert_int_equal(cancel(w, T(known[number].id), NULL), model_cancel(&m, number));
                break;
        case 2:
        case 3:
                if (number)
                        assert_int_equal(
                                dead_act(w, DEAD_REQUEUE, T(known[number].id)).acted, model_requeue(&m, number));
                break;
        default:
                if (number)
                        assert_int_equal(dead_act(w, DEAD_DROP, T(known[number].id)).acted, model_drop(&m, number));
        }
}

static void do_clock(struct world *w)
{
        uint64_t ms = below(5) ? below(300) : below(10) ? below(2 * TTL_MS) : STORE_WAITING_MS;
        world_step(w, (int64_t)ms);
        m.now_ms += ms;
}

static void do_crash(struct world *w)
{
        world_reopen(w);
        for (unsigned i = 0; i < HOSTS; i++)
                if (below(2)) {
                        hosts[i].count = 0;
                        hosts[i].has_lost = false;
                        hosts[i].epoch = 0;
                        hosts[i].call = 0;
                }
}

static void one_step(struct world *w)
{
        unsigned host = below(HOSTS);
        unsigned choice = below(100);
        if (m.is_held && below(4))
                host = m.holder;
        if (choice < 30)
                do_advance(w, host);
        else if (choice < 35)
                do_wake(w, host);
        else if (choice < 55)
                do_submit(w);
        else if (choice < 70)
                do_clock(w);
        else if (choice < 80)
                do_acquire(w, host);
        else if (choice < 83)
                do_release(w, host);
        else if (choice < 98)
                do_admin(w);
        else
                do_crash(w);
}

static void a_driver_does_what_the_model_does(void **state)
{
        struct world *w = *state;
        const char *steps_text = getenv("QUIVER_STEPS");
        const char *seed_text = getenv("QUIVER_SEED");
        unsigned steps = steps_text ? (unsigned)atoi(steps_text) : getenv("QUIVER_TEST_ALL") ? 15 * STEPS : STEPS;
        uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : (uint64_t)time(NULL);
        print_message("seed %llu: replay with QUIVER_SEED=%llu\n", (unsigned long long)seed, (unsigned long long)seed);
        random_state = seed;
        for (step = 0; step < steps; step++) {
                one_step(w);
                compare_counts(w);
                if (step % 4 == 0)
                        compare_reply_record(w);
                if (step % 16 == 0)
                        compare_merge_record(w);
                if (step % 500 == 0)
                        expect_sound(w);
                arena_free(w->memory);
                w->memory = NULL;
        }
        print_message("%u steps, %u tasks, %u done, %u merged, alive: %u queued, %u delayed, %u in flight, %u parked, "
                      "%u dead; %u answers led on\n",
                steps, m.submitted, m.done, m.merged, model_count(&m, MODEL_QUEUED), model_count(&m, MODEL_DELAYED),
                model_count(&m, MODEL_FLIGHT), model_count(&m, MODEL_PARKED), model_count(&m, MODEL_DEAD), led_on);
        assert_true(m.done > steps / 20);
        assert_true(busy > steps / 400);
        assert_true(m.merged > steps / 200);
        assert_true(led_on > steps / 1000);
        free(m.replies);
        free(known);
}

int main(void)
{
        const struct CMUnitTest tests[] = { IN_WORLD(a_driver_does_what_the_model_does) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
