/* Where tasks stand in the log of a file, and that a shard finds its own there. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "store/sqlite/file/schema.h"
#include "store/sqlite/shard/log.h"
#include "store/sqlite/shard/log_removals.h"

#define SHARDS 7u
#define ROWS   6000u

static struct database db;
static struct shard_table table;

static int setup(void **state)
{
        (void)state;
        struct error error;
        assert_int_equal(database_open(&db, ":memory:", true, &error), 0);
        schema_migrate(&db, 0);
        shard_table_init(&table, SHARDS);
        shard_table_create(&table, &db);
        assert_int_equal(db.failure, 0);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        assert_int_equal(db.failure, 0);
        shard_table_free(&table);
        database_close(&db);
        return 0;
}

static void put(uint32_t shard, enum lane lane, uint64_t number)
{
        struct query q = query(&db, STATEMENT_LOG_PUT_FREE);
        bind_number(&q, log_id(shard, lane_seq(lane, number)));
        bind_span(&q, SPAN_TEXT("task"));
        bind_null(&q);
        assert_int_equal(query_run(&q), 1);
}

static uint64_t give(uint32_t shard, enum lane lane)
{
        uint64_t number = log_give(&table, &db, shard_change(&table, &db, shard), lane);
        put(shard, lane, number);
        return number;
}

/* As another process finds it. */
static void reopen(void)
{
        shard_table_flush(&table, &db);
        shard_table_forget(&table);
}

static void a_row_id_says_lane_shard_and_number(void **state)
{
        (void)state;
        const uint64_t numbers[] = { 1, 1023, 1024, LANE_NUMBER_MAX, (UINT64_C(1) << 48) - 1 };
        for (unsigned lane = 0; lane < 8; lane++) {
                for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                        uint64_t seq = lane_seq((enum lane)lane, numbers[i]);
                        uint64_t id = log_id(4095, seq);
                        assert_int_equal(log_shard(id), 4095);
                        assert_int_equal(log_seq(id), seq);
                        assert_int_equal(log_seq(log_id(0, seq)), seq);
                }
        }
        assert_true(log_id(0, lane_seq(LANE_NORMAL, 1024)) < UINT64_C(1) << 32);
}

static void sql_makes_the_same_row_id(void **state)
{
        (void)state;
        static const uint64_t seqs[] = { 1, (UINT64_C(1) << 48) + 1023, (UINT64_C(1) << 48) + 1024,
                (UINT64_C(2) << 48) + 123456789, (UINT64_C(3) << 48) + 5 };
        sqlite3_stmt *statement = NULL;
        assert_int_equal(sqlite3_prepare_v2(db.handle, "SELECT " LOG_ID_SQL("?1", "?2"), -1, &statement, NULL), 0);
        for (size_t i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++) {
                (void)sqlite3_bind_int64(statement, 1, 77);
                (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)seqs[i]);
                assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
                assert_int_equal((uint64_t)sqlite3_column_int64(statement, 0), log_id(77, seqs[i]));
                (void)sqlite3_reset(statement);
        }
        (void)sqlite3_finalize(statement);
}

static void numbers_grow_also_over_segments_and_openings(void **state)
{
        (void)state;
        uint64_t last[SHARDS] = { 0 };
        unsigned seed = 1;
        for (unsigned i = 0; i < 5 * SEGMENT_TASKS; i++) {
                uint32_t shard = (uint32_t)rand_r(&seed) % SHARDS;
                uint64_t number = give(shard, LANE_NORMAL);
                assert_true(number > last[shard]);
                last[shard] = number;
                if (i % 700 == 0)
                        reopen();
        }
        /* About a thousand to a segment: a look into each must be worth it. */
        assert_in_range(number_segment(last[0]), 5, 6);
}

