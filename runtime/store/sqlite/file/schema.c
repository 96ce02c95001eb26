#include "store/sqlite/file/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "store/sqlite/shard/log.h"

#define APPLICATION_ID 0x51765231 /* "QvR1" */

#define NUMBER_COLUMN(field, column) #column " INTEGER NOT NULL DEFAULT 0, "

/* The log in order of arrival (log.h).  Numbers stay what they were. */
#define LOG_BY_SEGMENT                                                                                                 \
        "ALTER TABLE log RENAME TO log_by_shard;"                                                                      \
        "CREATE TABLE log(id INTEGER PRIMARY KEY, task BLOB NOT NULL, note BLOB);"                                     \
        "INSERT INTO log SELECT " LOG_ID_SQL("id >> 50", "id & 1125899906842623") ", task, note FROM log_by_shard;"    \
                                                                                  "DROP TABLE log_by_shard;"

/* Step i brings a file from version i to i + 1.  A step that was released is never changed; a new one is added. */
static const char *const steps[] = {
        "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
        "CREATE TABLE shard(shard INTEGER PRIMARY KEY, " SHARD_FIRST_NUMBERS(
                NUMBER_COLUMN) "holder BLOB, want_nonce BLOB, last BLOB);"
                               "CREATE TABLE log(id INTEGER PRIMARY KEY, task BLOB NOT NULL, note BLOB);"
                               "CREATE TABLE key(id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, key BLOB NOT NULL,"
                               " state INTEGER NOT NULL, due INTEGER, since INTEGER NOT NULL, tasks INTEGER NOT NULL, "
                               "reason BLOB);"
                               "CREATE UNIQUE INDEX key_name ON key(shard, key);"
                               "CREATE INDEX key_due ON key(shard, due, key) WHERE due IS NOT NULL;"
                               "CREATE TABLE side(key INTEGER NOT NULL, seq INTEGER NOT NULL, task BLOB NOT NULL, note "
                               "BLOB,"
                               " PRIMARY KEY(key, seq)) WITHOUT ROWID;"
                               "CREATE TABLE delayed(id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, due INTEGER NOT "
                               "NULL, lane INTEGER NOT NULL,"
                               " task BLOB NOT NULL, note BLOB);"
                               "CREATE INDEX delayed_due ON delayed(shard, due);"
                               "CREATE TABLE dead(id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, handler TEXT NOT "
                               "NULL, lane INTEGER NOT NULL,"
                               " at INTEGER NOT NULL, reason TEXT NOT NULL, task BLOB NOT NULL, note BLOB);"
                               "CREATE INDEX dead_task ON dead(task_id);"
                               "CREATE TABLE uniq(shard INTEGER NOT NULL, scope BLOB NOT NULL, until INTEGER NOT NULL, "
                               "id TEXT NOT NULL,"
                               " PRIMARY KEY(shard, scope)) WITHOUT ROWID;"
                               "CREATE INDEX uniq_until ON uniq(until);"
                               "CREATE TABLE result(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, consumer BLOB, until "
                               "INTEGER NOT NULL,"
                               " task_id TEXT NOT NULL, key BLOB NOT NULL, handler TEXT NOT NULL, data BLOB NOT NULL);"
                               "CREATE TABLE reply(id TEXT PRIMARY KEY, until INTEGER NOT NULL, state INTEGER NOT "
                               "NULL, waiter BLOB, data BLOB,"
                               " reason TEXT, note BLOB) WITHOUT ROWID;"
                               "CREATE INDEX reply_until ON reply(until);"
                               "CREATE TABLE control(id INTEGER PRIMARY KEY, verb INTEGER NOT NULL, key BLOB NOT NULL, "
                               "reason BLOB,"
                               " task_id TEXT NOT NULL, seq INTEGER NOT NULL, call INTEGER);"
                               "CREATE TABLE desired(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
                               "CREATE TABLE status(nonce BLOB PRIMARY KEY, at INTEGER NOT NULL, until INTEGER NOT "
                               "NULL, document BLOB NOT NULL)"
                               " WITHOUT ROWID;",
        /* Tasks may be packed (row_codec.c).  Those that are there stay as they are; a Quiver that reads only text must
         * not find the others. */
        "",
        /* Which chunks of which dumps a shard has taken (import.c). */
        "CREATE TABLE import(shard INTEGER NOT NULL, source TEXT NOT NULL, number INTEGER NOT NULL, at INTEGER NOT "
        "NULL,"
        " PRIMARY KEY(shard, source)) WITHOUT ROWID;",
        LOG_BY_SEGMENT
        /* What came to shards since their rows were written (tally.c), by groups of 32. */
        "CREATE TABLE tally(id INTEGER PRIMARY KEY, tallies BLOB NOT NULL);"
        /* Results keep the note of their task (results.c). */
        "ALTER TABLE result ADD COLUMN note BLOB;"
        /* Schedules (schedules.c). */
        "CREATE TABLE schedule(shard INTEGER NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL, version INTEGER NOT "
        "NULL, next INTEGER, last INTEGER NOT NULL, last_seq INTEGER NOT NULL, fired INTEGER NOT NULL, skipped INTEGER "
        "NOT NULL, definition BLOB NOT NULL, PRIMARY KEY(shard, name)) WITHOUT ROWID;"
        /* Limits that all hosts share, and their values that are not at rest (limits.c). */
        "CREATE TABLE limit_home(name TEXT PRIMARY KEY, definition TEXT NOT NULL, value_count INTEGER NOT NULL,"
        " refused INTEGER NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE limit_value(id INTEGER PRIMARY KEY, name TEXT NOT NULL, value BLOB NOT NULL, rest INTEGER NOT "
        "NULL, record TEXT NOT NULL);"
        "CREATE UNIQUE INDEX limit_value_name ON limit_value(name, value);"
        "CREATE INDEX limit_value_rest ON limit_value(name, rest);"
        /* Dead tasks counted by handler, reason and first line of the error (dead_groups.c); what hosts count
         * (desired.c). */
        "ALTER TABLE dead ADD COLUMN error TEXT NOT NULL DEFAULT '';"
        "CREATE TABLE dead_group(shard INTEGER NOT NULL, handler TEXT NOT NULL, reason TEXT NOT NULL, error TEXT NOT "
        "NULL, tasks INTEGER NOT NULL, PRIMARY KEY(shard, handler, reason, error)) WITHOUT ROWID;"
        "INSERT INTO dead_group SELECT id >> 50, handler, reason, error, count(*) FROM dead GROUP BY 1, 2, 3, 4;"
        "CREATE TABLE counter(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE counted(nonce BLOB NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY(nonce, "
        "name)) WITHOUT ROWID;"
        /* Submits that may be repeated, and how many of them a shard remembers (idempotency.c). */
        "CREATE TABLE idempotency(shard INTEGER NOT NULL, name BLOB NOT NULL, until INTEGER NOT NULL, id TEXT NOT "
        "NULL,"
        " digest BLOB NOT NULL, PRIMARY KEY(shard, name)) WITHOUT ROWID;"
        "CREATE INDEX idempotency_until ON idempotency(shard, until);"
        "CREATE TABLE idempotency_count(shard INTEGER PRIMARY KEY, count INTEGER NOT NULL);"
        /* Messages for hosts (mail.c), and which of them want help (wanting.c). */
        "CREATE TABLE mailbox(nonce BLOB PRIMARY KEY, last INTEGER NOT NULL, messages INTEGER NOT NULL, bytes INTEGER "
        "NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;"
        "CREATE INDEX mailbox_until ON mailbox(until);"
        "CREATE TABLE mail(id INTEGER PRIMARY KEY, nonce BLOB NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL);"
        "CREATE UNIQUE INDEX mail_number ON mail(nonce, number);"
        "CREATE TABLE wanting(handler TEXT NOT NULL, nonce BLOB NOT NULL, tasks INTEGER NOT NULL, since INTEGER NOT "
        "NULL, until INTEGER NOT NULL, PRIMARY KEY(handler, nonce)) WITHOUT ROWID;"
        /* Keys that wait for a name (names.c). */
        "ALTER TABLE key ADD COLUMN name TEXT;"
        "CREATE INDEX key_waits ON key(shard, name, since, key) WHERE name IS NOT NULL;"
        /* Rooms: their entries, who appended last, who follows (rooms.c). */
        "CREATE TABLE room(id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, name BLOB NOT NULL, last INTEGER NOT NULL, "
        "entries INTEGER NOT NULL, bytes INTEGER NOT NULL, entries_max INTEGER NOT NULL, bytes_max INTEGER NOT NULL, "
        "age INTEGER NOT NULL);"
        "CREATE UNIQUE INDEX room_name ON room(shard, name);"
        "CREATE TABLE room_entry(room INTEGER NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, bytes BLOB NOT "
        "NULL, PRIMARY KEY(room, number)) WITHOUT ROWID;"
        "CREATE TABLE room_source(room INTEGER NOT NULL, source TEXT NOT NULL, number INTEGER NOT NULL, first INTEGER "
        "NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(room, source)) WITHOUT ROWID;"
        "CREATE TABLE room_follower(shard INTEGER NOT NULL, nonce BLOB NOT NULL, until INTEGER NOT NULL, PRIMARY "
        "KEY(shard, nonce)) WITHOUT ROWID;",
        /* The name of the host that holds the lease, for people (lease.c). */
        "ALTER TABLE shard ADD COLUMN host TEXT;"
        /* Tasks that were merged into others (merge.c). */
        "ALTER TABLE shard ADD COLUMN merged INTEGER NOT NULL DEFAULT 0;"
        "CREATE TABLE merged(id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, into_id TEXT NOT NULL, at INTEGER NOT "
        "NULL);"
        "CREATE INDEX merged_task ON merged(task_id);",
        /* What is parked of the lanes that are rare; the rest is normal (side_queue.c). */
        "ALTER TABLE shard ADD COLUMN parked_high INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE shard ADD COLUMN parked_low INTEGER NOT NULL DEFAULT 0;"
        "UPDATE shard SET parked_high = (SELECT count(*) FROM side WHERE key > shard << 50 AND key < (shard + 1) << 50 "
        "AND seq >> 48 = 0), parked_low = (SELECT count(*) FROM side WHERE key > shard << 50 AND key < (shard + 1) << "
        "50 AND seq >> 48 = 2);",
};

