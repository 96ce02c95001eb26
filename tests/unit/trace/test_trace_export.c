/* Which spans are sent when, and which are dropped: bounded, counted, never twice at once. */
#include "check.h"

#include "base/numbers.h"
#include "trace/export.h"

#define INTERVAL_MS UINT64_C(5000)

static void add(struct trace_export *e, unsigned count, uint64_t now_ms)
{
        for (unsigned i = 0; i < count; i++) {
                if (!trace_export_has_room(e))
                        continue;
                buffer_put(trace_export_begin(e, now_ms), "{}", 2);
                trace_export_added(e);
        }
}

static const struct trace_answer taken = { .http_code = 200 };

static void a_batch_goes_when_it_is_full_or_old(void **state)
{
        struct trace_export e;
        (void)state;
        trace_export_init(&e, INTERVAL_MS, 4096, 1);
        assert_int_equal(trace_export_due_ms(&e), UINT64_MAX);
        add(&e, 3, 1000);
        assert_int_equal(trace_export_due_ms(&e), 1000 + INTERVAL_MS);
        assert_null(trace_export_next(&e, 1000 + INTERVAL_MS - 1));
        const struct trace_batch *batch = trace_export_next(&e, 1000 + INTERVAL_MS);
        assert_non_null(batch);
        assert_int_equal(batch->count, 3);
        assert_memory_equal(batch->spans.data, "{},{},{}", batch->spans.size);
        /* What comes meanwhile is the next one's, and waits for the answer. */
        add(&e, TRACE_BATCH_MAX, 7000);
        assert_int_equal(batch->count, 3);
        assert_null(trace_export_next(&e, 9000));
        assert_int_equal(trace_export_answered(&e, &taken, 9000), TRACE_NEWS_NONE);
        batch = trace_export_next(&e, 9000);
        assert_non_null(batch);
        assert_int_equal(batch->count, TRACE_BATCH_MAX);
        (void)trace_export_answered(&e, &(struct trace_answer){ .http_code = 200, .rejected = 12 }, 9001);
        assert_int_equal(e.counts.exported, 3 + TRACE_BATCH_MAX - 12);
        assert_int_equal(e.counts.failed, 12);
        assert_int_equal(e.waiting, 0);
        trace_export_free(&e);
}

static void what_finds_no_room_is_dropped_and_told_once(void **state)
{
        struct trace_export e;
        (void)state;
        trace_export_init(&e, INTERVAL_MS, 600, 1);
        assert_int_equal(trace_export_news(&e), TRACE_NEWS_NONE);
        add(&e, 1000, 0);
        assert_int_equal(e.waiting, 600);
        assert_int_equal(e.counts.dropped, 400);
        assert_int_equal(trace_export_news(&e), TRACE_NEWS_DROPPING);
        assert_int_equal(trace_export_news(&e), TRACE_NEWS_NONE);
        /* Some are taken, but it goes on: that is the same story. */
        assert_non_null(trace_export_next(&e, 0));
        (void)trace_export_answered(&e, &taken, 1);
        add(&e, 1000, 2);
        assert_int_equal(trace_export_news(&e), TRACE_NEWS_NONE);
        trace_export_drop(&e);
        assert_int_equal(e.waiting, 0);
        trace_export_free(&e);
}