static void a_submit_that_does_not_fit_begins_a_segment(void **state)
{
        (void)state;
        log_expect(&table, &db, 1000);
        uint64_t first = number_segment(give(0, LANE_NORMAL));
        log_expect(&table, &db, 1000);
        assert_int_equal(number_segment(give(0, LANE_NORMAL)), first);
        for (unsigned i = 0; i < 100; i++)
                (void)give(0, LANE_NORMAL);
        log_expect(&table, &db, 1000);
        assert_int_equal(number_segment(give(0, LANE_NORMAL)), first + 1);
}

static void no_number_is_given_that_a_claim_has_passed(void **state)
{
        (void)state;
        (void)give(0, LANE_HIGH);
        uint64_t passed = log_before(&table, &db) + 5000;
        shard_change(&table, &db, 0)->taken[LANE_HIGH] = passed;
        assert_true(give(0, LANE_HIGH) > passed);
        /* And the log is there now, for all. */
        assert_true(give(1, LANE_NORMAL) + SEGMENT_TASKS > passed);
}

static void a_position_that_is_lost_is_found_again(void **state)
{
        (void)state;
        static const char *const damages[] = { "UPDATE meta SET value = -1 WHERE name = 'position'",
                "UPDATE meta SET value = 'x' WHERE name = 'position'", "DELETE FROM meta WHERE name = 'position'",
                "UPDATE meta SET value = 1 << 60 WHERE name = 'position'" };
        for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
                uint64_t before = 0;
                for (unsigned n = 0; n < 3 * SEGMENT_TASKS; n++)
                        before = give(n % SHARDS, LANE_LOW);
                reopen();
                database_exec(&db, damages[i]);
                assert_int_equal(number_segment(give(3, LANE_LOW)), number_segment(before) + 1);
        }
}

/* --- against a plain list ---------------------------------------------------------------------------------------- */

struct row {
        uint32_t shard;
        enum lane lane;
        uint64_t number;
        bool is_gone;
};

static void expect_as_listed(
        const struct row *rows, uint32_t shard, enum lane lane, uint64_t after, uint64_t last, uint32_t looks)
{
        struct log_scan scan = log_scan(&db, shard, lane, after, last);
        scan.looks = looks;
        for (unsigned i = 0; i < ROWS; i++) {
                const struct row *r = &rows[i];
                if (r->is_gone || r->shard != shard || r->lane != lane || r->number <= after || r->number > last)
                        continue;
                while (!log_scan_next(&scan)) {
                        assert_int_equal(scan.looks, 0);
                        assert_true(scan.number < r->number);
                        scan.looks = looks;
                }
                assert_int_equal(scan.number, r->number);
                assert_int_equal(column_number(&scan.row, 0), log_id(shard, lane_seq(lane, r->number)));
        }
        while (!log_scan_next(&scan) && scan.number < last)
                scan.looks = looks;
        assert_true(scan.number >= last || last <= after);
        log_scan_end(&scan);
}

static void a_shard_finds_its_own_in_order(void **state)
{
        (void)state;
        static struct row rows[ROWS];
        unsigned seed = (unsigned)time(NULL);
        print_message("seed %u\n", seed);
        for (unsigned i = 0; i < ROWS; i++) {
                struct row *r = &rows[i];
                /* One shard has hardly any, one lane is rare. */
                r->shard = rand_r(&seed) % 500 ? (uint32_t)rand_r(&seed) % (SHARDS - 1) : SHARDS - 1;
                r->lane = rand_r(&seed) % 50 ? LANE_NORMAL : (enum lane)(rand_r(&seed) % LANES);
                r->number = give(r->shard, r->lane);
                r->is_gone = false;
                if (rand_r(&seed) % 100 == 0)
                        log_expect(&table, &db, (uint32_t)rand_r(&seed) % 1000);
        }
        for (unsigned i = 0; i < ROWS; i++) {
                /* Some segments are empty by now. */
                if (rand_r(&seed) % 3 && (rows[i].number >> 11) % 2)
                        continue;
                struct query q = query(&db, STATEMENT_LOG_REMOVE);
                bind_number(&q, log_id(rows[i].shard, lane_seq(rows[i].lane, rows[i].number)));
                assert_int_equal(query_run(&q), 1);
                rows[i].is_gone = true;
        }
        uint64_t end = log_before(&table, &db) + SEGMENT_TASKS;
        for (unsigned i = 0; i < 200; i++) {
                uint32_t shard = (uint32_t)rand_r(&seed) % SHARDS;
                enum lane lane = (enum lane)(rand_r(&seed) % LANES);
                uint64_t after = (uint64_t)rand_r(&seed) % end;
                uint64_t last = (uint64_t)rand_r(&seed) % end;
                expect_as_listed(rows, shard, lane, 0, end, LOG_ANY_LOOKS);
                expect_as_listed(rows, shard, lane, after, last, LOG_ANY_LOOKS);
                expect_as_listed(rows, shard, lane, after, last, 1);
                expect_as_listed(rows, shard, lane, 0, LANE_NUMBER_MAX, 3);
        }
}

