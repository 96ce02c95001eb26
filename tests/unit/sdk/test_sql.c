/* sql on SQLite: what is left in the rows, whose write counts, and what each failure means. */
#include "sql_rig.h"

/* --- what rows look like afterwards ------------------------------------------------------------------------------- */

static void a_row_is_as_its_last_task_left_it(void **state)
{
        (void)state;
        assert_done(INSERT("a", "\"name\":\"Ann\",\"email\":\"a@x\",\"age\":30"));
        assert_done(UPDATE("a", "\"age\":31"));
        assert_string_equal(
                see("SELECT id, name, email, age, is_deleted, fence_start FROM customer"), "a|Ann|a@x|31|0|2\n");
        assert_done(UPDATE("a", "\"email\":null"));
        assert_done(DELETE("a"));
        assert_string_equal(see("SELECT id, name, email, age, is_deleted FROM customer"), "a|Ann|NULL|31|1\n");
}

static void an_insert_over_a_deleted_row_leaves_nothing_of_it(void **state)
{
        (void)state;
        assert_done(INSERT("a", "\"name\":\"Ann\",\"email\":\"a@x\",\"age\":30"));
        assert_done(DELETE("a"));
        assert_done(INSERT("a", "\"name\":\"Bea\""));
        assert_string_equal(see("SELECT name, email, age, is_deleted FROM customer"), "Bea|NULL|7|0\n");
}

static void a_row_that_is_not_there_is_named(void **state)
{
        (void)state;
        assert_outcome(UPDATE("a", "\"age\":1"), QV_REJECT, "update: customer \"a\" is not there");
        assert_outcome(DELETE("a"), QV_REJECT, "delete: customer \"a\" is not there");
        assert_done(INSERT("a", "\"name\":\"Ann\""));
        assert_outcome(INSERT("a", "\"name\":\"Bea\""), QV_REJECT, "insert: customer \"a\" is there already");
        assert_done(DELETE("a"));
        assert_outcome(UPDATE("a", "\"age\":1"), QV_REJECT, "update: customer \"a\" is deleted");
        assert_done(DELETE("a"));
        assert_string_equal(see("SELECT name, age, is_deleted FROM customer"), "Ann|7|1\n");
}

static void values_keep_their_kind(void **state)
{
        (void)state;
        do_sql("CREATE TABLE kinds (id integer PRIMARY KEY, v, " FENCE ")");
        qv_mock_close(mock);
        qv_mock_config(mock, "tables.2.name", "kinds");
        qv_mock_config(mock, "tables.2.columns.0", "v");
        assert_int_equal(qv_mock_init(mock), 0);
        static const char *const values[] = { "true", "9007199254740993", "0.1", "null", "\"t\"", "{\"b\":[1,2]}" };
        for (int i = 0; i < 6; i++) {
                char payload[128];
                (void)snprintf(payload, sizeof(payload),
                        "{\"op\":\"insert\",\"table\":\"kinds\",\"id\":%d,\"data\":{\"v\":%s}}", i, values[i]);
                assert_done(payload);
        }
        assert_string_equal(see("SELECT typeof(v), v FROM kinds ORDER BY id"),
                "integer|1\ninteger|9007199254740993\nreal|0.1\nnull|NULL\ntext|t\ntext|{\"b\":[1,2]}\n");
}

/* --- the fence ---------------------------------------------------------------------------------------------------- */

static void a_stale_writer_changes_nothing(void **state)
{
        (void)state;
        static const char *const late[] = { INSERT("a", "\"name\":\"late\""), UPDATE("a", "\"name\":\"late\""),
                DELETE("a") };
        struct qv_mock *other = take_over();
        assert_int_equal(run_on(other, INSERT("a", "\"name\":\"new\""))->outcome, QV_DONE);
        for (int i = 0; i < 3; i++)
                assert_outcome(late[i], QV_RETRY, "stale: this is start (1, ");
        assert_string_equal(see("SELECT name, is_deleted, fence_epoch FROM customer"), "new|0|2\n");
        qv_mock_free(other);
}

