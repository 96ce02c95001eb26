/* Counts a shard's tasks one by one and compares the counts with its row. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

#define REPORT_LINES 64u

struct sqlite_check {
        struct sqlite_store *s;
        const struct sqlite_shard_row *shard;
        struct buffer report;
        uint32_t problems;
        uint64_t tasks;
};

__attribute__((format(printf, 2, 3))) static void problem(struct sqlite_check *c, const char *format, ...)
{
        char line[256];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        if (c->problems++ < REPORT_LINES)
                buffer_printf(&c->report, "shard %" PRIu32 ": %s\n", c->shard->shard, line);
}

/* Reads one number with a statement that is used only here. */
static uint64_t number_of(struct sqlite_check *c, const char *sql, uint64_t first, uint64_t last)
{
        sqlite3_stmt *statement = NULL;
        uint64_t value = 0;
        int code = sqlite3_prepare_v2(c->s->db.handle, sql, -1, &statement, NULL);
        if (code == SQLITE_OK) {
                (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)first);
                (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)last);
                code = sqlite3_step(statement);
        }
        if (code == SQLITE_ROW)
                value = (uint64_t)sqlite3_column_int64(statement, 0);
        else
                database_fail(&c->s->db, code);
        (void)sqlite3_finalize(statement);
        return value;
}

static uint64_t in_shard(struct sqlite_check *c, const char *sql)
{
        return number_of(c, sql, shard_id(c->shard->shard, 0), shard_id(c->shard->shard + 1, 0));
}

static void compare(struct sqlite_check *c, const char *what, uint64_t counted, uint64_t recorded)
{
        if (counted != recorded)
                problem(c, "%s: %" PRIu64 " counted, %" PRIu64 " recorded", what, counted, recorded);
}

/* Counts rows that no claim will ever meet. */
static uint64_t count_strays(struct sqlite_check *c)
{
        uint64_t ranges[STRAY_RANGES][2];
        uint64_t count = 0;
        log_stray_ranges(&c->s->shards, &c->s->db, ranges);
        for (unsigned i = 0; i < STRAY_RANGES; i++) {
                struct query q = query(&c->s->db, STATEMENT_LOG_STRAYS_COUNT);
                bind_number(&q, ranges[i][0]);
                bind_number(&q, ranges[i][1]);
                bind_number(&q, c->shard->shard);
                if (query_row(&q))
                        count += column_number(&q, 0);
                query_end(&q);
        }
        return count;
}

static void check_log(struct sqlite_check *c)
{
        struct database *db = &c->s->db;
        const struct sqlite_shard_row *shard = c->shard;
        uint64_t before = log_before(&c->s->shards, db);
        uint64_t in_flight = 0;
        for (unsigned i = 0; i < LANES; i++) {
                enum lane lane = (enum lane)i;
                uint64_t queued = log_count(db, shard->shard, lane, shard->taken[lane], before + SEGMENT_TASKS);
                in_flight += log_count(db, shard->shard, lane, 0, shard->taken[lane]);
                c->tasks += queued;
                compare(c, lane_name(lane), queued, shard->queued[lane]);
                if (shard->taken[lane] > max_u64(shard->tail[lane], before))
                        problem(c, "lane %s: taken %" PRIu64 " is beyond %" PRIu64 ", where the log is",
                                lane_name(lane), shard->taken[lane], before);
        }
        c->tasks += in_flight;
        compare(c, "in flight", in_flight, shard->in_flight);
        uint64_t strays = count_strays(c);
        if (strays)
                problem(c, "%" PRIu64 " rows of the log under numbers that were never given", strays);
}

/* Checks the same ranges as schedules.c. */
static void check_schedules(struct sqlite_check *c)
{
        uint64_t wrong = number_of(c,
                "SELECT count(*) FROM schedule WHERE shard = ?1 AND ?2 = ?2 AND (state NOT IN (0, 1, 2) OR version < 1 "
                "OR "
                "version > 9007199254740991 OR ifnull(next, 0) NOT BETWEEN 0 AND 9007199254740991 OR last NOT BETWEEN "
                "0 "
                "AND 9007199254740991 OR last_seq NOT BETWEEN 0 AND 844424930131967 OR fired NOT BETWEEN 0 AND "
                "9007199254740991 OR skipped NOT BETWEEN 0 AND 9007199254740991 OR length(definition) > 4096)",
                c->shard->shard, 0);
        if (wrong)
                problem(c, "%" PRIu64 " schedules cannot be read; delete them from the table schedule", wrong);
}

