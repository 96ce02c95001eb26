/* The services of a seat: what they accept, what they refuse, and what reaches the host. */
#include "runner_rig.h"

#include <errno.h>
#include <stdlib.h>

#include "runner/logger.h"
#include "runner/rate_limit.h"

static struct rig rig;

/* What the handler under test returned from its services; looked at by the test's thread after the answer. */
static int32_t got[16];
static int32_t outcome;

static int set_up(void **state)
{
        (void)state;
        memset(got, 0, sizeof(got));
        outcome = QV_DONE;
        rig_init(&rig, 1);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        rig_free(&rig);
        return 0;
}

static struct ring_reply run_handler(int32_t (*handle)(void *, const struct qv_task *))
{
        const struct ring_task task = rig_task("1");
        rig.runner.plugin.handle = handle;
        rig_start(&rig);
        struct ring_reply reply = rig_run(&rig, &task);
        rig_finish(&rig);
        return reply;
}

/* --- result, error, retry_after, checkpoint ---------------------------------------------------------------------- */

static int32_t plugin_copy_everything(void *self, const struct qv_task *task)
{
        (void)self;
        const struct qv_host *host = task->host;
        struct qv_submit submit = QV_SUBMIT_INIT;
        submit.handler = "next";
        got[0] = host->result(host, task, "first", 5);
        got[1] = host->result(host, task, "second", 6);
        got[2] = host->error(host, task, "it\nbroke\n");
        got[3] = host->retry_after(host, task, 1234);
        got[4] = host->checkpoint(host, task, "half way", 8);
        got[5] = host->submit(host, task, &submit);
        got[6] = host->progress(host, task, 3, 10);
        return outcome;
}

static void a_done_task_carries_result_and_follow_ups_and_no_more(void **state)
{
        (void)state;
        struct ring_reply reply = run_handler(plugin_copy_everything);
        for (int i = 0; i < 7; i++)
                assert_int_equal(got[i], 0);
        assert_true(reply.has_result);
        assert_int_equal(reply.result_size, 6);
        assert_memory_equal(reply.result, "second", 6);
        assert_int_equal(reply.submits_count, 1);
        assert_string_equal(reply.error, "");
        assert_false(reply.has_retry_after);
        assert_false(reply.has_checkpoint);
}

static void a_retry_carries_error_delay_and_checkpoint_and_drops_the_rest(void **state)
{
        (void)state;
        outcome = QV_RETRY;
        struct ring_reply reply = run_handler(plugin_copy_everything);
        assert_string_equal(reply.error, "it broke");
        assert_true(reply.has_retry_after);
        assert_int_equal(reply.retry_after_ms, 1234);
        assert_true(reply.has_checkpoint);
        assert_memory_equal(reply.checkpoint, "half way", 8);
        assert_false(reply.has_result);
        assert_int_equal(reply.result_size, 0);
        assert_int_equal(reply.submits_count, 0);
        /* The host would have found it after a crash, too. */
        uint8_t checkpoint[QV_CHECKPOINT_MAX];
        uint32_t version;
        assert_int_equal(ring_host_checkpoint(&rig.host, 0, reply.ticket, checkpoint, &version), 8);
}

static void what_one_task_staged_is_not_the_next_ones(void **state)
{
        (void)state;
        const struct ring_task task = rig_task("1");
        rig.runner.plugin.handle = plugin_copy_everything;
        rig_start(&rig);
        outcome = QV_RETRY;
        (void)rig_run(&rig, &task);
        outcome = QV_DONE;
        struct ring_reply reply = rig_run(&rig, &task);
        struct reader reader;
        struct ring_submit submit;
        assert_int_equal(reply.submits_count, 1);
        assert_int_equal(reply.result_size, 6);
        reader_init(&reader, reply.submits, reply.submits_size);
        assert_int_equal(ring_next_submit(&reader, &submit), 0);
        assert_int_equal(reader.size, 0); /* one, and nothing of the first attempt's */
        rig_finish(&rig);
}

