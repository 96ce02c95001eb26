/* Producers beside owners on one SQLite file: a submit writes no shard's row (store/sqlite/shard/tally.c), and still
 * whoever has to know learns of it. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "children.h"

const struct contract_driver *driver = &sqlite_real;

static struct ledger *ledger;
static char folder[64];

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

static int64_t sql(const char *text)
{
        char path[128];
        sqlite3 *db;
        sqlite3_stmt *statement;
        (void)snprintf(path, sizeof(path), "%s/q.db", folder);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        (void)sqlite3_busy_timeout(db, 5000);
        assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
        int code = sqlite3_step(statement);
        assert_true(code == SQLITE_ROW || code == SQLITE_DONE);
        int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
        (void)sqlite3_finalize(statement);
        (void)sqlite3_close(db);
        return value;
}

/* One more process on the file, as it were, that lets at most so many tasks wait in a shard. */
static void join_limited(struct world *w, uint8_t who, uint64_t backlog_max)
{
        struct store_options o = {
                .shards = 4, .may_create = true, .is_host = true, .sync = STORE_SYNC_NORMAL, .backlog_max = backlog_max
        };
        memset(o.nonce, who, sizeof(o.nonce));
        *w = (struct world){ 0 };
        (void)uv_loop_init(&w->loop);
        assert_int_equal(world_open(w, o, NULL), 0);
}

static int try_submit(struct world *w, uint32_t shard, uint64_t delay_ms)
{
        struct store_submission item = {
                .envelope = { .key = key_of(w, shard, 0), .handler = T("h"), .payload = T("x"), .lane = LANE_NORMAL },
                .delay_ms = delay_ms
        };
        assert_int_equal(submit_items(w, &item, 1), 0);
        return item.status;
}

static void a_submit_writes_no_row_of_a_shard(void **state)
{
        (void)state;
        struct world producer;
        struct world host;
        world_start(&host, 1, 4);
        world_start(&producer, 2, 4);
        struct owner o = own(&host, 0, 1, 1);
        (void)claim(&host, &o, 1);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(try_submit(&producer, 0, 0), 0);
        assert_int_equal(sql("SELECT submitted + normal_queued + normal_tail FROM shard WHERE shard = 0"), 0);
        /* All the same it is counted, by everybody. */
        assert_int_equal(counts(&producer, 0).queued[LANE_NORMAL], 3);
        assert_int_equal(counts(&host, 0).queued[LANE_NORMAL], 3);
        assert_int_equal(counts(&host, 0).submitted, 3);
        assert_true(renew(&host, &o).has_work);
        expect_sound(&producer);
        /* The owner's next write takes it in. */
        struct store_advance a = claim(&host, &o, 2);
        assert_int_equal(a.tasks_count, 2);
        assert_int_equal(sql("SELECT submitted FROM shard WHERE shard = 0"), 3);
        assert_int_equal(sql("SELECT normal_queued FROM shard WHERE shard = 0"), 1);
        assert_int_equal(counts(&producer, 0).queued[LANE_NORMAL], 1);
        assert_int_equal(counts(&producer, 0).submitted, 3);
        expect_sound(&host);
        world_end(&producer);
        world_end(&host);
}

static void producers_and_owners_take_turns_and_lose_nothing(void **state)
{
        (void)state;
        struct world worlds[3];
        uint64_t last = 0;
        unsigned claimed = 0;
        for (unsigned i = 0; i < 3; i++)
                world_start(&worlds[i], (uint8_t)(i + 1), 4);
        struct owner o = own(&worlds[0], 1, 1, 1);
        for (unsigned i = 0; i < 60; i++) {
                for (unsigned n = 0; n < 3; n++)
                        assert_int_equal(try_submit(&worlds[n], 1, 0), 0);
                struct store_advance a = claim(&worlds[0], &o, i % 4);
                for (unsigned n = 0; n < a.tasks_count; n++) {
                        assert_true(a.tasks[n].seq > last);
                        last = a.tasks[n].seq;
                }
                claimed += a.tasks_count;
        }
        struct store_counts c = counts(&worlds[1], 1);
        assert_int_equal(c.submitted, 180);
        assert_int_equal(c.in_flight, claimed);
        assert_int_equal(c.queued[LANE_NORMAL], 180 - claimed);
        expect_sound(&worlds[2]);
        for (unsigned i = 0; i < 3; i++)
                world_end(&worlds[i]);
}

/* By a producer that knew the one before, which has died. */
static void a_new_holder_is_rung(void **state)
{
        (void)state;
        struct world first;
        struct world second;
        struct world producer;
        world_start(&first, 1, 4);
        world_start(&second, 2, 4);
        world_start(&producer, 3, 4);
        (void)own(&first, 0, 1, 1);
        assert_int_equal(try_submit(&producer, 0, 0), 0);
        world_wait(&first, &first.rang, 1);
        (void)sql("UPDATE shard SET until = 0");
        (void)own(&second, 0, 2, 2);
        unsigned before = first.rang;
        assert_int_equal(try_submit(&producer, 0, 0), 0);
        world_wait(&second, &second.rang, 1);
        assert_int_equal(first.rang, before);
        world_end(&first);
        world_end(&second);
        world_end(&producer);
}

