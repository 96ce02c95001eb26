/* A seat: what the handler sees, when it is called, and what becomes of what it returns. */
#include "runner_rig.h"

#include <stdio.h>
#include <stdlib.h>

static struct rig rig;
static int calls;
static int closes;
static int32_t next_outcome;

static int32_t init(const struct qv_host *host, void **ret_self)
{
        assert_int_equal(host->size, sizeof(struct qv_host));
        assert_string_equal(host->handler, "rig");
        *ret_self = &rig;
        return 0;
}

static void count_close(void *self)
{
        assert_ptr_equal(self, &rig);
        closes++;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        (void)task;
        calls++;
        return next_outcome;
}

static int set_up(void **state)
{
        (void)state;
        calls = closes = 0;
        next_outcome = QV_DONE;
        rig_init(&rig, 8);
        rig.runner.plugin.init = init;
        rig.runner.plugin.handle = handle;
        rig.runner.plugin.close = count_close;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        rig_free(&rig);
        return 0;
}

static void outcomes_of_the_handler_pass(void **state)
{
        (void)state;
        const struct ring_task task = rig_task("1");
        rig_start(&rig);
        static const int32_t outcomes[] = { QV_DONE, QV_RETRY, QV_REJECT, QV_UNAVAILABLE, QV_LATER };
        for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++) {
                next_outcome = outcomes[i];
                struct ring_reply reply = rig_run(&rig, &task);
                assert_int_equal(reply.outcome, next_outcome);
                assert_string_equal(reply.error, "");
                assert_true(reply.started_ns && reply.ended_ns >= reply.started_ns);
        }
        rig_finish(&rig);
        assert_int_equal(calls, 5);
        assert_int_equal(closes, 1);
        assert_int_equal(atomic_load(&rig.host.map.seats[0].phase), SEAT_CLOSED);
}

static void a_number_that_is_no_outcome_is_a_retry_that_names_it(void **state)
{
        (void)state;
        static const int32_t wrong[] = { 1000, -1, QV_LIMITED + 1, OUTCOME_CRASHED, OUTCOME_INTERRUPTED, INT32_MIN };
        const struct ring_task task = rig_task("1");
        rig_start(&rig);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                char expected[128];
                next_outcome = wrong[i];
                struct ring_reply reply = rig_run(&rig, &task);
                (void)snprintf(expected, sizeof(expected), "the handler returned %d, which is no outcome", wrong[i]);
                assert_int_equal(reply.outcome, OUTCOME_RETRY);
                assert_string_equal(reply.error, expected);
        }
        next_outcome = QV_PENDING;
        struct ring_reply reply = rig_run(&rig, &task);
        assert_int_equal(reply.outcome, OUTCOME_RETRY);
        assert_non_null(strstr(reply.error, "QV_PENDING (4)"));
        rig_finish(&rig);
}

static int32_t look_at_task(void *self, const struct qv_task *task)
{
        (void)self;
        assert_int_equal(task->size, sizeof(struct qv_task));
        assert_string_equal(task->id, "42-7");
        assert_string_equal(task->key, "user");
        assert_string_equal(task->handler, "other");
        assert_int_equal(task->attempt, 3);
        assert_int_equal(task->fence_epoch, RIG_EPOCH);
        assert_int_equal(task->fence_start, 99);
        assert_int_equal(task->payload_size, 5);
        assert_memory_equal(task->payload, "a\0b\0c", 6); /* with the NUL that is not counted */
        assert_int_equal(task->headers_count, 2);
        assert_string_equal(task->headers[0].name, "from");
        assert_string_equal(task->headers[0].value, "web");
        assert_string_equal(task->headers[1].name, "empty");
        assert_string_equal(task->headers[1].value, "");
        assert_true(QV_HAS(task, headers2_stride));
        assert_int_equal(task->headers2_count, 3);
        assert_string_equal(qv_header_at(task, 0)->name, "from");
        assert_int_equal(qv_header_at(task, 0)->is_bytes, 0);
        const struct qv_header2 *bytes = qv_find_header(task, "bytes");
        assert_int_equal(bytes->is_bytes, 1);
        assert_int_equal(bytes->value_size, 3);
        assert_memory_equal(bytes->value, "\0\n\xff", 4); /* with the NUL that is not counted */
        assert_null(qv_header_at(task, 3));
        assert_null(qv_find_header(task, "other"));
        assert_int_equal(task->checkpoint_size, 4);
        assert_memory_equal(task->checkpoint, "half", 4);
        uint64_t now_ns = clock_boot_ns();
        assert_true(task->deadline_ns > now_ns && task->deadline_ns <= now_ns + 60 * NS_PER_S);
        assert_false(qv_stop(task));
        return QV_DONE;
}