static int32_t go_to_the_limits(void *self, const struct qv_task *task)
{
        (void)self;
        const struct qv_host *host = task->host;
        static char large[RIG_MAX_SIZE];
        got[0] = host->result(host, task, large, 32 * 1024 + 1);
        got[1] = host->result(host, task, large, 32 * 1024);
        got[2] = host->checkpoint(host, task, large, QV_CHECKPOINT_MAX + 1);
        got[3] = host->checkpoint(host, task, large, QV_CHECKPOINT_MAX);
        got[4] = host->result(host, task, NULL, 1);
        got[5] = host->result(host, NULL, "x", 1);
        got[6] = host->error(host, task, NULL);
        struct qv_task copy = *task;
        got[7] = host->result(host, &copy, "x", 1);
        return QV_DONE;
}

static void limits_hold_to_the_byte(void **state)
{
        (void)state;
        struct ring_reply reply = run_handler(go_to_the_limits);
        assert_int_equal(got[0], -EMSGSIZE);
        assert_int_equal(got[1], 0);
        assert_int_equal(got[2], -EMSGSIZE);
        assert_int_equal(got[3], 0);
        assert_int_equal(got[4], -EINVAL);
        assert_int_equal(got[5], -EINVAL);
        assert_int_equal(got[6], -EINVAL);
        assert_int_equal(got[7], -EINVAL); /* a copy of the task is not the task */
        assert_int_equal(reply.result_size, 32 * 1024);
}

static int32_t fail_at_length(void *self, const struct qv_task *task)
{
        (void)self;
        char text[4000];
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        got[0] = task->host->error(task->host, task, text);
        return QV_REJECT;
}

static void a_long_error_is_cut(void **state)
{
        (void)state;
        struct ring_reply reply = run_handler(fail_at_length);
        assert_int_equal(got[0], 0);
        assert_int_equal(strlen(reply.error), QV_ERROR_MAX - 1);
}

static void *use_services(void *argument)
{
        const struct qv_task *task = argument;
        const struct qv_host *host = task->host;
        uint64_t id;
        got[0] = host->error(host, task, "from elsewhere");
        got[1] = host->error(host, NULL, "from elsewhere");
        got[2] = host->result(host, task, "x", 1);
        got[3] = host->checkpoint(host, task, "x", 1);
        got[4] = host->next_id(host, &id);
        host->log(host, QV_LOG_INFO, "from any thread");
        return NULL;
}

static int32_t let_another_thread_do_it(void *self, const struct qv_task *task)
{
        (void)self;
        pthread_t thread;
        if (pthread_create(&thread, NULL, use_services, (void *)task) == 0)
                (void)pthread_join(thread, NULL);
        return QV_RETRY;
}

static void services_belong_to_the_seats_thread_but_log_to_any(void **state)
{
        (void)state;
        static char bytes[MESSAGE_MAX];
        struct runner_log line;
        rig.runner.start.can_call = 1u << SERVICE_NEXT_ID;
        struct ring_reply reply = run_handler(let_another_thread_do_it);
        for (int i = 0; i < 5; i++)
                assert_int_equal(got[i], -EINVAL);
        assert_string_equal(reply.error, "");
        /* Said once, by the first. */
        assert_true(rig_log(&rig, bytes, &line));
        assert_non_null(strstr(line.text, "error was called on another thread than its seat's"));
        assert_true(rig_log(&rig, bytes, &line));
        assert_string_equal(line.text, "from any thread");
        assert_int_equal(line.ticket, reply.ticket);
}

static int32_t point_beside_the_task(void *self, const struct qv_task *task)
{
        (void)self;
        const char *bytes = (const char *)task;
        got[0] = task->host->error(task->host, (const struct qv_task *)(bytes + 8), "inside");
        got[1] = task->host->error(task->host, (const struct qv_task *)(bytes + sizeof(struct seat_task)), "the next");
        got[2] = task->host->error(
                task->host, (const struct qv_task *)(bytes - sizeof(struct seat_task)), "the one before");
        return QV_DONE;
}

static void a_task_that_is_not_held_is_refused(void **state)
{
        (void)state;
        (void)run_handler(point_beside_the_task);
        for (int i = 0; i < 3; i++)
                assert_int_equal(got[i], -EINVAL);
}

/* --- config, host's services ------------------------------------------------------------------------------------- */

