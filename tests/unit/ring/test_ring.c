/* The ring, both ends in turn: order, batches, room, large tasks, take-back, and a runner that lies. */
#include "ring_fixture.h"

#include <sys/stat.h>

#include "ring_clock.h"

#define ENTRIES      8
#define MIB          (1024 * 1024)
#define SLACK        1024 /* what packing adds */
#define IN_FLIGHT(b) ((b)->host.in_flight)

static const struct ring_shape small_shape = {
        .seats = 4, .entries = ENTRIES, .task_bytes_max = MIB + SLACK, .answer_bytes_max = MIB + SLACK
};

static struct both both;

static int open_ring(void **state)
{
        both_open(&both, &small_shape);
        *state = &both;
        return 0;
}

static int close_ring(void **state)
{
        on_clock = NULL;
        both_close(*state);
        return 0;
}

static struct ring_taken take_one(struct both *b, uint32_t seat)
{
        struct ring_taken taken;
        assert_true(has_waiting(b));
        assert_int_equal(ring_take(&b->runner, seat, &taken, 1), 1);
        return taken;
}

static void expect_answer(struct both *b, uint64_t ticket, const void *owner)
{
        struct ring_reply reply = { 0 };
        void *got = NULL;
        assert_int_equal(ring_host_next(&b->host, &reply, &got), 1);
        assert_int_equal(reply.ticket, ticket);
        assert_ptr_equal(got, owner);
}

static void expect_no_answer(struct both *b)
{
        struct ring_reply reply;
        void *owner;
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), 0);
}

/* Memory that the ring's file really uses. */
static uint64_t memory_bytes(const struct both *b)
{
        struct stat st;
        assert_int_equal(fstat(b->host.fd, &st), 0);
        return (uint64_t)st.st_blocks * 512;
}

static void tasks_are_started_in_order_and_answered_to_their_owner(void **state)
{
        struct both *b = *state;
        int owners[5];
        char payloads[5][8];
        for (int i = 0; i < 5; i++) {
                (void)snprintf(payloads[i], sizeof(payloads[i]), "p%d", i);
                assert_int_equal(submit_one(b, payloads[i], &owners[i]), i + 1);
        }
        struct ring_taken taken[5];
        for (int i = 0; i < 5; i++) {
                taken[i] = take_one(b, (uint32_t)i % 4);
                assert_int_equal(taken[i].ticket, i + 1);
                assert_string_equal(taken[i].task.payload, payloads[i]);
        }
        assert_false(has_waiting(b));
        expect_no_answer(b);
        for (int i = 4; i >= 0; i--)
                assert_int_equal(answer_done(b, &taken[i]), 0);
        for (int i = 4; i >= 0; i--)
                expect_answer(b, (uint64_t)i + 1, &owners[i]);
        expect_no_answer(b);
        assert_int_equal(IN_FLIGHT(b), 0);
}

static void an_answer_carries_everything(void **state)
{
        struct both *b = *state;
        (void)submit_one(b, "x", NULL);
        struct ring_taken taken = take_one(b, 0);
        struct ring_reply sent = { .ticket = taken.ticket,
                .outcome = OUTCOME_RETRY,
                .started_ns = 5,
                .ended_ns = 6,
                .has_result = true,
                .result = "res\0ult",
                .result_size = 7,
                .has_retry_after = true,
                .retry_after_ms = 250,
                .error = "why" };
        assert_int_equal(ring_answer(&b->runner, &taken, &sent), 0);
        struct ring_reply got;
        void *owner;
        assert_int_equal(ring_host_next(&b->host, &got, &owner), 1);
        assert_int_equal(got.outcome, OUTCOME_RETRY);
        assert_string_equal(got.error, "why");
        assert_int_equal(got.started_ns, 5);
        assert_int_equal(got.retry_after_ms, 250);
        assert_int_equal(got.result_size, 7);
        assert_memory_equal(got.result, "res\0ult", 7);
}

static void a_batch_is_taken_whole_and_alone(void **state)
{
        struct both *b = *state;
        static const char *const names[] = { "a", "b", "c" };
        struct ring_taken taken[8];
        uint64_t first = submit_batch(b, names, 3);
        uint64_t plain = submit_one(b, "d", NULL);
        assert_int_equal(ring_take(&b->runner, 0, taken, 8), 3);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(taken[i].ticket, first + i);
                assert_string_equal(taken[i].task.payload, names[i]);
        }
        assert_int_equal(ring_take(&b->runner, 1, taken + 3, 5), 1);
        assert_int_equal(taken[3].ticket, plain);
}