static void the_handler_sees_the_whole_task(void **state)
{
        (void)state;
        rig.runner.plugin.handle = look_at_task;
        rig_start(&rig);
        struct ring_task task = rig_task("42-7");
        task.key = "user";
        task.handler = "other";
        task.attempt = 3;
        task.fence_start = 99;
        task.timeout_ms = 60000;
        task.payload = "a\0b\0c";
        task.payload_size = 5;
        struct buffer headers = { 0 };
        ring_put_header(&headers, &(struct ring_task_header){ .name = "from", .value = "web", .value_size = 3 });
        ring_put_header(&headers, &(struct ring_task_header){ "bytes", "\0\n\xff", 3, true });
        ring_put_header(&headers, &(struct ring_task_header){ .name = "empty", .value = "" });
        task.headers = headers.data;
        task.headers_size = headers.size;
        task.checkpoint = "half";
        task.checkpoint_size = 4;
        assert_int_equal(rig_run(&rig, &task).outcome, OUTCOME_DONE);
        rig_finish(&rig);
        buffer_free(&headers);
}

static int32_t look_at_bare_task(void *self, const struct qv_task *task)
{
        (void)self;
        assert_int_equal(task->headers_count, 0);
        assert_null(qv_header_at(task, 0));
        assert_null(task->checkpoint);
        assert_int_equal(task->deadline_ns, 0);
        return QV_DONE;
}

static void what_a_task_lacks_reads_as_nothing(void **state)
{
        (void)state;
        const struct ring_task task = rig_task("1");
        rig.runner.plugin.handle = look_at_bare_task;
        rig_start(&rig);
        assert_int_equal(rig_run(&rig, &task).outcome, OUTCOME_DONE);
        rig_finish(&rig);
}

static void nothing_starts_without_a_lease(void **state)
{
        (void)state;
        struct ring_task task = rig_task("1");
        rig_start(&rig);
        leases_set(&rig.leases, 0, RIG_EPOCH, clock_boot_ns() - 1); /* run out */
        struct ring_reply reply = rig_run(&rig, &task);
        assert_int_equal(reply.outcome, OUTCOME_INTERRUPTED);
        assert_non_null(strstr(reply.error, "lease"));
        assert_int_equal(reply.started_ns, 0);
        leases_set(&rig.leases, 0, RIG_EPOCH + 1, UINT64_MAX); /* a newer epoch */
        assert_int_equal(rig_run(&rig, &task).outcome, OUTCOME_INTERRUPTED);
        task.lease = 4000; /* no such lease */
        assert_int_equal(rig_run(&rig, &task).outcome, OUTCOME_INTERRUPTED);
        assert_int_equal(calls, 0);
        task.lease = 0;
        task.fence_epoch = RIG_EPOCH + 1;
        assert_int_equal(rig_run(&rig, &task).outcome, OUTCOME_DONE);
        assert_int_equal(calls, 1);
        rig_finish(&rig);
}

static _Atomic bool is_inside;

static int32_t wait_for_stop(void *self, const struct qv_task *task)
{
        (void)self;
        calls++;
        atomic_store(&is_inside, true);
        while (!qv_stop(task))
                ;
        return QV_RETRY;
}

static void wait_until_inside(void)
{
        uint64_t until_ms = clock_boot_ms() + RIG_WAIT_MS;
        while (!atomic_load(&is_inside))
                assert_true(clock_boot_ms() < until_ms);
}