static void what_was_never_read_is_listed(void **state)
{
        (void)state;
        const struct setting list[] = { { "db.url", "x" }, { "gretting", "hi" }, { "db.pool", "4" }, { "a", "" } };
        struct settings settings;
        struct buffer unread = { 0 };
        settings_init(&settings, list, 4);
        assert_string_equal(settings_get(&settings, "db.url"), "x");
        assert_string_equal(settings_get(&settings, "a"), "");
        assert_null(settings_get(&settings, "greeting"));
        settings_put_unread(&settings, &unread);
        assert_string_equal(buffer_text(&unread), "gretting, db.pool");
        buffer_free(&unread);
        settings_free(&settings);
}

static int32_t call_the_host(void *self, const struct qv_task *task)
{
        (void)self;
        const struct qv_host *host = task->host;
        uint64_t number = 1;
        got[0] = host->next_id(host, &number);
        got[1] = host->next_id(host, &number);
        got[2] = host->trylock(host, "lock", 1000, &number);
        got[3] = host->trylock(host, "", 1000, &number);
        got[4] = host->unlock(host, NULL, 1);
        got[5] = host->ext(host, "anything") == NULL;
        return QV_DONE;
}

static void a_service_the_host_lacks_is_named_once(void **state)
{
        (void)state;
        static char bytes[MESSAGE_MAX];
        struct runner_log line;
        (void)run_handler(call_the_host);
        assert_int_equal(got[0], -ENOTSUP);
        assert_int_equal(got[1], -ENOTSUP);
        assert_int_equal(got[2], -ENOTSUP);
        assert_int_equal(got[3], -EINVAL);
        assert_int_equal(got[4], -EINVAL);
        assert_int_equal(got[5], 1);
        assert_true(rig_log(&rig, bytes, &line));
        assert_non_null(strstr(line.text, "next_id"));
        assert_int_equal(line.level, LEVEL_WARN);
        assert_true(rig_log(&rig, bytes, &line));
        assert_non_null(strstr(line.text, "trylock"));
        assert_false(rig_log(&rig, bytes, &line));
}

static int32_t lock_and_unlock(void *self, const struct qv_task *task)
{
        (void)self;
        uint64_t token = 0;
        got[0] = task->host->trylock(task->host, "the lock", 1500, &token);
        got[1] = (int32_t)token;
        got[2] = task->host->unlock(task->host, "the lock", token);
        return QV_DONE;
}

static void serve_call(enum ring_service service, uint64_t number, int status, uint64_t answer)
{
        struct ring_call_view call;
        uint64_t until_ms = clock_boot_ms() + RIG_WAIT_MS;
        while (!ring_host_call(&rig.host, 0, 0, &call))
                assert_true(clock_boot_ms() < until_ms);
        assert_int_equal(call.service, service);
        assert_int_equal(call.number, number);
        assert_string_equal(call.name, "the lock");
        assert_true(ring_host_reply(&rig.host, 0, call.word, status, (const uint64_t[2]){ answer }));
}

static void a_call_to_the_host_waits_for_its_answer(void **state)
{
        (void)state;
        const struct ring_task task = rig_task("1");
        rig.runner.start.can_call = 1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK;
        rig.runner.plugin.handle = lock_and_unlock;
        rig_start(&rig);
        (void)rig_submit(&rig, &task, 1);
        serve_call(SERVICE_TRYLOCK, 1500, 0, 77);
        serve_call(SERVICE_UNLOCK, 77, -ENOENT, 0);
        assert_int_equal(rig_answer(&rig).outcome, OUTCOME_DONE);
        rig_finish(&rig);
        assert_int_equal(got[0], 0);
        assert_int_equal(got[1], 77);
        assert_int_equal(got[2], -ENOENT);
}

/* --- log --------------------------------------------------------------------------------------------------------- */

static void a_bucket_gives_its_burst_and_then_its_rate(void **state)
{
        (void)state;
        struct rate_limit b;
        uint64_t now_ns = 5 * NS_PER_S;
        rate_limit_init(&b, 10);
        for (int i = 0; i < 10; i++)
                assert_true(rate_limit_take(&b, now_ns));
        assert_false(rate_limit_take(&b, now_ns));
        assert_false(rate_limit_take(&b, now_ns + NS_PER_S / 10 - 1));
        assert_true(rate_limit_take(&b, now_ns + NS_PER_S / 10));
        assert_false(rate_limit_take(&b, now_ns + NS_PER_S / 10));
        /* However long it was left alone, it holds no more than its burst. */
        now_ns += 3600 * NS_PER_S;
        for (int i = 0; i < 10; i++)
                assert_true(rate_limit_take(&b, now_ns));
        assert_false(rate_limit_take(&b, now_ns));
        rate_limit_init(&b, 0);
        for (int i = 0; i < 1000; i++)
                assert_true(rate_limit_take(&b, now_ns));
}

