/* A shard against a small store of the same contract, with everything that goes wrong between them: answers that are
 * lost, before or after the store did it, leases that run out, and a rival that takes the shard and works on it.  Tasks
 * are merged and debounced. */
#include <time.h>

#include "shard_model.h"

/* --- what goes wrong -------------------------------------------------------------------------------------------------
 */

/* The lease has run out: another takes it, works for a while, and may let go. */
static void rival_comes(struct model *m)
{
        if (m->is_held && m->until_ms > m->rig.now_ms)
                return;
        m->epoch += 1 + draw(m, 3);
        m->call += 2;
        m->is_held = draw(m, 2);
        m->is_ours = false;
        m->until_ms = m->rig.now_ms + 200;
        bool is_stuck[KEYS] = { false };
        for (uint32_t i = 0; i < m->arrived; i++) {
                struct model_task *t = &m->tasks[i];
                bool is_next = t->place == FLIGHT && !is_stuck[t->key] && m->keys[t->key].state != KEY_PARKED;
                if (is_next && strcmp(t->handler, "nobody") != 0 && !draw(m, 2)) {
                        t->place = GONE;
                        m->done++;
                }
                is_stuck[t->key] |= t->place != GONE;
        }
}

static bool is_behind_another(const struct model *m, const struct model_task *t)
{
        for (const struct model_task *other = m->tasks; other < t; other++)
                if (other->key == t->key && other->place != GONE)
                        return true;
        return false;
}

/* --- the host --------------------------------------------------------------------------------------------------------
 */

static void start_one(struct model *m)
{
        unsigned seat = draw(m, SEATS);
        if (m->seats[seat])
                return;
        uint32_t pool = draw(m, 2);
        if (!window_marks(&m->rig.shard.window, pool))
                (void)shard_mark_next(&m->rig.shard, pool, m->rig.now_ms);
        assert_true(window_marks(&m->rig.shard.window, pool) <= 1);
        struct claimed *c = next_of(&m->rig.shard, pool, m->rig.now_ms);
        if (!c)
                return;
        struct model_task *t = &m->tasks[c->seq - 1];
        assert_true(m->is_ours && m->until_ms > m->rig.now_ms);
        assert_int_equal(t->place, FLIGHT);
        assert_false(is_behind_another(m, t));
        assert_true(!t->is_suspect || t->is_marked);
        check_merged(m, c);
        t->has_run = true;
        for (unsigned i = 0; i < SEATS; i++)
                assert_false(m->seats[i] && span_is(m->seats[i]->key, c->key));
        m->seats[seat] = c;
        m->ran++;
}

static void end_one(struct model *m)
{
        unsigned seat = draw(m, SEATS);
        struct claimed *c = m->seats[seat];
        if (!c)
                return;
        m->seats[seat] = NULL;
        static const enum store_outcome_kind kinds[] = { STORE_RETRY, STORE_DEAD, STORE_INTERRUPTED };
        struct pending_outcome *pending = pending_outcome_new(STORE_DONE, COST_NONE, "");
        if (happens(m, 4))
                pending->outcome.kind = kinds[draw(m, 3)];
        pending->outcome.delay_ms = pending->outcome.kind == STORE_RETRY ? draw(m, 3) * 100 : 0;
        pending->outcome.is_suspect = pending->outcome.kind == STORE_INTERRUPTED && draw(m, 2);
        if (!happens(m, 8)) {
                shard_ended(&m->rig.shard, c, pending, m->rig.now_ms);
                return;
        }
        pending_outcome_free(pending);
        shard_again(&m->rig.shard, c, m->rig.now_ms);
}

static void send(struct model *m)
{
        struct rig *g = &m->rig;
        m->call_kind = shard_next_call(&g->shard, draw(m, 2), g->now_ms);
        if (m->call_kind == SHARD_CALL_ACQUIRE)
                shard_fill_acquire(&g->shard, &g->acquire, g->now_ms);
        else if (m->call_kind == SHARD_CALL_PAGE)
                shard_fill_page(&g->shard, &g->page, g->now_ms);
        else if (m->call_kind == SHARD_CALL_ADVANCE)
                shard_fill_advance(&g->shard, &g->advance, g->now_ms);
        else if (m->call_kind == SHARD_CALL_NAMES)
                shard_fill_names(&g->shard, &m->names, g->now_ms);
        else if (m->call_kind == SHARD_CALL_WAKE)
                shard_fill_wake(&g->shard, &m->wake, g->now_ms);
        else if (m->call_kind == SHARD_CALL_RELEASE)
                shard_fill_release(&g->shard, &g->release, g->now_ms);
}

static uint64_t next_due_ms(const struct model *m)
{
        uint64_t due_ms = STORE_NEVER;
        for (unsigned key = 0; key < KEYS; key++) {
                uint64_t at_ms = m->keys[key].due_ms > m->rig.now_ms ? m->keys[key].due_ms - m->rig.now_ms : 0;
                if (m->keys[key].state != KEY_FREE && m->keys[key].state != KEY_NAMED && at_ms < due_ms)
                        due_ms = at_ms;
        }
        return due_ms;
}