static void a_stop_reaches_its_own_task_alone(void **state)
{
        (void)state;
        const struct ring_task task = rig_task("1");
        atomic_store(&is_inside, false);
        rig.runner.plugin.handle = wait_for_stop;
        rig_start(&rig);
        uint64_t ticket = rig_submit(&rig, &task, 1);
        wait_until_inside();
        ring_host_stop(&rig.host, 0, ticket + 1); /* another's */
        assert_int_equal(atomic_load(&rig.host.map.seats[0].ticket), ticket);
        ring_host_stop(&rig.host, 0, ticket);
        assert_int_equal(rig_answer(&rig).outcome, OUTCOME_RETRY);
        /* The flag of the last one does not stop the next. */
        rig.runner.plugin.handle = handle;
        assert_int_equal(rig_run(&rig, &task).outcome, OUTCOME_DONE);
        rig_finish(&rig);
}

static int32_t said[8];

static void say_each(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        (void)self;
        for (uint32_t i = 0; i < count; i++) {
                if (qv_is_over(tasks, i, outcomes))
                        calls++;
                outcomes[i] = said[i];
        }
}

/* Whatever it says of them. */
static void what_follows_one_of_its_key_that_is_not_done_was_not_started(void **state)
{
        (void)state;
        struct ring_task tasks[] = { rig_task("a"), rig_task("b"), rig_task("c"), rig_task("d"), rig_task("e") };
        static const int32_t outcomes[] = { QV_DONE, QV_REJECT, QV_DONE, QV_DONE, QV_DONE };
        static const int expected[] = { OUTCOME_DONE, OUTCOME_REJECT, OUTCOME_INTERRUPTED, OUTCOME_INTERRUPTED,
                OUTCOME_DONE };
        memcpy(said, outcomes, sizeof(outcomes));
        tasks[4].key = "other";
        rig.runner.plugin.handle_many = say_each;
        rig_start(&rig);
        (void)rig_submit(&rig, tasks, 5);
        for (uint32_t i = 0; i < 5; i++) {
                struct ring_reply reply = rig_answer(&rig);
                assert_int_equal(reply.outcome, expected[i]);
                assert_int_equal(reply.started_ns != 0, reply.outcome != OUTCOME_INTERRUPTED);
        }
        rig_finish(&rig);
}

/* DONE, RETRY, REJECT in turn; the last keeps what it finds. */
static void handle_together(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        (void)self;
        calls += 100;
        for (uint32_t i = 0; i + 1 < count; i++) {
                qv_errorf(tasks[i], "said of %s", tasks[i]->id);
                outcomes[i] = (int32_t)(i % 3);
        }
}

static void a_batch_is_handled_in_one_call_with_an_outcome_each(void **state)
{
        (void)state;
        struct ring_task tasks[] = { rig_task("a"), rig_task("b"), rig_task("c"), rig_task("d") };
        static const int expected[] = { OUTCOME_DONE, OUTCOME_RETRY, OUTCOME_REJECT, OUTCOME_RETRY };
        for (uint32_t i = 0; i < 4; i++)
                tasks[i].key = tasks[i].id;
        static const char *const errors[] = { "", "said of b", "said of c", "" };
        rig.runner.plugin.handle_many = handle_together;
        rig_start(&rig);
        uint64_t first = rig_submit(&rig, tasks, 4);
        for (uint32_t i = 0; i < 4; i++) {
                struct ring_reply reply = rig_answer(&rig);
                assert_int_equal(reply.ticket, first + i);
                assert_int_equal(reply.outcome, expected[i]);
                assert_string_equal(reply.error, errors[i]);
        }
        assert_int_equal(calls, 100);
        /* A single one goes to handle(). */
        assert_int_equal(rig_run(&rig, &tasks[0]).outcome, OUTCOME_DONE);
        rig_finish(&rig);
        assert_int_equal(calls, 101);
}

static void count_together(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        (void)self;
        assert_int_equal(count, 2);
        assert_string_equal(tasks[0]->id, "a");
        assert_string_equal(tasks[1]->id, "c");
        outcomes[0] = outcomes[1] = QV_DONE;
}

