/* Whom a host with a free seat asks, and how long it may run what it got. */
#include "check.h"

#include "host/lend/borrower.h"

static const uint8_t ann[STORE_NONCE_SIZE] = { 1 };
static const uint8_t ben[STORE_NONCE_SIZE] = { 2 };

static void list(struct borrower *b, uint64_t now_ms, uint64_t of_ann, uint64_t of_ben)
{
        borrower_listing(b, now_ms);
        if (of_ann)
                borrower_found(b, 0, ann, of_ann);
        if (of_ben)
                borrower_found(b, 0, ben, of_ben);
        borrower_listed(b, true);
}

static void nothing_is_read_while_no_seat_is_free(void **state)
{
        (void)state;
        struct borrower b = { .is_stale = true };
        struct borrower_ask ask;
        struct borrower_seats seats = { 0, 2, 1000 };
        assert_int_equal(borrower_next(&b, NULL, 0, 5000, &ask), BORROWER_NOTHING);
        assert_int_equal(borrower_due_ms(&b, NULL, 0), UINT64_MAX);
        assert_int_equal(borrower_next(&b, &seats, 1, 5000, &ask), BORROWER_LIST);
        list(&b, 5000, 0, 0);
        /* Nobody wants anything: nothing more is read before a ring, and that no more often than it may. */
        assert_int_equal(borrower_next(&b, &seats, 1, 900000, &ask), BORROWER_NOTHING);
        assert_int_equal(borrower_due_ms(&b, &seats, 1), UINT64_MAX);
        borrower_rang(&b);
        assert_int_equal(borrower_next(&b, &seats, 1, 5000 + BORROWER_LIST_MS - 1, &ask), BORROWER_NOTHING);
        assert_int_equal(borrower_due_ms(&b, &seats, 1), 5000 + BORROWER_LIST_MS);
        assert_int_equal(borrower_next(&b, &seats, 1, 5000 + BORROWER_LIST_MS, &ask), BORROWER_LIST);
        borrower_listing(&b, 6000);
        borrower_listed(&b, false);
        assert_int_equal(borrower_next(&b, &seats, 1, 7000, &ask), BORROWER_LIST);
}

static void a_seat_that_is_free_for_a_moment_is_not_offered(void **state)
{
        (void)state;
        struct borrower b = { 0 };
        struct borrower_ask ask;
        struct borrower_seats seats = { 0, 1, 1000 };
        list(&b, 900, 1, 0);
        assert_int_equal(borrower_next(&b, &seats, 1, 1000 + BORROWER_IDLE_MS - 1, &ask), BORROWER_NOTHING);
        assert_int_equal(borrower_due_ms(&b, &seats, 1), 1000 + BORROWER_IDLE_MS);
        assert_int_equal(borrower_next(&b, &seats, 1, 1000 + BORROWER_IDLE_MS, &ask), BORROWER_ASK);
        assert_memory_equal(ask.nonce, ann, sizeof(ann));
}

static void who_wants_most_is_asked_first_and_a_seat_is_offered_once(void **state)
{
        (void)state;
        struct borrower b = { 0 };
        struct borrower_ask ask;
        struct borrower_seats seats = { 0, 3, 1000 };
        list(&b, 900, 1, 2);
        assert_int_equal(borrower_next(&b, &seats, 1, 2000, &ask), BORROWER_ASK);
        assert_memory_equal(ask.nonce, ben, sizeof(ben));
        assert_int_equal(ask.seats, 2);
        assert_int_equal(borrower_next(&b, &seats, 1, 2000, &ask), BORROWER_ASK);
        assert_memory_equal(ask.nonce, ann, sizeof(ann));
        assert_int_equal(ask.seats, 1);
        /* All three are offered. */
        assert_int_equal(borrower_next(&b, &seats, 1, 2000, &ask), BORROWER_NOTHING);
        /* Ben gave one and has no more; two seats have got nothing yet, of which one is Ann's. */
        borrower_got(&b, 0, ben);
        borrower_none(&b, 0, ben);
        seats.free = 2;
        assert_int_equal(borrower_next(&b, &seats, 1, 2100, &ask), BORROWER_NOTHING);
        borrower_got(&b, 0, ann);
        seats.free = 1;
        /* Ann gave what was asked for, and may have more; Ben has not. */
        assert_int_equal(borrower_next(&b, &seats, 1, 2200, &ask), BORROWER_ASK);
        assert_memory_equal(ask.nonce, ann, sizeof(ann));
}

