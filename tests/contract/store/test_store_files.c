/* What can be wrong with a SQLite store's files, and that it says so. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "schema3.h"

const struct contract_driver *driver = &sqlite_real;

static struct ledger *ledger;
static char folder[64];
static long pretended_type; /* of the file system; 0: the real one */
static bool is_pretended_full;

/* Stands before the C library's. */
int statfs(const char *path, struct statfs *to)
{
        int r = (int)syscall(SYS_statfs, path, to);
        if (pretended_type)
                to->f_type = pretended_type;
        if (is_pretended_full)
                to->f_bavail = 0;
        return r;
}

static int setup(void **state)
{
        (void)state;
        ledger = children_setup(folder);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        children_cleanup(folder, ledger);
        return 0;
}

static void sql(const char *text)
{
        char path[128];
        sqlite3 *db;
        (void)snprintf(path, sizeof(path), "%s/q.db", folder);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
        (void)sqlite3_close(db);
}

static void make(void)
{
        struct world w;
        world_start(&w, 1, 4);
        (void)submit(&w, "k", "1");
        world_end(&w);
}

static int try_open(struct error *error)
{
        struct world w = { 0 };
        (void)uv_loop_init(&w.loop);
        int r = world_open(&w, (struct store_options){ .may_create = true }, error);
        world_end(&w);
        return r;
}

static void a_newer_schema_is_refused(void **state)
{
        (void)state;
        struct error error;
        make();
        sql("PRAGMA user_version = 99");
        assert_int_equal(try_open(&error), -EPROTO);
        assert_non_null(strstr(error.text, "newer Quiver (schema 99"));
}

static const char *text_of(struct world *w, struct span text)
{
        return F(w, "%.*s", (int)text.size, text.data).data;
}

/* A file of schema 3 with four shards.  Shards 0 and 1 have normal tasks 1020 to 1030, of which those up to 1025 are in
 * flight; shard 0 also one of the high lane, and one before all of them whose key is held. */
static void make_schema_3(struct world *w)
{
        sql(SCHEMA_3);
        sql("INSERT INTO meta VALUES('app', 'test'), ('shards', 4), ('boot', 1), ('boot_id', 'x'), ('clock_offset', 0);"
            "INSERT INTO shard(shard) VALUES(0), (1), (2), (3);"
            "UPDATE shard SET normal_tail = 1030, normal_taken = 1025, normal_queued = 5, in_flight = 6, submitted = "
            "11 "
            "WHERE shard < 2;"
            "UPDATE shard SET high_tail = 1, high_queued = 1, parked = 1, keys = 1, last_key = 1, submitted = 13 WHERE "
            "shard = 0;"
            "INSERT INTO dead VALUES((3 << 50) | 1, 'x-3', 'h', 1, 1, 'rejected', 'bytes', NULL);"
            "UPDATE shard SET dead = 1, last_dead = 1, submitted = 1 WHERE shard = 3;");
        for (unsigned shard = 0; shard < 2; shard++) {
                const char *key = text_of(w, key_of(w, shard, 0));
                for (unsigned n = 1020; n <= 1030; n++)
                        sql(F(w,
                                "INSERT INTO log VALUES((%u << 50) | (1 << 48) | %u, 'qv1\nkey:%s\nhandler:h\n\n%u', "
                                "NULL)",
                                shard, n, key, n)
                                        .data);
        }
        const char *key = text_of(w, key_of(w, 0, 0));
        const char *held = text_of(w, key_of(w, 0, 1));
        sql(F(w,
                "INSERT INTO log VALUES(1, 'qv1\nkey:%s\nhandler:h\n\nhigh', NULL);"
                "INSERT INTO key VALUES(1, 0, CAST('%s' AS BLOB), 3, NULL, 1, 1, 'by hand');"
                "INSERT INTO side VALUES(1, (1 << 48) | 1019, 'qv1\nkey:%s\nhandler:h\n\n1019', NULL)",
                key, held, held)
                        .data);
}

/* One of schema 4: tasks stay, and what is new is off until somebody switches it on. */
static void a_file_from_before_merging_is_taken_up(void **state)
{
        (void)state;
        struct world w;
        make();
        sql("DROP TABLE merged; ALTER TABLE shard DROP COLUMN merged; ALTER TABLE shard DROP COLUMN host;"
            "ALTER TABLE shard DROP COLUMN parked_high; ALTER TABLE shard DROP COLUMN parked_low;"
            "PRAGMA user_version = 4;"
            "UPDATE meta SET value = 'limits names' WHERE name = 'features'");
        world_start(&w, 1, 4);
        struct store_submission item = {
                .envelope = { .key = T("k"), .handler = T("h"), .lane = LANE_NORMAL, .is_merge = true }
        };
        assert_int_equal(submit_items(&w, &item, 1), 0);
        assert_int_equal(item.status, -ENOTSUP);
        expect_sound(&w);
        uint32_t shard = shard_of_key(T("k"), 4);
        struct owner o = own(&w, shard, 1, 1);
        expect_tasks(&w, claim(&w, &o, 1), "1");
        assert_int_equal(counts(&w, shard).merged, 0);
        world_end(&w);
}