static void lines_over_the_rate_are_dropped_and_counted(void **state)
{
        (void)state;
        static char bytes[MESSAGE_MAX];
        struct runner_log line;
        struct logger *l = &rig.runner.logger;
        logger_init(l, l->fd, LEVEL_INFO, 2);
        for (int i = 0; i < 5; i++)
                logger_line(l, LEVEL_INFO, 0, 9, "line");
        logger_line(l, LEVEL_DEBUG, 0, 9, "too fine, and not counted");
        for (int i = 0; i < 2; i++) {
                assert_true(rig_log(&rig, bytes, &line));
                assert_int_equal(line.ticket, 9);
        }
        assert_false(rig_log(&rig, bytes, &line));
        rate_limit_init(&l->bucket, 0);
        logger_line(l, LEVEL_INFO, LOGGER_NO_SEAT, 0, "again");
        assert_true(rig_log(&rig, bytes, &line));
        assert_string_equal(line.text, "again");
        assert_in_range(line.dropped, 1, 3); /* 3, unless a second has passed meanwhile */
}

static void a_full_socket_drops_and_never_blocks(void **state)
{
        (void)state;
        static char bytes[MESSAGE_MAX];
        struct runner_log line;
        struct logger *l = &rig.runner.logger;
        uint32_t sent = 0;
        const uint32_t lines = 20000;
        for (uint32_t i = 0; i < lines; i++)
                logger_line(l, LEVEL_INFO, 0, 0, "to a host that does not read");
        while (rig_log(&rig, bytes, &line))
                sent++;
        assert_true(sent < lines);
        logger_line(l, LEVEL_INFO, 0, 0, "and now it does");
        assert_true(rig_log(&rig, bytes, &line));
        assert_int_equal(line.dropped, lines - sent);
}

static void a_line_is_one_line_of_clean_text(void **state)
{
        (void)state;
        char text[16];
        logger_clean(text, sizeof(text), "a\tb\nc\x1b[1m\n\n");
        assert_string_equal(text, "a b c [1m");
        logger_clean(text, sizeof(text), "12345678901234\xc3\xa4zzz"); /* the umlaut would be cut in half */
        assert_string_equal(text, "12345678901234");
        logger_clean(text, sizeof(text), "1234567890123\xc3\xa4");
        assert_string_equal(text, "1234567890123\xc3\xa4");
        logger_clean(text, sizeof(text), "");
        assert_string_equal(text, "");
        static char bytes[MESSAGE_MAX];
        static char huge[100000];
        struct runner_log line;
        memset(huge, 'x', sizeof(huge) - 1);
        logger_line(&rig.runner.logger, 99, 0, 0, huge);
        assert_true(rig_log(&rig, bytes, &line));
        assert_int_equal(strlen(line.text), QV_LOG_MAX);
        assert_int_equal(line.level, LEVEL_DEBUG);
}

#define SERVICE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                SERVICE_TEST(a_done_task_carries_result_and_follow_ups_and_no_more),
                SERVICE_TEST(a_retry_carries_error_delay_and_checkpoint_and_drops_the_rest),
                SERVICE_TEST(what_one_task_staged_is_not_the_next_ones),
                SERVICE_TEST(limits_hold_to_the_byte),
                SERVICE_TEST(a_long_error_is_cut),
                SERVICE_TEST(services_belong_to_the_seats_thread_but_log_to_any),
                SERVICE_TEST(a_task_that_is_not_held_is_refused),
                cmocka_unit_test(what_was_never_read_is_listed),
                SERVICE_TEST(a_service_the_host_lacks_is_named_once),
                SERVICE_TEST(a_call_to_the_host_waits_for_its_answer),
                cmocka_unit_test(a_bucket_gives_its_burst_and_then_its_rate),
                SERVICE_TEST(lines_over_the_rate_are_dropped_and_counted),
                SERVICE_TEST(a_full_socket_drops_and_never_blocks),
                SERVICE_TEST(a_line_is_one_line_of_clean_text),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
