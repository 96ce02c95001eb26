/* Submits that may be repeated. */
#include <stdlib.h>

#include "call.h"
#include "harness.h"

static struct store_submission item_of(const char *name, const char *key, const char *payload)
{
        return (struct store_submission){
                .envelope = { .key = T(key), .handler = T("h"), .payload = T(payload), .lane = LANE_NORMAL },
                .idempotency = T(name)
        };
}

/* Its status; the item has the rest. */
static int submit_named(struct world *w, struct store_submission *item)
{
        assert_int_equal(submit_items(w, item, 1), 0);
        return item->status;
}

static uint64_t queued(struct world *w, uint32_t shard)
{
        return counts(w, shard).queued[LANE_NORMAL];
}

static void a_repeat_returns_the_first_id(void **state)
{
        struct world *w = *state;
        struct store_submission first = item_of("req-1", "k", "x");
        struct store_submission again = item_of("req-1", "k", "x");
        assert_int_equal(submit_named(w, &first), 0);
        assert_false(first.is_repeat);
        assert_int_equal(submit_named(w, &again), 0);
        assert_true(again.is_repeat);
        assert_string_equal(again.id, first.id);
        assert_int_equal(queued(w, 0), 1);
        world_reopen(w);
        again = item_of("req-1", "k", "x");
        assert_int_equal(submit_named(w, &again), 0);
        assert_string_equal(again.id, first.id);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 10);
        assert_int_equal(a.tasks_count, 1);
        assert_true(span_is(a.tasks[0].envelope.id, T(first.id)));
}

/* The store had it, and whoever asked was killed before it heard. */
static void a_submit_whose_answer_was_lost_is_repeated_safely(void **state)
{
        struct world *w = *state;
        struct store_submission lost = item_of("req-1", "k", "x");
        struct store_submission again = item_of("req-1", "k", "x");
        w->lose_next = true;
        assert_int_equal(submit_items(w, &lost, 1), -ETIMEDOUT);
        assert_int_equal(submit_named(w, &again), 0);
        assert_int_equal(queued(w, 0), 1);
        const struct store_listed *task = find(w, T(again.id));
        assert_non_null(task);
        assert_int_equal(task->state, STATE_QUEUED);
}

static void a_repeat_is_known_after_the_task_is_done_or_dead(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_submission items[] = { item_of("a", "k", "x"), item_of("b", "k", "x") };
        assert_int_equal(submit_items(w, items, 2), 0);
        struct store_advance a = claim(w, &o, 2);
        (void)settle(w, &o, done(&a.tasks[0]));
        (void)settle(w, &o, dead(&a.tasks[1], "rejected"));
        struct store_submission again[] = { item_of("a", "k", "x"), item_of("b", "k", "x") };
        assert_int_equal(submit_items(w, again, 2), 0);
        for (unsigned i = 0; i < 2; i++) {
                assert_true(again[i].is_repeat && !again[i].status);
                assert_string_equal(again[i].id, items[i].id);
        }
        assert_int_equal(queued(w, 0), 0);
}

static void another_task_under_the_name_is_refused(void **state)
{
        struct world *w = *state;
        struct store_submission first = item_of("req-1", "k", "x");
        assert_int_equal(submit_named(w, &first), 0);
        struct store_submission others[9];
        for (unsigned i = 0; i < 9; i++)
                others[i] = item_of("req-1", "k", "x");
        others[0].envelope.payload = T("y");
        others[1].envelope.payload = T("");
        others[2].envelope.handler = T("g");
        others[3].envelope.lane = LANE_HIGH;
        others[4].envelope.timeout_ms = 5;
        others[5].envelope.attempts = 5;
        others[6].envelope.reply_ms = 5;
        others[7].delay_ms = 5;
        others[8].envelope.headers = T("header.a:1\n");
        for (unsigned i = 0; i < 9; i++) {
                assert_int_equal(submit_named(w, &others[i]), -ENOTUNIQ);
                assert_false(others[i].is_repeat);
                assert_string_equal(others[i].id, first.id);
        }
        struct store_submission again = item_of("req-1", "k", "x");
        assert_int_equal(submit_named(w, &again), 0);
        assert_true(again.is_repeat);
        assert_int_equal(counts(w, 0).submitted, 1);
}