/* One of schema 5: what was parked by then is counted by lane. */
static void what_an_older_file_has_parked_is_counted_by_lane(void **state)
{
        (void)state;
        struct world w;
        world_start(&w, 1, 4);
        struct owner o = own(&w, 3, 1, 1);
        static const unsigned parked[LANES] = { 1, 2, 3 };
        struct store_outcome aside[6];
        unsigned count = 0;
        for (unsigned lane = 0; lane < LANES; lane++)
                for (unsigned i = 0; i < parked[lane]; i++)
                        (void)submit_lane(&w, text_of(&w, key_of(&w, 3, count++)), "x", (enum lane)lane);
        struct store_advance a = claim_each(&w, &o, 8, 8, 8);
        assert_int_equal(a.tasks_count, count);
        for (unsigned i = 0; i < count; i++)
                aside[i] = i % 2 ? hold(&a.tasks[i]) : retry(&a.tasks[i], 1000);
        (void)advance(&w, &o, aside, count, 0);
        world_end(&w);
        sql("ALTER TABLE shard DROP COLUMN parked_high; ALTER TABLE shard DROP COLUMN parked_low;"
            "PRAGMA user_version = 5");
        world_start(&w, 1, 4);
        for (unsigned lane = 0; lane < LANES; lane++) {
                assert_int_equal(counts(&w, 3).parked[lane], parked[lane]);
                assert_int_equal(counts(&w, 0).parked[lane], 0);
        }
        expect_sound(&w);
        world_end(&w);
}

static void an_older_schema_is_taken_up(void **state)
{
        (void)state;
        struct world w = { 0 };
        make_schema_3(&w);
        arena_free(w.memory);
        /* As it was before there were dumps that are taken once. */
        sql("DROP TABLE import; PRAGMA user_version = 1");
        world_start(&w, 1, 4);
        expect_sound(&w);
        struct owner o = own(&w, 0, 1, 1);
        const struct store_page *page = &o.granted.page;
        struct store_outcome outcomes[6];
        assert_string_equal(payloads(&w, page->tasks, page->tasks_count), "1020 1021 1022 1023 1024 1025");
        for (unsigned i = 0; i < 6; i++)
                outcomes[i] = done(&page->tasks[i]);
        /* One run of numbers, and between them in the log now what shard 1 has. */
        struct store_advance a = advance(&w, &o, outcomes, 6, 10);
        assert_int_equal(a.gone, 0);
        expect_tasks(&w, a, "high 1026 1027 1028 1029 1030");
        assert_int_equal(counts(&w, 1).in_flight, 6);
        assert_int_equal(counts(&w, 1).queued[LANE_NORMAL], 5);
        assert_int_equal(counts(&w, 0).parked[LANE_NORMAL], 1);
        uint64_t last = a.tasks[5].seq;
        (void)submit(&w, text_of(&w, key_of(&w, 0, 0)), "new");
        a = claim(&w, &o, 10);
        expect_tasks(&w, a, "new");
        assert_true(a.tasks[0].seq > last);
        o = own(&w, 1, 1, 1);
        assert_string_equal(
                payloads(&w, o.granted.page.tasks, o.granted.page.tasks_count), "1020 1021 1022 1023 1024 1025");
        expect_tasks(&w, claim(&w, &o, 10), "1026 1027 1028 1029 1030");
        expect_sound(&w);
        world_end(&w);
        /* What is missing is recorded; json('') fails. */
        sql("SELECT CASE WHEN value LIKE '%limits%' THEN 1 ELSE json('') END FROM (SELECT max(value) AS value FROM "
            "meta WHERE name = 'features')");
        sql("INSERT INTO import VALUES(0, 'source', 1, 1)");
        sql("SELECT note FROM result");
}

/* Two thousand segments, each with something of shard 1. */
static void make_backlog_of_others(void)
{
        sql("INSERT INTO log(id, task) WITH RECURSIVE n(s) AS (VALUES(2) UNION ALL SELECT s + 1 FROM n WHERE s < 2000) "
            "SELECT (s << 22) | (1 << 10), 'x' FROM n;"
            "UPDATE shard SET normal_tail = 2000 << 10, normal_queued = 1999, submitted = 1999 WHERE shard = 1;"
            "UPDATE meta SET value = 2001 << 16 WHERE name = 'position';");
}

