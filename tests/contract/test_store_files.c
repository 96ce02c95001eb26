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

/* As Quiver wrote it before there were dumps that are taken once, and all that came after. */
static void an_older_schema_is_taken_up(void **state)
{
        (void)state;
        struct error error;
        make();
        sql("DROP TABLE import");
        sql("ALTER TABLE result DROP COLUMN note");
        sql("ALTER TABLE dead DROP COLUMN error");
        sql("DROP TABLE dead_group");
        sql("DROP TABLE counter");
        sql("DROP TABLE counted");
        sql("DROP TABLE idempotency");
        sql("DROP TABLE idempotency_count");
        sql("DELETE FROM meta WHERE name IN ('features', 'max_members', 'id_layout')");
        sql("DROP TABLE mailbox");
        sql("DROP TABLE mail");
        sql("DROP TABLE wanting");
        sql("PRAGMA user_version = 1");
        assert_int_equal(try_open(&error), 0);
        /* What is missing is recorded; json('') fails. */
        sql("SELECT CASE WHEN value LIKE '%limits%' THEN 1 ELSE json('') END FROM (SELECT max(value) AS value FROM "
            "meta "
            "WHERE name = 'features')");
        sql("INSERT INTO import VALUES(0, 'source', 1, 1)");
        sql("SELECT note FROM result");
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
                IN_FOLDER(an_older_schema_is_taken_up),
                IN_FOLDER(a_store_opens_while_another_writes),
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