/* That is why a delete leaves the row: without it there would be nothing to refuse a late insert. */
static void a_deleted_row_still_fences(void **state)
{
        (void)state;
        struct qv_mock *other = take_over();
        assert_int_equal(run_on(other, INSERT("a", "\"name\":\"new\""))->outcome, QV_DONE);
        assert_int_equal(run_on(other, DELETE("a"))->outcome, QV_DONE);
        assert_outcome(INSERT("a", "\"name\":\"late\""), QV_RETRY, "stale");
        assert_string_equal(see("SELECT name, is_deleted FROM customer"), "new|1\n");
        qv_mock_free(other);
}

/* Starts count from 1 again in each epoch: (2, 1) comes after (1, 5). */
static void the_epoch_counts_before_the_start(void **state)
{
        (void)state;
        assert_done(INSERT("a", "\"name\":\"1\""));
        for (int i = 0; i < 4; i++)
                assert_done(UPDATE("a", "\"age\":5"));
        qv_mock_takeover(mock);
        assert_done(UPDATE("a", "\"age\":6"));
        assert_string_equal(see("SELECT age, fence_epoch, fence_start FROM customer"), "6|2|1\n");
}

/* The host died after the database had committed and before the outcome was kept. */
static void a_task_that_runs_again_is_no_duplicate_of_itself(void **state)
{
        (void)state;
        static const char *const twice[] = { INSERT("a", "\"name\":\"Ann\""), UPDATE("a", "\"age\":8"), DELETE("a") };
        struct qv_mock *other = take_over();
        for (int i = 0; i < 3; i++) {
                struct qv_mock_task *again = qv_mock_new_task(other, "a", twice[i]);
                struct qv_mock_task *first = qv_mock_new_task(mock, "a", twice[i]);
                assert_string_equal(again->id, first->id);
                assert_int_equal(qv_mock_handle(mock, first), QV_DONE);
                assert_int_equal(qv_mock_handle(other, again), QV_DONE);
                qv_mock_takeover(mock);
                qv_mock_takeover(mock);
                qv_mock_takeover(other);
                qv_mock_takeover(other);
        }
        assert_string_equal(see("SELECT name, age, is_deleted FROM customer"), "Ann|8|1\n");
        qv_mock_free(other);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static char seen_in_batch[64];

static void look_into_batch(struct qv_mock *host, const char *service, void *arg)
{
        (void)host;
        (void)arg;
        if (!strcmp(service, "error"))
                (void)snprintf(seen_in_batch, sizeof(seen_in_batch), "%s", see("SELECT count(*) FROM customer"));
}

static void a_bad_task_fails_alone_in_its_batch(void **state)
{
        (void)state;
        assert_done(INSERT("z", "\"name\":\"Zoe\",\"email\":\"taken\""));
        static const char *const payloads[] = { INSERT("a", "\"name\":\"Ann\""),
                INSERT("b", "\"name\":\"Bob\",\"email\":\"taken\""), INSERT("c", "\"name\":\"Cid\""), "no json",
                INSERT("e", "\"nmae\":\"Eve\""), INSERT("f", "\"name\":\"Fay\"") };
        static const char *const keys[] = { "a", "b", "c", "d", "e", "f" };
        struct qv_mock_task *tasks[6];
        for (int i = 0; i < 6; i++)
                tasks[i] = qv_mock_new_task(mock, keys[i], payloads[i]);
        qv_mock_on_call(mock, look_into_batch, NULL);
        assert_int_equal(qv_mock_handle_many(mock, tasks, 6), 3);
        assert_string_equal(tasks[1]->error, "UNIQUE constraint failed: customer.email");
        assert_int_equal(tasks[1]->outcome, QV_REJECT);
        assert_int_equal(tasks[3]->outcome, QV_REJECT);
        assert_string_equal(tasks[4]->error, "column \"nmae\" of table \"customer\" is not allowed");
        assert_string_equal(see("SELECT id FROM customer ORDER BY id"), "a\nc\nf\nz\n");
        /* One transaction: when the second failed, the first was not to be seen yet. */
        assert_string_equal(seen_in_batch, "1\n");
}

/* What follows it is of another state than the one that it was meant for. */
static void in_an_ordered_batch_nothing_of_its_key_follows_a_bad_task(void **state)
{
        (void)state;
        assert_done(INSERT("z", "\"name\":\"Zoe\",\"email\":\"taken\""));
        for (int i = 0; i < 3; i++) {
                static const char *const bads[] = { INSERT("a", "\"nmae\":\"Eve\""), "no json",
                        UPDATE("a", "\"email\":\"taken\"") };
                struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", INSERT("a", "\"name\":\"Ann\"")),
                        qv_mock_new_task(mock, "a", bads[i]),
                        qv_mock_new_task(mock, "a", UPDATE("a", "\"name\":\"Eve\"")),
                        qv_mock_new_task(mock, "b", INSERT("b", "\"name\":\"Bob\"")) };
                qv_mock_set_same_key(mock, 1);
                assert_int_equal(qv_mock_handle_many(mock, tasks, 4), 2);
                assert_int_equal(tasks[1]->outcome, QV_REJECT);
                assert_int_equal(tasks[2]->starts, 0);
                assert_string_equal(see("SELECT name FROM customer ORDER BY id"), "Ann\nBob\nZoe\n");
                assert_done(DELETE("a"));
                assert_done(DELETE("b"));
        }
}

