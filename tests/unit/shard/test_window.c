/* Which claimed tasks may run: order per key and lane, one at a time, nobody waits for ever. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/shard/pending_outcome.h"
#include "host/shard/window.h"

#define POOLS   2
#define PER_KEY 4

static uint64_t seq_in(enum lane lane, uint64_t number)
{
        return (uint64_t)lane << STORE_SEQ_LANE_SHIFT | number;
}

static struct span span_of(const char *text)
{
        return (struct span){ text, strlen(text) };
}

static struct claimed *add(struct window *w, uint64_t seq, const char *key, uint32_t pool)
{
        struct store_task task = { .seq = seq,
                .key = span_of(key),
                .envelope = { .id = SPAN_TEXT("i-0"), .handler = SPAN_TEXT("h"), .payload = SPAN_TEXT("12345") } };
        return window_add(w, &task, pool);
}

static void open_window(struct window *w)
{
        window_init(w, POOLS, PER_KEY);
}

/* The next for that pool, of the highest lane that has one. */
static struct claimed *next_of(struct window *w, uint32_t pool)
{
        struct claimed *c = NULL;
        for (unsigned lane = 0; lane < LANES && !c; lane++)
                c = window_next(w, pool, (enum lane)lane);
        return c;
}

/* Runs the next task of pool 0 to its end and returns its seq; 0: there was none. */
static uint64_t run_next(struct window *w)
{
        struct claimed *c = next_of(w, 0);
        uint64_t seq = c ? c->seq : 0;
        if (c) {
                window_end(w, c);
                window_drop(w, c);
        }
        return seq;
}

static void a_task_of_no_lane_is_not_taken(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        assert_null(add(&w, STORE_SEQ_MAX + 1, "k", 0));
        assert_null(add(&w, UINT64_MAX, "k", 1));
        assert_int_equal(w.count, 0);
        assert_non_null(add(&w, STORE_SEQ_MAX, "k", 1));
        assert_non_null(next_of(&w, 1));
        window_free(&w);
}

static void a_key_runs_in_order_whenever_its_tasks_come(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        add(&w, 3, "k", 0);
        add(&w, 1, "k", 0);
        add(&w, 2, "k", 0);
        for (uint64_t seq = 1; seq <= 3; seq++)
                assert_int_equal(run_next(&w), seq);
        assert_null(next_of(&w, 0));
        window_free(&w);
}

static void a_key_never_has_two_tasks_out(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        struct claimed *first = add(&w, 1, "k", 0);
        add(&w, 2, "k", 0);
        add(&w, 3, "k", 1);
        assert_ptr_equal(next_of(&w, 0), first);
        assert_null(next_of(&w, 0));
        assert_null(next_of(&w, 1));
        assert_false(window_has_next(&w, 0));
        window_free(&w);
}

/* What has run but is not durable yet may have to run again: nothing of the key may have passed it. */
static void the_next_task_waits_until_the_outcome_is_durable(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        add(&w, 1, "k", 0);
        struct claimed *second = add(&w, 2, "k", 0);
        struct claimed *c = next_of(&w, 0);
        window_end(&w, c);
        assert_null(next_of(&w, 0));
        window_drop(&w, c);
        assert_ptr_equal(next_of(&w, 0), second);
        window_free(&w);
}

static void what_is_put_back_is_not_overtaken(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        struct claimed *first = add(&w, 1, "k", 0);
        add(&w, 2, "k", 0);
        assert_ptr_equal(next_of(&w, 0), first);
        window_put_back(&w, first);
        assert_ptr_equal(next_of(&w, 0), first);
        window_end(&w, first);
        window_put_back(&w, first); /* its start was recorded; now it runs */
        assert_int_equal(first->of->live, 2);
        assert_ptr_equal(next_of(&w, 0), first);
        window_free(&w);
}

static void a_task_that_waits_and_ends_does_not_let_a_later_one_pass(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        struct claimed *first = add(&w, 1, "k", 0);
        struct claimed *second = add(&w, 2, "k", 0);
        window_end(&w, first); /* cancelled before it started */
        assert_null(next_of(&w, 0));
        window_drop(&w, first);
        assert_ptr_equal(next_of(&w, 0), second);
        window_free(&w);
}

