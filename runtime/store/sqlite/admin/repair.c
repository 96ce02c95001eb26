/* Repairs a shard while no host works on it: its row is computed again from the tables, and rows that no host can run
 * become dead.  No task is lost. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "store/sqlite/sqlite.h"

#define SHARD_MASK "1125899906842623" /* 2^50 - 1 */

/* Runs a statement on a shard: ?1 its number, ?2 and ?3 the range of its ids, ?4 the time. */
static void mend(struct sqlite_store *s, uint32_t shard, const char *sql)
{
        sqlite3_stmt *statement = NULL;
        if (s->db.failure)
                return;
        int code = sqlite3_prepare_v2(s->db.handle, sql, -1, &statement, NULL);
        if (code == SQLITE_OK) {
                const uint64_t values[] = { shard, shard_id(shard, 0), shard_id(shard + 1, 0), s->now_ms };
                for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
                        (void)sqlite3_bind_int64(statement, i + 1, (sqlite3_int64)values[i]);
                code = sqlite3_step(statement);
        }
        if (code != SQLITE_DONE)
                database_fail(&s->db, code);
        (void)sqlite3_finalize(statement);
}

/* Repairs a lane's last given and last claimed number.  Every number up to `before` counts as given, so that everything
 * in the log is found and no number is given again.  If it is unknown how far claims had come, all of it counts as
 * claimed: the next owner gets it back, in order. */
static void mend_lane(struct sqlite_store *s, uint32_t shard, const char *name, uint64_t before)
{
        char sql[256];
        (void)snprintf(sql, sizeof(sql), "UPDATE shard SET %s_tail = %" PRIu64 " WHERE shard = ?1", name, before);
        mend(s, shard, sql);
        (void)snprintf(sql, sizeof(sql),
                "UPDATE shard SET %s_taken = %s_tail WHERE shard = ?1 AND %s_taken NOT BETWEEN 0 AND %s_tail", name,
                name, name, name);
        mend(s, shard, sql);
}

static void mend_last(struct sqlite_store *s, uint32_t shard, const char *column, const char *table)
{
        char sql[512];
        (void)snprintf(sql, sizeof(sql),
                "UPDATE shard SET %s = (SELECT ifnull(max(id & " SHARD_MASK "), 0) FROM %s WHERE id > ?2 AND id < ?3"
                " AND (id & " SHARD_MASK ") <= %" PRIu64 ") WHERE shard = ?1 AND %s NOT BETWEEN 0 AND %" PRIu64,
                column, table, SHARD_NUMBER_MAX, column, SHARD_NUMBER_MAX);
        mend(s, shard, sql);
}

/* Repairs the row so far that it can be read at all. */
static void mend_row(struct sqlite_store *s, uint32_t shard)
{
        log_begin(&s->shards, &s->db);
        if (tally_is_bad(&s->shards, &s->db, shard))
                tally_clear(&s->shards, &s->db, shard);
        shard_table_flush(&s->shards, &s->db);
        uint64_t before = log_before(&s->shards, &s->db);
        for (unsigned lane = 0; lane < LANES; lane++)
                mend_lane(s, shard, lane_name((enum lane)lane), before);
        mend_last(s, shard, "last_delayed", "delayed");
        mend_last(s, shard, "last_dead", "dead");
        mend_last(s, shard, "last_result", "result");
        mend_last(s, shard, "last_control", "control");
        mend_last(s, shard, "last_key", "key");
        mend_last(s, shard, "merged", "merged");
        /* A call that is still on its way must not match. */
        mend(s, shard,
                "UPDATE shard SET call = ?4, last = NULL WHERE shard = ?1 AND call NOT BETWEEN 0 AND 9007199254740991");
        mend(s, shard,
                "UPDATE shard SET epoch = 0, held = 0 WHERE shard = ?1 AND epoch NOT BETWEEN 0 AND 9007199254740991");
        shard_table_forget(&s->shards);
}

static void mend_idempotency(struct sqlite_store *s, uint32_t number)
{
        mend(s, number, "DELETE FROM idempotency WHERE shard = ?1 AND " IDEMPOTENCY_IS_WRONG);
        mend(s, number,
                "INSERT OR REPLACE INTO idempotency_count(shard, count) SELECT ?1, count(*) FROM idempotency WHERE "
                "shard = ?1");
}

/* Counts mailboxes again; messages without a mailbox are removed, as they would have been in time. */
static void mend_mail(struct sqlite_store *s, uint32_t number)
{
        if (number)
                return;
        mend(s, number, "DELETE FROM mail WHERE nonce NOT IN (SELECT nonce FROM mailbox)");
        mend(s, number, "DELETE FROM mail WHERE number NOT BETWEEN 1 AND 9007199254740990");
        mend(s, number,
                "UPDATE mailbox SET messages = (SELECT count(*) FROM mail WHERE mail.nonce = mailbox.nonce), bytes = "
                "(SELECT ifnull(sum(length(mail.bytes)), 0) FROM mail WHERE mail.nonce = mailbox.nonce), last = "
                "max((SELECT ifnull(max(number), 0) FROM mail WHERE mail.nonce = mailbox.nonce), CASE WHEN last "
                "BETWEEN 1 AND 9007199254740990 THEN last ELSE 0 END) WHERE " MAILBOX_IS_WRONG);
}