static void who_has_nothing_more_is_not_asked_before_the_next_ring(void **state)
{
        (void)state;
        struct borrower b = { 0 };
        struct borrower_ask ask;
        struct borrower_seats seats = { 0, 1, 1000 };
        list(&b, 900, 1, 0);
        assert_int_equal(borrower_next(&b, &seats, 1, 2000, &ask), BORROWER_ASK);
        borrower_none(&b, 0, ann);
        assert_int_equal(borrower_next(&b, &seats, 1, 9000, &ask), BORROWER_NOTHING);
        borrower_rang(&b);
        assert_int_equal(borrower_next(&b, &seats, 1, 9000, &ask), BORROWER_LIST);
        list(&b, 9000, 1, 0);
        assert_int_equal(borrower_next(&b, &seats, 1, 9000, &ask), BORROWER_ASK);
}

static void who_does_not_answer_is_taken_to_have_nothing(void **state)
{
        (void)state;
        struct borrower b = { 0 };
        struct borrower_ask ask;
        struct borrower_seats seats = { 0, 1, 1000 };
        list(&b, 900, 2, 1);
        assert_int_equal(borrower_next(&b, &seats, 1, 2000, &ask), BORROWER_ASK);
        assert_int_equal(borrower_next(&b, &seats, 1, 2000 + BORROWER_ASK_MS - 1, &ask), BORROWER_NOTHING);
        assert_int_equal(borrower_due_ms(&b, &seats, 1), 2000 + BORROWER_ASK_MS);
        assert_int_equal(borrower_next(&b, &seats, 1, 2000 + BORROWER_ASK_MS, &ask), BORROWER_ASK);
        assert_memory_equal(ask.nonce, ben, sizeof(ben));
}

static void only_seats_of_that_handler_are_offered(void **state)
{
        (void)state;
        struct borrower b = { 0 };
        struct borrower_ask ask;
        struct borrower_seats seats = { 1, 4, 1000 };
        list(&b, 900, 1, 1);
        assert_int_equal(borrower_next(&b, &seats, 1, 2000, &ask), BORROWER_NOTHING);
        borrower_forget(&b, 0);
        assert_int_equal(b.wants_count, 0);
}

/* --- a borrowed task ------------------------------------------------------------------------------------------------
 */

#define TTL_MS 3000

static struct borrowed_time begin(void)
{
        struct borrowed_time t;
        borrowed_begin(&t, TTL_MS, 10000);
        return t;
}

/* Confirmed at 10000, for so long. */
static struct borrowed_time held(uint64_t left_ms)
{
        struct borrowed_time t = begin();
        assert_int_equal(borrowed_next(&t, 10000), BORROWED_ASK);
        borrowed_confirmed(&t, left_ms);
        return t;
}

static void nothing_starts_before_the_store_has_confirmed_it(void **state)
{
        (void)state;
        struct borrowed_time t = begin();
        assert_false(borrowed_may_start(&t, 10000));
        assert_int_equal(borrowed_next(&t, 10000), BORROWED_ASK);
        assert_int_equal(borrowed_next(&t, 10000), BORROWED_WAIT);
        borrowed_failed(&t, 10050);
        assert_int_equal(borrowed_next(&t, 10050), BORROWED_WAIT);
        assert_int_equal(borrowed_next(&t, 10050 + BORROWED_RETRY_MS), BORROWED_ASK);
        borrowed_refused(&t);
        assert_false(borrowed_may_start(&t, 10200));
        assert_int_equal(borrowed_next(&t, 10200), BORROWED_DROP);
}

