/* sql_rig.h: the plugin sql with a database of SQLite, on the mock host.  PostgreSQL is tested end to end, with a
 * server. */
#ifndef QUIVER_TESTS_SQL_RIG_H
#define QUIVER_TESTS_SQL_RIG_H

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

static inline void do_sql(const char *text)
{
        char *error = NULL;
        if (sqlite3_exec(look, text, NULL, NULL, &error) != SQLITE_OK)
                fail_msg("%s: %s", text, error);
}

static inline int add_row(void *arg, int count, char **values, char **names)
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
static inline const char *see(const char *query)
{
        answer[0] = 0;
        assert_int_equal(sqlite3_exec(look, query, add_row, NULL, NULL), SQLITE_OK);
        return answer;
}

static inline void open_look(void)
{
        assert_int_equal(sqlite3_open(path, &look), SQLITE_OK);
}

static inline void configure(struct qv_mock *host)
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

static inline int setup_empty(void **state)
{
        (void)state;
        (void)snprintf(folder, sizeof(folder), "/tmp/quiver-sql-XXXXXX");
        assert_non_null(mkdtemp(folder));
        (void)snprintf(path, sizeof(path), "%s/app.db", folder);
        mock = qv_mock_new(&quiver_plugin);
        configure(mock);
        return 0;
}

static inline int setup(void **state)
{
        (void)setup_empty(state);
        open_look();
        do_sql(DDL);
        assert_int_equal(qv_mock_init(mock), 0);
        return 0;
}

static inline int teardown(void **state)
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
static inline struct qv_mock *take_over(void)
{
        struct qv_mock *other = qv_mock_new(&quiver_plugin);
        configure(other);
        qv_mock_takeover(other);
        assert_int_equal(qv_mock_init(other), 0);
        return other;
}

static inline struct qv_mock_task *run_on(struct qv_mock *host, const char *payload)
{
        struct qv_mock_task *task = qv_mock_new_task(host, "a", payload);
        (void)qv_mock_handle(host, task);
        return task;
}

static inline void assert_done(const char *payload)
{
        const struct qv_mock_task *task = run_on(mock, payload);
        if (task->outcome != QV_DONE)
                fail_msg("%s: %s", payload, task->error);
}

static inline void assert_outcome(const char *payload, int32_t outcome, const char *error)
{
        const struct qv_mock_task *task = run_on(mock, payload);
        assert_int_equal(task->outcome, outcome);
        assert_non_null(task->error);
        if (!strstr(task->error, error))
                fail_msg("%s: \"%s\" is not in \"%s\"", payload, error, task->error);
}

#define SQL_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
