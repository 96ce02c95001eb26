/* The client library: opening, submitting, outcomes, threads. */
#include "client_fixture.h"

/* --- opening ------------------------------------------------------------------------------------------------------ */

static void a_store_that_is_not_there_is_not_made(void **state)
{
        struct fixture *f = *state;
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        char url[128];
        char path[96];
        (void)snprintf(path, sizeof(path), "%s/other.db", f->folder);
        (void)snprintf(url, sizeof(url), "sqlite:%s", path);
        options.store = url;
        options.app = "demo";
        assert_int_equal(qv_client_open(&options, &client), -ENOENT);
        assert_non_null(strstr(qv_client_error(), "quiver run"));
        assert_int_equal(access(path, F_OK), -1);
        assert_null(client);
}

static void a_wrong_number_of_shards_is_refused_with_both_numbers(void **state)
{
        struct fixture *f = *state;
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        options.store = f->url;
        options.app = "demo";
        options.shards = 17;
        assert_int_equal(qv_client_open(&options, &client), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "17"));
        assert_non_null(strstr(qv_client_error(), "4"));
}

static void options_that_make_no_sense_are_refused(void **state)
{
        struct fixture *f = *state;
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        options.store = f->url;
        assert_int_equal(qv_client_open(&options, &client), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "app"));
        options.app = "demo";
        options.config = "runtime.cfg";
        assert_int_equal(qv_client_open(&options, &client), -EINVAL);
        options.config = NULL;
        options.size = 0;
        assert_int_equal(qv_client_open(&options, &client), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "QV_CLIENT_OPTIONS_INIT"));
}

static void a_configuration_file_names_the_store(void **state)
{
        struct fixture *f = *state;
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client_info info = QV_CLIENT_INFO_INIT;
        struct qv_client *client = NULL;
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/runtime.cfg", f->folder);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        (void)fprintf(file, "app = \"demo\"; shards = 4; store = { url = \"sqlite:q.db\"; };\n");
        (void)fclose(file);
        options.config = path;
        if (qv_client_open(&options, &client) < 0)
                fail_msg("%s", qv_client_error());
        assert_int_equal(qv_client_info(client, &info), 0);
        assert_string_equal(info.app, "demo");
        assert_string_equal(info.driver, "sqlite");
        assert_int_equal(info.shards, SHARDS);
        qv_client_close(client);

        file = fopen(path, "w");
        assert_non_null(file);
        (void)fprintf(file, "app = \"demo\"; shrads = 4; store = { url = \"sqlite:q.db\"; };\n");
        (void)fclose(file);
        assert_int_equal(qv_client_open(&options, &client), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "shrads"));
        assert_non_null(strstr(qv_client_error(), "quiver check"));
}

/* --- submitting --------------------------------------------------------------------------------------------------- */

static void every_option_of_a_task_reaches_its_handler(void **state)
{
        struct fixture *f = *state;
        const struct qv_client_header headers[] = { { "traceparent", "00-4b" }, { "origin", "a b" } };
        struct qv_client_task task = new_task("mail", "user-7", "hello");
        struct seen seen = { { 0 } };
        char id[QV_CLIENT_ID_SIZE] = "";
        task.lane = 1;
        task.timeout_ms = 1500;
        task.attempts = 9;
        task.headers = headers;
        task.headers_count = 2;
        const struct qv_client_header2 headers2[] = { { "digest", "\0\1\2", 3 }, { "text", "c d", 3 } };
        task.headers2 = headers2;
        task.headers2_count = 2;
        assert_int_equal(qv_client_submit(f->client, &task, id), 0);
        assert_true(strlen(id) > 10);
        assert_int_equal(owner_work(&f->owner, look, &seen), 1);
        assert_string_equal(buffer_text(&seen.text), "mail user-7 high hello timeout=1500 attempts=9 traceparent=00-4b "
                                                     "origin=a b 64:digest=AAEC text=c d\n");
        buffer_free(&seen.text);
}

static void wrong_headers_of_bytes_are_refused_by_name(void **state)
{
        struct fixture *f = *state;
        static const char large[TASK_HEADER_BYTES_MAX + 1];
        struct qv_client_header2 header = { "digest", large, sizeof(large) };
        struct qv_client_task task = new_task("mail", "user-7", "hello");
        task.headers2 = &header;
        task.headers2_count = 1;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "header64.digest: 769 bytes, at most 768 are allowed"));
        header.value = NULL;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "headers2, 1: has no name or no value"));
}

