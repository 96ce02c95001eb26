/* How much of a limit a holder gets: what cannot be read counts as used up, and heals. */
#include "check.h"

#include "store/limit_override.h"
#include "store/limit_share.h"

#define NOW  UINT64_C(1763256000000)
#define AA   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BB   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define NONE "00000000000000000000000000000000"

static const struct store_limit rate = { .version = 1, .rate = 10, .period_ms = 1000, .burst = 5, .values_max = 9 };
static const struct store_limit slots = { .version = 1, .concurrency = 5, .grace_ms = 500, .values_max = 9 };

static struct limit_share ask(
        const struct store_limit *limit, const char *record, uint64_t want, uint64_t keep, uint64_t close_ms)
{
        static uint8_t holder[STORE_NONCE_SIZE];
        memset(holder, 0xbb, sizeof(holder));
        struct limit_share share = { .limit = limit,
                .holder = holder,
                .lease_ms = 1000,
                .now_ms = NOW,
                .want = want,
                .keep = keep,
                .close_ms = close_ms,
                .record = span_of_text(record ? record : ""),
                .is_record_there = record != NULL };
        limit_share_take(&share);
        return share;
}

static struct limit_share take(const struct store_limit *limit, const char *record, uint64_t want)
{
        return ask(limit, record, want, 0, 0);
}

static void expect(struct limit_share share, uint64_t granted, const char *after)
{
        assert_int_equal(share.granted, granted);
        assert_int_equal(share.is_changed, after != NULL);
        if (after)
                assert_string_equal(share.after.size ? buffer_text(&share.after) : "", after);
        buffer_free(&share.after);
}

static void a_bucket_that_cannot_be_read_begins_empty(void **state)
{
        (void)state;
        static const char *const bad[] = { "", "x", "5", "5 ", "-1 1763256000000", "99999999999999999 1",
                "1 99999999999999999", "5000 1763256000000 ", "5000 1763256000000 1 1", "5000 1763256000501",
                "5000 1763256000000 99999999999999999" };
        for (size_t i = 0; i < COUNT(bad); i++)
                expect(take(&rate, bad[i], 1), 0, "0 1763256000000");
        expect(take(&rate, "5000 1763256000500", 1), 1, "4000 1763256000500"); /* the clock was set back a little */
        expect(take(&rate, "9007199254740991 1763255999000", 9), 5, "0 1763256000000"); /* more than there can be */
        expect(take(&rate, NULL, 0), 0, NULL);
        expect(take(&rate, "0 0", 9), 5, "0 1763256000000");
}

static void holders_that_cannot_be_read_hold_all_of_it_for_a_while(void **state)
{
        (void)state;
        static const char *const bad[] = { "", "x", AA, AA ":1", AA ":1:", AA ":1:5 ", AA ":-1:5", AA ":1:5 x",
                "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:1:5", "a" AA ":1:5", AA ":1:99999999999999999", " " AA ":1:5" };
        for (size_t i = 0; i < COUNT(bad); i++) {
                struct limit_share share = take(&slots, bad[i], 1);
                assert_int_equal(share.retry_ms, 1500);
                expect(share, 0, NONE ":5:1763256001000 " BB ":0:1763256002000");
        }
        expect(take(&slots, AA ":2:1763256000100", 9), 3, AA ":2:1763256000100 " BB ":3:1763256001000");
        expect(take(&slots, AA ":2:1763255999500", 9), 5, BB ":5:1763256001000"); /* lease and grace are over */
        expect(take(&slots, AA ":2:1763255999501", 9), 3, AA ":2:1763255999501 " BB ":3:1763256001000");
        /* As far away as no lease is: the clock was set back. */
        expect(take(&slots, AA ":2:1773256000000", 9), 3, AA ":2:1763259600000 " BB ":3:1763256001000");
        expect(take(&slots, BB ":5:1763256000100", 0), 0, "");
        expect(take(&slots, AA ":9007199254740991:1763256000100 " NONE ":9007199254740991:1763256000100", 1), 0,
                AA ":9007199254740991:1763256000100 " NONE ":9007199254740991:1763256000100 " BB ":0:1763256002000");
}

#define CLOSED "ffffffffffffffffffffffffffffffff"

static void what_is_in_use_is_kept_when_a_limit_is_lowered(void **state)
{
        (void)state;
        /* 6 are held of 5: who uses 3 keeps 3, and gets nothing more. */
        struct limit_share over = ask(&slots, AA ":3:1763256000100 " BB ":3:1763256000100", 4, 3, 0);
        assert_true(over.is_over);
        buffer_free(&over.after);
        over = ask(&slots, AA ":3:1763256000100 " BB ":3:1763256000100", 4, 2, 0);
        assert_false(over.is_over);
        buffer_free(&over.after);
        expect(ask(&slots, AA ":3:1763256000100 " BB ":3:1763256000100", 4, 3, 0), 3,
                AA ":3:1763256000100 " BB ":3:1763256001000");
        expect(ask(&slots, AA ":3:1763256000100 " BB ":3:1763256000100", 4, 1, 0), 2,
                AA ":3:1763256000100 " BB ":2:1763256001000");
}