static bool has_named(const struct model *m)
{
        for (unsigned key = 0; key < KEYS; key++)
                if (m->keys[key].state == KEY_NAMED)
                        return true;
        return false;
}

static bool has_queued(const struct model *m)
{
        for (uint32_t i = 0; i < m->arrived; i++)
                if (m->tasks[i].place == QUEUED)
                        return true;
        return false;
}

/* The answer arrives: what the store did is looked up now, as with a real one. */
static void answer_advance(struct model *m)
{
        struct rig *g = &m->rig;
        for (uint32_t i = 0; g->advance.verdict == STORE_OK && i < m->last_count; i++)
                give(m, m->last[i]);
        g->advance.tasks = g->tasks;
        g->advance.tasks_count = g->tasks_count;
        g->advance.has_more[LANE_HIGH] = has_queued(m);
        g->advance.next_due_ms = next_due_ms(m);
        g->advance.left_ms = m->until_ms > g->now_ms ? m->until_ms - g->now_ms : 0;
        shard_advanced(&g->shard, &g->advance, g->now_ms);
        g->tasks_count = 0;
}

static void answer_acquire(struct model *m)
{
        struct rig *g = &m->rig;
        bool has_more = g->acquire.grant == STORE_GRANTED && fill_page(m, 0);
        g->acquire.call = m->call;
        g->acquire.left_ms = RIG_TTL_MS;
        g->acquire.has_work = true;
        g->acquire.has_names = has_named(m);
        g->acquire.next_due_ms = next_due_ms(m);
        g->acquire.page = (struct store_page){ g->tasks, g->tasks_count, has_more };
        shard_acquired(&g->shard, &g->acquire, g->now_ms);
        g->tasks_count = 0;
}

static void answer_page(struct model *m)
{
        struct rig *g = &m->rig;
        g->page.verdict = is_fenced(m, &g->page.lease) ? STORE_FENCED : STORE_OK;
        bool has_more = g->page.verdict == STORE_OK && fill_page(m, g->page.after_seq);
        reply_page(g, g->page.verdict, has_more);
}

static void do_release(struct model *m, struct store_release *r)
{
        bool is_ok = !is_fenced(m, &r->lease) && r->call == m->call + 1;
        r->verdict = is_ok ? STORE_OK : STORE_FENCED;
        if (is_ok) {
                m->call++;
                m->is_held = false;
        }
}

static uint64_t woken_keys; /* in all rounds */

static void do_wake(struct model *m, struct store_wake *w)
{
        bool is_repeat = w->call == m->call;
        w->verdict = is_fenced(m, &w->lease) || w->call < m->call || w->call > m->call + 1 ? STORE_FENCED : STORE_OK;
        w->woken = 0;
        w->has_more = false;
        for (unsigned key = 0; key < KEYS && w->verdict == STORE_OK; key++) {
                struct model_key *k = &m->keys[key];
                if (k->state != KEY_NAMED || !span_is(w->name, rig_span(k->name)))
                        continue;
                if (is_repeat || w->woken == w->max) {
                        w->has_more = true;
                        continue;
                }
                *k = (struct model_key){ .state = KEY_WAITS, .due_ms = m->rig.now_ms };
                w->woken++;
        }
        woken_keys += w->woken;
        if (w->verdict == STORE_OK && !is_repeat) {
                m->call = w->call;
                m->last_count = 0;
        }
}

static void answer_names(struct model *m)
{
        struct store_names *n = &m->names;
        n->verdict = is_fenced(m, &n->lease) ? STORE_FENCED : STORE_OK;
        n->names = m->name_list;
        n->names_count = 0;
        for (unsigned key = 0; key < KEYS; key++)
                if (m->keys[key].state == KEY_NAMED)
                        m->name_list[n->names_count++] = rig_span(m->keys[key].name);
        shard_named(&m->rig.shard, n);
}

/* A person pauses a handler, or lets it go on. */
static void pause_or_resume(struct model *m)
{
        struct rig *g = &m->rig;
        bool is_shut = g->routes.states[0] == ROUTE_SHUT;
        if (!is_shut && !happens(m, 40))
                return;
        if (is_shut && !m->is_calm && draw(m, 20))
                return;
        g->routes.states[0] = is_shut ? ROUTE_OPEN : ROUTE_SHUT;
        shard_look_at_names(&g->shard);
        if (!is_shut)
                shard_return_pool(&g->shard, 0, g->now_ms);
}

/* The call under way reaches the store, or not; its answer reaches us, or not. */
static void deliver(struct model *m)
{
        struct rig *g = &m->rig;
        enum shard_call call = m->call_kind;
        m->call_kind = SHARD_CALL_NONE;
        bool is_done = !happens(m, 12);
        if (is_done && call == SHARD_CALL_ADVANCE)
                do_advance(m, &g->advance);
        else if (is_done && call == SHARD_CALL_ACQUIRE)
                do_acquire(m, &g->acquire);
        else if (is_done && call == SHARD_CALL_WAKE)
                do_wake(m, &m->wake);
        else if (is_done && call == SHARD_CALL_RELEASE)
                do_release(m, &g->release);
        if (!is_done || happens(m, 12))
                shard_failed(&g->shard, g->now_ms);
        else if (call == SHARD_CALL_ADVANCE)
                answer_advance(m);
        else if (call == SHARD_CALL_ACQUIRE)
                answer_acquire(m);
        else if (call == SHARD_CALL_PAGE)
                answer_page(m);
        else if (call == SHARD_CALL_NAMES)
                answer_names(m);
        else if (call == SHARD_CALL_WAKE)
                shard_woken(&g->shard, &m->wake);
        else
                shard_released(&g->shard);
}