static void check_side(struct sqlite_check *c)
{
        uint64_t parked = in_shard(c, "SELECT count(*) FROM side WHERE key > ?1 AND key <= ?2");
        c->tasks += parked;
        compare(c, "parked", parked, c->shard->parked);
        compare(c, "parked in the lane high",
                in_shard(c, "SELECT count(*) FROM side WHERE key > ?1 AND key <= ?2 AND seq >> 48 = 0"),
                c->shard->parked_high);
        compare(c, "parked in the lane low",
                in_shard(c, "SELECT count(*) FROM side WHERE key > ?1 AND key <= ?2 AND seq >> 48 = 2"),
                c->shard->parked_low);
        compare(c, "keys", in_shard(c, "SELECT count(*) FROM key WHERE id > ?1 AND id <= ?2"), c->shard->keys);
        compare(c, "keys of this shard",
                number_of(c, "SELECT count(*) FROM key WHERE shard = ?1 AND ?2 = ?2", c->shard->shard, 0),
                c->shard->keys);
        uint64_t orphans = in_shard(c, "SELECT count(*) FROM side WHERE key > ?1 AND key <= ?2 AND NOT EXISTS "
                                       "(SELECT 1 FROM key WHERE key.id = side.key)");
        if (orphans)
                problem(c, "%" PRIu64 " tasks in side queues of no key", orphans);
        uint64_t wrong = in_shard(c, "SELECT count(*) FROM key WHERE id > ?1 AND id <= ?2 AND tasks != "
                                     "(SELECT count(*) FROM side WHERE side.key = key.id)");
        if (wrong)
                problem(c, "%" PRIu64 " keys count their tasks wrongly", wrong);
        uint64_t idle =
                in_shard(c, "SELECT count(*) FROM key WHERE id > ?1 AND id <= ?2 AND ((state != 3 AND tasks = 0) "
                            "OR (state NOT IN (3, 4) AND due IS NULL) OR (state IN (3, 4) AND due IS NOT NULL))");
        if (idle)
                problem(c, "%" PRIu64 " keys wait for nothing", idle);
        uint64_t nameless = in_shard(
                c, "SELECT count(*) FROM key WHERE id > ?1 AND id <= ?2 AND (state = 4) != (name IS NOT NULL)");
        if (nameless)
                problem(c, "%" PRIu64 " keys wait for a name that there is none of", nameless);
        uint64_t twice = in_shard(c, "SELECT count(*) FROM side JOIN log ON log.id = " LOG_ID_SQL(
                                             "side.key >> 50", "side.seq") " WHERE side.key > ?1 AND side.key <= ?2");
        if (twice)
                problem(c, "%" PRIu64 " tasks both in a log and in a side queue", twice);
}

static void check_rest(struct sqlite_check *c)
{
        const struct sqlite_shard_row *shard = c->shard;
        uint64_t delayed = in_shard(c, "SELECT count(*) FROM delayed WHERE id > ?1 AND id <= ?2");
        uint64_t dead = in_shard(c, "SELECT count(*) FROM dead WHERE id > ?1 AND id <= ?2");
        c->tasks += delayed + dead;
        compare(c, "delayed", delayed, shard->delayed);
        compare(c, "dead", dead, shard->dead);
        compare(c, "dead by group",
                number_of(c, "SELECT ifnull(sum(tasks), 0) FROM dead_group WHERE shard = ?1 AND ?2 = ?2", shard->shard,
                        0),
                shard->dead);
        compare(c, "results", in_shard(c, "SELECT count(*) FROM result WHERE id > ?1 AND id <= ?2"), shard->results);
        compare(c, "controls",
                in_shard(c, "SELECT count(*) FROM control WHERE id > ?1 AND id <= ?2 AND ifnull(call, 0) = 0"),
                shard->controls);
        compare(c, "returned controls",
                in_shard(c, "SELECT count(*) FROM control WHERE id > ?1 AND id <= ?2 AND call > 0"), shard->returned);
        compare(c, "submitted", c->tasks + shard->done + shard->dropped + shard->merged, shard->submitted);
}

static void check_idempotency(struct sqlite_check *c)
{
        uint32_t shard = c->shard->shard;
        uint64_t kept = number_of(c, "SELECT count(*) FROM idempotency WHERE shard = ?1 AND ?2 = ?2", shard, 0);
        compare(c, "idempotency keys", kept,
                number_of(c, "SELECT ifnull(max(count), 0) FROM idempotency_count WHERE shard = ?1 AND ?2 = ?2", shard,
                        0));
        uint64_t wrong = number_of(c,
                "SELECT count(*) FROM idempotency WHERE shard = ?1 AND " IDEMPOTENCY_IS_WRONG " AND ?2 = ?2", shard, 0);
        if (wrong)
                problem(c, "%" PRIu64 " idempotency keys of which nothing can be read", wrong);
}