/* By a producer that knew that there was none. */
static void a_holder_that_comes_back_is_rung(void **state)
{
        (void)state;
        struct world host;
        struct world producer;
        world_start(&host, 1, 4);
        world_start(&producer, 2, 4);
        struct owner o = own(&host, 0, 1, 1);
        assert_int_equal(release(&host, &o), STORE_OK);
        assert_int_equal(try_submit(&producer, 0, 0), 0);
        (void)own(&host, 0, 2, 1);
        assert_int_equal(host.rang, 0);
        assert_int_equal(try_submit(&producer, 0, 0), 0);
        world_wait(&host, &host.rang, 1);
        world_end(&host);
        world_end(&producer);
}

/* What a transaction that was undone had made of a row is nothing to go by, though the leases are as many again. */
static void a_holder_that_was_undone_is_forgotten(void **state)
{
        (void)state;
        struct world producer;
        struct world host;
        struct stat st;
        struct rlimit before;
        char path[128];
        world_start(&producer, 1, 4);
        world_start(&host, 2, 4);
        struct owner undone = owner_of(0, 1, 1);
        (void)snprintf(path, sizeof(path), "%s/q.db-wal", folder);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        (void)signal(SIGXFSZ, SIG_IGN);
        struct rlimit tight = { .rlim_cur = (rlim_t)st.st_size, .rlim_max = before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        int r = acquire(&producer, &undone);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(r, -ENOSPC);
        (void)own(&host, 0, 1, 2);
        assert_int_equal(try_submit(&producer, 0, 0), 0);
        world_wait(&host, &host.rang, 1);
        assert_int_equal(producer.rang, 0);
        world_end(&producer);
        world_end(&host);
}

static void a_backlog_is_limited_whoever_submits(void **state)
{
        (void)state;
        struct world w[3];
        for (unsigned i = 0; i < 3; i++)
                join_limited(&w[i], (uint8_t)(i + 1), 10);
        struct owner o = own(&w[0], 0, 1, 1);
        assert_int_equal(try_submit(&w[1], 0, 0), 0);
        for (unsigned i = 0; i < 9; i++)
                assert_int_equal(try_submit(&w[2], 0, i % 2 ? 100000 : 0), 0);
        assert_int_equal(try_submit(&w[1], 0, 0), -EDQUOT);
        assert_int_equal(try_submit(&w[2], 0, 0), -EDQUOT);
        /* What is in flight does not count, but when it is given back. */
        struct store_advance a = claim(&w[0], &o, 4);
        assert_int_equal(a.tasks_count, 4);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(try_submit(&w[1 + i % 2], 0, 0), 0);
        struct store_outcome outcome = retry(&a.tasks[0], 100000);
        (void)advance(&w[0], &o, &outcome, 1, 0);
        assert_int_equal(try_submit(&w[1], 0, 0), -EDQUOT);
        assert_int_equal(try_submit(&w[2], 0, 0), -EDQUOT);
        expect_sound(&w[1]);
        for (unsigned i = 0; i < 3; i++)
                world_end(&w[i]);
}

static void a_tally_that_cannot_be_read_is_named_and_counted_anew(void **state)
{
        (void)state;
        static const char *const damages[] = { "UPDATE tally SET tallies = x'00'", "UPDATE tally SET tallies = 'x'",
                "UPDATE tally SET tallies = zeroblob(8) || randomblob(1520) || x'ffffffffffffffff'",
                /* a tail of the first shard */
                "UPDATE tally SET tallies = CAST(x'ffffffffffffffff' || substr(tallies, 9) AS BLOB)" };
        for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
                struct world w;
                world_start(&w, 1, 4);
                struct owner o = own(&w, 0, i + 1, 1);
                (void)release(&w, &o);
                uint64_t before = counts(&w, 0).queued[LANE_NORMAL];
                assert_int_equal(try_submit(&w, 0, 0), 0);
                assert_int_equal(try_submit(&w, 0, 0), 0);
                (void)sql(damages[i]);
                struct store_submission item = { .envelope = { .key = key_of(&w, 0, 0),
                                                         .handler = T("h"),
                                                         .payload = T("x"),
                                                         .lane = LANE_NORMAL } };
                assert_int_equal(submit_items(&w, &item, 1), -EPROTO);
                for (uint32_t shard = 0; shard < 4; shard++)
                        assert_int_equal(repair(&w, shard), 0);
                expect_sound(&w);
                assert_int_equal(counts(&w, 0).queued[LANE_NORMAL], before + 2);
                assert_int_equal(try_submit(&w, 0, 0), 0);
                expect_sound(&w);
                world_end(&w);
        }
}

static unsigned answered;

static void on_answered(struct store_request *request)
{
        assert_int_equal(request->status, 0);
        answered++;
}