/* Counts rooms again; invalid limits become the defaults. */
static void mend_rooms(struct sqlite_store *s, uint32_t number)
{
        mend(s, number, "DELETE FROM room_entry WHERE ?1 = 0 AND room NOT IN (SELECT id FROM room)");
        mend(s, number,
                "DELETE FROM room_entry WHERE room IN (SELECT id FROM room WHERE shard = ?1) AND number NOT BETWEEN 1 "
                "AND 9007199254740000");
        mend(s, number,
                "UPDATE room SET entries = (SELECT count(*) FROM room_entry WHERE room = room.id), bytes = (SELECT "
                "ifnull(sum(length(room_entry.bytes)), 0) FROM room_entry WHERE room = room.id), last = max((SELECT "
                "ifnull(max(number), 0) FROM room_entry WHERE room = room.id), CASE WHEN last BETWEEN 0 AND "
                "9007199254740000 THEN last ELSE 0 END), entries_max = CASE WHEN entries_max BETWEEN 1 AND 10000000 "
                "THEN entries_max ELSE 10000 END, bytes_max = CASE WHEN bytes_max BETWEEN 1 AND 68719476736 THEN "
                "bytes_max ELSE 67108864 END, age = CASE WHEN age BETWEEN 1 AND 4503599627370495 THEN age ELSE "
                "604800000 END WHERE shard = ?1 AND " ROOM_IS_WRONG);
}

static void mend_counts(struct sqlite_store *s, uint32_t number)
{
        struct sqlite_shard_row *shard = shard_write(s, number);
        shard->in_flight = 0;
        for (unsigned i = 0; i < LANES; i++) {
                enum lane lane = (enum lane)i;
                shard->queued[lane] = log_count(&s->db, number, lane, shard->taken[lane], shard->tail[lane]);
                shard->in_flight += log_count(&s->db, number, lane, 0, shard->taken[lane]);
        }
        shard_table_flush(&s->shards, &s->db);
        mend(s, number,
                "UPDATE key SET tasks = (SELECT count(*) FROM side WHERE side.key = key.id), state = CASE WHEN state "
                "IN (1, 2, 3) OR (state = 4 AND name IS NOT NULL) THEN state ELSE 2 END "
                "WHERE id > ?2 AND id <= ?3 AND ?1 = ?1");
        mend(s, number,
                "UPDATE key SET due = CASE WHEN state IN (3, 4) THEN NULL ELSE ifnull(due, ?4) END, "
                "name = CASE state WHEN 4 THEN name END WHERE id > ?2 AND id <= ?3 AND ?1 = ?1");
        mend(s, number, "DELETE FROM key WHERE id > ?2 AND id <= ?3 AND tasks = 0 AND state != 3 AND ?1 = ?1");
        mend(s, number,
                "UPDATE shard SET delayed = (SELECT count(*) FROM delayed WHERE id > ?2 AND id <= ?3),"
                " dead = (SELECT count(*) FROM dead WHERE id > ?2 AND id <= ?3),"
                " results = (SELECT count(*) FROM result WHERE id > ?2 AND id <= ?3),"
                " parked = (SELECT count(*) FROM side WHERE key > ?2 AND key <= ?3),"
                " parked_high = (SELECT count(*) FROM side WHERE key > ?2 AND key <= ?3 AND seq >> 48 = 0),"
                " parked_low = (SELECT count(*) FROM side WHERE key > ?2 AND key <= ?3 AND seq >> 48 = 2),"
                " keys = (SELECT count(*) FROM key WHERE id > ?2 AND id <= ?3),"
                " controls = (SELECT count(*) FROM control WHERE id > ?2 AND id <= ?3 AND ifnull(call, 0) = 0),"
                " returned = (SELECT count(*) FROM control WHERE id > ?2 AND id <= ?3 AND call > 0) WHERE shard = ?1");
        mend(s, number, "DELETE FROM dead_group WHERE shard = ?1");
        mend(s, number,
                "INSERT INTO dead_group SELECT ?1, handler, reason, error, count(*) FROM dead WHERE id > ?2 AND id <= "
                "?3 GROUP BY 2, 3, 4");
        mend(s, number,
                "UPDATE shard SET done = max(done, 0), dropped = max(dropped, 0), merged = max(merged, 0) WHERE shard "
                "= ?1");
        mend(s, number,
                "UPDATE shard SET submitted = high_queued + normal_queued + low_queued + in_flight + delayed + parked "
                "+ dead"
                " + done + dropped + merged WHERE shard = ?1");
        shard_table_forget(&s->shards);
}

/* Records of merged tasks are only hints: removes unreadable ones. */
static void mend_merged(struct sqlite_store *s, uint32_t number)
{
        mend(s, number,
                "DELETE FROM merged WHERE id > ?2 AND id <= ?3 AND (typeof(at) != 'integer' OR at < 0 OR "
                "length(task_id) > 64 OR length(into_id) > 64 OR into_id NOT LIKE '%-' || ?1 OR "
                "id > ?2 + (SELECT merged FROM shard WHERE shard = ?1))");
}

bool shard_may_repair(struct sqlite_store *s, struct store_request *request, uint32_t number)
{
        if (!lease_left_ms(s, shard_read(s, number)))
                return true;
        operation_refuse(
                request, -EAGAIN, "fsck: a host works on shard %" PRIu32 "; stop all hosts of the app first", number);
        return false;
}

void shard_repair(struct sqlite_store *s, struct store_request *request, uint32_t number)
{
        mend_row(s, number);
        strays_bury(s, shard_write(s, number), request_arena(request));
        mend_counts(s, number);
        mend_idempotency(s, number);
        mend_merged(s, number);
        mend_mail(s, number);
        mend_rooms(s, number);
}