/* What differs from try to try: they are not what was asked for. */
static void id_time_and_trace_of_a_try_do_not_matter(void **state)
{
        struct world *w = *state;
        struct store_submission first = item_of("req-1", "k", "x");
        struct store_submission again = item_of("req-1", "k", "x");
        first.envelope.headers = T("header.a:1\nheader.traceparent:00-1-1-01\n");
        first.envelope.id = T("first-0");
        first.envelope.submitted_ms = 5;
        again.envelope.headers = T("header.a:1\nheader.traceparent:00-2-2-01\nheader.tracestate:x=1\n");
        assert_int_equal(submit_named(w, &first), 0);
        assert_int_equal(submit_named(w, &again), 0);
        assert_true(again.is_repeat);
        assert_string_equal(again.id, "first-0");
}

static void another_key_is_another_task(void **state)
{
        struct world *w = *state;
        const char *const names[][2] = { { "req", "k" }, { "req", "l" }, { "req", "" }, { "r", "eq" }, { "reqk", "" } };
        for (unsigned i = 0; i < 5; i++) {
                struct store_submission item = item_of(names[i][0], names[i][1], "x");
                assert_int_equal(submit_named(w, &item), 0);
                assert_false(item.is_repeat);
        }
        assert_int_equal(queued(w, 0), 5);
}

static void a_task_without_a_key_goes_to_the_shard_of_the_name(void **state)
{
        struct world *w = *state;
        for (uint32_t shard = 0; shard < 4; shard++) {
                struct span name = key_of(w, shard, 7);
                struct store_submission first = item_of("", "", "x");
                first.idempotency = name;
                struct store_submission again = first;
                assert_int_equal(submit_named(w, &first), 0);
                assert_int_equal(first.shard, shard);
                assert_int_equal(submit_named(w, &again), 0);
                assert_true(again.is_repeat);
                assert_string_equal(again.id, first.id);
                assert_int_equal(queued(w, shard), 1);
                first.envelope.id = F(w, "mine-%u", (shard + 1) % 4);
                assert_int_equal(submit_named(w, &first), -EINVAL);
        }
}

static void a_name_is_forgotten_when_its_time_is_over(void **state)
{
        struct world *w = *state;
        struct store_submission day = item_of("day", "k", "x");
        struct store_submission brief = item_of("brief", "k", "x");
        brief.idempotency_ms = 1000;
        assert_int_equal(submit_named(w, &day), 0);
        assert_int_equal(submit_named(w, &brief), 0);
        world_step(w, 999);
        assert_int_equal(submit_named(w, &brief), 0);
        assert_true(brief.is_repeat);
        world_step(w, 1);
        assert_int_equal(submit_named(w, &brief), 0);
        assert_false(brief.is_repeat);
        world_step(w, STORE_IDEMPOTENCY_MS - 1001);
        assert_int_equal(submit_named(w, &day), 0);
        assert_true(day.is_repeat);
        world_step(w, 1);
        assert_int_equal(submit_named(w, &day), 0);
        assert_false(day.is_repeat);
        assert_int_equal(queued(w, 0), 4);
}

static void the_second_of_one_request_is_a_repeat(void **state)
{
        struct world *w = *state;
        struct store_submission items[] = { item_of("a", "k", "x"), item_of("b", "k", "y"), item_of("a", "k", "x"),
                item_of("b", "k", "z") };
        assert_int_equal(submit_items(w, items, 4), 0);
        assert_true(items[2].is_repeat && !items[2].status);
        assert_string_equal(items[2].id, items[0].id);
        assert_int_equal(items[3].status, -ENOTUNIQ);
        assert_int_equal(queued(w, 0), 2);
}

