/* Tasks as another store had them, each chunk of a source once. */
#include "harness.h"

static void what_another_store_had_is_here_as_it_was_there(void **state)
{
        struct world *w = *state;
        (void)submit(w, "k", "before");
        struct store_moved items[] = {
                { .state = STATE_QUEUED,
                        .lane = LANE_NORMAL,
                        .bytes = T("qv1\nkey:k\nhandler:h\nid:a-0\n\nmoved"),
                        .note = T("qn1\nattempts:2\nevent:5 attempt no\n\nat 7") },
                { .state = STATE_QUEUED, .lane = LANE_NORMAL, .bytes = T("qv1\nkey:k\nhandler:h\n\nplain") },
                { .state = STATE_DELAYED,
                        .lane = LANE_HIGH,
                        .bytes = T("qv1\nkey:d\nhandler:h\nid:b-0\n\nlater"),
                        .due_in_ms = 500 },
                { .state = STATE_DEAD,
                        .lane = LANE_LOW,
                        .bytes = T("qv1\nkey:x\nhandler:h\nid:c-0\n\ndead"),
                        .note = T("qn1\nattempts:4\n\n"),
                        .id = T("c-0"),
                        .handler = T("h"),
                        .reason = T("exhausted"),
                        .at_ms = 77 },
        };
        assert_int_equal(import(w, items, 4), 0);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "before moved plain");
        assert_int_equal(a.tasks[0].note.attempts, 0);
        assert_int_equal(a.tasks[1].note.attempts, 2);
        assert_true(span_is(a.tasks[1].note.checkpoint, T("at 7")));
        assert_int_equal(a.next_due_ms, 500);
        world_step(w, 500);
        expect_tasks(w, claim(w, &o, 10), "later");
        const struct store_listed *dead = find(w, T("c-0"));
        assert_non_null(dead);
        assert_int_equal(dead->state, STATE_DEAD);
        assert_int_equal(dead->at_ms, 77);
        assert_true(span_is(dead->reason, T("exhausted")));
        assert_int_equal(dead->note.attempts, 4);
        items[0].state = STATE_PARKED;
        assert_int_equal(import(w, items, 1), -EINVAL);
}

/* Whatever they begin with: no store may take them for something of its own. */
static void what_cannot_be_read_is_kept_byte_by_byte(void **state)
{
        struct world *w = *state;
        const struct span wrong[] = { SPAN_TEXT("\x85\x01k\x01h0123456789012\x00p"), SPAN_TEXT("\x80\x01k\x01h"),
                SPAN_TEXT("\0\0zero"), SPAN_TEXT("\0"), SPAN_TEXT("garbage\0\n"),
                SPAN_TEXT("qv1\nkey:k\n\nno handler") };
        enum { COUNT = sizeof(wrong) / sizeof(wrong[0]) };
        struct store_moved items[2 * COUNT];
        for (unsigned i = 0; i < COUNT; i++) {
                items[i] = (struct store_moved){ .state = STATE_DEAD,
                        .lane = LANE_NORMAL,
                        .bytes = wrong[i],
                        .id = T("x-0"),
                        .handler = T("unknown"),
                        .reason = T("malformed") };
                items[COUNT + i] =
                        (struct store_moved){ .state = STATE_QUEUED, .lane = LANE_NORMAL, .bytes = wrong[i] };
        }
        assert_int_equal(import(w, items, 2 * COUNT), 0);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 100);
        assert_int_equal(a.tasks_count, 0);
        assert_int_equal(a.set_aside, COUNT);
        struct store_list dead = list(w, 0, STATE_DEAD);
        assert_int_equal(dead.tasks_count, 2 * COUNT);
        for (unsigned i = 0; i < 2 * COUNT; i++) {
                assert_int_equal(dead.tasks[i].envelope.handler.size, 0);
                assert_true(span_is(dead.tasks[i].envelope.payload, wrong[i % COUNT]));
        }
        expect_sound(w);
}