/* The commit fails, and does not say whose fault it is. */
static void a_constraint_that_waits_for_the_commit_costs_only_the_guilty(void **state)
{
        (void)state;
        static const char *const payloads[] = { INSERT("a", "\"name\":\"Ann\""),
                "{\"op\":\"insert\",\"table\":\"visit\",\"id\":1,\"data\":{\"customer\":\"nobody\"}}",
                INSERT("c", "\"name\":\"Cid\"") };
        static const char *const keys[] = { "a", "b", "c" };
        struct qv_mock_task *tasks[3];
        for (int i = 0; i < 3; i++)
                tasks[i] = qv_mock_new_task(mock, keys[i], payloads[i]);
        assert_int_equal(qv_mock_handle_many(mock, tasks, 3), 2);
        assert_int_equal(tasks[1]->outcome, QV_REJECT);
        assert_string_equal(tasks[1]->error, "FOREIGN KEY constraint failed");
        assert_string_equal(see("SELECT id FROM customer ORDER BY id"), "a\nc\n");
        assert_string_equal(see("SELECT count(*) FROM visit"), "0\n");
}

static void a_stale_task_does_not_stop_its_batch(void **state)
{
        (void)state;
        struct qv_mock *other = take_over();
        assert_int_equal(run_on(other, INSERT("a", "\"name\":\"new\""))->outcome, QV_DONE);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", UPDATE("a", "\"name\":\"late\"")),
                qv_mock_new_task(mock, "b", INSERT("b", "\"name\":\"Bob\"")) };
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 1);
        assert_int_equal(tasks[0]->outcome, QV_RETRY);
        assert_string_equal(see("SELECT name FROM customer ORDER BY id"), "new\nBob\n");
        qv_mock_free(other);
}

/* --- what failures mean ------------------------------------------------------------------------------------------- */

static void a_constraint_rejects_with_the_databases_words(void **state)
{
        (void)state;
        assert_outcome(INSERT("a", ""), QV_REJECT, "NOT NULL constraint failed: customer.name");
        assert_outcome(INSERT("a", "\"name\":\"A\",\"age\":900"), QV_REJECT, "CHECK constraint failed: age < 200");
        assert_string_equal(see("SELECT count(*) FROM customer"), "0\n");
}