/* What other shards have queued is passed over, but not all of it in one call. */
static void tasks_behind_a_large_backlog_of_others_are_found(void **state)
{
        (void)state;
        struct world w;
        world_start(&w, 1, 4);
        struct owner o = own(&w, 0, 1, 1);
        const char *name = text_of(&w, key_of(&w, 0, 0));
        (void)submit(&w, name, "near");
        make_backlog_of_others();
        for (unsigned i = 0; i < 100; i++)
                (void)submit(&w, name, i ? "later" : "far");
        expect_tasks(&w, claim(&w, &o, 1), "near");
        struct store_advance a;
        unsigned calls = 0;
        do {
                a = claim(&w, &o, 1);
                calls++;
                assert_true(a.tasks_count || a.has_more[LANE_NORMAL]);
        } while (!a.tasks_count && calls < 20);
        expect_tasks(&w, a, "far");
        assert_in_range(calls, 2, 10);
        expect_sound(&w);
        /* Both are in flight, whatever lies between them. */
        o = own(&w, 0, 2, 1);
        assert_string_equal(payloads(&w, o.granted.page.tasks, o.granted.page.tasks_count), "near far");
        world_end(&w);
}

static void a_few_tasks_behind_a_large_backlog_of_others_are_claimed_at_once(void **state)
{
        (void)state;
        struct world w;
        world_start(&w, 1, 4);
        struct owner o = own(&w, 0, 1, 1);
        const char *name = text_of(&w, key_of(&w, 0, 0));
        (void)submit(&w, name, "near");
        make_backlog_of_others();
        (void)submit(&w, name, "far");
        (void)submit(&w, name, "further");
        expect_tasks(&w, claim(&w, &o, 1), "near");
        expect_tasks(&w, claim(&w, &o, 1), "far");
        expect_tasks(&w, claim(&w, &o, 9), "further");
        expect_sound(&w);
        o = own(&w, 0, 2, 1);
        assert_string_equal(payloads(&w, o.granted.page.tasks, o.granted.page.tasks_count), "near far further");
        world_end(&w);
}

static void a_task_in_the_middle_of_a_backlog_of_others_is_not_skipped(void **state)
{
        (void)state;
        struct world w;
        world_start(&w, 1, 4);
        struct owner o = own(&w, 0, 1, 1);
        const char *name = text_of(&w, key_of(&w, 0, 0));
        make_backlog_of_others();
        sql(F(&w,
                "INSERT INTO log(id, task) VALUES(1000 << 22, 'qv1\nkey:%s\nhandler:h\n\nmiddle');"
                "UPDATE shard SET normal_tail = 1000 << 10, normal_queued = 1, submitted = 1 WHERE shard = 0;",
                name)
                        .data);
        (void)submit(&w, name, "far");
        struct store_advance a = { 0 };
        for (unsigned calls = 0; !a.tasks_count && calls < 20; calls++)
                a = claim(&w, &o, 1);
        expect_tasks(&w, a, "middle");
        expect_tasks(&w, claim(&w, &o, 9), "far");
        expect_sound(&w);
        world_end(&w);
}

/* A lane that was found empty is looked at where the log grows. */
static void an_idle_shard_does_not_look_through_the_backlog_of_others(void **state)
{
        (void)state;
        struct world w;
        world_start(&w, 1, 4);
        struct owner o = own(&w, 0, 1, 1);
        sql("UPDATE shard SET normal_tail = 5000 << 10 WHERE shard = 1;"
            "INSERT INTO meta VALUES('position', 5001 << 16)");
        expect_tasks(&w, claim(&w, &o, 1), "");
        sql("INSERT INTO log(id, task) WITH RECURSIVE n(s) AS (VALUES(2) UNION ALL SELECT s + 1 FROM n WHERE s < 5000) "
            "SELECT (s << 22) | (1 << 10), 'x' FROM n;"
            "UPDATE shard SET normal_queued = 4999, submitted = 4999 WHERE shard = 1;");
        (void)submit(&w, text_of(&w, key_of(&w, 0, 0)), "first");
        expect_tasks(&w, claim(&w, &o, 1), "first");
        expect_sound(&w);
        world_end(&w);
}