static void check_merged(struct sqlite_check *c)
{
        uint64_t first = shard_id(c->shard->shard, 0);
        uint64_t last = shard_id(c->shard->shard + 1, 0) - 1;
        uint64_t wrong = number_of(c,
                "SELECT count(*) FROM merged WHERE id > ?1 AND id <= ?2 AND (typeof(at) != 'integer' OR at < 0 OR "
                "length(task_id) > 64 OR length(into_id) > 64 OR into_id NOT LIKE '%-' || (?1 >> 50))",
                first, last);
        if (wrong)
                problem(c, "%" PRIu64 " records of merged tasks say nothing", wrong);
        uint64_t beyond =
                number_of(c, "SELECT count(*) FROM merged WHERE id > ?1 AND id <= ?2", first + c->shard->merged, last);
        if (beyond)
                problem(c, "%" PRIu64 " records of merged tasks beyond the last", beyond);
}

/* Mailboxes belong to no shard; the first one answers for them. */
static void check_mail(struct sqlite_check *c)
{
        if (c->shard->shard)
                return;
        uint64_t wrong =
                number_of(c, "SELECT count(*) FROM mailbox WHERE ?1 = ?1 AND ?2 = ?2 AND " MAILBOX_IS_WRONG, 0, 0);
        if (wrong)
                problem(c, "%" PRIu64 " mailboxes count their messages wrongly", wrong);
        uint64_t lost = number_of(c,
                "SELECT count(*) FROM mail WHERE ?1 = ?1 AND ?2 = ?2 AND nonce NOT IN (SELECT nonce FROM mailbox)", 0,
                0);
        if (lost)
                problem(c, "%" PRIu64 " messages in no mailbox", lost);
}

static void check_rooms(struct sqlite_check *c)
{
        uint32_t shard = c->shard->shard;
        uint64_t wrong =
                number_of(c, "SELECT count(*) FROM room WHERE shard = ?1 AND ?2 = ?2 AND " ROOM_IS_WRONG, shard, 0);
        if (wrong)
                problem(c, "%" PRIu64 " rooms count their entries wrongly", wrong);
        if (shard)
                return;
        uint64_t lost = number_of(c,
                "SELECT count(*) FROM room_entry WHERE ?1 = ?1 AND ?2 = ?2 AND room NOT IN (SELECT id FROM room)", 0,
                0);
        if (lost)
                problem(c, "%" PRIu64 " entries in no room", lost);
}

static void check_shard(struct sqlite_check *c)
{
        check_rooms(c);
        check_mail(c);
        check_idempotency(c);
        check_merged(c);
        check_log(c);
        check_side(c);
        check_schedules(c);
        check_rest(c);
}

void sqlite_fsck(struct sqlite_store *s, struct store_request *request)
{
        struct store_fsck *fsck = (struct store_fsck *)request;
        struct sqlite_check c = { .s = s };
        struct sqlite_check after = { .s = s };
        if (shard_is_bad(&s->shards, &s->db, fsck->shard)) {
                const struct sqlite_shard_row *bad = &s->shards.rows[fsck->shard];
                c.shard = bad;
                problem(&c, "its %s is out of range", bad->bad_number);
        } else if (fsck->is_repair && !shard_may_repair(s, request, fsck->shard)) {
                return;
        } else {
                c.shard = shard_read(s, fsck->shard);
                check_shard(&c);
        }
        fsck->tasks = c.tasks;
        fsck->problems = c.problems;
        fsck->mended = 0;
        if (fsck->is_repair && c.problems) {
                shard_repair(s, request, fsck->shard);
                after.shard = shard_read(s, fsck->shard);
                check_shard(&after);
                fsck->tasks = after.tasks;
                fsck->mended = c.problems > after.problems ? c.problems - after.problems : 0;
                buffer_printf(&c.report, "shard %" PRIu32 ": counted anew; %" PRIu32 " problems are left\n",
                        fsck->shard, after.problems);
                buffer_put(&c.report, after.report.data, after.report.size);
        }
        fsck->report = arena_copy(request_arena(request), (struct span){ (const char *)c.report.data, c.report.size });
        buffer_free(&c.report);
        buffer_free(&after.report);
}