/* The time counts from when the question was sent, and ends before what is recorded does. */
static void its_deadline_is_before_the_recorded_one(void **state)
{
        (void)state;
        struct borrowed_time t = held(2000);
        assert_true(borrowed_may_start(&t, 11799));
        assert_false(borrowed_may_start(&t, 11800));
        /* A store that says more than was ever recorded is not believed. */
        t = held(1000000);
        assert_false(borrowed_may_start(&t, 10000 + TTL_MS));
}

static void a_message_that_was_long_on_its_way_starts_nothing(void **state)
{
        (void)state;
        struct borrowed_time t = held(0);
        assert_false(borrowed_may_start(&t, 10000));
}

static void heartbeats_go_on_while_it_is_held(void **state)
{
        (void)state;
        struct borrowed_time t = held(TTL_MS);
        assert_int_equal(borrowed_due_ms(&t), 10000 + TTL_MS / 3);
        assert_int_equal(borrowed_next(&t, 10999), BORROWED_WAIT);
        assert_int_equal(borrowed_next(&t, 11000), BORROWED_ASK);
        borrowed_confirmed(&t, 2000); /* the owner has not heard it yet: the next one comes sooner */
        assert_int_equal(borrowed_due_ms(&t), 11000 + 2000 / 3);
        assert_true(borrowed_may_start(&t, 12799));
}

static void it_is_stopped_at_its_deadline(void **state)
{
        (void)state;
        struct borrowed_time t = held(TTL_MS);
        assert_int_equal(borrowed_next(&t, 11000), BORROWED_ASK);
        borrowed_failed(&t, 12000);
        assert_int_equal(borrowed_next(&t, 12100), BORROWED_ASK);
        /* No answer any more. */
        assert_int_equal(borrowed_due_ms(&t), 12700);
        assert_int_equal(borrowed_next(&t, 12700), BORROWED_STOP);
        assert_int_equal(borrowed_next(&t, 12700), BORROWED_WAIT);
        borrowed_failed(&t, 12800);
        assert_int_equal(borrowed_next(&t, 12900), BORROWED_WAIT);
        assert_int_equal(borrowed_due_ms(&t), UINT64_MAX);
        /* What became of it is told: if nobody has started it since, it counts. */
        borrowed_ended(&t, 13000);
        assert_int_equal(borrowed_next(&t, 13000), BORROWED_TELL);
}

static void what_is_another_start_by_now_is_stopped_at_once(void **state)
{
        (void)state;
        struct borrowed_time t = held(TTL_MS);
        assert_int_equal(borrowed_next(&t, 11000), BORROWED_ASK);
        borrowed_refused(&t);
        assert_int_equal(borrowed_next(&t, 11001), BORROWED_STOP);
        borrowed_ended(&t, 11100);
        assert_int_equal(borrowed_next(&t, 11100), BORROWED_DROP);
}

static void an_outcome_is_told_until_it_is_taken_or_hopeless(void **state)
{
        (void)state;
        struct borrowed_time t = held(TTL_MS);
        borrowed_ended(&t, 10500);
        assert_int_equal(borrowed_next(&t, 10500), BORROWED_TELL);
        borrowed_failed(&t, 10600);
        assert_int_equal(borrowed_next(&t, 10600), BORROWED_WAIT);
        assert_int_equal(borrowed_next(&t, 10700), BORROWED_TELL);
        struct borrowed_time taken = t;
        borrowed_refused(&taken);
        assert_int_equal(borrowed_next(&taken, 10800), BORROWED_DROP);
        borrowed_failed(&t, 15600);
        assert_int_equal(borrowed_next(&t, 15700), BORROWED_DROP);
}

/* It ends while a heartbeat is under way: the outcome comes after its answer. */
static void one_call_is_under_way_at_a_time(void **state)
{
        (void)state;
        struct borrowed_time t = held(TTL_MS);
        assert_int_equal(borrowed_next(&t, 11000), BORROWED_ASK);
        borrowed_ended(&t, 11001);
        assert_int_equal(borrowed_next(&t, 11001), BORROWED_WAIT);
        borrowed_confirmed(&t, TTL_MS);
        assert_int_equal(borrowed_next(&t, 11002), BORROWED_TELL);
}