static void a_database_that_is_not_there_costs_nothing(void **state)
{
        (void)state;
        assert_int_equal(qv_mock_init(mock), 0);
        assert_non_null(qv_mock_logged(mock, QV_LOG_WARN, "tasks have to wait for the database: "));
        assert_outcome(INSERT("a", "\"name\":\"Ann\""), QV_UNAVAILABLE, "unable to open database file");
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", INSERT("a", "\"name\":\"Ann\"")),
                qv_mock_new_task(mock, "b", INSERT("b", "\"name\":\"Bob\"")), qv_mock_new_task(mock, "c", "rubbish") };
        assert_int_equal(qv_mock_handle_many(mock, tasks, 3), 0);
        assert_int_equal(tasks[0]->outcome, QV_UNAVAILABLE);
        assert_int_equal(tasks[1]->outcome, QV_UNAVAILABLE);
        assert_int_equal(tasks[2]->outcome, QV_REJECT);
        open_look();
        do_sql(DDL);
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 2);
        assert_non_null(qv_mock_logged(mock, QV_LOG_INFO, "the database is back"));
        assert_null(qv_mock_log_at(mock, 2));
}

static void a_table_that_is_not_there_yet_is_waited_for(void **state)
{
        (void)state;
        do_sql("DROP TABLE visit");
        qv_mock_close(mock);
        assert_int_equal(qv_mock_init(mock), 0);
        assert_non_null(qv_mock_logged(mock, QV_LOG_WARN, "table visit: no such table: visit"));
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", INSERT("a", "\"name\":\"Ann\"")),
                qv_mock_new_task(mock, "v", "{\"op\":\"insert\",\"table\":\"visit\",\"id\":1}") };
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 1);
        assert_int_equal(tasks[1]->outcome, QV_UNAVAILABLE);
        do_sql("CREATE TABLE visit (id integer PRIMARY KEY, customer text, " FENCE ")");
        assert_int_equal(qv_mock_handle(mock, tasks[1]), QV_DONE);
}

static void a_busy_database_is_tried_again(void **state)
{
        (void)state;
        do_sql("BEGIN IMMEDIATE");
        assert_outcome(INSERT("a", "\"name\":\"Ann\""), QV_RETRY, "database is locked");
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", INSERT("a", "\"name\":\"Ann\"")),
                qv_mock_new_task(mock, "b", INSERT("b", "\"name\":\"Bob\"")) };
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 0);
        assert_int_equal(tasks[0]->outcome, QV_RETRY);
        do_sql("COMMIT");
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 2);
}

static void the_rest_of_a_batch_waits_when_told_to_stop(void **state)
{
        (void)state;
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", INSERT("a", "\"name\":\"Ann\"")),
                qv_mock_new_task(mock, "b", INSERT("b", "\"name\":\"Bob\"")) };
        qv_mock_stop(mock);
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 0);
        assert_int_equal(tasks[0]->outcome, QV_RETRY);
        assert_string_equal(see("SELECT count(*) FROM customer"), "0\n");
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                SQL_TEST(a_row_is_as_its_last_task_left_it),
                SQL_TEST(an_insert_over_a_deleted_row_leaves_nothing_of_it),
                SQL_TEST(a_row_that_is_not_there_is_named),
                SQL_TEST(values_keep_their_kind),
                SQL_TEST(a_stale_writer_changes_nothing),
                SQL_TEST(a_deleted_row_still_fences),
                SQL_TEST(the_epoch_counts_before_the_start),
                SQL_TEST(a_task_that_runs_again_is_no_duplicate_of_itself),
                SQL_TEST(a_bad_task_fails_alone_in_its_batch),
                SQL_TEST(in_an_ordered_batch_nothing_of_its_key_follows_a_bad_task),
                SQL_TEST(a_constraint_that_waits_for_the_commit_costs_only_the_guilty),
                SQL_TEST(a_stale_task_does_not_stop_its_batch),
                SQL_TEST(a_constraint_rejects_with_the_databases_words),
                cmocka_unit_test_setup_teardown(a_database_that_is_not_there_costs_nothing, setup_empty, teardown),
                SQL_TEST(a_table_that_is_not_there_yet_is_waited_for),
                SQL_TEST(a_busy_database_is_tried_again),
                SQL_TEST(the_rest_of_a_batch_waits_when_told_to_stop),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