/* --- once --------------------------------------------------------------------------------------------------------- */

static struct store_moved queued(struct world *w, const char *payload)
{
        return (struct store_moved){
                .state = STATE_QUEUED, .lane = LANE_NORMAL, .bytes = F(w, "qv1\nkey:k\nhandler:h\n\n%s", payload)
        };
}

/* One task, its payload SOURCE.NUMBER. */
static struct store_import chunk(struct world *w, const char *source, uint64_t number, uint64_t after)
{
        struct store_moved *item = arena_take(&w->memory, sizeof(*item));
        *item = queued(w, F(w, "%s.%u", source, (unsigned)number).data);
        return (struct store_import){
                .source = T(source), .number = number, .after = after, .items = item, .items_count = 1
        };
}

static bool is_put_in(struct world *w, const char *source, uint64_t number, uint64_t after)
{
        struct store_import c = chunk(w, source, number, after);
        assert_int_equal(import_chunk(w, &c), 0);
        return !c.is_repeat;
}

static uint64_t taken(struct world *w, uint32_t shard, const char *source)
{
        struct store_import look = { .shard = shard, .source = T(source) };
        assert_int_equal(import_chunk(w, &look), 0);
        return look.taken;
}

static void a_chunk_is_taken_once(void **state)
{
        struct world *w = *state;
        assert_int_equal(taken(w, 0, "a"), 0);
        assert_true(is_put_in(w, "a", 1, 0));
        assert_false(is_put_in(w, "a", 1, 0));
        assert_true(is_put_in(w, "a", 4, 1));
        assert_false(is_put_in(w, "a", 3, 1));
        assert_false(is_put_in(w, "a", 4, 1));
        assert_int_equal(taken(w, 0, "a"), 4);
        world_reopen(w);
        assert_false(is_put_in(w, "a", 4, 1));
        struct owner o = own(w, 0, 1, 1);
        expect_tasks(w, claim(w, &o, 10), "a.1 a.4");
        expect_sound(w);
}

/* The answer is lost, as after kill -9 of the loader: the chunk is there, or it is not, and a repeat settles it. */
static void a_repeat_after_a_lost_answer_changes_nothing(void **state)
{
        struct world *w = *state;
        w->lose_next = true;
        struct store_import c = chunk(w, "a", 1, 0);
        assert_int_equal(import_chunk(w, &c), -ETIMEDOUT);
        world_reopen(w);
        (void)is_put_in(w, "a", 1, 0);
        assert_true(is_put_in(w, "a", 2, 1));
        struct owner o = own(w, 0, 1, 1);
        expect_tasks(w, claim(w, &o, 10), "a.1 a.2");
}

static void sources_and_shards_count_apart(void **state)
{
        struct world *w = *state;
        assert_true(is_put_in(w, "a", 3, 0));
        assert_true(is_put_in(w, "b", 1, 0));
        assert_true(is_put_in(w, "a", 5, 3));
        assert_true(is_put_in(w, "b", 2, 1));
        assert_int_equal(taken(w, 0, "a"), 5);
        assert_int_equal(taken(w, 0, "b"), 2);
        assert_int_equal(taken(w, 1, "a"), 0);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count + a.set_aside, 4);
}

/* Whoever had the chunk before it and lost it is told to begin again: else that one would be missing. */
static void a_chunk_whose_predecessor_is_missing_is_refused(void **state)
{
        struct world *w = *state;
        assert_true(is_put_in(w, "a", 1, 0));
        struct store_import c = chunk(w, "a", 3, 2);
        assert_int_equal(import_chunk(w, &c), -EAGAIN);
        assert_int_equal(taken(w, 0, "a"), 1);
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], 1);
        assert_true(is_put_in(w, "a", 2, 1));
        assert_true(is_put_in(w, "a", 3, 2));
}

