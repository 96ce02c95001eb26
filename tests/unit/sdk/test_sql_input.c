/* sql on SQLite: hostile and careless payloads, values and settings. */
#include "sql_rig.h"

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

int main(void)
{
        const struct CMUnitTest tests[] = {
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