static void a_full_backlog_knows_a_repeat_and_remembers_no_refusal(void **state)
{
        struct world *w = *state;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .backlog_max = 1 }, NULL), 0);
        struct store_submission first = item_of("a", "k", "x");
        struct store_submission second = item_of("b", "k", "x");
        assert_int_equal(submit_named(w, &first), 0);
        assert_int_equal(submit_named(w, &second), -EDQUOT);
        assert_int_equal(submit_named(w, &first), 0);
        assert_true(first.is_repeat);
        struct owner o = own(w, 0, 1, 1);
        struct store_advance a = claim(w, &o, 1);
        (void)settle(w, &o, done(&a.tasks[0]));
        assert_int_equal(submit_named(w, &second), 0);
        assert_false(second.is_repeat);
}

static void what_unique_refused_is_not_remembered(void **state)
{
        struct world *w = *state;
        struct store_submission first = item_of("a", "k", "x");
        struct store_submission second = item_of("b", "k", "x");
        first.envelope.unique_ms = second.envelope.unique_ms = 1000;
        assert_int_equal(submit_named(w, &first), 0);
        assert_int_equal(submit_named(w, &first), 0);
        assert_true(first.is_repeat);
        assert_int_equal(submit_named(w, &second), -EEXIST);
        assert_string_equal(second.id, first.id);
        world_step(w, 1000);
        assert_int_equal(submit_named(w, &second), 0);
        assert_false(second.is_repeat);
        assert_string_not_equal(second.id, first.id);
}

static void a_shard_remembers_so_many_names_and_no_more(void **state)
{
        struct world *w = *state;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .idempotency_max = 3 }, NULL), 0);
        for (unsigned i = 0; i < 4; i++) {
                struct store_submission item = item_of("", "k", "x");
                item.idempotency = F(w, "name %u", i);
                item.idempotency_ms = i ? 2000 : 1000;
                assert_int_equal(submit_named(w, &item), i < 3 ? 0 : -ENOBUFS);
        }
        struct store_submission again = item_of("name 1", "k", "x");
        assert_int_equal(submit_named(w, &again), 0);
        assert_true(again.is_repeat);
        world_step(w, 1000);
        struct store_submission late = item_of("name 3", "k", "x");
        assert_int_equal(submit_named(w, &late), 0);
        assert_false(late.is_repeat);
        assert_int_equal(queued(w, 0), 4);
}

static void a_name_is_checked(void **state)
{
        struct world *w = *state;
        char longest[257];
        memset(longest, 'n', sizeof(longest));
        longest[256] = 0;
        struct store_submission item = item_of(longest, "k", "x");
        assert_int_equal(submit_named(w, &item), -EINVAL);
        longest[255] = 0;
        item.idempotency = T(longest);
        assert_int_equal(submit_named(w, &item), 0);
        item = item_of("a\nb", "k", "x");
        assert_int_equal(submit_named(w, &item), -EINVAL);
}

/* --- as another store had them --- */

static void keep_remembered(struct world *w, struct store_request *request)
{
        struct store_remembered_list *l = (struct store_remembered_list *)request;
        l->names = keep_array(w, l->names, l->names_count, sizeof(*l->names));
        l->next = keep(w, l->next);
        for (uint32_t i = 0; i < l->names_count; i++) {
                l->names[i].scope = keep(w, l->names[i].scope);
                l->names[i].id = keep(w, l->names[i].id);
                l->names[i].digest = keep(w, l->names[i].digest);
        }
}

static struct store_remembered_list remembered(struct world *w, uint32_t shard, struct span after, uint32_t page)
{
        struct store_remembered_list l = { .shard = shard, .after = after, .page_names = page };
        assert_int_equal(CALL(w, store_remembered_list, &l, keep_remembered), 0);
        return l;
}