static void a_batch_larger_than_a_seat_takes_is_taken_in_parts(void **state)
{
        struct both *b = *state;
        static const char *const names[] = { "a", "b", "c", "d", "e" };
        struct ring_taken taken[5];
        uint64_t first = submit_batch(b, names, 5);
        assert_int_equal(ring_take(&b->runner, 0, taken, 2), 2);
        assert_int_equal(ring_take(&b->runner, 1, taken + 2, 2), 2);
        assert_int_equal(ring_take(&b->runner, 2, taken + 4, 2), 1);
        for (uint32_t i = 0; i < 5; i++)
                assert_int_equal(taken[i].ticket, first + i);
}

static void a_full_ring_says_so_and_has_room_after_an_answer(void **state)
{
        struct both *b = *state;
        for (int i = 0; i < ENTRIES; i++) {
                assert_true(ring_host_has_room(&b->host, 1, 100));
                (void)submit_one(b, "x", NULL);
        }
        assert_false(ring_host_has_room(&b->host, 1, 100));
        struct ring_task task = task_with("y", 1);
        void *owner = NULL;
        uint64_t ticket = 77;
        assert_int_equal(ring_host_submit(&b->host, &task, &owner, 1, &ticket), -EAGAIN);
        assert_int_equal(ticket, 77);
        struct ring_taken taken = take_one(b, 0);
        assert_false(ring_host_has_room(&b->host, 1, 100));
        assert_int_equal(answer_done(b, &taken), 0);
        expect_answer(b, 1, NULL);
        assert_true(ring_host_has_room(&b->host, 1, 100));
        assert_false(ring_host_has_room(&b->host, 2, 100));
        assert_int_equal(ring_host_submit(&b->host, &task, &owner, 1, &ticket), 0);
        assert_int_equal(ticket, ENTRIES + 1);
}

static void the_ring_goes_round_many_times(void **state)
{
        struct both *b = *state;
        for (uint64_t round = 1; round <= 1000; round++) {
                int owner;
                assert_int_equal(submit_one(b, "x", &owner), round);
                struct ring_taken taken = take_one(b, 0);
                assert_int_equal(answer_done(b, &taken), 0);
                expect_answer(b, round, &owner);
        }
}

static void what_is_over_the_limit_is_refused_whole(void **state)
{
        struct both *b = *state;
        static uint8_t large[2 * MIB];
        struct ring_task tasks[2] = { task_with("x", 1), task_with(large, sizeof(large)) };
        void *owners[2] = { NULL };
        uint64_t ticket = 77;
        assert_int_equal(ring_host_submit(&b->host, tasks, owners, 2, &ticket), -EMSGSIZE);
        assert_int_equal(ticket, 77);
        assert_int_equal(IN_FLIGHT(b), 0);
        assert_false(has_waiting(b));
}

static void a_large_task_and_answer_pass_and_their_memory_is_given_back(void **state)
{
        struct both *b = *state;
        static uint8_t large[MIB];
        for (size_t i = 0; i < sizeof(large); i++)
                large[i] = (uint8_t)(i * 7 + i / 256);
        uint64_t before = memory_bytes(b);
        for (int i = 0; i < 3; i++) {
                struct ring_task task = task_with(large, sizeof(large));
                void *owner = &task;
                uint64_t ticket = 0;
                assert_int_equal(ring_host_submit(&b->host, &task, &owner, 1, &ticket), 0);
                struct ring_taken taken = take_one(b, 0);
                assert_int_equal(taken.task.payload_size, sizeof(large));
                assert_memory_equal(taken.task.payload, large, sizeof(large));
                struct ring_reply reply = reply_done(ticket);
                reply.has_result = true;
                reply.result = large;
                reply.result_size = sizeof(large);
                assert_int_equal(ring_answer(&b->runner, &taken, &reply), 0);
                assert_true(memory_bytes(b) >= before + 2 * MIB);
                void *got = NULL;
                struct ring_reply answer;
                assert_int_equal(ring_host_next(&b->host, &answer, &got), 1);
                assert_ptr_equal(got, owner);
                assert_int_equal(answer.result_size, sizeof(large));
                assert_memory_equal(answer.result, large, sizeof(large));
        }
        assert_true(memory_bytes(b) < before + 256 * 1024);
}