/* A relay cannot begin again: what it lost is lost, and the rest must not wait for it. */
static void a_relays_gap_is_no_reason_to_wait(void **state)
{
        struct world *w = *state;
        assert_true(is_put_in(w, "relay", 3, 0));
        assert_true(is_put_in(w, "relay", 9, 0));
        assert_false(is_put_in(w, "relay", 9, 0));
        assert_false(is_put_in(w, "relay", 5, 0));
        assert_true(is_put_in(w, "relay", 10, 0));
        struct owner o = own(w, 0, 1, 1);
        expect_tasks(w, claim(w, &o, 10), "relay.3 relay.9 relay.10");
}

static void owners_go_on_while_chunks_come_in(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        (void)submit(w, "k", "first");
        assert_true(is_put_in(w, "a", 1, 0));
        struct store_advance a = claim(w, &o, 1);
        expect_tasks(w, a, "first");
        assert_true(is_put_in(w, "a", 2, 1));
        (void)settle(w, &o, done(&a.tasks[0]));
        expect_tasks(w, claim(w, &o, 10), "a.1 a.2");
        expect_sound(w);
}

static void the_oldest_sources_are_forgotten(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < STORE_SOURCES_MAX; i++) {
                assert_true(is_put_in(w, F(w, "source%u", i).data, 1, 0));
                world_step(w, 1);
        }
        assert_true(is_put_in(w, "source0", 2, 1)); /* used again: not the oldest any more */
        world_step(w, 1);
        assert_true(is_put_in(w, "one-more", 1, 0));
        assert_int_equal(taken(w, 0, "source0"), 2);
        assert_int_equal(taken(w, 0, "source1"), 0);
        assert_int_equal(taken(w, 0, "source2"), 1);
        struct store_import late = chunk(w, "source1", 2, 1);
        assert_int_equal(import_chunk(w, &late), -EAGAIN); /* not taken for a new one */
}

static void what_makes_no_sense_is_refused_before_anything_is_written(void **state)
{
        struct world *w = *state;
        struct store_moved item = queued(w, "x");
        struct store_import wrong[] = {
                { .number = 1 },
                { .source = T("with space"), .number = 1 },
                { .source = T("a") },
                { .source = T("a"), .number = 2, .after = 2 },
                { .source = T("a"), .number = UINT64_MAX },
                { .source = T("a"), .number = 1, .shard = 77 },
        };
        for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                wrong[i].items = &item;
                wrong[i].items_count = 1;
                assert_int_equal(import_chunk(w, &wrong[i]), -EINVAL);
        }
        struct store_moved bad[] = {
                { .state = STATE_DELAYED, .bytes = T("x"), .due_in_ms = UINT64_MAX },
                { .state = STATE_DEAD, .bytes = T("x"), .at_ms = UINT64_MAX, .id = T("a-0") },
                { .state = STATE_DEAD, .bytes = T("x") },
                { .state = STATE_QUEUED, .bytes = T("x"), .lane = (enum lane)9 },
        };
        for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct store_import c = { .source = T("a"), .number = 1, .items = &bad[i], .items_count = 1 };
                assert_int_equal(import_chunk(w, &c), -EINVAL);
        }
        assert_int_equal(taken(w, 0, "a"), 0);
        assert_int_equal(counts(w, 0).submitted, 0);
}

const struct CMUnitTest import_tests[] = {
        IN_WORLD(what_another_store_had_is_here_as_it_was_there),
        IN_WORLD(what_cannot_be_read_is_kept_byte_by_byte),
        IN_WORLD(a_chunk_is_taken_once),
        IN_WORLD(a_repeat_after_a_lost_answer_changes_nothing),
        IN_WORLD_4(sources_and_shards_count_apart),
        IN_WORLD(a_chunk_whose_predecessor_is_missing_is_refused),
        IN_WORLD(a_relays_gap_is_no_reason_to_wait),
        IN_WORLD(owners_go_on_while_chunks_come_in),
        IN_WORLD(the_oldest_sources_are_forgotten),
        IN_WORLD(what_makes_no_sense_is_refused_before_anything_is_written),
};
GROUP(import);