static void a_delayed_task_waits(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("mail", "user-7", "later");
        struct seen seen = { { 0 } };
        task.delay_ms = 3600000;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), 0);
        assert_int_equal(owner_work(&f->owner, look, &seen), 0);
        assert_int_equal(count(f).delayed, 1);
        buffer_free(&seen.text);
}

static void a_second_unique_task_is_told_the_first_one_s_id(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("mail", "user-7", "once");
        char first[QV_CLIENT_ID_SIZE] = "";
        char second[QV_CLIENT_ID_SIZE] = "";
        task.unique_ms = 60000;
        assert_int_equal(qv_client_submit(f->client, &task, first), 0);
        assert_int_equal(qv_client_submit(f->client, &task, second), -EEXIST);
        assert_string_equal(first, second);
        assert_non_null(strstr(qv_client_error(), first));
        assert_int_equal(count(f).queued, 1);
}

static void a_submit_with_an_idempotency_key_may_be_repeated(void **state)
{
        struct fixture *f = *state;
        char first[QV_CLIENT_ID_SIZE];
        char second[QV_CLIENT_ID_SIZE] = "";
        struct qv_client_submitted submitted = { 0 };
        struct qv_client_task task = new_task("mail", "user-17", "x");
        task.idempotency_key = "order 1";
        assert_int_equal(qv_client_submit(f->client, &task, first), 0);
        assert_int_equal(qv_client_submit(f->client, &task, second), 0);
        assert_string_equal(first, second);
        assert_int_equal(qv_client_submit_many(f->client, &task, 1, &submitted), 0);
        assert_int_equal(submitted.is_repeat, 1);
        assert_int_equal(count(f).queued, 1);
        task.attempts = 3;
        second[0] = 0;
        assert_int_equal(qv_client_submit(f->client, &task, second), -ENOTUNIQ);
        assert_string_equal(first, second);
        assert_non_null(strstr(qv_client_error(), "order 1"));
        task.idempotency_key = "a\nb";
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "idempotency"));
        task.idempotency_key = "";
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "idempotency"));
}

/* A program that was built before there were such keys says nothing about them. */
static void an_older_program_has_no_idempotency_key(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("mail", "user-17", "x");
        task.size = offsetof(struct qv_client_task, reserved);
        task.idempotency_key = "never read";
        assert_int_equal(qv_client_submit(f->client, &task, NULL), 0);
        assert_int_equal(qv_client_submit(f->client, &task, NULL), 0);
        assert_int_equal(count(f).queued, 2);
}

static void a_bad_task_is_refused_and_the_field_named(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("mail", "user\n7", "x");
        const struct qv_client_header nameless = { NULL, "x" };
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "key"));
        task = new_task("no such name!", "k", "x");
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "handler"));
        task = new_task("mail", "k", "x");
        task.lane = 5;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "lane"));
        task = new_task("mail", NULL, "x");
        task.unique_ms = 1000;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "unique"));
        task = new_task("mail", "k", "x");
        task.headers = &nameless;
        task.headers_count = 1;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_non_null(strstr(qv_client_error(), "header"));
        task = new_task("mail", "k", NULL);
        char *large = calloc(1, 2 << 20);
        task.payload = large;
        task.payload_size = 2 << 20;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EMSGSIZE);
        assert_non_null(strstr(qv_client_error(), "payload"));
        free(large);
        task = new_task("mail", "k", "x");
        task.size = 0;
        assert_int_equal(qv_client_submit(f->client, &task, NULL), -EINVAL);
        assert_int_equal(count(f).submitted, 0);
}

#define MANY 2500

static void of_many_each_has_a_status_and_the_order_is_kept(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task *tasks = calloc(MANY, sizeof(*tasks));
        struct qv_client_submitted *submitted = calloc(MANY, sizeof(*submitted));
        char(*payloads)[16] = calloc(MANY, sizeof(*payloads));
        struct seen seen = { { 0 } };
        for (int i = 0; i < MANY; i++) {
                (void)snprintf(payloads[i], sizeof(payloads[i]), "p%04d", i);
                tasks[i] = new_task(i == 1700 ? "not a name" : "mail", "one-key", payloads[i]);
        }
        assert_int_equal(qv_client_submit_many(f->client, tasks, MANY, submitted), 1);
        assert_non_null(strstr(qv_client_error(), "task 1701"));
        for (int i = 0; i < MANY; i++)
                assert_int_equal(submitted[i].status, i == 1700 ? -EINVAL : 0);
        assert_string_not_equal(submitted[0].id, submitted[1].id);
        assert_int_equal(owner_work(&f->owner, look, &seen), MANY - 1);
        const char *at = buffer_text(&seen.text);
        for (int i = 0; i < MANY; i++) {
                if (i == 1700)
                        continue;
                at = strstr(at, payloads[i]);
                assert_non_null(at);
        }
        buffer_free(&seen.text);
        free(payloads);
        free(submitted);
        free(tasks);
}