static void a_large_task_taken_back_gives_its_memory_back(void **state)
{
        struct both *b = *state;
        static uint8_t large[MIB];
        struct ring_task task = task_with(large, sizeof(large));
        void *owner = NULL;
        uint64_t ticket = 0;
        uint64_t before = memory_bytes(b);
        assert_int_equal(ring_host_submit(&b->host, &task, &owner, 1, &ticket), 0);
        assert_true(memory_bytes(b) >= before + MIB);
        assert_true(ring_host_take_back(&b->host, ticket));
        assert_true(memory_bytes(b) < before + 64 * 1024);
}

static void large_tasks_wait_for_a_spill_while_small_ones_pass(void **state)
{
        (void)state;
        struct both b;
        both_open(&b, &(struct ring_shape){ 1, 64, 4096, 4096 });
        static uint8_t bytes[2000];
        struct ring_task task = task_with(bytes, sizeof(bytes));
        void *owner = NULL;
        uint64_t ticket = 0;
        for (int i = 0; i < RING_SPILLS; i++)
                assert_int_equal(ring_host_submit(&b.host, &task, &owner, 1, &ticket), 0);
        assert_false(ring_host_has_room(&b.host, 1, ring_task_size(&task)));
        assert_int_equal(ring_host_submit(&b.host, &task, &owner, 1, &ticket), -EAGAIN);
        assert_true(ring_host_has_room(&b.host, 1, 100));
        (void)submit_one(&b, "small", NULL);
        assert_true(ring_host_take_back(&b.host, 5));
        assert_true(ring_host_has_room(&b.host, 1, ring_task_size(&task)));
        assert_int_equal(ring_host_submit(&b.host, &task, &owner, 1, &ticket), 0);
        both_close(&b);
}

static void an_answer_over_the_limit_can_be_given_again_with_less(void **state)
{
        struct both *b = *state;
        static uint8_t large[2 * MIB];
        (void)submit_one(b, "x", b);
        struct ring_taken taken = take_one(b, 0);
        struct ring_reply reply = reply_done(taken.ticket);
        reply.result = large;
        reply.result_size = sizeof(large);
        assert_int_equal(ring_answer(&b->runner, &taken, &reply), -EMSGSIZE);
        expect_no_answer(b);
        assert_int_equal(answer_done(b, &taken), 0);
        expect_answer(b, taken.ticket, b);
}

static void a_task_taken_back_is_never_started(void **state)
{
        struct both *b = *state;
        uint64_t first = submit_one(b, "first", NULL);
        uint64_t second = submit_one(b, "second", NULL);
        assert_true(ring_host_take_back(&b->host, first));
        assert_false(ring_host_take_back(&b->host, first));
        assert_int_equal(IN_FLIGHT(b), 1);
        struct ring_taken taken = take_one(b, 0);
        assert_int_equal(taken.ticket, second);
        assert_false(has_waiting(b));
        assert_false(ring_host_take_back(&b->host, second));
        assert_int_equal(answer_done(b, &taken), 0);
        expect_answer(b, second, NULL);
        assert_false(ring_host_take_back(&b->host, second));
        assert_false(ring_host_take_back(&b->host, 0));
        assert_false(ring_host_take_back(&b->host, 1000));
}

/* The entry of a task that was taken back gets another task before a seat has passed its cell: that one starts when its
 * own cell comes, since it may have to follow another. */
static void an_entry_that_was_taken_back_starts_its_next_task_in_its_own_turn(void **state)
{
        struct both *b = *state;
        static const char *const names[] = { "a", "b", "c" };
        static const char *const later[] = { "d", "e", "f" };
        uint64_t first = submit_batch(b, names, 3);
        assert_true(ring_host_take_back(&b->host, first + 2));
        assert_true(ring_host_take_back(&b->host, first + 1));
        uint64_t second = submit_batch(b, later, 3);
        struct ring_taken taken[3];
        assert_int_equal(ring_take(&b->runner, 0, taken, 3), 1);
        assert_int_equal(taken[0].ticket, first);
        assert_int_equal(ring_take(&b->runner, 0, taken, 3), 3);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(taken[i].ticket, second + i);
}

static void a_batch_goes_on_without_what_was_taken_back(void **state)
{
        struct both *b = *state;
        static const char *const names[] = { "a", "b", "c" };
        uint64_t first = submit_batch(b, names, 3);
        assert_true(ring_host_take_back(&b->host, first));
        struct ring_taken taken[3];
        assert_int_equal(ring_take(&b->runner, 0, taken, 3), 2);
        assert_int_equal(taken[0].ticket, first + 1);
        assert_int_equal(taken[1].ticket, first + 2);
        struct ring_seat_view seat;
        ring_host_seat(&b->host, 0, &seat);
        assert_int_equal(seat.ticket, first + 1);
}