#define VERSION (sizeof(steps) / sizeof(steps[0]))

static uint64_t pragma_number(struct database *db, const char *sql)
{
        sqlite3_stmt *statement = NULL;
        uint64_t value = 0;
        int code = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                value = (uint64_t)sqlite3_column_int64(statement, 0);
        else
                database_fail(db, code);
        (void)sqlite3_finalize(statement);
        return value;
}

static void number_pragma_set(struct database *db, const char *name, uint64_t value)
{
        char sql[64];
        (void)snprintf(sql, sizeof(sql), "PRAGMA %s = %" PRIu64, name, value);
        database_exec(db, sql);
}

int schema_version(struct database *db, const char *path, unsigned *ret_version, struct error *error)
{
        uint64_t application = pragma_number(db, "PRAGMA application_id");
        uint64_t version = pragma_number(db, "PRAGMA user_version");
        uint64_t tables = pragma_number(db, "SELECT count(*) FROM sqlite_schema");
        if (db->failure) {
                *error = db->error;
                return db->failure;
        }
        if (tables && application != APPLICATION_ID)
                return error_set(error, -EPROTO, "%s: a database, but not a Quiver store; name another file", path);
        if (version > VERSION)
                return error_set(error, -EPROTO,
                        "%s: made by a newer Quiver (schema %" PRIu64 ", this one knows %zu); upgrade this one", path,
                        version, VERSION);
        *ret_version = (unsigned)version;
        return 0;
}

void schema_migrate(struct database *db, unsigned version)
{
        for (unsigned i = version; i < VERSION; i++)
                database_exec(db, steps[i]);
        if (version < VERSION) {
                number_pragma_set(db, "application_id", APPLICATION_ID);
                number_pragma_set(db, "user_version", VERSION);
        }
}

unsigned schema_newest(void)
{
        return VERSION;
}

bool schema_is_current(unsigned version)
{
        return version == VERSION;
}