/* What a program that was built against an older header hands in. */
struct old_task {
        uint32_t size;
        int32_t lane;
        const char *handler;
        const char *key;
};

static void a_program_built_against_an_older_header_is_understood(void **state)
{
        struct fixture *f = *state;
        struct old_task old[2] = { { sizeof(old[0]), 0, "mail", "a" }, { sizeof(old[0]), 1, "mail", "b" } };
        struct seen seen = { { 0 } };
        assert_int_equal(qv_client_submit_many(f->client, (const struct qv_client_task *)(void *)old, 2, NULL), 0);
        assert_int_equal(owner_work(&f->owner, look, &seen), 2);
        assert_non_null(strstr(buffer_text(&seen.text), "mail a normal "));
        assert_non_null(strstr(buffer_text(&seen.text), "mail b high "));
        buffer_free(&seen.text);
}

/* --- outcomes ----------------------------------------------------------------------------------------------------- */

static void a_result_comes_back_byte_for_byte(void **state)
{
        struct fixture *f = *state;
        static const char bytes[] = "a\0b\nc\xff";
        struct qv_client_task task = new_task("echo", "k", NULL);
        char id[QV_CLIENT_ID_SIZE];
        task.payload = bytes;
        task.payload_size = sizeof(bytes);
        task.reply_ms = 60000;
        assert_int_equal(qv_client_submit(f->client, &task, id), 0);
        assert_int_equal(owner_work(&f->owner, echo, NULL), 1);
        struct qv_client_outcome *outcome = wait_for(f, id);
        assert_int_equal(outcome->state, QV_CLIENT_DONE);
        assert_int_equal(outcome->result_size, sizeof(bytes));
        assert_memory_equal(outcome->result, bytes, sizeof(bytes));
        assert_string_equal(outcome->reason, "");
        qv_client_outcome_free(outcome);
        assert_int_equal(count(f).results, 0);
}

static void a_dead_task_comes_back_with_its_history(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("echo", "k", "x");
        char id[QV_CLIENT_ID_SIZE];
        task.reply_ms = 60000;
        assert_int_equal(qv_client_submit(f->client, &task, id), 0);
        assert_int_equal(owner_work(&f->owner, reject, NULL), 1);
        struct qv_client_outcome *outcome = wait_for(f, id);
        assert_int_equal(outcome->state, QV_CLIENT_DEAD);
        assert_string_equal(outcome->reason, "rejected");
        assert_string_equal(outcome->error, "no such user");
        assert_int_equal(outcome->attempts, 1);
        assert_true(outcome->events_count >= 1);
        assert_null(outcome->result);
        qv_client_outcome_free(outcome);
}

static void what_has_not_ended_says_so(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("echo", "k", "x");
        struct qv_client_outcome *outcome = NULL;
        char id[QV_CLIENT_ID_SIZE];
        task.reply_ms = 60000;
        assert_int_equal(qv_client_submit(f->client, &task, id), 0);
        assert_int_equal(qv_client_wait(f->client, id, 0, &outcome), -EAGAIN);
        assert_int_equal(qv_client_wait(f->client, id, 20, &outcome), -EAGAIN);
        assert_int_equal(qv_client_wait(f->client, NULL, 20, &outcome), -EINVAL);
        assert_int_equal(qv_client_wait(f->client, "nonsense", 20, &outcome), -EINVAL);
        assert_int_equal(qv_client_wait(f->client, id, 20, &outcome), -EAGAIN);
        assert_non_null(strstr(qv_client_error(), id));
        assert_null(outcome);
}

struct waiter {
        struct fixture *f;
        char id[QV_CLIENT_ID_SIZE];
        struct qv_client_outcome *outcome;
};