static void what_runs_is_counted_even_if_there_is_no_room_for_it(void **state)
{
        (void)state;
        /* It was taken over from another holder, or its share came back meanwhile. */
        expect(ask(&slots, AA ":5:1763256000100", 4, 1, 0), 1, AA ":5:1763256000100 " BB ":1:1763256001000");
        expect(ask(&slots, AA ":5:1763256000100 " BB ":3:1763255999500", 3, 3, 0), 3,
                AA ":5:1763256000100 " BB ":3:1763256001000");
        expect(ask(&slots, "scribble", 4, 2, 0), 2, NONE ":5:1763256001000 " BB ":2:1763256001000");
}

static struct limit_share call(const char *record, uint64_t number, uint64_t want)
{
        static uint8_t holder[STORE_NONCE_SIZE];
        memset(holder, 0xbb, sizeof(holder));
        struct limit_share share = { .limit = &slots,
                .holder = holder,
                .lease_ms = 1000,
                .call = number,
                .now_ms = NOW,
                .want = want,
                .record = span_of_text(record),
                .is_record_there = true };
        limit_share_take(&share);
        return share;
}

static void a_call_that_comes_late_changes_nothing(void **state)
{
        (void)state;
        expect(call(AA ":1:1763256000100:9 " BB ":2:1763256000100:7", 8, 3), 3,
                AA ":1:1763256000100:9 " BB ":3:1763256001000:8");
        expect(call(BB ":2:1763256000100:7", 7, 1), 1, BB ":1:1763256001000:7"); /* a repeat */
        struct limit_share late = call(BB ":2:1763256000100:7", 6, 0);
        assert_false(late.is_changed);
        assert_int_equal(late.granted, 0);
        buffer_free(&late.after);
        expect(call(BB ":2:1763255999500:7", 6, 1), 1, BB ":1:1763256001000:6"); /* what was there is over */
        expect(call(BB ":2:1763256000100:", 8, 1), 0, NONE ":5:1763256001000 " BB ":0:1763256002000:8");
        expect(call(BB ":2:1763256000100:7:1", 8, 1), 0, NONE ":5:1763256001000 " BB ":0:1763256002000:8");
}

static void who_got_nothing_counts_as_waiting_for_a_moment(void **state)
{
        (void)state;
        struct limit_share share = ask(&slots, AA ":0:1763256000001", 9, 0, 0);
        assert_true(share.has_waiting);
        expect(share, 5, AA ":0:1763256000001 " BB ":5:1763256001000");
        share = ask(&slots, AA ":0:1763256000000", 9, 0, 0);
        assert_false(share.has_waiting);
        expect(share, 5, BB ":5:1763256001000");
        struct store_limit_value value = { 0 };
        limit_share_look(&slots, SPAN_TEXT(AA ":0:1763256000001 " BB ":2:1763256001000"), NOW, &value);
        assert_int_equal(value.waiting, 1);
        assert_int_equal(value.holders, 1);
        assert_int_equal(value.held, 2);
}

static void what_is_closed_grants_nothing_until_then(void **state)
{
        (void)state;
        struct limit_share share = ask(&rate, NULL, 2, 0, 700);
        assert_int_equal(share.closed_ms, 700);
        assert_int_equal(share.retry_ms, 700);
        assert_int_equal(share.rest_ms, NOW + 700);
        expect(share, 0, "5000 1763256000000 1763256000700");
        expect(ask(&rate, "5000 1763256000000 1763256000001", 2, 0, 0), 0, NULL);
        expect(ask(&rate, "5000 1763256000000 1763256000000", 2, 0, 0), 2, "3000 1763256000000");
        /* A shorter closure does not shorten it, and the clock that was set back does not make it endless. */
        expect(ask(&rate, "5000 1763256000000 1763256000700", 0, 0, 100), 0, "5000 1763256000000 1763256000700");
        share = ask(&rate, "5000 1763256000000 1773256000000", 1, 0, 0);
        assert_int_equal(share.closed_ms, STORE_LIMIT_LEASE_MS);
        expect(share, 0, NULL);
        expect(ask(&slots, NULL, 2, 0, 700), 0, BB ":0:1763256002000 " CLOSED ":0:1763256000700");
        share = ask(&slots, BB ":2:1763256000100 " CLOSED ":0:1763256000700", 4, 2, 0);
        assert_int_equal(share.retry_ms, 1000);
        assert_int_equal(share.closed_ms, 700);
        expect(share, 2, BB ":2:1763256001000 " CLOSED ":0:1763256000700"); /* what runs keeps its share */
        expect(ask(&slots, CLOSED ":0:1763256000000", 4, 0, 0), 4, BB ":4:1763256001000");
        struct store_limit_value value = { 0 };
        limit_share_look(&slots, SPAN_TEXT(CLOSED ":0:1763256000700"), NOW, &value);
        assert_int_equal(value.closed_ms, 700);
        assert_int_equal(value.holders + value.waiting + value.held, 0);
        limit_share_look(&rate, SPAN_TEXT("5000 1763256000000 1763256000500"), NOW, &value);
        assert_int_equal(value.closed_ms, 500);
}