/* Somebody writes and does not end: whoever only reads can open the store all the same. */
static void a_store_opens_while_another_writes(void **state)
{
        (void)state;
        struct error error;
        char path[128];
        sqlite3 *db;
        make();
        (void)snprintf(path, sizeof(path), "%s/q.db", folder);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(try_open(&error), 0);
        (void)sqlite3_close(db);
}

static void somebody_elses_database_is_refused(void **state)
{
        (void)state;
        struct error error;
        sql("CREATE TABLE mine(x)");
        assert_int_equal(try_open(&error), -EPROTO);
        assert_non_null(strstr(error.text, "not a Quiver store"));
}

static void a_file_that_is_no_database_is_refused(void **state)
{
        (void)state;
        struct error error;
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/q.db", folder);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        for (unsigned i = 0; i < 1000; i++)
                (void)fputs("not a database\n", f);
        (void)fclose(f);
        assert_int_equal(try_open(&error), -EPROTO);
        assert_non_null(strstr(error.text, path));
}

static void network_file_systems_are_refused(void **state)
{
        (void)state;
        struct error error;
        pretended_type = 0x6969;
        int r = try_open(&error);
        pretended_type = 0;
        assert_int_equal(r, -ENOTSUP);
        assert_non_null(strstr(error.text, "NFS"));
        assert_int_equal(try_open(&error), 0);
}

static void a_full_disk_loses_nothing_and_goes_on_by_itself(void **state)
{
        (void)state;
        struct world w;
        struct rlimit before;
        struct stat st;
        char path[128];
        world_start(&w, 1, 1);
        struct owner o = own(&w, 0, 1, 1);
        (void)submit(&w, "k", "1");
        struct store_advance a = claim(&w, &o, 1);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)snprintf(path, sizeof(path), "%s/q.db-wal", folder);
        assert_int_equal(stat(path, &st), 0);
        struct rlimit tight = { .rlim_cur = (rlim_t)st.st_size + 40000, .rlim_max = before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        int r = 0;
        unsigned stored = 0;
        for (unsigned i = 0; i < 100 && !r; i++) {
                struct store_submission item = { .envelope = { .key = T("k"),
                                                         .handler = T("h"),
                                                         .payload = F(&w, "%0300u", i),
                                                         .lane = LANE_NORMAL } };
                r = submit_items(&w, &item, 1);
                stored += r == 0;
        }
        assert_int_equal(r, -ENOSPC);
        struct store_outcome outcome = done(&a.tasks[0]);
        struct store_advance full = advance_call(&w, &o, o.call + 1, &outcome, 1, 0);
        assert_int_equal(full.request.status, -ENOSPC);
        assert_non_null(strstr(full.request.error.text, "free some space"));
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        full = advance_call(&w, &o, o.call + 1, &outcome, 1, 0); /* the same call again */
        assert_int_equal(full.request.status, 0);
        assert_int_equal(full.verdict, STORE_OK);
        assert_int_equal(counts(&w, 0).done, 1);
        assert_int_equal(counts(&w, 0).queued[LANE_NORMAL], stored);
        expect_sound(&w);
        world_end(&w);
}

static off_t file_size(void)
{
        struct stat st;
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/q.db", folder);
        assert_int_equal(stat(path, &st), 0);
        return st.st_size;
}

static void the_log_is_brought_back_before_it_fills_the_disk(void **state)
{
        (void)state;
        struct world w;
        world_start(&w, 1, 1);
        off_t before = file_size();
        is_pretended_full = true;
        for (unsigned i = 0; i < 3000 && file_size() == before; i++) {
                struct store_submission item = { .envelope = { .key = T("k"),
                                                         .handler = T("h"),
                                                         .payload = F(&w, "%0300u", i),
                                                         .lane = LANE_NORMAL } };
                assert_int_equal(submit_items(&w, &item, 1), 0);
        }
        /* Another thread does it, in its own time. */
        for (unsigned i = 0; i < 2000 && file_size() == before; i++)
                (void)usleep(10000);
        is_pretended_full = false;
        assert_true(file_size() > before);
        world_end(&w);
}

/* As somebody who may only read. */
static int reader(void)
{
        struct error error = { "" };
        if (geteuid() == 0)
                assert_int_equal(setresuid(65534, 65534, 65534), 0);
        int r = try_open(&error);
        if (r != -EROFS && r != -EACCES)
                (void)fprintf(stderr, "%d: %s\n", r, error.text);
        return r == -EROFS || r == -EACCES ? 0 : 1;
}