/* The cell of the one taken back and the new one's own both lead to the new task. */
static void an_entry_used_again_after_take_back_is_started_once(void **state)
{
        struct both *b = *state;
        assert_true(ring_host_take_back(&b->host, submit_one(b, "old", NULL)));
        uint64_t ticket = submit_one(b, "new", b);
        struct ring_taken taken = take_one(b, 0);
        assert_int_equal(taken.ticket, ticket);
        assert_string_equal(taken.task.payload, "new");
        assert_int_equal(answer_done(b, &taken), 0);
        expect_answer(b, ticket, b);
        uint64_t last = submit_one(b, "last", b);
        taken = take_one(b, 1);
        assert_int_equal(taken.ticket, last);
        ring_host_retire(&b->host);
        assert_int_equal(ring_take(&b->runner, 1, &taken, 1), 0);
}

static void cells_of_taken_back_tasks_count_until_a_seat_has_passed_them(void **state)
{
        struct both *b = *state;
        for (int i = 0; i < ENTRIES; i++)
                assert_true(ring_host_take_back(&b->host, submit_one(b, "x", NULL)));
        assert_int_equal(IN_FLIGHT(b), 0);
        assert_false(ring_host_has_room(&b->host, 1, 1));
        ring_host_retire(&b->host);
        struct ring_taken taken;
        assert_int_equal(ring_take(&b->runner, 0, &taken, 1), 0);
        assert_true(ring_host_has_room(&b->host, ENTRIES, 1));
}

/* While seat 0 is between winning two cells and starting them, others go once around the whole ring. */
static void overtake_seat_0(void)
{
        struct ring_taken taken;
        struct ring_reply reply;
        void *owner;
        while (has_waiting(&both)) {
                assert_int_equal(ring_take(&both.runner, 1, &taken, 1), 1);
                assert_int_equal(answer_done(&both, &taken), 0);
                assert_int_equal(ring_host_next(&both.host, &reply, &owner), 1);
                if (both.host.tail < ENTRIES + 2)
                        (void)submit_one(&both, "later", NULL);
        }
}

static void a_slow_seat_starts_the_tasks_that_it_won(void **state)
{
        struct both *b = *state;
        static const char *const names[] = { "a", "b" };
        uint64_t first = submit_batch(b, names, 2);
        for (int i = 2; i < ENTRIES; i++)
                (void)submit_one(b, "other", NULL);
        struct ring_taken taken[2];
        on_clock = overtake_seat_0;
        assert_int_equal(ring_take(&b->runner, 0, taken, 2), 2);
        assert_null(on_clock);
        assert_int_equal(b->host.tail, ENTRIES + 2);
        assert_int_equal(taken[0].ticket, first);
        assert_int_equal(taken[1].ticket, first + 1);
        assert_int_equal(IN_FLIGHT(b), 2);
}

static void what_is_in_flight_is_seen_with_its_state(void **state)
{
        struct both *b = *state;
        int owners[3];
        for (int i = 0; i < 3; i++)
                (void)submit_one(b, "x", &owners[i]);
        (void)take_one(b, 3);
        struct ring_taken second = take_one(b, 1);
        assert_int_equal(answer_done(b, &second), 0);
        expect_answer(b, 2, &owners[1]);
        uint32_t cursor = 0;
        struct ring_view view;
        assert_true(ring_host_each(&b->host, &cursor, &view));
        assert_int_equal(view.ticket, 1);
        assert_ptr_equal(view.owner, &owners[0]);
        assert_true(view.is_started);
        assert_int_equal(view.seat, 3);
        assert_true(ring_host_each(&b->host, &cursor, &view));
        assert_int_equal(view.ticket, 3);
        assert_false(view.is_started);
        assert_false(ring_host_each(&b->host, &cursor, &view));
        assert_ptr_equal(ring_host_forget(&b->host, 1), &owners[0]);
        assert_null(ring_host_forget(&b->host, 1));
        assert_null(ring_host_forget(&b->host, 2));
        assert_int_equal(IN_FLIGHT(b), 1);
}