static void renew(struct model *m)
{
        struct rig *g = &m->rig;
        struct store_renewal renewal = { .lease = g->shard.lease, .has_work = has_queued(m), .left_ms = RIG_TTL_MS };
        renewal.verdict = is_fenced(m, &renewal.lease) ? STORE_FENCED : STORE_OK;
        if (renewal.verdict == STORE_OK)
                m->until_ms = g->now_ms + RIG_TTL_MS;
        shard_renewed(&g->shard, &renewal, g->now_ms, g->now_ms);
}

/* Who should have the shard: mostly this host.  It is moved away now and then, and comes back under a higher epoch. */
static void coordinate(struct model *m)
{
        struct shard *s = &m->rig.shard;
        uint8_t nonce[STORE_NONCE_SIZE] = { 1, 2, 3 };
        shard_tick(s, m->rig.now_ms);
        if (m->is_over)
                return;
        if (happens(m, 150))
                shard_unassign(s, m->rig.now_ms);
        bool is_away = s->state == SHARD_AWAY || s->state == SHARD_PARTING || s->state == SHARD_LEAVING;
        if (is_away && !draw(m, 20))
                shard_assign(s, nonce, (s->stale_epoch > m->epoch ? s->stale_epoch : m->epoch) + 1, false);
}

static void step(struct model *m)
{
        coordinate(m);
        pause_or_resume(m);
        if (m->arrived < TASKS && !draw(m, 3)) {
                m->tasks[m->arrived++].arrived_ms = m->rig.now_ms;
                m->rig.shard.has_work = true;
        }
        m->rig.now_ms += happens(m, 200) ? RIG_TTL_MS + draw(m, 5000) : draw(m, 30);
        if (happens(m, 60))
                rival_comes(m);
        if (!draw(m, 20))
                renew(m);
        if (m->call_kind == SHARD_CALL_NONE)
                send(m);
        else if (draw(m, 2))
                deliver(m);
        start_one(m);
        end_one(m);
}

static void make_tasks(struct model *m)
{
        for (uint32_t i = 0; i < TASKS; i++) {
                /* One key takes a third of all, to have more than its share. */
                unsigned key = draw(m, 3) ? draw(m, KEYS) : 0;
                const char *handler = draw(m, 2) ? "a" : "b";
                /* Nobody serves some of the last key's. */
                if (key == KEYS - 1 && !draw(m, 3))
                        handler = "nobody";
                m->tasks[i] = (struct model_task){ .seq = i + 1, .key = key, .handler = handler, .payload = i };
                m->tasks[i].may_merge = draw(m, 3);
                m->tasks[i].debounce_ms = m->tasks[i].may_merge && !draw(m, 4) ? 1 + draw(m, 200) : 0;
                m->tasks[i].reply_ms = draw(m, 3) * 1000;
                (void)snprintf(payloads[i], sizeof(payloads[i]), "%u", i % TASKS);
        }
}

static bool is_all_done(const struct model *m)
{
        for (uint32_t i = 0; i < TASKS; i++)
                if (m->tasks[i].key != KEYS - 1 && m->tasks[i].place != GONE)
                        return false;
        return true;
}

static void every_task_is_done_once_in_order_whatever_goes_wrong(void **state)
{
        (void)state;
        const char *given = getenv("QUIVER_TEST_SEED");
        uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
        static struct model m;
        print_message("QUIVER_TEST_SEED=%llu\n", (unsigned long long)seed);
        for (uint64_t round = 0; round < 200; round++) {
                m = (struct model){ .random = seed + round, .epoch = 3 };
                rig_open(&m.rig);
                m.rig.limits.can_merge = true;
                make_tasks(&m);
                for (int i = 0; i < 3000; i++)
                        step(&m);
                m.is_calm = true;
                for (int i = 0; i < 20000 && !is_all_done(&m); i++)
                        step(&m);
                assert_true(is_all_done(&m));
                assert_true(m.ran + m.merged >= TASKS / 2);
                assert_true(m.merged >= TASKS / 20);
                check_replies(&m);
                m.is_over = true;
                shard_leave(&m.rig.shard, m.rig.now_ms);
                for (int i = 0; i < 2000 && m.rig.shard.state != SHARD_AWAY; i++)
                        step(&m);
                assert_true(shard_is_quiet(&m.rig.shard));
                assert_false(m.is_held && m.is_ours);
                assert_int_equal(m.rig.shard.window.count, 0);
                rig_close(&m.rig);
        }
        assert_true(woken_keys > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_task_is_done_once_in_order_whatever_goes_wrong),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