static struct store_import names_chunk(const struct store_remembered *names, uint32_t count, uint64_t number)
{
        return (struct store_import){ .source = T("dump"), .number = number, .names = names, .names_count = count };
}

static void what_is_remembered_is_listed_once_with_what_is_left(void **state)
{
        struct world *w = *state;
        bool is_seen[40] = { false };
        for (unsigned i = 0; i < 40; i++) {
                struct store_submission item = item_of(F(w, "n%u", i).data, i % 2 ? "k" : "other", "x");
                item.idempotency_ms = i < 10 ? 500 : 5000;
                assert_int_equal(submit_named(w, &item), 0);
        }
        world_step(w, 1000); /* the first ten are over */
        struct store_remembered_list page = { 0 };
        unsigned seen = 0;
        while (!page.is_end) {
                page = remembered(w, 0, page.next, 7);
                assert_true(page.names_count <= 7 && !page.unreadable);
                for (uint32_t i = 0; i < page.names_count; i++) {
                        const struct store_remembered *record = &page.names[i];
                        struct span name;
                        struct span key;
                        assert_true(idempotency_is_fit(record));
                        assert_true(idempotency_scope_split(record->scope, &name, &key));
                        unsigned number = (unsigned)atoi(F(w, "%.*s", (int)name.size - 1, name.data + 1).data);
                        assert_true(number >= 10 && number < 40 && !is_seen[number]);
                        is_seen[number] = true;
                        assert_true(span_is(key, number % 2 ? T("k") : T("other")));
                        assert_int_equal(record->left_ms, 4000);
                        seen++;
                }
        }
        assert_int_equal(seen, 30);
        /* Where the page before ended, one may be over and gone by now. */
        struct store_remembered_list first = remembered(w, 0, T(""), 1);
        world_step(w, 5000);
        struct store_submission late = item_of("late", "k", "x");
        assert_int_equal(submit_named(w, &late), 0);
        for (unsigned i = 0; i < 12; i++) {
                late = item_of(F(w, "late%u", i).data, "k", "x");
                assert_int_equal(submit_named(w, &late), 0);
        }
        page = remembered(w, 0, T(""), 100);
        assert_int_equal(page.names_count, 13);
        page = remembered(w, 0, first.next, 100);
        assert_true(page.is_end);
        expect_sound(w);
}

static void a_repeat_is_known_where_a_record_was_loaded(void **state)
{
        struct world *w = *state;
        struct store_submission first = item_of("req-1", "k", "x");
        first.idempotency_ms = 5000;
        assert_int_equal(submit_named(w, &first), 0);
        struct store_remembered record = remembered(w, 0, T(""), 1).names[0];
        struct store_remembered another = record;
        another.scope = T("req-2\nk");
        another.id = T("there-0");
        another.left_ms = 2000;
        struct store_import chunk = names_chunk(&another, 1, 1);
        assert_int_equal(import_chunk(w, &chunk), 0);
        assert_int_equal(chunk.names_left, 0);
        struct store_submission again = item_of("req-2", "k", "x");
        assert_int_equal(submit_named(w, &again), 0);
        assert_true(again.is_repeat);
        assert_string_equal(again.id, "there-0");
        again = item_of("req-2", "k", "y");
        assert_int_equal(submit_named(w, &again), -ENOTUNIQ);
        assert_int_equal(queued(w, 0), 1);
        expect_sound(w);
        world_step(w, 2000);
        again = item_of("req-2", "k", "x");
        assert_int_equal(submit_named(w, &again), 0);
        assert_false(again.is_repeat);
        expect_sound(w);
}