/* --- which starts have come --- */

static bool is_new(struct borrower_starts *starts, uint64_t epoch, uint64_t start)
{
        return borrower_is_new(starts, &(struct work_fence){ epoch, start, 7 });
}

/* Its record stays until the owner has told the store of its end, so the store would confirm it once more. */
static void a_start_that_came_twice_is_taken_once(void **state)
{
        (void)state;
        struct borrower_starts starts = { 0 };
        assert_true(is_new(&starts, 3, 5));
        assert_false(is_new(&starts, 3, 5));
        assert_true(is_new(&starts, 3, 6));
        assert_false(is_new(&starts, 3, 5));
        assert_false(is_new(&starts, 3, 6));
        /* Later ones have the same places. */
        assert_true(is_new(&starts, 3, 5 + BORROWER_STARTS));
        assert_true(is_new(&starts, 3, 6 + BORROWER_STARTS));
        assert_false(is_new(&starts, 3, 6 + BORROWER_STARTS));
        assert_false(is_new(&starts, 3, 6));
        assert_true(is_new(&starts, 3, 6 + 10 * BORROWER_STARTS));
        assert_false(is_new(&starts, 3, 6 + 10 * BORROWER_STARTS));
        /* Nobody knows whether that has come. */
        assert_false(is_new(&starts, 3, 7));
}

static void starts_that_overtake_each_other_are_all_taken(void **state)
{
        (void)state;
        struct borrower_starts starts = { 0 };
        for (uint64_t start = 10 * BORROWER_STARTS; start > 9 * BORROWER_STARTS; start--)
                assert_true(is_new(&starts, 3, start));
        for (uint64_t start = 10 * BORROWER_STARTS; start > 8 * BORROWER_STARTS; start--)
                assert_false(is_new(&starts, 3, start));
        for (uint64_t start = 12 * BORROWER_STARTS - 1; start > 11 * BORROWER_STARTS; start -= 2)
                assert_true(is_new(&starts, 3, start));
        for (uint64_t start = 11 * BORROWER_STARTS; start < 12 * BORROWER_STARTS; start += 2)
                assert_true(is_new(&starts, 3, start));
        assert_false(is_new(&starts, 3, 11 * BORROWER_STARTS - 1));
}

static void starts_count_anew_under_each_epoch(void **state)
{
        (void)state;
        struct borrower_starts starts = { 0 };
        assert_true(is_new(&starts, 3, 900));
        assert_true(is_new(&starts, 4, 1));
        assert_true(is_new(&starts, 4, 900));
        assert_false(is_new(&starts, 3, 901));
        assert_false(is_new(&starts, 4, 900));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_start_that_came_twice_is_taken_once),
                cmocka_unit_test(starts_that_overtake_each_other_are_all_taken),
                cmocka_unit_test(starts_count_anew_under_each_epoch),
                cmocka_unit_test(nothing_is_read_while_no_seat_is_free),
                cmocka_unit_test(a_seat_that_is_free_for_a_moment_is_not_offered),
                cmocka_unit_test(who_wants_most_is_asked_first_and_a_seat_is_offered_once),
                cmocka_unit_test(who_has_nothing_more_is_not_asked_before_the_next_ring),
                cmocka_unit_test(who_does_not_answer_is_taken_to_have_nothing),
                cmocka_unit_test(only_seats_of_that_handler_are_offered),
                cmocka_unit_test(nothing_starts_before_the_store_has_confirmed_it),
                cmocka_unit_test(its_deadline_is_before_the_recorded_one),
                cmocka_unit_test(a_message_that_was_long_on_its_way_starts_nothing),
                cmocka_unit_test(heartbeats_go_on_while_it_is_held),
                cmocka_unit_test(it_is_stopped_at_its_deadline),
                cmocka_unit_test(what_is_another_start_by_now_is_stopped_at_once),
                cmocka_unit_test(an_outcome_is_told_until_it_is_taken_or_hopeless),
                cmocka_unit_test(one_call_is_under_way_at_a_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
