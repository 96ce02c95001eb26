/* schema3.h: the tables of a SQLite store as the first release with `load` made them (schema 3), before the log was
 * kept in order of arrival.  A file that was written then is to be taken up for ever, so this does not change. */
#ifndef QUIVER_TESTS_CONTRACT_SCHEMA3_H
#define QUIVER_TESTS_CONTRACT_SCHEMA3_H

#define SCHEMA_3                                                                                                       \
        "CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID; "                                              \
        "CREATE TABLE shard(shard INTEGER PRIMARY KEY, held INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT "            \
        "NULL DEFAULT 0, until INTEGER NOT NULL DEFAULT 0, ttl INTEGER NOT NULL DEFAULT 0, boot INTEGER "              \
        "NOT NULL DEFAULT 0, call INTEGER NOT NULL DEFAULT 0, want_epoch INTEGER NOT NULL DEFAULT 0, "                 \
        "want_firm INTEGER NOT NULL DEFAULT 0, want_until INTEGER NOT NULL DEFAULT 0, want_drain INTEGER "             \
        "NOT NULL DEFAULT 0, high_tail INTEGER NOT NULL DEFAULT 0, high_taken INTEGER NOT NULL DEFAULT 0, "            \
        "high_queued INTEGER NOT NULL DEFAULT 0, normal_tail INTEGER NOT NULL DEFAULT 0, normal_taken "                \
        "INTEGER NOT NULL DEFAULT 0, normal_queued INTEGER NOT NULL DEFAULT 0, low_tail INTEGER NOT NULL "             \
        "DEFAULT 0, low_taken INTEGER NOT NULL DEFAULT 0, low_queued INTEGER NOT NULL DEFAULT 0, delayed "             \
        "INTEGER NOT NULL DEFAULT 0, in_flight INTEGER NOT NULL DEFAULT 0, parked INTEGER NOT NULL "                   \
        "DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, results INTEGER NOT NULL DEFAULT 0, keys INTEGER NOT "            \
        "NULL DEFAULT 0, controls INTEGER NOT NULL DEFAULT 0, returned INTEGER NOT NULL DEFAULT 0, "                   \
        "submitted INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0, dropped INTEGER NOT NULL "             \
        "DEFAULT 0, results_dropped INTEGER NOT NULL DEFAULT 0, last_delayed INTEGER NOT NULL DEFAULT 0, "             \
        "last_dead INTEGER NOT NULL DEFAULT 0, last_result INTEGER NOT NULL DEFAULT 0, last_control "                  \
        "INTEGER NOT NULL DEFAULT 0, last_key INTEGER NOT NULL DEFAULT 0, holder BLOB, want_nonce BLOB, "              \
        "last BLOB); "                                                                                                 \
        "CREATE TABLE log(id INTEGER PRIMARY KEY, task BLOB NOT NULL, note BLOB); "                                    \
        "CREATE TABLE key(id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, key BLOB NOT NULL, state "                   \
        "INTEGER NOT NULL, due INTEGER, since INTEGER NOT NULL, tasks INTEGER NOT NULL, reason BLOB); "                \
        "CREATE UNIQUE INDEX key_name ON key(shard, key); "                                                            \
        "CREATE INDEX key_due ON key(shard, due, key) WHERE due IS NOT NULL; "                                         \
        "CREATE TABLE side(key INTEGER NOT NULL, seq INTEGER NOT NULL, task BLOB NOT NULL, note BLOB, "                \
        "PRIMARY KEY(key, seq)) WITHOUT ROWID; "                                                                       \
        "CREATE TABLE delayed(id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, due INTEGER NOT NULL, lane "             \
        "INTEGER NOT NULL, task BLOB NOT NULL, note BLOB); "                                                           \
        "CREATE INDEX delayed_due ON delayed(shard, due); "                                                            \
        "CREATE TABLE dead(id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, handler TEXT NOT NULL, lane "                \
        "INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, task BLOB NOT NULL, note BLOB); "                \
        "CREATE INDEX dead_task ON dead(task_id); "                                                                    \
        "CREATE TABLE uniq(shard INTEGER NOT NULL, scope BLOB NOT NULL, until INTEGER NOT NULL, id TEXT "              \
        "NOT NULL, PRIMARY KEY(shard, scope)) WITHOUT ROWID; "                                                         \
        "CREATE INDEX uniq_until ON uniq(until); "                                                                     \
        "CREATE TABLE result(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, consumer BLOB, until INTEGER "               \
        "NOT NULL, task_id TEXT NOT NULL, key BLOB NOT NULL, handler TEXT NOT NULL, data BLOB NOT NULL); "             \
        "CREATE TABLE reply(id TEXT PRIMARY KEY, until INTEGER NOT NULL, state INTEGER NOT NULL, waiter "              \
        "BLOB, data BLOB, reason TEXT, note BLOB) WITHOUT ROWID; "                                                     \
        "CREATE INDEX reply_until ON reply(until); "                                                                   \
        "CREATE TABLE control(id INTEGER PRIMARY KEY, verb INTEGER NOT NULL, key BLOB NOT NULL, reason "               \
        "BLOB, task_id TEXT NOT NULL, seq INTEGER NOT NULL, call INTEGER); "                                           \
        "CREATE TABLE desired(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID; "                             \
        "CREATE TABLE status(nonce BLOB PRIMARY KEY, at INTEGER NOT NULL, until INTEGER NOT NULL, "                    \
        "document BLOB NOT NULL) WITHOUT ROWID; "                                                                      \
        "CREATE TABLE import(shard INTEGER NOT NULL, source TEXT NOT NULL, number INTEGER NOT NULL, at "               \
        "INTEGER NOT NULL, PRIMARY KEY(shard, source)) WITHOUT ROWID; "                                                \
        "PRAGMA application_id = 1366708785; PRAGMA user_version = 3;"

#endif
