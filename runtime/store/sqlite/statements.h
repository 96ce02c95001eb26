/* Every statement of the hot path and of administration, by name.  Included several times: see query.h.
 * Whatever belongs to a shard has the row id shard << 50 | number, so a shard is a range: id > ?1 AND id <= ?2.  Only
 * the log has row ids of its own (log.h). */

STATEMENT(BEGIN, "BEGIN IMMEDIATE")
STATEMENT(BEGIN_READ, "BEGIN")
STATEMENT(COMMIT, "COMMIT")
STATEMENT(ROLLBACK, "ROLLBACK")
STATEMENT(DATA_VERSION, "PRAGMA data_version")

STATEMENT(META_GET, "SELECT value FROM meta WHERE name = ?1")
STATEMENT(META_SET, "INSERT INTO meta(name, value) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value")

STATEMENT(SHARD_ADD, "INSERT INTO shard(shard) VALUES(?1)")
STATEMENT(SHARD_GET, "SELECT " SHARD_NUMBERS(SHARD_COLUMN) "holder, want_nonce, last FROM shard WHERE shard = ?1")
STATEMENT(SHARD_SET,
        "UPDATE shard SET " SHARD_NUMBERS(SHARD_ASSIGN) "holder = ?, want_nonce = ?, last = ? WHERE shard = ?")
STATEMENT(SHARD_HOST_SET, "UPDATE shard SET host = ?2 WHERE shard = ?1")
STATEMENT(SHARD_HOST, "SELECT host FROM shard WHERE shard = ?1")
STATEMENT(SHARD_NUMBERS_MAX,
        "SELECT max(number) FROM (SELECT high_tail AS number FROM shard UNION ALL SELECT high_taken FROM shard "
        "UNION ALL SELECT normal_tail FROM shard UNION ALL SELECT normal_taken FROM shard "
        "UNION ALL SELECT low_tail FROM shard UNION ALL SELECT low_taken FROM shard) WHERE number BETWEEN 0 AND ?1")
STATEMENT(SHARD_LATEST, "SELECT max(until - ttl) FROM shard")

STATEMENT(TALLY_GET, "SELECT tallies FROM tally WHERE id = ?1")
STATEMENT(
        TALLY_SET, "INSERT INTO tally(id, tallies) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET tallies = excluded.tallies")

STATEMENT(LOG_PUT_FREE, "INSERT OR IGNORE INTO log(id, task, note) VALUES(?1, ?2, ?3)")
STATEMENT(LOG_GET, "SELECT task, note FROM log WHERE id = ?1")
STATEMENT(LOG_SET, "UPDATE log SET task = ?2, note = ?3 WHERE id = ?1")
STATEMENT(LOG_NOTE, "UPDATE log SET note = ?2 WHERE id = ?1")
STATEMENT(LOG_REMOVE, "DELETE FROM log WHERE id = ?1")
STATEMENT(LOG_TAKE, "DELETE FROM log WHERE id = ?1 RETURNING note")
STATEMENT(LOG_REMOVE_RUN, "DELETE FROM log WHERE id >= ?1 AND id <= ?2")
STATEMENT(LOG_REMOVE_LISTED, "DELETE FROM log WHERE id >= ?1 AND id <= ?2 AND log_is_listed(?3, id)")
STATEMENT(LOG_FROM, "SELECT id, task, note FROM log WHERE id >= ?1 AND id <= ?2 ORDER BY id")
STATEMENT(LOG_SEGMENTS, "SELECT log.id, task, note FROM log_segments(?1, ?2) AS s CROSS JOIN log "
                        "WHERE log.id >= s.first AND log.id <= s.last")
STATEMENT(LOG_UP_TO, "SELECT id FROM log WHERE id >= ?1 AND id <= ?2 ORDER BY id DESC")
STATEMENT(LOG_STRAYS, "SELECT id, task, note FROM log WHERE id >= ?1 AND id <= ?2 AND (id >> 10) & 4095 = ?3 "
                      "ORDER BY id LIMIT ?4")
STATEMENT(LOG_STRAYS_COUNT, "SELECT count(*) FROM log WHERE id >= ?1 AND id <= ?2 AND (id >> 10) & 4095 = ?3")

