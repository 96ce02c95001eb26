/* sql on SQLite: what is left in the rows, whose write counts, and what each failure means.  PostgreSQL is tested end
 * to end, with a server. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>
#include <quiver/mock.h>

#define FENCE                                                                                                          \
        "is_deleted boolean NOT NULL DEFAULT false, fence_epoch bigint NOT NULL DEFAULT 0, "                           \
        "fence_start bigint NOT NULL DEFAULT 0, fence_task text NOT NULL DEFAULT ''"
#define DDL                                                                                                            \
        "PRAGMA journal_mode = WAL;"                                                                                   \
        "CREATE TABLE customer (id text PRIMARY KEY, name text NOT NULL, email text UNIQUE,"                           \
        " age integer DEFAULT 7 CHECK (age < 200), " FENCE ");"                                                        \
        "CREATE TABLE visit (id integer PRIMARY KEY,"                                                                  \
        " customer text REFERENCES customer (id) DEFERRABLE INITIALLY DEFERRED, " FENCE ")"
#define INSERT(id, rest) "{\"op\":\"insert\",\"table\":\"customer\",\"id\":\"" id "\",\"data\":{" rest "}}"
#define UPDATE(id, rest) "{\"op\":\"update\",\"table\":\"customer\",\"id\":\"" id "\",\"data\":{" rest "}}"
#define DELETE(id)       "{\"op\":\"delete\",\"table\":\"customer\",\"id\":\"" id "\"}"

static char folder[32];
static char path[64];
static sqlite3 *look; /* the test's own eyes */
static struct qv_mock *mock;
static char answer[512];

/* --- rig ---------------------------------------------------------------------------------------------------------- */

static void do_sql(const char *text)
{
        char *error = NULL;
        if (sqlite3_exec(look, text, NULL, NULL, &error) != SQLITE_OK)
                fail_msg("%s: %s", text, error);
}

static int add_row(void *arg, int count, char **values, char **names)
{
        (void)arg;
        (void)names;
        for (int i = 0; i < count; i++) {
                size_t used = strlen(answer);
                (void)snprintf(answer + used, sizeof(answer) - used, "%s%s", values[i] ? values[i] : "NULL",
                        i + 1 < count ? "|" : "\n");
        }
        return 0;
}

/* Rows as text: columns by |, rows by newline. */
static const char *see(const char *query)
{
        answer[0] = 0;
        assert_int_equal(sqlite3_exec(look, query, add_row, NULL, NULL), SQLITE_OK);
        return answer;
}

static void open_look(void)
{
        assert_int_equal(sqlite3_open(path, &look), SQLITE_OK);
}

static void configure(struct qv_mock *host)
{
        char url[80];
        (void)snprintf(url, sizeof(url), "sqlite:%s", path);
        qv_mock_config(host, "url", url);
        qv_mock_config(host, "statement_timeout", "50ms");
        qv_mock_config(host, "tables.0.name", "customer");
        qv_mock_config(host, "tables.0.columns.0", "name");
        qv_mock_config(host, "tables.0.columns.1", "email");
        qv_mock_config(host, "tables.0.columns.2", "age");
        qv_mock_config(host, "tables.1.name", "visit");
        qv_mock_config(host, "tables.1.columns.0", "customer");
}

static int setup_empty(void **state)
{
        (void)state;
        (void)snprintf(folder, sizeof(folder), "/tmp/quiver-sql-XXXXXX");
        assert_non_null(mkdtemp(folder));
        (void)snprintf(path, sizeof(path), "%s/app.db", folder);
        mock = qv_mock_new(&quiver_plugin);
        configure(mock);
        return 0;
}

static int setup(void **state)
{
        (void)setup_empty(state);
        open_look();
        do_sql(DDL);
        assert_int_equal(qv_mock_init(mock), 0);
        return 0;
}