static void a_read_only_store_is_refused_clearly(void **state)
{
        (void)state;
        char path[128];
        make();
        (void)snprintf(path, sizeof(path), "%s/q.db", folder);
        assert_int_equal(chmod(path, 0444), 0);
        assert_int_equal(chmod(folder, 0555), 0);
        assert_int_equal(child_wait(child_start("reader", "")), 0);
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(chmod(path, 0600), 0);
        struct error error;
        assert_int_equal(try_open(&error), 0);
}

static void a_dead_listeners_socket_is_removed(void **state)
{
        (void)state;
        struct world w;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        world_start(&w, 1, 1);
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/q.db-bell/%032d", folder, 0);
        for (unsigned i = 0; i < 2 * STORE_NONCE_SIZE; i++)
                address.sun_path[strlen(address.sun_path) - 1 - i] = i % 2 ? '0' : '7';
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        (void)close(fd);
        (void)own(&w, 0, 1, 7); /* the killed owner whose socket that was */
        assert_int_equal(access(address.sun_path, F_OK), 0);
        (void)submit(&w, "k", "1");
        assert_int_equal(access(address.sun_path, F_OK), -1);
        world_end(&w);
}

static void refused_rings_make_a_listener_look_at_everything(void **state)
{
        (void)state;
        struct world w;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        uint32_t shard = 0;
        unsigned sent = 0;
        world_start(&w, 0x11, 1);
        (void)snprintf(
                address.sun_path, sizeof(address.sun_path), "%s/q.db-bell/11111111111111111111111111111111", folder);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        assert_int_equal(sendto(fd, &shard, sizeof(shard), 0, (struct sockaddr *)&address, sizeof(address)), 4);
        world_wait(&w, &w.rang, 1);
        assert_int_equal(w.looked, 0);
        while (sendto(fd, &shard, sizeof(shard), 0, (struct sockaddr *)&address, sizeof(address)) == 4)
                sent++;
        assert_int_equal(errno, EAGAIN);
        world_wait(&w, &w.looked, 1);
        assert_int_equal(w.rang, 1 + sent);
        (void)close(fd);
        world_end(&w);
}

static void open_done(struct store_request *request)
{
        (void)request;
}

static void an_unknown_scheme_is_named(void **state)
{
        (void)state;
        uv_loop_t loop;
        struct store_open open = { .request = { .done = open_done }, .options = { .url = "mysql://x", .app = "a" } };
        (void)uv_loop_init(&loop);
        store_open(&loop, &open);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(open.request.status, -ENOTSUP);
        assert_non_null(strstr(open.request.error.text, "mysql://x"));
        assert_int_equal(uv_loop_close(&loop), 0);
}

static void a_missing_folder_is_named(void **state)
{
        (void)state;
        struct error error;
        (void)setenv("QUIVER_TEST_FOLDER", "/nowhere/at/all", 1);
        assert_int_equal(try_open(&error), -ENOENT);
        assert_non_null(strstr(error.text, "/nowhere/at/all"));
        (void)setenv("QUIVER_TEST_FOLDER", folder, 1);
}

int main(int argc, char **argv)
{
        if (argc > 1 && !strcmp(argv[1], "reader")) {
                (void)snprintf(folder, sizeof(folder), "%s", getenv("QUIVER_TEST_FOLDER"));
                return reader();
        }
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        const struct CMUnitTest tests[] = {
                IN_FOLDER(a_newer_schema_is_refused),
                IN_FOLDER(a_file_from_before_merging_is_taken_up),
                IN_FOLDER(what_an_older_file_has_parked_is_counted_by_lane),
                IN_FOLDER(an_older_schema_is_taken_up),
                IN_FOLDER(a_store_opens_while_another_writes),
                IN_FOLDER(tasks_behind_a_large_backlog_of_others_are_found),
                IN_FOLDER(a_few_tasks_behind_a_large_backlog_of_others_are_claimed_at_once),
                IN_FOLDER(a_task_in_the_middle_of_a_backlog_of_others_is_not_skipped),
                IN_FOLDER(an_idle_shard_does_not_look_through_the_backlog_of_others),
                IN_FOLDER(somebody_elses_database_is_refused),
                IN_FOLDER(a_file_that_is_no_database_is_refused),
                IN_FOLDER(network_file_systems_are_refused),
                IN_FOLDER(a_full_disk_loses_nothing_and_goes_on_by_itself),
                IN_FOLDER(the_log_is_brought_back_before_it_fills_the_disk),
                IN_FOLDER(a_read_only_store_is_refused_clearly),
                IN_FOLDER(a_dead_listeners_socket_is_removed),
                IN_FOLDER(refused_rings_make_a_listener_look_at_everything),
                IN_FOLDER(an_unknown_scheme_is_named),
                IN_FOLDER(a_missing_folder_is_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