STATEMENT(KEY_GET, "SELECT id, state, due, since, tasks, reason, name FROM key WHERE shard = ?1 AND key = ?2")
STATEMENT(KEY_ADD,
        "INSERT INTO key(id, shard, key, state, due, since, tasks, reason) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
STATEMENT(KEY_SET, "UPDATE key SET state = ?2, due = ?3, since = ?4, tasks = ?5, "
                   "name = CASE ?2 WHEN 4 THEN name END WHERE id = ?1")
STATEMENT(KEY_REASON, "UPDATE key SET reason = ?2 WHERE id = ?1")
STATEMENT(KEY_NAME, "UPDATE key SET name = ?2, since = ?3 WHERE id = ?1")
STATEMENT(KEY_WAITS, "SELECT id, since, tasks FROM key INDEXED BY key_waits WHERE shard = ?1 AND name = ?2 "
                     "ORDER BY since, key LIMIT ?3")
STATEMENT(
        KEY_NEXT_NAME, "SELECT name FROM key INDEXED BY key_waits WHERE shard = ?1 AND name > ?2 ORDER BY name LIMIT 1")
STATEMENT(KEY_REMOVE, "DELETE FROM key WHERE id = ?1")
STATEMENT(KEY_DUE,
        "SELECT id, key, state, due, since, tasks FROM key INDEXED BY key_due WHERE shard = ?1 AND due <= ?2 "
        "ORDER BY due, key LIMIT ?3")
STATEMENT(KEY_NEXT_DUE, "SELECT due FROM key INDEXED BY key_due WHERE shard = ?1 AND due >= ?2 ORDER BY due LIMIT 1")
STATEMENT(KEY_PAGE, "SELECT id, key, state, due, since, tasks, reason, name FROM key WHERE id > ?1 AND id <= ?2 ORDER "
                    "BY id LIMIT ?3")

STATEMENT(SIDE_PUT, "INSERT INTO side(key, seq, task, note) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(SIDE_HEAD, "SELECT seq, task, note FROM side WHERE key = ?1 ORDER BY seq LIMIT ?2")
STATEMENT(SIDE_GET, "SELECT task, note FROM side WHERE key = ?1 AND seq = ?2")
STATEMENT(SIDE_REMOVE, "DELETE FROM side WHERE key = ?1 AND seq = ?2")
STATEMENT(SIDE_PAGE,
        "SELECT key, seq, task, note FROM side WHERE (key, seq) > (?1, ?2) AND key <= ?3 ORDER BY key, seq LIMIT ?4")

STATEMENT(DELAYED_PUT, "INSERT INTO delayed(id, shard, due, lane, task, note) VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
STATEMENT(DELAYED_DUE,
        "SELECT id, lane, task, note FROM delayed WHERE shard = ?1 AND due <= ?2 ORDER BY due, id LIMIT ?3")
STATEMENT(DELAYED_NEXT_DUE, "SELECT due FROM delayed WHERE shard = ?1 ORDER BY due LIMIT 1")
STATEMENT(DELAYED_GET, "SELECT lane, task, note FROM delayed WHERE id = ?1")
STATEMENT(DELAYED_MOVE, "UPDATE delayed SET due = ?2, note = ?3 WHERE id = ?1")
STATEMENT(DELAYED_LANE, "UPDATE delayed SET lane = ?2, note = ?3 WHERE id = ?1")
STATEMENT(DELAYED_REMOVE, "DELETE FROM delayed WHERE id = ?1")
STATEMENT(DELAYED_PAGE, "SELECT id, task, note, lane, due FROM delayed WHERE shard = ?1 AND (due, id) > (?2, ?3) "
                        "ORDER BY due, id LIMIT ?4")

STATEMENT(DEAD_PUT,
        "INSERT INTO dead(id, task_id, handler, lane, at, reason, task, note, error) VALUES(?1, ?2, ?3, ?4, ?5, ?6, "
        "?7, ?8, ?9)")
STATEMENT(DEAD_GET, "SELECT lane, task, note, reason, handler, error FROM dead WHERE id = ?1")
STATEMENT(DEAD_GROUP_ADD,
        "UPDATE dead_group SET tasks = tasks + ?5 WHERE shard = ?1 AND handler = ?2 AND reason = ?3 AND error = ?4")
STATEMENT(DEAD_GROUP_NEW, "INSERT INTO dead_group(shard, handler, reason, error, tasks) VALUES(?1, ?2, ?3, ?4, ?5)")
STATEMENT(DEAD_GROUP_COUNT, "SELECT count(*) FROM dead_group WHERE shard = ?1")
STATEMENT(DEAD_GROUP_TRIM, "DELETE FROM dead_group WHERE shard = ?1 AND tasks <= 0")
STATEMENT(DEAD_GROUP_ALL, "SELECT handler, reason, error, tasks FROM dead_group WHERE shard = ?1 LIMIT ?2")
STATEMENT(DEAD_BY_ID, "SELECT id FROM dead WHERE task_id = ?1 AND id > ?2 AND id <= ?3 ORDER BY id LIMIT 1")
STATEMENT(DEAD_REMOVE, "DELETE FROM dead WHERE id = ?1")
STATEMENT(DEAD_PAGE, "SELECT id, task, note, lane, at, reason, task_id, handler FROM dead WHERE id > ?1 AND id <= ?2 "
                     "ORDER BY id LIMIT ?3")

STATEMENT(IMPORT_GET, "SELECT number FROM import WHERE shard = ?1 AND source = ?2")
STATEMENT(IMPORT_SET, "INSERT INTO import(shard, source, number, at) VALUES(?1, ?2, ?3, ?4) "
                      "ON CONFLICT DO UPDATE SET number = excluded.number, at = excluded.at")
STATEMENT(IMPORT_TRIM, "DELETE FROM import WHERE shard = ?1 AND source IN (SELECT source FROM import WHERE shard = ?1 "
                       "AND source != ?2 "
                       "ORDER BY at DESC, source LIMIT -1 OFFSET ?3)")

STATEMENT(UNIQUE_GET, "SELECT id, until FROM uniq WHERE shard = ?1 AND scope = ?2")
STATEMENT(UNIQUE_SET, "INSERT OR REPLACE INTO uniq(shard, scope, until, id) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(UNIQUE_SWEEP,
        "DELETE FROM uniq WHERE (shard, scope) IN (SELECT shard, scope FROM uniq WHERE until <= ?1 LIMIT 4)")

STATEMENT(IDEMPOTENCY_GET, "SELECT until, id, digest FROM idempotency WHERE shard = ?1 AND name = ?2")
STATEMENT(IDEMPOTENCY_PUT, "INSERT INTO idempotency(shard, name, until, id, digest) VALUES(?1, ?2, ?3, ?4, ?5)")
STATEMENT(IDEMPOTENCY_REMOVE, "DELETE FROM idempotency WHERE shard = ?1 AND name = ?2")
STATEMENT(IDEMPOTENCY_SWEEP, "DELETE FROM idempotency WHERE shard = ?1 AND name IN (SELECT name FROM idempotency "
                             "INDEXED BY idempotency_until WHERE shard = ?1 AND until <= ?2 LIMIT 4)")
STATEMENT(IDEMPOTENCY_PAGE, "SELECT name, until, id, digest FROM idempotency WHERE shard = ?1 AND name > ?2 AND until "
                            "> ?3 ORDER BY name LIMIT ?4")
STATEMENT(IDEMPOTENCY_COUNT, "SELECT count FROM idempotency_count WHERE shard = ?1")
STATEMENT(IDEMPOTENCY_COUNT_SET, "INSERT OR REPLACE INTO idempotency_count(shard, count) VALUES(?1, ?2)")

STATEMENT(MAILBOX_GET, "SELECT last, messages, bytes FROM mailbox WHERE nonce = ?1 AND until > ?2")
STATEMENT(MAILBOX_PUT, "INSERT OR REPLACE INTO mailbox(nonce, last, messages, bytes, until) VALUES(?1, ?2, ?3, ?4, ?5)")
STATEMENT(MAILBOX_SET, "UPDATE mailbox SET last = ?2, messages = ?3, bytes = ?4 WHERE nonce = ?1")
STATEMENT(MAILBOX_OLD, "SELECT nonce FROM mailbox WHERE until <= ?1 LIMIT 1")
STATEMENT(MAILBOX_REMOVE, "DELETE FROM mailbox WHERE nonce = ?1")
STATEMENT(MAIL_PUT, "INSERT INTO mail(nonce, number, bytes) VALUES(?1, ?2, ?3)")
STATEMENT(MAIL_SIZES, "SELECT count(*), sum(length(bytes)) FROM mail WHERE nonce = ?1 AND number <= ?2")
STATEMENT(MAIL_PAGE, "SELECT number, bytes FROM mail WHERE nonce = ?1 ORDER BY number LIMIT ?2")
STATEMENT(MAIL_REMOVE, "DELETE FROM mail WHERE nonce = ?1 AND number <= ?2")
STATEMENT(MAIL_REMOVE_ALL, "DELETE FROM mail WHERE nonce = ?1")

STATEMENT(WANTING_COUNT, "SELECT count(*) FROM wanting WHERE handler != ?1 OR nonce != ?2")
STATEMENT(WANTING_PUT, "INSERT INTO wanting(handler, nonce, tasks, since, until) VALUES(?1, ?2, ?3, ?4, ?5) "
                       "ON CONFLICT DO UPDATE SET tasks = excluded.tasks, until = excluded.until")
STATEMENT(WANTING_REMOVE, "DELETE FROM wanting WHERE handler = ?1 AND nonce = ?2")
STATEMENT(WANTING_SWEEP, "DELETE FROM wanting WHERE (handler, nonce) IN (SELECT handler, nonce FROM wanting "
                         "WHERE until <= ?1 LIMIT 16)")
STATEMENT(WANTING_ALL,
        "SELECT handler, nonce, tasks, since FROM wanting WHERE until > ?1 AND (?2 = '' OR handler = ?2) "
        "ORDER BY handler, nonce")

STATEMENT(ROOM_GET,
        "SELECT id, last, entries, bytes, entries_max, bytes_max, age FROM room WHERE shard = ?1 AND name = ?2")
STATEMENT(ROOM_COUNT, "SELECT count(*) FROM room WHERE shard = ?1")
STATEMENT(ROOM_ADD, "INSERT INTO room(shard, name, last, entries, bytes, entries_max, bytes_max, age) "
                    "VALUES(?1, ?2, 0, 0, 0, ?3, ?4, ?5) RETURNING id")
STATEMENT(ROOM_SET, "UPDATE room SET last = ?2, entries = ?3, bytes = ?4, entries_max = ?5, bytes_max = ?6, age = ?7 "
                    "WHERE id = ?1")
STATEMENT(ROOM_REMOVE, "DELETE FROM room WHERE id = ?1")
STATEMENT(ROOM_PAGE,
        "SELECT id, last, entries, bytes, entries_max, bytes_max, age, name FROM room WHERE shard = ?1 AND "
        "name > ?2 ORDER BY name LIMIT ?3")
STATEMENT(ROOM_ENTRY_PUT, "INSERT INTO room_entry(room, number, at, bytes) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(ROOM_ENTRY_PAGE,
        "SELECT number, at, bytes FROM room_entry WHERE room = ?1 AND number >= ?2 ORDER BY number LIMIT ?3")
STATEMENT(ROOM_ENTRY_OLD, "SELECT number, at, length(bytes) FROM room_entry WHERE room = ?1 ORDER BY number LIMIT ?2")
STATEMENT(ROOM_ENTRY_REMOVE, "DELETE FROM room_entry WHERE room = ?1 AND number <= ?2")
STATEMENT(ROOM_SOURCE_GET, "SELECT number, first FROM room_source WHERE room = ?1 AND source = ?2")
STATEMENT(ROOM_SOURCE_SET,
        "INSERT OR REPLACE INTO room_source(room, source, number, first, at) VALUES(?1, ?2, ?3, ?4, ?5)")
STATEMENT(ROOM_SOURCE_TRIM,
        "DELETE FROM room_source WHERE room = ?1 AND source IN (SELECT source FROM room_source WHERE "
        "room = ?1 AND source != ?2 ORDER BY at DESC, source LIMIT -1 OFFSET ?3)")
STATEMENT(ROOM_SOURCE_REMOVE, "DELETE FROM room_source WHERE room = ?1")
STATEMENT(ROOM_FOLLOW, "INSERT OR REPLACE INTO room_follower(shard, nonce, until) VALUES(?1, ?2, ?3)")
STATEMENT(ROOM_FOLLOWERS, "SELECT nonce FROM room_follower WHERE shard = ?1 AND until > ?2 LIMIT 1024")
STATEMENT(ROOM_FOLLOWER_SWEEP, "DELETE FROM room_follower WHERE shard = ?1 AND until <= ?2")

STATEMENT(RESULT_PUT,
        "INSERT INTO result(id, at, until, task_id, key, handler, data, note) VALUES(?1, ?2, 0, ?3, ?4, ?5, ?6, ?7)")
STATEMENT(RESULT_FREE,
        "SELECT id, at, task_id, key, handler, data, note FROM result WHERE id > ?1 AND id <= ?2 AND until <= ?3 "
        "ORDER BY id LIMIT ?4")
STATEMENT(RESULT_LEASE, "UPDATE result SET consumer = ?2, until = ?3 WHERE id = ?1")
STATEMENT(
        RESULT_LEASED, "SELECT count(*) FROM (SELECT 1 FROM result WHERE id > ?1 AND id <= ?2 AND until > ?3 LIMIT ?4)")
STATEMENT(RESULT_COMMIT, "DELETE FROM result WHERE id = ?1 AND consumer = ?2")
STATEMENT(RESULT_OLDEST, "SELECT id, at FROM result WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT 1")
STATEMENT(RESULT_REMOVE, "DELETE FROM result WHERE id = ?1")

STATEMENT(REPLY_GET, "SELECT state, data, reason, note FROM reply WHERE id = ?1 AND until > ?2")
STATEMENT(REPLY_WAITER, "SELECT waiter FROM reply WHERE id = ?1 AND waiter IS NOT NULL")
STATEMENT(REPLY_WAIT,
        "INSERT INTO reply(id, until, state, waiter) VALUES(?1, ?2, 0, ?3) "
        "ON CONFLICT DO UPDATE SET until = max(until, excluded.until), waiter = excluded.waiter WHERE state = 0")
STATEMENT(REPLY_PUT, "INSERT OR REPLACE INTO reply(id, until, state, waiter, data, reason, note) VALUES(?1, ?2, ?3, "
                     "NULL, ?4, ?5, ?6)")
STATEMENT(REPLY_SWEEP, "DELETE FROM reply WHERE id IN (SELECT id FROM reply WHERE until <= ?1 LIMIT 4)")

STATEMENT(MERGED_PUT, "INSERT OR REPLACE INTO merged(id, task_id, into_id, at) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(MERGED_SWEEP, "DELETE FROM merged WHERE id > ?1 AND id <= ?2")
STATEMENT(MERGED_GET, "SELECT into_id, at FROM merged WHERE task_id = ?1 AND id > ?2 AND id <= ?3 ORDER BY id DESC "
                      "LIMIT 1")

STATEMENT(CONTROL_ADD, "INSERT INTO control(id, verb, key, reason, task_id, seq) VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
STATEMENT(CONTROL_PAGE,
        "SELECT id, verb, key, reason, task_id, seq, call FROM control WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3")
STATEMENT(CONTROL_RETURN, "UPDATE control SET call = 0 WHERE id > ?1 AND id <= ?2 AND call > 0")
STATEMENT(CONTROL_CALL, "UPDATE control SET call = ?2 WHERE id = ?1")
STATEMENT(CONTROL_REMOVE, "DELETE FROM control WHERE id = ?1")

#define SCHEDULE_COLUMNS "name, state, version, next, last, last_seq, fired, skipped, definition"
STATEMENT(SCHEDULE_GET, "SELECT " SCHEDULE_COLUMNS " FROM schedule WHERE shard = ?1 AND name = ?2")
STATEMENT(SCHEDULE_ALL, "SELECT " SCHEDULE_COLUMNS " FROM schedule WHERE shard = ?1 ORDER BY name LIMIT ?2")
STATEMENT(SCHEDULE_SET,
        "INSERT OR REPLACE INTO schedule(shard, " SCHEDULE_COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
STATEMENT(SCHEDULE_NEXT, "SELECT min(next) FROM schedule WHERE shard = ?1 AND state = 0 AND next IS NOT NULL HAVING "
                         "min(next) IS NOT NULL")
STATEMENT(SCHEDULE_COUNT, "SELECT count(*) FROM schedule WHERE shard = ?1")
STATEMENT(SCHEDULE_SWEEP, "DELETE FROM schedule WHERE shard = ?1 AND state = 2")

STATEMENT(LIMIT_GET, "SELECT definition, value_count, refused FROM limit_home WHERE name = ?1")
STATEMENT(LIMIT_SET, "INSERT OR REPLACE INTO limit_home(name, definition, value_count, refused) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(LIMIT_VALUE_GET, "SELECT record FROM limit_value WHERE name = ?1 AND value = ?2")
STATEMENT(LIMIT_VALUE_SET, "INSERT INTO limit_value(name, value, rest, record) VALUES(?1, ?2, ?3, ?4) "
                           "ON CONFLICT(name, value) DO UPDATE SET rest = excluded.rest, record = excluded.record")
STATEMENT(LIMIT_VALUE_REMOVE, "DELETE FROM limit_value WHERE name = ?1 AND value = ?2")
STATEMENT(LIMIT_VALUE_FORGET, "DELETE FROM limit_value WHERE id IN (SELECT id FROM limit_value INDEXED BY "
                              "limit_value_rest WHERE name = ?1 AND rest <= ?2 ORDER BY rest LIMIT ?3)")
STATEMENT(LIMIT_VALUE_FIRST, "SELECT rest FROM limit_value WHERE name = ?1 ORDER BY rest LIMIT 1")
STATEMENT(
        LIMIT_VALUE_PAGE, "SELECT id, value, record FROM limit_value WHERE name = ?1 AND id > ?2 ORDER BY id LIMIT ?3")

STATEMENT(DESIRED_ALL, "SELECT name, value FROM desired ORDER BY name")
STATEMENT(DESIRED_COUNT, "SELECT count(*) FROM desired WHERE name != ?1")
STATEMENT(DESIRED_SET, "INSERT OR REPLACE INTO desired(name, value) VALUES(?1, ?2)")
STATEMENT(DESIRED_REMOVE, "DELETE FROM desired WHERE name = ?1")

STATEMENT(STATUS_PUT, "INSERT OR REPLACE INTO status(nonce, at, until, document) VALUES(?1, ?2, ?3, ?4)")
STATEMENT(STATUS_REMOVE, "DELETE FROM status WHERE nonce = ?1 OR until <= ?2")
STATEMENT(STATUS_ALL,
        "SELECT nonce, at, document FROM status WHERE until > ?1 AND length(nonce) = ?3 ORDER BY nonce LIMIT ?2")
STATEMENT(STATUS_ONE, "SELECT nonce, at, document FROM status WHERE until > ?1 AND nonce = ?3 LIMIT ?2")
STATEMENT(COUNTED_GET, "SELECT value FROM counted WHERE nonce = ?1 AND name = ?2")
STATEMENT(COUNTED_SET, "INSERT OR REPLACE INTO counted(nonce, name, value) VALUES(?1, ?2, ?3)")
STATEMENT(COUNTED_TRIM, "DELETE FROM counted WHERE nonce NOT IN (SELECT nonce FROM status)")
STATEMENT(COUNTER_GET, "SELECT value FROM counter WHERE name = ?1")
STATEMENT(COUNTER_SET,
        "INSERT INTO counter(name, value) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM counter WHERE name = ?1) OR "
        "(SELECT count(*) FROM counter) < ?3 ON CONFLICT(name) DO UPDATE SET value = excluded.value")
STATEMENT(COUNTER_ALL, "SELECT name, value FROM counter ORDER BY name LIMIT ?1")