static void a_batch_goes_on_without_the_one_whose_lease_is_lost(void **state)
{
        (void)state;
        struct ring_task tasks[] = { rig_task("a"), rig_task("b"), rig_task("c") };
        tasks[1].lease = 1;
        tasks[1].key = "other";
        tasks[2].key = "third";
        rig.runner.plugin.handle_many = count_together;
        rig_start(&rig);
        uint64_t first = rig_submit(&rig, tasks, 3);
        for (int i = 0; i < 3; i++) {
                struct ring_reply reply = rig_answer(&rig);
                assert_int_equal(reply.outcome, reply.ticket == first + 1 ? OUTCOME_INTERRUPTED : OUTCOME_DONE);
        }
        rig_finish(&rig);
}

static void without_handle_many_a_batch_is_handled_one_by_one(void **state)
{
        (void)state;
        const struct ring_task tasks[] = { rig_task("a"), rig_task("b"), rig_task("c") };
        rig_start(&rig);
        (void)rig_submit(&rig, tasks, 3);
        for (int i = 0; i < 3; i++)
                assert_int_equal(rig_answer(&rig).outcome, OUTCOME_DONE);
        rig_finish(&rig);
        assert_int_equal(calls, 3);
}

static void a_stop_keeps_the_rest_of_a_batch_from_starting(void **state)
{
        (void)state;
        const struct ring_task tasks[] = { rig_task("a"), rig_task("b") };
        atomic_store(&is_inside, false);
        rig.runner.plugin.handle = wait_for_stop;
        rig_start(&rig);
        uint64_t first = rig_submit(&rig, tasks, 2);
        wait_until_inside();
        ring_host_stop(&rig.host, 0, first);
        assert_int_equal(rig_answer(&rig).outcome, OUTCOME_RETRY);
        assert_int_equal(rig_answer(&rig).outcome, OUTCOME_INTERRUPTED);
        rig_finish(&rig);
        assert_int_equal(calls, 1);
}

static int32_t init_that_fails(const struct qv_host *host, void **ret_self)
{
        (void)ret_self;
        return qv_init_errorf(host, "no database at %s", "db:5432");
}

static int32_t init_that_fails_silently(const struct qv_host *host, void **ret_self)
{
        (void)host;
        (void)ret_self;
        return 17;
}

static void a_failed_init_says_why_and_is_not_closed(void **state)
{
        (void)state;
        rig.runner.plugin.init = init_that_fails;
        rig_start(&rig);
        rig_finish(&rig);
        assert_true(rig.opened < 0);
        assert_string_equal(rig.error.text, "plugin rig.so: init: no database at db:5432");
        rig.runner.plugin.init = init_that_fails_silently;
        rig_start(&rig);
        rig_finish(&rig);
        assert_string_equal(rig.error.text, "plugin rig.so: init returned 17 and did not say why");
        assert_int_equal(closes, 0);
}

static void what_was_queued_is_done_before_a_retiring_seat_closes(void **state)
{
        (void)state;
        const struct ring_task task = rig_task("1");
        for (int i = 0; i < 5; i++)
                (void)rig_submit(&rig, &task, 1);
        rig_start(&rig);
        rig_finish(&rig);
        assert_int_equal(calls, 5);
        assert_int_equal(closes, 1);
        for (int i = 0; i < 5; i++)
                assert_int_equal(rig_answer(&rig).outcome, OUTCOME_DONE);
}

#define SEAT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                SEAT_TEST(outcomes_of_the_handler_pass),
                SEAT_TEST(a_number_that_is_no_outcome_is_a_retry_that_names_it),
                SEAT_TEST(the_handler_sees_the_whole_task),
                SEAT_TEST(what_a_task_lacks_reads_as_nothing),
                SEAT_TEST(nothing_starts_without_a_lease),
                SEAT_TEST(a_stop_reaches_its_own_task_alone),
                SEAT_TEST(a_batch_is_handled_in_one_call_with_an_outcome_each),
                SEAT_TEST(what_follows_one_of_its_key_that_is_not_done_was_not_started),
                SEAT_TEST(a_batch_goes_on_without_the_one_whose_lease_is_lost),
                SEAT_TEST(without_handle_many_a_batch_is_handled_one_by_one),
                SEAT_TEST(a_stop_keeps_the_rest_of_a_batch_from_starting),
                SEAT_TEST(a_failed_init_says_why_and_is_not_closed),
                SEAT_TEST(what_was_queued_is_done_before_a_retiring_seat_closes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