/* The end of such a task does not free a key that another task keeps busy. */
static void a_task_that_ends_while_another_runs_does_not_free_the_key(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        add(&w, 1, "k", 0);
        struct claimed *second = add(&w, 2, "k", 0);
        add(&w, 3, "k", 0);
        assert_int_equal(next_of(&w, 0)->seq, 1);
        window_end(&w, second);
        window_drop(&w, second);
        assert_null(next_of(&w, 0));
        window_free(&w);
}

static void higher_lanes_go_first(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        add(&w, seq_in(LANE_LOW, 1), "a", 0);
        add(&w, seq_in(LANE_NORMAL, 1), "b", 0);
        add(&w, seq_in(LANE_HIGH, 1), "c", 0);
        add(&w, seq_in(LANE_HIGH, 2), "a", 0); /* the key is the same in all lanes */
        assert_int_equal(run_next(&w), seq_in(LANE_HIGH, 1));
        assert_int_equal(run_next(&w), seq_in(LANE_HIGH, 2));
        assert_int_equal(run_next(&w), seq_in(LANE_NORMAL, 1));
        assert_int_equal(run_next(&w), seq_in(LANE_LOW, 1));
        window_free(&w);
}

static void keys_take_turns(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        for (uint64_t i = 0; i < 3; i++) {
                add(&w, 1 + 2 * i, "a", 0);
                add(&w, 2 + 2 * i, "b", 0);
        }
        for (uint64_t seq = 1; seq <= 6; seq++)
                assert_int_equal(run_next(&w), seq);
        window_free(&w);
}

static void a_pool_gets_its_own_tasks_only(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        add(&w, 1, "a", 0);
        struct claimed *other = add(&w, 2, "b", 1);
        add(&w, 3, "c", WINDOW_NO_POOL);
        assert_ptr_equal(next_of(&w, 1), other);
        assert_null(next_of(&w, 1));
        assert_int_equal(run_next(&w), 1);
        assert_int_equal(run_next(&w), 0);
        window_free(&w);
}

/* Wherever the windows and their lines stand in memory. */
static void what_waits_for_a_limit_is_not_ready(void **state)
{
        (void)state;
        enum { WINDOWS = 8 };
        struct window windows[WINDOWS];
        for (uint32_t i = 0; i < WINDOWS; i++) {
                struct window *w = &windows[i];
                window_init(w, i + 1, PER_KEY);
                for (unsigned lane = 0; lane < LANES; lane++) {
                        char key[] = { (char)('a' + lane), 0 };
                        struct claimed *c = add(w, seq_in((enum lane)lane, 1), key, i);
                        assert_ptr_equal(window_next(w, i, (enum lane)lane), c);
                        window_limit(w, c);
                }
                assert_false(window_has_ready(w));
                assert_int_equal(window_count_limited(w), LANES);
                add(w, seq_in(LANE_HIGH, 2), "a", i); /* what stands behind one takes room, too */
                assert_int_equal(window_count_limited(w), LANES + 1);
                window_set_pools(w, i + 20); /* The lines stand elsewhere now. */
                while (window_count_limited(w))
                        for (unsigned lane = 0; lane < LANES; lane++)
                                if (w->limited[lane].first)
                                        window_unlimit(w, w->limited[lane].first->first);
                for (unsigned lane = 0; lane < LANES; lane++) {
                        assert_true(window_has_ready_of(w, (enum lane)lane));
                        assert_non_null(window_next(w, i, (enum lane)lane));
                        assert_false(window_has_ready_of(w, (enum lane)lane));
                }
        }
        for (uint32_t i = 0; i < WINDOWS; i++)
                window_free(&windows[i]);
}

static void the_same_seq_is_taken_once(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        assert_non_null(add(&w, 1, "k", 0));
        assert_null(add(&w, 1, "k", 0));
        assert_int_equal(w.count, 1);
        window_free(&w);
}