static void a_loaded_record_changes_none_that_is_there(void **state)
{
        struct world *w = *state;
        struct store_submission mine = item_of("req-1", "k", "x");
        mine.idempotency_ms = 5000;
        assert_int_equal(submit_named(w, &mine), 0);
        struct store_remembered same = remembered(w, 0, T(""), 1).names[0];
        struct store_remembered names[] = { same, same, same };
        names[1].id = T("other-0");
        names[2].digest = T("01234567890123456789012345678901");
        for (unsigned i = 0; i < 3; i++) {
                names[i].left_ms = 60000;
                struct store_import chunk = names_chunk(&names[i], 1, i + 1);
                assert_int_equal(import_chunk(w, &chunk), 0);
                assert_int_equal(chunk.names_left, i > 0);
                assert_int_equal(import_chunk(w, &chunk), 0);
                assert_true(chunk.is_repeat && !chunk.names_left);
        }
        struct store_remembered_list all = remembered(w, 0, T(""), 10);
        assert_int_equal(all.names_count, 1);
        assert_int_equal(all.names[0].left_ms, 5000);
        assert_true(span_is(all.names[0].id, T(mine.id)));
        /* What is over is no record any more. */
        world_step(w, 5000);
        struct store_import chunk = names_chunk(&names[1], 1, 4);
        assert_int_equal(import_chunk(w, &chunk), 0);
        assert_int_equal(chunk.names_left, 0);
        assert_true(span_is(remembered(w, 0, T(""), 10).names[0].id, T("other-0")));
        expect_sound(w);
}

static void a_record_that_is_none_is_not_loaded(void **state)
{
        struct world *w = *state;
        const struct store_remembered good = {
                .scope = T("n\nk"), .id = T("a-0"), .digest = T("01234567890123456789012345678901"), .left_ms = 1
        };
        struct store_remembered wrong[7];
        for (unsigned i = 0; i < 7; i++)
                wrong[i] = good;
        wrong[0].scope = T("no key");
        wrong[1].scope = T("\nk");
        wrong[2].scope = T("n\nk\nk");
        wrong[3].id = T("no shard");
        wrong[4].digest.size--;
        wrong[5].left_ms = 0;
        wrong[6].left_ms = TASK_NUMBER_MAX;
        for (unsigned i = 0; i < 7; i++) {
                struct store_import chunk = names_chunk(&wrong[i], 1, 1);
                assert_int_equal(import_chunk(w, &chunk), -EINVAL);
        }
        struct store_import chunk = names_chunk(&good, 1, 0);
        assert_int_equal(import_chunk(w, &chunk), -EINVAL);
        assert_int_equal(remembered(w, 0, T(""), 10).names_count, 0);
}

const struct CMUnitTest idempotency_tests[] = {
        IN_WORLD(a_repeat_returns_the_first_id),
        IN_WORLD(a_submit_whose_answer_was_lost_is_repeated_safely),
        IN_WORLD(a_repeat_is_known_after_the_task_is_done_or_dead),
        IN_WORLD(another_task_under_the_name_is_refused),
        IN_WORLD(id_time_and_trace_of_a_try_do_not_matter),
        IN_WORLD(another_key_is_another_task),
        IN_WORLD_4(a_task_without_a_key_goes_to_the_shard_of_the_name),
        IN_WORLD(a_name_is_forgotten_when_its_time_is_over),
        IN_WORLD(the_second_of_one_request_is_a_repeat),
        IN_WORLD(a_full_backlog_knows_a_repeat_and_remembers_no_refusal),
        IN_WORLD(what_unique_refused_is_not_remembered),
        IN_WORLD(a_shard_remembers_so_many_names_and_no_more),
        IN_WORLD(a_name_is_checked),
        IN_WORLD(what_is_remembered_is_listed_once_with_what_is_left),
        IN_WORLD(a_repeat_is_known_where_a_record_was_loaded),
        IN_WORLD(a_loaded_record_changes_none_that_is_there),
        IN_WORLD(a_record_that_is_none_is_not_loaded),
};
GROUP(idempotency);