/* The rows of tasks that ended are removed at the end of a transaction, and before whatever else is in it. */
static void a_look_after_a_call_finds_what_it_ended(void **state)
{
        (void)state;
        struct world w;
        world_start(&w, 1, 4);
        struct owner o = own(&w, 0, 1, 1);
        for (unsigned i = 0; i < 20; i++) {
                assert_int_equal(try_submit(&w, 0, 0), 0);
                struct store_advance claimed = claim(&w, &o, 1);
                assert_int_equal(claimed.tasks_count, 1);
                struct store_outcome outcome = done(&claimed.tasks[0]);
                struct store_counts found[2] = { 0 };
                struct store_count busy = { .request.done = on_answered, .shards = 1, .counts = &found[0] };
                struct store_advance end = { .request.done = on_answered,
                        .lease = o.lease,
                        .call = ++o.call,
                        .outcomes = &outcome,
                        .outcomes_count = 1 };
                struct store_count look = { .request.done = on_answered, .shards = 1, .counts = &found[1] };
                answered = 0;
                /* While the writer has the first, the others come together. */
                store_count(w.store, &busy);
                store_advance(w.store, &end);
                store_count(w.store, &look);
                while (answered < 3)
                        (void)uv_run(&w.loop, UV_RUN_ONCE);
                assert_int_equal(end.verdict, STORE_OK);
                assert_int_equal(found[1].in_flight, 0);
                assert_int_equal(found[1].done, i + 1);
        }
        expect_sound(&w);
        world_end(&w);
}

/* --- the write-ahead log --- */

static void submit_large(struct world *w, unsigned count)
{
        static char payload[64 << 10];
        memset(payload, 'x', sizeof(payload));
        struct store_submission item = { .envelope = { .key = key_of(w, 0, 0),
                                                 .handler = T("h"),
                                                 .payload = { payload, sizeof(payload) },
                                                 .lane = LANE_NORMAL } };
        for (unsigned i = 0; i < count; i++) {
                assert_int_equal(submit_items(w, &item, 1), 0);
                assert_int_equal(item.status, 0);
        }
}

/* A program that is no host, until the parent says that it is enough. */
static int produce(void)
{
        struct world w = { 0 };
        struct ledger *shared = ledger_open();
        struct store_options o = { .shards = 4, .sync = STORE_SYNC_NORMAL };
        (void)uv_loop_init(&w.loop);
        assert_int_equal(world_open(&w, o, NULL), 0);
        while (!__atomic_load_n(&shared->ops, __ATOMIC_RELAXED))
                (void)try_submit(&w, 1, 0);
        world_end(&w);
        return 0;
}

/* How often the log was started again, from its header, and how large the file is. */
static uint32_t restarts(off_t *ret_size)
{
        char path[128];
        uint8_t header[16];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/q.db-wal", folder);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        assert_int_equal(fread(header, 1, sizeof(header), file), sizeof(header));
        assert_int_equal(fstat(fileno(file), &st), 0);
        (void)fclose(file);
        *ret_size = st.st_size;
        return (uint32_t)header[12] << 24 | (uint32_t)header[13] << 16 | (uint32_t)header[14] << 8 | header[15];
}

#define WAL_ROUNDS 8u

/* Writes until the log is started again.  Returns how large it became. */
static off_t fill_log(struct world *w)
{
        off_t size, largest = 0;
        uint32_t before = restarts(&size);
        submit_large(w, 1000); /* 64 MiB: a checkpoint is due */
        while (restarts(&size) == before) {
                largest = size > largest ? size : largest;
                assert_in_range(largest, 0, 1 << 30);
                assert_int_equal(try_submit(w, 0, 0), 0);
        }
        return largest;
}

/* Beside writers that never pause, no copy of the log is complete unless one of them waits for it.  With 128 MiB the
 * writer does all of it itself; on a busy disk the log may grow as far while the thread copies, but not each time. */
static void the_log_starts_again_beside_a_writer_that_never_pauses(void **state)
{
        (void)state;
        struct world w;
        bool is_soon = false;
        world_start(&w, 1, 4);
        submit_large(&w, 1);
        pid_t child = child_start("produce", "");
        for (unsigned i = 0; i < WAL_ROUNDS && !is_soon; i++)
                is_soon = fill_log(&w) < 120 << 20;
        __atomic_store_n(&ledger->ops, 1, __ATOMIC_RELAXED);
        assert_int_equal(child_wait(child), 0);
        assert_true(is_soon);
        world_end(&w);
}

int main(int argc, char **argv)
{
        if (argc > 1 && !strcmp(argv[1], "produce"))
                return produce();
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        const struct CMUnitTest tests[] = {
                IN_FOLDER(a_submit_writes_no_row_of_a_shard),
                IN_FOLDER(producers_and_owners_take_turns_and_lose_nothing),
                IN_FOLDER(a_new_holder_is_rung),
                IN_FOLDER(a_holder_that_comes_back_is_rung),
                IN_FOLDER(a_holder_that_was_undone_is_forgotten),
                IN_FOLDER(a_backlog_is_limited_whoever_submits),
                IN_FOLDER(a_tally_that_cannot_be_read_is_named_and_counted_anew),
                IN_FOLDER(a_look_after_a_call_finds_what_it_ended),
                IN_FOLDER(the_log_starts_again_beside_a_writer_that_never_pauses),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