static void keys_beyond_their_share_are_counted(void **state)
{
        (void)state;
        struct window w;
        struct claimed *last = NULL;
        open_window(&w);
        for (uint64_t seq = 1; seq <= PER_KEY; seq++) {
                last = add(&w, seq, "k", 0);
                assert_int_equal(w.large_keys, 0);
        }
        struct claimed *excess = add(&w, PER_KEY + 1, "k", 0);
        assert_int_equal(w.large_keys, 1);
        (void)add(&w, 100, "other", 0);
        assert_int_equal(w.large_keys, 1);
        window_end(&w, excess);
        assert_int_equal(w.large_keys, 0);
        window_put_back(&w, excess);
        assert_int_equal(w.large_keys, 1);
        window_set_per_key(&w, PER_KEY + 1);
        assert_int_equal(w.large_keys, 0);
        window_set_per_key(&w, PER_KEY);
        assert_int_equal(w.large_keys, 1);
        window_drop(&w, last);
        assert_int_equal(w.large_keys, 0);
        window_set_per_key(&w, 0);
        assert_int_equal(w.large_keys, 0);
        window_free(&w);
}

static void what_no_handler_serves_goes_back(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        assert_false(window_must_return(&w, add(&w, 1, "k", 0)));
        assert_true(window_must_return(&w, add(&w, 2, "other", WINDOW_NO_POOL)));
        window_free(&w);
}

static void tasks_of_a_pool_are_counted_as_they_come_move_and_go(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        struct claimed *first = add(&w, 1, "k", 0);
        struct claimed *second = add(&w, 2, "k", WINDOW_NO_POOL);
        assert_int_equal(w.pool_tasks[0], 1);
        window_move(&w, second, 1);
        assert_int_equal(w.pool_tasks[1], 1);
        window_set_pools(&w, POOLS + 3);
        assert_int_equal(w.pool_tasks[1], 1);
        assert_int_equal(w.pool_tasks[POOLS + 2], 0);
        window_move(&w, second, POOLS + 2);
        assert_int_equal(w.pool_tasks[1], 0);
        assert_int_equal(w.pool_tasks[POOLS + 2], 1);
        window_drop(&w, first);
        assert_int_equal(w.pool_tasks[0], 0);
        window_free(&w);
}

static void a_barred_key_hands_out_nothing_until_it_was_emptied(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        struct claimed *first = add(&w, 1, "k", 0);
        struct claimed *second = add(&w, 2, "k", 0);
        window_bar(&w, first->of);
        assert_null(next_of(&w, 0));
        assert_true(window_must_return(&w, second));
        window_end(&w, first);
        window_drop(&w, first);
        assert_null(next_of(&w, 0));
        assert_true(window_must_return(&w, add(&w, 3, "k", 0)));
        window_end(&w, second);
        window_drop(&w, second);
        struct claimed *third = window_find(&w, SPAN_TEXT("k"), 3);
        window_end(&w, third);
        window_drop(&w, third);
        struct claimed *fourth = add(&w, 4, "k", 0);
        assert_false(window_must_return(&w, fourth));
        assert_ptr_equal(next_of(&w, 0), fourth);
        window_free(&w);
}

static void a_key_without_tasks_is_forgotten(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        add(&w, 1, "k", 0);
        add(&w, 2, "other", 0);
        assert_int_equal(run_next(&w), 1);
        assert_non_null(window_key(&w, SPAN_TEXT("k")));
        window_prune(&w);
        assert_null(window_key(&w, SPAN_TEXT("k")));
        assert_non_null(window_key(&w, SPAN_TEXT("other")));
        assert_int_equal(run_next(&w), 2);
        add(&w, 3, "other", 0); /* came back before the prune */
        window_prune(&w);
        assert_int_equal(run_next(&w), 3);
        window_free(&w);
}

static void only_what_runs_survives_a_lost_shard(void **state)
{
        (void)state;
        struct window w;
        open_window(&w);
        struct claimed *running = add(&w, 1, "k", 0);
        add(&w, 2, "k", 0);
        struct claimed *ended = add(&w, 3, "j", 0);
        add(&w, 4, "j", 0);
        assert_ptr_equal(next_of(&w, 0), running);
        assert_ptr_equal(next_of(&w, 0), ended);
        window_end(&w, ended);
        window_drop_idle(&w);
        assert_int_equal(w.count, 1);
        assert_int_equal(w.bytes, 5);
        assert_null(window_key(&w, SPAN_TEXT("j")));
        /* Its key is still busy with it. */
        struct claimed *again = add(&w, 2, "k", 0);
        assert_null(next_of(&w, 0));
        window_drop(&w, running);
        assert_ptr_equal(next_of(&w, 0), again);
        window_free(&w);
}