static int teardown(void **state)
{
        static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
        (void)state;
        qv_mock_free(mock);
        (void)sqlite3_close(look);
        look = NULL;
        for (size_t i = 0; i < 4; i++) {
                char name[96];
                (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
                (void)unlink(name);
        }
        assert_int_equal(rmdir(folder), 0);
        return 0;
}

/* Another host on the same database, whose shard has moved to it: its epoch is higher, its first task has the id of the
 * first host's first task. */
static struct qv_mock *take_over(void)
{
        struct qv_mock *other = qv_mock_new(&quiver_plugin);
        configure(other);
        qv_mock_takeover(other);
        assert_int_equal(qv_mock_init(other), 0);
        return other;
}

static struct qv_mock_task *run_on(struct qv_mock *host, const char *payload)
{
        struct qv_mock_task *task = qv_mock_new_task(host, "a", payload);
        (void)qv_mock_handle(host, task);
        return task;
}

static void assert_done(const char *payload)
{
        const struct qv_mock_task *task = run_on(mock, payload);
        if (task->outcome != QV_DONE)
                fail_msg("%s: %s", payload, task->error);
}

static void assert_outcome(const char *payload, int32_t outcome, const char *error)
{
        const struct qv_mock_task *task = run_on(mock, payload);
        assert_int_equal(task->outcome, outcome);
        assert_non_null(task->error);
        if (!strstr(task->error, error))
                fail_msg("%s: \"%s\" is not in \"%s\"", payload, error, task->error);
}

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

/* --- hostile input ------------------------------------------------------------------------------------------------ */

static void what_is_wrong_with_a_payload_is_named(void **state)
{
        (void)state;
        static const struct {
                const char *payload, *error;
        } cases[] = {
                { "", "payload: " },
                { "[1]", "payload: no JSON object" },
                { "{\"op\":\"insert\",\"op\":\"delete\"}", "duplicate object key" },
                { "{\"op\":1}", "op is no text" },
                { "{\"op\":\"drop\"}", "op is \"drop\"" },
                { "{\"op\":\"insert\"}", "table is missing" },
                { "{\"op\":\"insert\",\"table\":\"sqlite_master\"}", "table \"sqlite_master\" is not allowed" },
                { "{\"op\":\"insert\",\"table\":\"customer\\\"; DROP TABLE customer; --\"}",
                        "table \"customer\"; DROP TABLE customer; --\" is not allowed" },
                { "{\"op\":\"insert\",\"table\":\"customer\"}", "id is missing" },
                { "{\"op\":\"insert\",\"table\":\"customer\",\"id\":\"\"}", "id is missing" },
                { "{\"op\":\"insert\",\"table\":\"customer\",\"id\":1.5}", "id is missing" },
                { "{\"op\":\"insert\",\"table\":\"customer\",\"id\":1,\"data\":[]}", "data is no object" },
                { "{\"op\":\"insert\",\"table\":\"customer\",\"id\":1,\"dta\":{}}", "unknown member \"dta\"" },
                { UPDATE("a", ""), "an update needs data" },
                { "{\"op\":\"delete\",\"table\":\"customer\",\"id\":1,\"data\":{\"name\":1}}", "a delete has no data" },
                { INSERT("a", "\"id\":\"b\""), "column \"id\" of table \"customer\" is not allowed" },
                { INSERT("a", "\"fence_epoch\":99"), "column \"fence_epoch\"" },
                { INSERT("a", "\"is_deleted\":true"), "column \"is_deleted\"" },
                { INSERT("a", "\"name\\\" = 1; --\":1"), "column \"name\" = 1; --\"" },
                { INSERT("a", "\"name\":\"a\\u0000b\""), "\\u0000 is not allowed" },
                { INSERT("a\\u0000b", "\"name\":\"A\""), "\\u0000 is not allowed" },
                { INSERT("a", "\"age\":99999999999999999999"), "too big integer" },
                { INSERT("a", "\"name\":\"\xff\""), "payload: " },
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                assert_outcome(cases[i].payload, QV_REJECT, cases[i].error);
        const struct qv_mock_task *task = qv_mock_new_task_bytes(mock, "a", "{\"op\":\0}", 8);
        assert_int_equal(qv_mock_handle(mock, (struct qv_mock_task *)task), QV_REJECT);
        assert_string_equal(see("SELECT count(*) FROM customer"), "0\n");
}

static void hostile_values_are_only_values(void **state)
{
        (void)state;
        assert_done(INSERT("'; DROP TABLE customer; --", "\"name\":\"\\\"'$1?%s\\\\;\xe2\x82\xac\""));
        assert_string_equal(
                see("SELECT id, name FROM customer"), "'; DROP TABLE customer; --|\"'$1?%s\\;\xe2\x82\xac\n");
        assert_done(DELETE("'; DROP TABLE customer; --"));
}

/* The most that a host hands over. */
static void very_long_values_are_kept_and_very_long_names_are_cut(void **state)
{
        (void)state;
        size_t size = QV_MOCK_PAYLOAD_MAX - 200;
        char *payload = malloc(QV_MOCK_PAYLOAD_MAX);
        char *text = malloc(size + 1);
        assert_non_null(payload);
        assert_non_null(text);
        memset(text, 'x', size);
        text[size] = 0;
        (void)snprintf(payload, QV_MOCK_PAYLOAD_MAX, INSERT("a", "\"name\":\"%s\""), text);
        assert_done(payload);
        char expected[32];
        (void)snprintf(expected, sizeof(expected), "%zu\n", size);
        assert_string_equal(see("SELECT length(name) FROM customer"), expected);
        (void)snprintf(payload, QV_MOCK_PAYLOAD_MAX, INSERT("a", "\"\xc3\xa4%s\":1"), text);
        const struct qv_mock_task *task = run_on(mock, payload);
        assert_int_equal(task->outcome, QV_REJECT);
        assert_true(strlen(task->error) < 200);
        free(payload);
        free(text);
}

static void names_of_tables_and_columns_are_quoted(void **state)
{
        (void)state;
        do_sql("CREATE TABLE \"or\"\"der; --\" (\"the id\" text PRIMARY KEY, \"se\"\"lect\" text, " FENCE ")");
        qv_mock_close(mock);
        qv_mock_config(mock, "tables.2.name", "or\"der; --");
        qv_mock_config(mock, "tables.2.id", "the id");
        qv_mock_config(mock, "tables.2.columns.0", "se\"lect");
        assert_int_equal(qv_mock_init(mock), 0);
        assert_done("{\"op\":\"insert\",\"table\":\"or\\\"der; --\",\"id\":1,\"data\":{\"se\\\"lect\":\"v\"}}");
        assert_done("{\"op\":\"update\",\"table\":\"or\\\"der; --\",\"id\":1,\"data\":{\"se\\\"lect\":\"w\"}}");
        assert_string_equal(see("SELECT \"the id\", \"se\"\"lect\" FROM \"or\"\"der; --\""), "1|w\n");
}

/* More than a connection keeps prepared. */
static void many_sets_of_columns_are_many_statements(void **state)
{
        (void)state;
        char sql[1024] = "CREATE TABLE wide (id text PRIMARY KEY";
        qv_mock_close(mock);
        qv_mock_config(mock, "tables.2.name", "wide");
        for (int i = 0; i < 40; i++) {
                char name[32], column[16];
                (void)snprintf(name, sizeof(name), "tables.2.columns.%d", i);
                (void)snprintf(column, sizeof(column), "c%d", i);
                qv_mock_config(mock, name, column);
                (void)snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), ", %s", column);
        }
        (void)snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), ", " FENCE ")");
        do_sql(sql);
        assert_int_equal(qv_mock_init(mock), 0);
        assert_done("{\"op\":\"insert\",\"table\":\"wide\",\"id\":\"a\"}");
        for (int i = 0; i < 80; i++) {
                char payload[128];
                (void)snprintf(payload, sizeof(payload),
                        "{\"op\":\"update\",\"table\":\"wide\",\"id\":\"a\",\"data\":{\"c%d\":%d}}", i % 40, i);
                assert_done(payload);
        }
        assert_string_equal(see("SELECT c0, c39 FROM wide"), "40|79\n");
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static void assert_refused(const char *name, const char *value, const char *error)
{
        struct qv_mock *host = qv_mock_new(&quiver_plugin);
        configure(host);
        qv_mock_config(host, name, value);
        assert_int_not_equal(qv_mock_init(host), 0);
        assert_non_null(qv_mock_init_error(host));
        if (!strstr(qv_mock_init_error(host), error))
                fail_msg("\"%s\" is not in \"%s\"", error, qv_mock_init_error(host));
        assert_null(strstr(qv_mock_init_error(host), "hunter2"));
        qv_mock_free(host);
}