static void *wait_in_thread(void *self)
{
        struct waiter *w = self;
        (void)qv_client_wait(w->f->client, w->id, UINT64_MAX, &w->outcome);
        return NULL;
}

static void a_long_wait_keeps_no_other_thread_waiting(void **state)
{
        struct fixture *f = *state;
        struct qv_client_task task = new_task("echo", "k", "hello");
        struct waiter waiter = { .f = f };
        pthread_t thread;
        task.reply_ms = 60000;
        assert_int_equal(qv_client_submit(f->client, &task, waiter.id), 0);
        assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiter), 0);
        task = new_task("echo", "other", "x");
        for (int i = 0; i < 20; i++)
                assert_int_equal(qv_client_submit(f->client, &task, NULL), 0);
        assert_int_equal(owner_work(&f->owner, echo, NULL), 21);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_non_null(waiter.outcome);
        assert_memory_equal(waiter.outcome->result, "hello", 5);
        qv_client_outcome_free(waiter.outcome);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

#define THREADS    8
#define PER_THREAD 50

struct producer {
        struct fixture *f;
        pthread_barrier_t *all_failed;
        int number;
        int failed;
        bool is_text_mine; /* the error text of this thread's own failure */
};

static void *produce(void *self)
{
        struct producer *p = self;
        char key[32];
        char payload[32];
        (void)snprintf(key, sizeof(key), "thread-%d", p->number);
        for (int i = 0; i < PER_THREAD; i++) {
                (void)snprintf(payload, sizeof(payload), "t%d-%03d", p->number, i);
                struct qv_client_task task = new_task("mail", key, payload);
                p->failed += qv_client_submit(p->f->client, &task, NULL) != 0;
        }
        struct qv_client_task bad = new_task("mail", "k", "");
        bad.lane = 100 + p->number;
        (void)qv_client_submit(p->f->client, &bad, NULL);
        (void)pthread_barrier_wait(p->all_failed);
        (void)snprintf(key, sizeof(key), "lane: %d,", 100 + p->number);
        p->is_text_mine = strstr(qv_client_error(), key) != NULL;
        return NULL;
}

static void threads_share_a_handle(void **state)
{
        struct fixture *f = *state;
        pthread_t threads[THREADS];
        struct producer producers[THREADS];
        pthread_barrier_t all_failed;
        struct seen seen = { { 0 } };
        assert_int_equal(pthread_barrier_init(&all_failed, NULL, THREADS), 0);
        for (int i = 0; i < THREADS; i++) {
                producers[i] = (struct producer){ .f = f, .all_failed = &all_failed, .number = i };
                assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(threads[i], NULL), 0);
                assert_int_equal(producers[i].failed, 0);
                assert_true(producers[i].is_text_mine);
        }
        (void)pthread_barrier_destroy(&all_failed);
        assert_int_equal(owner_work(&f->owner, look, &seen), THREADS * PER_THREAD);
        for (int t = 0; t < THREADS; t++) {
                const char *at = buffer_text(&seen.text);
                for (int i = 0; i < PER_THREAD; i++) {
                        char payload[32];
                        (void)snprintf(payload, sizeof(payload), "t%d-%03d", t, i);
                        at = strstr(at, payload);
                        assert_non_null(at);
                }
        }
        buffer_free(&seen.text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                client_test(a_store_that_is_not_there_is_not_made),
                client_test(a_wrong_number_of_shards_is_refused_with_both_numbers),
                client_test(options_that_make_no_sense_are_refused),
                client_test(a_configuration_file_names_the_store),
                client_test(every_option_of_a_task_reaches_its_handler),
                client_test(a_delayed_task_waits),
                client_test(wrong_headers_of_bytes_are_refused_by_name),
                client_test(a_second_unique_task_is_told_the_first_one_s_id),
                client_test(a_submit_with_an_idempotency_key_may_be_repeated),
                client_test(an_older_program_has_no_idempotency_key),
                client_test(a_bad_task_is_refused_and_the_field_named),
                client_test(of_many_each_has_a_status_and_the_order_is_kept),
                client_test(a_program_built_against_an_older_header_is_understood),
                client_test(a_result_comes_back_byte_for_byte),
                client_test(a_dead_task_comes_back_with_its_history),
                client_test(what_has_not_ended_says_so),
                client_test(a_long_wait_keeps_no_other_thread_waiting),
                client_test(threads_share_a_handle),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