/* --- against a model -------------------------------------------------------------------------------------------------
 */

#define MODEL_TASKS 400
#define MODEL_KEYS  5

/* The window as a plain list of tasks. */
struct model_task {
        struct claimed *claimed; /* NULL: gone */
        uint64_t seq;
        unsigned key;
        uint32_t pool;
        enum claimed_state state;
        bool holds_key;
};

struct model {
        struct model_task tasks[MODEL_TASKS];
        size_t count;
        bool is_barred[MODEL_KEYS];
        uint64_t ready_since[MODEL_KEYS]; /* 0: not ready */
        unsigned ready_line[MODEL_KEYS];  /* pool * LANES + lane */
        uint64_t clock;
        uint64_t numbers[LANES];
        uint64_t random;
};

static unsigned draw(struct model *m, unsigned below)
{
        m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned)((m->random >> 33) % below);
}

static struct model_task *head(struct model *m, unsigned key)
{
        struct model_task *first = NULL;
        for (size_t i = 0; i < m->count; i++)
                if (m->tasks[i].claimed && m->tasks[i].key == key && (!first || m->tasks[i].seq < first->seq))
                        first = &m->tasks[i];
        return first;
}

static bool is_busy(const struct model *m, unsigned key)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->tasks[i].claimed && m->tasks[i].key == key && m->tasks[i].holds_key)
                        return true;
        return false;
}

/* After every step: since when does which key stand in which line? */
static void look(struct model *m)
{
        m->clock++;
        for (unsigned key = 0; key < MODEL_KEYS; key++) {
                const struct model_task *t = head(m, key);
                bool is_ready =
                        t && !is_busy(m, key) && !m->is_barred[key] && t->pool < POOLS && t->state == CLAIMED_WAITING;
                unsigned line = is_ready ? t->pool * LANES + STORE_SEQ_LANE(t->seq) : UINT32_MAX;
                if (!is_ready)
                        m->ready_since[key] = 0;
                else if (!m->ready_since[key] || line != m->ready_line[key])
                        m->ready_since[key] = m->clock;
                m->ready_line[key] = line;
        }
}

/* The head of the key that has stood longest in the highest lane with anybody in it. */
static struct model_task *expected_next(struct model *m, uint32_t pool)
{
        unsigned best = MODEL_KEYS;
        for (unsigned key = 0; key < MODEL_KEYS; key++) {
                if (!m->ready_since[key] || m->ready_line[key] / LANES != pool)
                        continue;
                if (best == MODEL_KEYS || m->ready_line[key] < m->ready_line[best] ||
                        (m->ready_line[key] == m->ready_line[best] && m->ready_since[key] < m->ready_since[best]))
                        best = key;
        }
        return best == MODEL_KEYS ? NULL : head(m, best);
}

static struct model_task *any_in_state(struct model *m, enum claimed_state state)
{
        size_t from = m->count ? draw(m, (unsigned)m->count) : 0;
        for (size_t i = 0; i < m->count; i++) {
                struct model_task *t = &m->tasks[(from + i) % m->count];
                if (t->claimed && t->state == state)
                        return t;
        }
        return NULL;
}

static void model_add(struct model *m, struct window *w)
{
        if (m->count == MODEL_TASKS)
                return;
        struct model_task *t = &m->tasks[m->count];
        enum lane lane = (enum lane)draw(m, LANES);
        char name[] = { (char)('a' + draw(m, MODEL_KEYS)), 0 };
        *t = (struct model_task){ .key = (unsigned)(name[0] - 'a'), .seq = seq_in(lane, ++m->numbers[lane]) };
        t->pool = draw(m, 8) ? draw(m, POOLS) : WINDOW_NO_POOL;
        if (!head(m, t->key))
                m->is_barred[t->key] = false;
        m->count++;
        t->claimed = add(w, t->seq, name, t->pool);
        if (!t->claimed) {
                fail();
                return;
        }
        uint32_t live = 0;
        for (size_t i = 0; i < m->count; i++)
                live += m->tasks[i].claimed && m->tasks[i].key == t->key && m->tasks[i].state != CLAIMED_ENDED;
        assert_int_equal(t->claimed->of->live, live);
        assert_int_equal(window_must_return(w, t->claimed), m->is_barred[t->key] || t->pool == WINDOW_NO_POOL);
}