/* How often the log was looked into since the last time. */
static int looks(void)
{
        static const enum statement statements[] = { STATEMENT_LOG_FROM, STATEMENT_LOG_SEGMENTS, STATEMENT_LOG_UP_TO };
        int sum = 0;
        for (unsigned i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
                if (db.statements[statements[i]])
                        sum += sqlite3_stmt_status(db.statements[statements[i]], SQLITE_STMTSTATUS_RUN, 1);
        return sum;
}

/* Others have tasks in each of many segments; ours are in the first and in one of the last. */
static void a_backlog_of_others_is_not_gone_through(void **state)
{
        (void)state;
        const uint64_t segments = 3000, end = segments - 2;
        static const uint64_t none[LANES];
        uint64_t last[LANES] = { 0 }, seqs[4];
        put(3, LANE_NORMAL, 5 << PLACE_BITS);
        for (uint64_t segment = 5; segment < segments; segment++) {
                put(1, LANE_NORMAL, segment << PLACE_BITS);
                put(5, LANE_NORMAL, segment << PLACE_BITS | 1);
        }
        put(3, LANE_NORMAL, end << PLACE_BITS | 7);
        put(3, LANE_NORMAL, end << PLACE_BITS | 8);
        last[LANE_NORMAL] = segments << PLACE_BITS;
        (void)looks();
        assert_int_equal(log_both_ways(&db, 3, none, last, LOG_ANY_LOOKS, seqs, 3), 3);
        assert_int_equal(seq_number(seqs[0]), 5 << PLACE_BITS);
        assert_int_equal(seq_number(seqs[1]), end << PLACE_BITS | 7);
        assert_int_equal(seq_number(seqs[2]), end << PLACE_BITS | 8);
        assert_in_range(looks(), 1, 16);
        /* One more than there are: as far as it may look. */
        assert_int_equal(log_both_ways(&db, 3, none, last, 10, seqs, 4), 3);
        assert_in_range(looks(), 1, 20);
        assert_int_equal(log_both_ways(&db, 3, none, last, LOG_ANY_LOOKS, seqs, 4), 3);
        assert_in_range(looks(), segments / 2, 3 * segments);
}

/* With many shards, each has a task in one segment of several, and there are segments in which nothing is left. */
static void many_segments_are_looked_into_at_once(void **state)
{
        (void)state;
        uint64_t numbers[200];
        unsigned count = 0;
        for (uint64_t segment = 1; segment < 400; segment++) {
                put(1, LANE_NORMAL, segment << PLACE_BITS);
                put(6, LANE_NORMAL, segment << PLACE_BITS);
                if (segment % 4 == 0)
                        numbers[count++] = segment << PLACE_BITS | 3;
        }
        numbers[count++] = UINT64_C(1000000) << PLACE_BITS;
        numbers[count++] = UINT64_C(1000000) << PLACE_BITS | 1;
        numbers[count++] = UINT64_C(2000000) << PLACE_BITS | LOG_PLACE_MASK;
        for (unsigned i = 0; i < count; i++)
                put(3, LANE_NORMAL, numbers[i]);
        (void)looks();
        struct log_scan scan = log_scan(&db, 3, LANE_NORMAL, 0, LANE_NUMBER_MAX);
        scan.looks = 1000;
        for (unsigned i = 0; i < count; i++) {
                assert_true(log_scan_next(&scan));
                assert_int_equal(scan.number, numbers[i]);
        }
        assert_false(log_scan_next(&scan));
        assert_int_equal(scan.number, LANE_NUMBER_MAX);
        assert_in_range(looks(), 1, 25);
        log_scan_end(&scan);
}

static void both_ways_find_what_one_way_finds(void **state)
{
        (void)state;
        unsigned seed = (unsigned)time(NULL);
        print_message("seed %u\n", seed);
        for (unsigned i = 0; i < 3000; i++)
                (void)give((uint32_t)rand_r(&seed) % SHARDS, (enum lane)(rand_r(&seed) % LANES));
        for (unsigned round = 0; round < 200; round++) {
                static uint64_t seqs[3000];
                uint32_t shard = (uint32_t)rand_r(&seed) % SHARDS, expected = 0;
                uint64_t after[LANES], last[LANES];
                for (unsigned lane = 0; lane < LANES; lane++) {
                        after[lane] = (uint64_t)rand_r(&seed) % (5 * SEGMENT_TASKS);
                        last[lane] = (uint64_t)rand_r(&seed) % (5 * SEGMENT_TASKS);
                }
                uint32_t count = log_both_ways(&db, shard, after, last, LOG_ANY_LOOKS, seqs, 3000);
                for (unsigned lane = 0; lane < LANES; lane++) {
                        struct log_scan scan = log_scan(&db, shard, (enum lane)lane, after[lane], last[lane]);
                        while (log_scan_next(&scan)) {
                                assert_true(expected < count);
                                assert_int_equal(seqs[expected++], lane_seq((enum lane)lane, scan.number));
                        }
                        log_scan_end(&scan);
                }
                assert_int_equal(count, expected);
        }
}

/* --- removing --- */

static bool is_there(uint32_t shard, uint64_t seq)
{
        struct query q = query(&db, STATEMENT_LOG_GET);
        bind_number(&q, log_id(shard, seq));
        bool is_so = query_row(&q);
        query_end(&q);
        return is_so;
}

/* Some were removed before by somebody else; one call has each of its tasks once. */
static void tasks_that_ended_are_removed_and_no_others(void **state)
{
        (void)state;
        static struct row rows[ROWS];
        static const uint32_t widths[] = { SHARDS, 64, 1024, 4096 };
        unsigned seed = (unsigned)time(NULL);
        struct log_removals removals = { 0 };
        print_message("seed %u\n", seed);
        for (unsigned i = 0; i < ROWS; i++) {
                struct row *r = &rows[i];
                r->shard = (uint32_t)rand_r(&seed) % SHARDS;
                r->lane = rand_r(&seed) % 50 ? LANE_NORMAL : (enum lane)(rand_r(&seed) % LANES);
                r->number = give(r->shard, r->lane);
                r->is_gone = false;
                shard_change(&table, &db, r->shard)->in_flight++;
        }
        for (unsigned round = 0; round < 40; round++) {
                struct store_advance advances[SHARDS] = { 0 };
                uint64_t removed[SHARDS] = { 0 }, gone[SHARDS] = { 0 }, in_flight[SHARDS], done[SHARDS];
                /* From one stretch of the log few, from another nearly all. */
                unsigned from = (unsigned)rand_r(&seed) % ROWS, part = 1 + (unsigned)rand_r(&seed) % 5;
                for (uint32_t shard = 0; shard < SHARDS; shard++) {
                        in_flight[shard] = table.rows[shard].in_flight;
                        done[shard] = table.rows[shard].done;
                }
                for (unsigned i = from; i < ROWS && i < from + 700; i++) {
                        struct row *r = &rows[i];
                        if ((unsigned)rand_r(&seed) % part)
                                continue;
                        log_removals_add(
                                &removals, &table.rows[r->shard], lane_seq(r->lane, r->number), &advances[r->shard]);
                        gone[r->shard] += r->is_gone;
                        removed[r->shard] += !r->is_gone;
                        r->is_gone = true;
                }
                log_removals_flush(&removals, &db, widths[round % 4]);
                for (unsigned i = 0; i < ROWS; i++)
                        assert_int_equal(
                                is_there(rows[i].shard, lane_seq(rows[i].lane, rows[i].number)), !rows[i].is_gone);
                for (uint32_t shard = 0; shard < SHARDS; shard++) {
                        assert_int_equal(advances[shard].gone, gone[shard]);
                        assert_int_equal(table.rows[shard].in_flight, in_flight[shard] - removed[shard]);
                        assert_int_equal(table.rows[shard].done, done[shard] + removed[shard]);
                }
        }
        log_removals_free(&removals);
}

static void a_task_that_is_listed_twice_takes_no_other_with_it(void **state)
{
        (void)state;
        struct log_removals removals = { 0 };
        struct store_advance advance = { 0 };
        const uint64_t first = lane_seq(LANE_NORMAL, 5 << PLACE_BITS), listed[] = { first, first, first + 2 };
        for (unsigned i = 0; i < 3; i++)
                put(2, LANE_NORMAL, (5 << PLACE_BITS) + i);
        struct sqlite_shard_row *shard = shard_change(&table, &db, 2);
        shard->in_flight = 3;
        for (unsigned i = 0; i < 3; i++)
                log_removals_add(&removals, shard, listed[i], &advance);
        log_removals_flush(&removals, &db, SHARDS);
        assert_int_equal(advance.gone, 1);
        assert_int_equal(shard->in_flight, 1);
        assert_true(is_there(2, first + 1));
        assert_false(is_there(2, first));
        assert_false(is_there(2, first + 2));
        log_removals_free(&removals);
}

/* As many statements as there are rows would cost a thousand shards more than all else that a call does. */
static void neighbours_of_many_shards_are_removed_at_once(void **state)
{
        (void)state;
        struct log_removals removals = { 0 };
        struct store_advance advance = { 0 };
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                put(shard, LANE_NORMAL, 5 << PLACE_BITS);
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                if (shard != 3)
                        log_removals_add(&removals, shard_change(&table, &db, shard),
                                lane_seq(LANE_NORMAL, 5 << PLACE_BITS), &advance);
        log_removals_flush(&removals, &db, 1024);
        assert_int_equal(advance.gone, 0);
        assert_int_equal(sqlite3_stmt_status(db.statements[STATEMENT_LOG_REMOVE_LISTED], SQLITE_STMTSTATUS_RUN, 1), 1);
        assert_true(is_there(3, lane_seq(LANE_NORMAL, 5 << PLACE_BITS)));
        assert_false(is_there(2, lane_seq(LANE_NORMAL, 5 << PLACE_BITS)));
        log_removals_free(&removals);
}

int main(void)
{
#define IN_FILE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        const struct CMUnitTest tests[] = {
                IN_FILE(a_row_id_says_lane_shard_and_number),
                IN_FILE(sql_makes_the_same_row_id),
                IN_FILE(numbers_grow_also_over_segments_and_openings),
                IN_FILE(a_submit_that_does_not_fit_begins_a_segment),
                IN_FILE(no_number_is_given_that_a_claim_has_passed),
                IN_FILE(a_position_that_is_lost_is_found_again),
                IN_FILE(a_shard_finds_its_own_in_order),
                IN_FILE(a_backlog_of_others_is_not_gone_through),
                IN_FILE(many_segments_are_looked_into_at_once),
                IN_FILE(both_ways_find_what_one_way_finds),
                IN_FILE(tasks_that_ended_are_removed_and_no_others),
                IN_FILE(a_task_that_is_listed_twice_takes_no_other_with_it),
                IN_FILE(neighbours_of_many_shards_are_removed_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