static void there_are_so_many_holders_and_no_more(void **state)
{
        (void)state;
        for (unsigned count = STORE_LIMIT_HOLDERS - 1; count <= STORE_LIMIT_HOLDERS; count++) {
                struct store_limit many = slots;
                struct buffer record = { 0 };
                many.concurrency = STORE_LIMIT_MAX;
                for (unsigned i = 0; i < count; i++)
                        buffer_printf(&record, "%s%032x:1:1763256000100", i ? " " : "", i);
                struct limit_share share = take(&many, buffer_text(&record), 1);
                assert_int_equal(share.granted, count < STORE_LIMIT_HOLDERS);
                buffer_free(&share.after);
                share = ask(&many, buffer_text(&record), 1, 1, 0); /* also of what runs: the record has its size */
                assert_int_equal(share.granted, count < STORE_LIMIT_HOLDERS);
                buffer_free(&share.after);
                buffer_free(&record);
        }
}

static void a_definition_reads_as_it_was_written(void **state)
{
        (void)state;
        static const char *const bad[] = { "", "1", "1 10 1000 5 0 0", "1 10 1000 5 0 0 9 ", "0 10 1000 5 0 0 9",
                "1 10 1000 5 1 0 9", "1 0 0 0 0 0 9", "1 10 0 5 0 0 9", "1 10 1000 0 0 0 9", "1 10 1000 5 0 0 0",
                "1 10 1000 5 0 3600001 9", "1 1000001 1000 5 0 0 9", "1 10 172800001 5 0 0 9", "x 10 1000 5 0 0 9" };
        struct buffer text = { 0 };
        struct store_limit back = { 0 };
        limit_put(&text, &rate);
        assert_string_equal(buffer_text(&text), "1 10 1000 5 0 0 9");
        assert_true(limit_read(span_of_text(buffer_text(&text)), &back));
        assert_memory_equal(&back, &rate, sizeof(rate));
        for (size_t i = 0; i < COUNT(bad); i++)
                assert_false(limit_read(span_of_text(bad[i]), &back));
        buffer_free(&text);
}

static void what_a_person_sets_reads_as_it_was_written(void **state)
{
        (void)state;
        static const char *const bad[] = { "", "rate=5", "version=0 rate=5", "version=1 rate=", "version=1 rate=x",
                "version=1  rate=5", "version=1 speed=5", "version=1 rate=1000001", "version=1 rate=-1", "version",
                "version=99999999999999999999" };
        struct limit_override o = { .version = 7, .rate = 20, .burst = 5, .until_ms = 900 };
        struct limit_override back = { 0 };
        struct buffer text = { 0 };
        limit_override_put(&text, &o);
        assert_string_equal(buffer_text(&text), "version=7 rate=20 burst=5 until=900");
        assert_true(limit_override_read(span_of_text(buffer_text(&text)), &back));
        assert_memory_equal(&back, &o, sizeof(o));
        assert_true(limit_override_is_on(&o, 899));
        assert_false(limit_override_is_on(&o, 900));
        assert_int_equal(limit_override_version(&o, 899), 7);
        assert_int_equal(limit_override_version(&o, 900), 900);          /* that it is over is news */
        assert_true(limit_override_read(SPAN_TEXT("version=8"), &back)); /* it was cleared */
        assert_false(limit_override_is_on(&back, 0));
        for (size_t i = 0; i < COUNT(bad); i++)
                assert_false(limit_override_read(span_of_text(bad[i]), &back));
        buffer_free(&text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bucket_that_cannot_be_read_begins_empty),
                cmocka_unit_test(holders_that_cannot_be_read_hold_all_of_it_for_a_while),
                cmocka_unit_test(what_is_in_use_is_kept_when_a_limit_is_lowered),
                cmocka_unit_test(what_runs_is_counted_even_if_there_is_no_room_for_it),
                cmocka_unit_test(a_call_that_comes_late_changes_nothing),
                cmocka_unit_test(who_got_nothing_counts_as_waiting_for_a_moment),
                cmocka_unit_test(what_is_closed_grants_nothing_until_then),
                cmocka_unit_test(there_are_so_many_holders_and_no_more),
                cmocka_unit_test(a_definition_reads_as_it_was_written),
                cmocka_unit_test(what_a_person_sets_reads_as_it_was_written),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