static void model_next(struct model *m, struct window *w)
{
        uint32_t pool = draw(m, POOLS);
        struct model_task *t = expected_next(m, pool);
        assert_int_equal(window_has_next(w, pool), t != NULL);
        const struct claimed *c = next_of(w, pool);
        assert_ptr_equal(c, t ? t->claimed : NULL);
        if (t) {
                t->state = CLAIMED_RUNNING;
                t->holds_key = true;
        }
}

static void model_step(struct model *m, struct window *w)
{
        struct model_task *t;
        switch (draw(m, 9)) {
        case 0:
        case 1:
                model_add(m, w);
                break;
        case 2:
        case 3:
                model_next(m, w);
                break;
        case 4:
                t = any_in_state(m, draw(m, 4) ? CLAIMED_RUNNING : CLAIMED_WAITING);
                if (!t)
                        break;
                window_end(w, t->claimed);
                t->state = CLAIMED_ENDED;
                break;
        case 5:
        case 6:
                t = any_in_state(m, draw(m, 8) ? CLAIMED_ENDED : CLAIMED_WAITING);
                if (!t)
                        break;
                window_drop(w, t->claimed);
                t->claimed = NULL;
                break;
        case 7:
                t = any_in_state(m, draw(m, 2) ? CLAIMED_ENDED : CLAIMED_RUNNING);
                if (!t)
                        break;
                window_put_back(w, t->claimed);
                t->state = CLAIMED_WAITING;
                t->holds_key = false;
                break;
        default:
                window_prune(w);
                t = draw(m, 4) ? NULL : any_in_state(m, CLAIMED_WAITING);
                if (!t)
                        break;
                window_bar(w, t->claimed->of);
                m->is_barred[t->key] = true;
        }
}

static void compare_counts(const struct model *m, const struct window *w)
{
        uint32_t count = 0;
        for (size_t i = 0; i < m->count; i++)
                count += m->tasks[i].claimed != NULL;
        assert_int_equal(w->count, count);
        assert_int_equal(w->bytes, 5 * count);
}

static void the_window_does_what_a_plain_list_would(void **state)
{
        (void)state;
        const char *given = getenv("QUIVER_TEST_SEED");
        uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
        print_message("QUIVER_TEST_SEED=%llu\n", (unsigned long long)seed);
        for (uint64_t round = 0; round < 300; round++) {
                struct window w;
                static struct model m;
                m = (struct model){ .random = seed + round };
                open_window(&w);
                for (int i = 0; i < 1000; i++) {
                        model_step(&m, &w);
                        look(&m);
                }
                compare_counts(&m, &w);
                window_free(&w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_task_of_no_lane_is_not_taken),
                cmocka_unit_test(a_key_runs_in_order_whenever_its_tasks_come),
                cmocka_unit_test(a_key_never_has_two_tasks_out),
                cmocka_unit_test(the_next_task_waits_until_the_outcome_is_durable),
                cmocka_unit_test(what_is_put_back_is_not_overtaken),
                cmocka_unit_test(a_task_that_waits_and_ends_does_not_let_a_later_one_pass),
                cmocka_unit_test(a_task_that_ends_while_another_runs_does_not_free_the_key),
                cmocka_unit_test(higher_lanes_go_first),
                cmocka_unit_test(keys_take_turns),
                cmocka_unit_test(a_pool_gets_its_own_tasks_only),
                cmocka_unit_test(what_waits_for_a_limit_is_not_ready),
                cmocka_unit_test(the_same_seq_is_taken_once),
                cmocka_unit_test(keys_beyond_their_share_are_counted),
                cmocka_unit_test(what_no_handler_serves_goes_back),
                cmocka_unit_test(tasks_of_a_pool_are_counted_as_they_come_move_and_go),
                cmocka_unit_test(a_barred_key_hands_out_nothing_until_it_was_emptied),
                cmocka_unit_test(a_key_without_tasks_is_forgotten),
                cmocka_unit_test(only_what_runs_survives_a_lost_shard),
                cmocka_unit_test(the_window_does_what_a_plain_list_would),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