static void a_receiver_that_is_gone_is_tried_again_with_growing_pauses(void **state)
{
        struct trace_export e;
        uint64_t now_ms = 100;
        uint64_t pauses[12];
        (void)state;
        trace_export_init(&e, INTERVAL_MS, 4096, 1);
        add(&e, TRACE_BATCH_MAX, now_ms);
        for (unsigned i = 0; i < COUNT(pauses); i++) {
                assert_non_null(trace_export_next(&e, now_ms));
                enum trace_news news = trace_export_answered(&e, &(struct trace_answer){ .status = -111 }, now_ms);
                assert_int_equal(news, i ? TRACE_NEWS_NONE : TRACE_NEWS_FAILING);
                if (!e.first)
                        break;
                pauses[i] = trace_export_due_ms(&e) - now_ms;
                uint64_t most = min_u64(TRACE_PAUSE_MS << i, TRACE_PAUSE_MAX_MS);
                assert_in_range(pauses[i], most / 2, most);
                now_ms += pauses[i];
                assert_null(trace_export_next(&e, now_ms - 1));
        }
        assert_int_equal(e.counts.exported + e.counts.failed, 0);
        assert_non_null(trace_export_next(&e, now_ms));
        assert_int_equal(trace_export_answered(&e, &taken, now_ms), TRACE_NEWS_WELL);
        assert_int_equal(e.counts.exported, TRACE_BATCH_MAX);
        /* For ever is too long. */
        add(&e, TRACE_BATCH_MAX, now_ms);
        assert_non_null(trace_export_next(&e, now_ms));
        now_ms += TRACE_GIVE_UP_MS;
        (void)trace_export_answered(&e, &(struct trace_answer){ .http_code = 503 }, now_ms);
        assert_int_equal(e.counts.failed, TRACE_BATCH_MAX);
        assert_int_equal(e.waiting, 0);
        trace_export_free(&e);
}

static void what_the_receiver_says_about_when_is_kept(void **state)
{
        struct trace_export e;
        (void)state;
        trace_export_init(&e, INTERVAL_MS, 4096, 1);
        add(&e, TRACE_BATCH_MAX, 0);
        assert_non_null(trace_export_next(&e, 0));
        (void)trace_export_answered(&e, &(struct trace_answer){ .http_code = 429, .retry_after_ms = 7000 }, 10);
        assert_int_equal(trace_export_due_ms(&e), 7010);
        assert_non_null(trace_export_next(&e, 7010));
        (void)trace_export_answered(
                &e, &(struct trace_answer){ .http_code = 503, .retry_after_ms = UINT64_C(86400000) }, 7010);
        assert_int_equal(trace_export_due_ms(&e), 7010 + TRACE_AFTER_MAX_MS);
        trace_export_free(&e);
}

static void what_is_refused_is_not_sent_again(void **state)
{
        const long codes[] = { 400, 401, 404, 413, 500, 301 };
        (void)state;
        for (size_t i = 0; i < COUNT(codes); i++) {
                struct trace_export e;
                trace_export_init(&e, INTERVAL_MS, 4096, 1);
                add(&e, 5, 0);
                assert_non_null(trace_export_next(&e, INTERVAL_MS));
                (void)trace_export_answered(&e, &(struct trace_answer){ .http_code = codes[i] }, INTERVAL_MS);
                assert_int_equal(e.counts.failed, 5);
                assert_null(e.first);
                trace_export_free(&e);
        }
}

static void a_host_that_stops_sends_at_once_and_does_not_wait_long(void **state)
{
        struct trace_export e;
        (void)state;
        trace_export_init(&e, INTERVAL_MS, 4096, 1);
        assert_true(trace_export_stop(&e, 50));
        trace_export_init(&e, INTERVAL_MS, 4096, 1);
        add(&e, 2, 100);
        assert_false(trace_export_stop(&e, 200));
        assert_non_null(trace_export_next(&e, 200));
        assert_false(trace_export_stop(&e, 200 + TRACE_STOP_MS - 1));
        assert_true(trace_export_stop(&e, 200 + TRACE_STOP_MS));
        (void)trace_export_answered(&e, &taken, 300);
        assert_true(trace_export_stop(&e, 300));
        trace_export_free(&e);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_batch_goes_when_it_is_full_or_old),
                cmocka_unit_test(what_finds_no_room_is_dropped_and_told_once),
                cmocka_unit_test(a_receiver_that_is_gone_is_tried_again_with_growing_pauses),
                cmocka_unit_test(what_the_receiver_says_about_when_is_kept),
                cmocka_unit_test(what_is_refused_is_not_sent_again),
                cmocka_unit_test(a_host_that_stops_sends_at_once_and_does_not_wait_long),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