static void wrong_settings_are_refused_by_name(void **state)
{
        (void)state;
        assert_refused("url", "mysql://localhost/app", "url: neither sqlite:FILE nor postgres://");
        assert_refused("url", "sqlite:", "url: neither");
        assert_refused("url", "postgres://u:hunter2@localhost/app", "url: it has a password in it");
        assert_refused("url", "postgres://localhost/app?password=hunter2", "url: it has a password in it");
        assert_refused("url", "postgres://localhost/app?pasword=1", "pasword");
        assert_refused("password_file", "/nonexistent/file", "password_file /nonexistent/file: No such file");
        assert_refused("password_file", "/dev/null", "no password in its first line");
        assert_refused("password_env", "QUIVER_TEST_NOT_SET", "QUIVER_TEST_NOT_SET is not set");
        assert_refused("statement_timeout", "soon", "statement_timeout");
        assert_refused("tables.1.name", "customer", "table customer stands there twice");
        assert_refused("tables.1.name", "", "a name is empty");
        assert_refused("tables.0.columns.3", "name", "column name stands there twice");
        assert_refused("tables.0.columns.3", "id", "column id is not for tasks");
        assert_refused("tables.0.columns.3", "fence_epoch", "column fence_epoch is not for tasks");
        assert_refused("tables.0.id", "fence_task", "fence_task cannot be its id");
        struct qv_mock *host = qv_mock_new(&quiver_plugin);
        qv_mock_config(host, "url", "sqlite:/tmp/app.db");
        assert_int_not_equal(qv_mock_init(host), 0);
        assert_non_null(strstr(qv_mock_init_error(host), "no table is allowed"));
        qv_mock_free(host);
}

static void every_setting_is_read(void **state)
{
        (void)state;
        assert_null(qv_mock_unread(mock, 0));
}

#define SQL_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
                SQL_TEST(what_is_wrong_with_a_payload_is_named),
                SQL_TEST(hostile_values_are_only_values),
                SQL_TEST(very_long_values_are_kept_and_very_long_names_are_cut),
                SQL_TEST(names_of_tables_and_columns_are_quoted),
                SQL_TEST(many_sets_of_columns_are_many_statements),
                SQL_TEST(wrong_settings_are_refused_by_name),
                SQL_TEST(every_setting_is_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