/* Somebody in the runner wrote over it; the task has done nothing wrong and must not hang. */
static void a_task_damaged_in_memory_comes_back_interrupted(void **state)
{
        struct both *b = *state;
        uint64_t damaged = submit_one(b, "x", b);
        uint64_t whole = submit_one(b, "y", NULL);
        memset(b->host.map.entries[0].bytes, 0xff, 64);
        struct ring_taken taken;
        assert_int_equal(ring_take(&b->runner, 0, &taken, 1), 1);
        assert_int_equal(taken.ticket, whole);
        struct ring_reply reply;
        void *owner;
        assert_int_equal(ring_host_next(&b->host, &reply, &owner), 1);
        assert_int_equal(reply.ticket, damaged);
        assert_int_equal(reply.outcome, OUTCOME_INTERRUPTED);
        assert_ptr_equal(owner, b);
}

static void a_runner_attaches_only_to_a_ring(void **state)
{
        struct both *b = *state;
        struct ring_runner runner = { 0 };
        (void)submit_one(b, "seen", NULL);
        assert_int_equal(ring_attach(&runner, b->host.fd, b->bell_fd), 0);
        struct ring_taken taken;
        assert_int_equal(ring_take(&runner, 0, &taken, 1), 1);
        assert_string_equal(taken.task.payload, "seen");
        ring_detach(&runner);
        ring_detach(&runner);
        b->host.map.header->version++;
        assert_int_equal(ring_attach(&runner, b->host.fd, b->bell_fd), -EINVAL);
        b->host.map.header->version--;
        b->host.map.header->shape.entries = 2 * ENTRIES;
        assert_int_equal(ring_attach(&runner, b->host.fd, b->bell_fd), -EINVAL);
        assert_int_equal(ring_attach(&runner, -1, -1), -EBADF);
        int empty = memfd_create("empty", MFD_CLOEXEC);
        assert_int_equal(ring_attach(&runner, empty, -1), -EINVAL);
        assert_int_equal(ftruncate(empty, 1 << 20), 0);
        assert_int_equal(ring_attach(&runner, empty, -1), -EINVAL);
        (void)close(empty);
        assert_int_equal(ftruncate(b->host.fd, 0), -1);
}

static void an_impossible_shape_is_refused(void **state)
{
        (void)state;
        static const struct ring_shape bad[] = { { 0, 8, 0, 0 }, { 257, 8, 0, 0 }, { 1, 0, 0, 0 }, { 1, 12, 0, 0 },
                { 1, 131072, 0, 0 }, { 1, 8, UINT64_MAX, 0 }, { 1, 8, 0, UINT64_MAX } };
        for (size_t i = 0; i < COUNT(bad); i++) {
                struct ring_host host;
                assert_int_equal(ring_host_init(&host, &bad[i]), -EINVAL);
        }
        struct ring_host host = { 0 };
        ring_host_free(&host);
        ring_host_free(NULL);
}

#define RING_TEST(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

int main(void)
{
        const struct CMUnitTest tests[] = {
                RING_TEST(tasks_are_started_in_order_and_answered_to_their_owner),
                RING_TEST(an_answer_carries_everything),
                RING_TEST(a_batch_is_taken_whole_and_alone),
                RING_TEST(a_batch_larger_than_a_seat_takes_is_taken_in_parts),
                RING_TEST(a_full_ring_says_so_and_has_room_after_an_answer),
                RING_TEST(the_ring_goes_round_many_times),
                RING_TEST(what_is_over_the_limit_is_refused_whole),
                RING_TEST(a_large_task_and_answer_pass_and_their_memory_is_given_back),
                RING_TEST(a_large_task_taken_back_gives_its_memory_back),
                cmocka_unit_test(large_tasks_wait_for_a_spill_while_small_ones_pass),
                RING_TEST(an_answer_over_the_limit_can_be_given_again_with_less),
                RING_TEST(a_task_taken_back_is_never_started),
                RING_TEST(a_batch_goes_on_without_what_was_taken_back),
                RING_TEST(an_entry_that_was_taken_back_starts_its_next_task_in_its_own_turn),
                RING_TEST(an_entry_used_again_after_take_back_is_started_once),
                RING_TEST(cells_of_taken_back_tasks_count_until_a_seat_has_passed_them),
                RING_TEST(a_slow_seat_starts_the_tasks_that_it_won),
                RING_TEST(what_is_in_flight_is_seen_with_its_state),
                RING_TEST(a_task_damaged_in_memory_comes_back_interrupted),
                RING_TEST(a_runner_attaches_only_to_a_ring),
                cmocka_unit_test(an_impossible_shape_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
