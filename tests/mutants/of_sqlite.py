"""The store on SQLite: runtime/store/sqlite."""
from noticed_by import CONTRACT, UNIT

MUTANTS = [
    # --- what was done last
    ("sqlite: one document is any", "runtime/store/sqlite/statements.h",
     "WHERE until > ?1 AND nonce = ?3 LIMIT", "WHERE until > ?1 AND ?3 NOTNULL LIMIT", [CONTRACT("store_sqlite")]),

    # --- another time for a delayed task
    ("sqlite: the envelope's time counts for more", "runtime/store/sqlite/shard/claim.c",
     "} else if (!note.size && task->envelope.not_before_ms", "} else if (task->envelope.not_before_ms", [CONTRACT("store_sqlite")]),
    ("sqlite: another time is not taken", "runtime/store/sqlite/statements.h",
     "UPDATE delayed SET due = ?2, note = ?3", "UPDATE delayed SET due = due + 0 * ?2, note = ?3", [CONTRACT("store_sqlite")]),

    # --- who a lease is of
    ("sqlite: a name beside another's nonce", "runtime/store/sqlite/shard/lease.c",
     "if (!acquire->host.size && is_nonce(shard->holder, acquire->lease.nonce))", "if (!acquire->host.size)",
     [CONTRACT("store_sqlite")]),

    # --- merging
    ("merge: sqlite, one that is gone", "runtime/store/sqlite/shard/merge.c",
     "                if (!flight_read(s, shard, outcome->merged[i].seq, arena, &task))\n                        return false;\n",
     "                (void)flight_read(s, shard, outcome->merged[i].seq, arena, &task);\n", [CONTRACT("store_sqlite")]),
    ("merge: sqlite, into one that is gone", "runtime/store/sqlite/shard/merge.c",
     "        if (!flight_read(s, shard, outcome->task.seq, arena, &into))\n                return false;\n",
     "        (void)flight_read(s, shard, outcome->task.seq, arena, &into);\n", [CONTRACT("store_sqlite")]),
    ("merge: sqlite, all are remembered", "runtime/store/sqlite/shard/merge.c",
     "if (shard->merged > STORE_MERGED_KEPT) {", "if (false) {", [CONTRACT("store_sqlite")]),
    ("merge: sqlite, who waits is led there for a moment", "runtime/store/sqlite/shard/merge.c",
     "kept.reply_ms += STORE_MERGED_MS;", "", [CONTRACT("store_sqlite")]),
    ("merge: sqlite, a due key brings any number", "runtime/store/sqlite/shard/claim.c",
     "min_u64(claim->want[lane], STORE_MERGE_TASKS) - 1", "STORE_MERGE_TASKS - 1", [CONTRACT("store_sqlite")]),
    ("merge: sqlite, any due key brings more", "runtime/store/sqlite/shard/claim.c",
     "keys[i].id && claim->tasks[taken].envelope.is_merge &&", "keys[i].id &&", [CONTRACT("store_sqlite")]),
    ("debounce: sqlite, is not remembered", "runtime/store/sqlite/shard/advance.c",
     "note.is_debounced |= outcome->is_debounce;", "", [CONTRACT("store_sqlite")]),
    ("debounce: sqlite, whatever the key's time was", "runtime/store/sqlite/shard/advance.c",
     "else if (outcome->is_debounce && is_first && key->id)", "else if (false)", [CONTRACT("store_sqlite")]),

    # --- the fence: epoch, nonce, call
    ("sqlite: any epoch", "runtime/store/sqlite/shard/lease.c",
     "return shard->is_held && shard->epoch == lease->epoch &&", "return shard->is_held &&", [CONTRACT("store_sqlite")]),
    ("sqlite: any nonce", "runtime/store/sqlite/shard/lease.c",
     "shard->epoch == lease->epoch && is_nonce(shard->holder, lease->nonce);", "shard->epoch == lease->epoch;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: also after release", "runtime/store/sqlite/shard/lease.c",
     "return shard->is_held && shard->epoch", "return shard->epoch", [CONTRACT("store_sqlite")]),
    ("sqlite: any call number", "runtime/store/sqlite/shard/lease.c",
     "        if (call == shard->call + 1)\n                return FENCE_OK;\n"
     "        return call == shard->call ? FENCE_REPEAT : FENCE_FENCED;",
     "        return call == shard->call ? FENCE_REPEAT : FENCE_OK;", [CONTRACT("store_sqlite")]),
    ("sqlite: a repeat is done again", "runtime/store/sqlite/shard/lease.c",
     "return call == shard->call ? FENCE_REPEAT : FENCE_FENCED;", "return call == shard->call ? FENCE_OK : FENCE_FENCED;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a grant does not jump", "runtime/store/sqlite/shard/lease.c",
     "shard->call += 2;", "shard->call += 0;", [CONTRACT("store_sqlite")]),
    ("sqlite: a lower epoch is granted", "runtime/store/sqlite/shard/lease.c",
     "        if (lease->epoch < shard->epoch)\n                return STORE_STALE;\n", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a lasting lease is taken", "runtime/store/sqlite/shard/lease.c",
     "if (!shard->is_held || is_same_nonce || !lease_left_ms(s, shard))", "if (true)", [CONTRACT("store_sqlite")]),
    ("sqlite: renewal is not fenced", "runtime/store/sqlite/shard/lease.c",
     "        if (!lease_is_ours(shard_read(s, lease->shard), lease))\n                return;\n", "", [CONTRACT("store_sqlite")]),
    ("sqlite: release is not fenced", "runtime/store/sqlite/shard/lease.c",
     "if (fence_check(shard, lease, release->call) != FENCE_OK) {", "if (false) {", [CONTRACT("store_sqlite")]),
    ("sqlite: a firm want never refuses", "runtime/store/sqlite/shard/lease.c",
     "if (is_wanted(s, shard) && shard->want_firm_ms &&", "if (false && is_wanted(s, shard) && shard->want_firm_ms &&",
     [CONTRACT("store_sqlite")]),

    # --- what people are shown of a store
    ("sqlite: the oldest is what nobody claimed", "runtime/store/sqlite/admin/tasks.c",
     "if (!shard->queued[lane] && !shard->in_flight)", "if (!shard->queued[lane])", [CONTRACT("store_sqlite")]),
    ("sqlite: a dead task is in no group", "runtime/store/sqlite/admin/dead.c",
     "dead_group_count(s, shard->shard, row->handler, row->reason, error, 1);", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a requeued task stays in its group", "runtime/store/sqlite/admin/dead.c",
     "dead_group_count(s, shard->shard, handler, reason, error, -1);", "", [CONTRACT("store_sqlite")]),
    ("sqlite: groups without end", "runtime/store/sqlite/admin/dead_groups.c",
     "groups_of(s, shard) < STORE_DEAD_GROUPS", "true", [CONTRACT("store_sqlite")]),
    ("sqlite: a counter that is put twice counts twice", "runtime/store/sqlite/admin/desired.c",
     "(void)counter_get(s, STATEMENT_COUNTED_GET, &nonce, counter->name, &counted);", "", [CONTRACT("store_sqlite")]),

    # --- opening
    ("sqlite: opening needs the write lock", "runtime/store/sqlite/open.c",
     "if (!r && !setup_reading(s, options, &r, error)) {", "if (!r) {", [CONTRACT("store_files")]),

    # --- LATER
    ("later: sqlite, kept by a requeue", "runtime/store/sqlite/admin/dead.c",
     "note.interruptions = note.laters = 0;", "note.interruptions = 0;", [CONTRACT("store_sqlite")]),
    ("later: the key does not say why", "runtime/store/sqlite/shard/advance.c",
     "due_ms, retry_reason(outcome, arena));", "due_ms, outcome->error);", [CONTRACT("store_sqlite")]),

    # --- schedules
    ("schedules: firing is not fenced", "runtime/store/sqlite/records/schedules.c",
     "        if (fence == FENCE_FENCED)\n                return;\n        fires->verdict", "        fires->verdict", [CONTRACT("store_sqlite")]),
    ("schedules: a repeat fires again", "runtime/store/sqlite/records/schedules.c", "fire_one(s, shard, fires, i, fence == FENCE_REPEAT);",
     "fire_one(s, shard, fires, i, false);", [CONTRACT("store_sqlite")]),
    ("schedules: any number", "runtime/store/sqlite/records/schedules.c", "if (count < STORE_SCHEDULES_MAX)", "if (true)", [CONTRACT("store_sqlite")]),
    ("schedules: the owner is not told", "runtime/store/sqlite/records/schedules.c", "        if (shard->is_held)\n", "        if (false)\n",
     [CONTRACT("store_sqlite")]),

    # --- limits
    ("limits: any number of values", "runtime/store/sqlite/records/limits.c", "return home->values < home->limit.values_max;", "return true;",
     [CONTRACT("store_sqlite")]),
    ("limits: an older definition is used", "runtime/store/sqlite/records/limits.c", "home.is_there && stored.version >= given->version",
     "false", [CONTRACT("store_sqlite")]),

    # --- what waits behind a time
    ("sqlite: what waits behind a time is started", "runtime/store/sqlite/shard/lease.c",
     " || side_first(s, &key) < claim.tasks[i].seq);", ");", [CONTRACT("store_sqlite")]),

    # --- workers outside
    ("workers: a heartbeat goes to the owner each time", "runtime/store/sqlite/shard/report.c",
     "report->left_ms > report->enough_ms", "false", [CONTRACT("store_sqlite")]),

    # --- each lane has room of its own
    ("lanes: sqlite, a lane takes the others' room", "runtime/store/sqlite/shard/claim.c",
     "uint32_t until = min_u64(claim->count + claim->want[lane], claim->room);", "uint32_t until = claim->room;",
     [CONTRACT("store_sqlite")]),
    ("lanes: sqlite, a key that is due needs no room", "runtime/store/sqlite/shard/claim.c",
     "if (lane < LANES && !claim->want[lane]) {", "if (false) {", [CONTRACT("store_sqlite")]),
    ("lanes: sqlite, a key without room is due at once", "runtime/store/sqlite/shard/advance.c",
     "has_waiting ? s->now_ms + 1 : 0", "0", [CONTRACT("store_sqlite")]),

    # --- keys that wait for a name
    ("names: sqlite, a wake is not fenced", "runtime/store/sqlite/shard/names.c",
     "        if (fence == FENCE_FENCED)\n                return;\n", "", [CONTRACT("store_sqlite")]),
    ("names: sqlite, a wake is repeated", "runtime/store/sqlite/shard/names.c",
     "fence == FENCE_REPEAT ? 0 : wake->max", "wake->max", [CONTRACT("store_sqlite")]),
    ("names: sqlite, any task changes the name", "runtime/store/sqlite/shard/advance.c",
     "bool is_first = is_plain || task->seq < side_first(s, key);", "bool is_first = true;", [CONTRACT("store_sqlite")]),
    ("names: sqlite, the names are for anybody", "runtime/store/sqlite/shard/names.c",
     "        if (!lease_is_ours(shard_read(s, names->lease.shard), &names->lease))\n                return;\n", "",
     [CONTRACT("store_sqlite")]),
    ("names: sqlite, no room is for half a minute", "runtime/store/sqlite/shard/side_queue.c",
     "(count || !max)", "count", [CONTRACT("store_sqlite")]),

    # --- a start that somebody else may hold
    ("start: the time is not kept", "runtime/store/sqlite/shard/advance.c",
     "note.until_ms = outcome->until_ms ?", "note.until_ms = false ?", [CONTRACT("store_sqlite")]),

    # --- the log and its segments
    ("sqlite: a run of done tasks goes over the end of a segment", "runtime/store/sqlite/shard/log.h",
     "return next == seq + 1 && (next & LOG_PLACE_MASK);", "return next == seq + 1;", [CONTRACT("store_files")]),
    ("sqlite: a number that a claim has passed is given", "runtime/store/sqlite/shard/log.c",
     "max_u64(shard->tail[lane], tally->tail[lane]), shard->taken[lane]) + 1;",
     "max_u64(shard->tail[lane], tally->tail[lane]), 0) + 1;",
     [UNIT("sqlite_log")]),
    ("sqlite: any position is believed", "runtime/store/sqlite/shard/log.c",
     "if (value > POSITION_MAX || value < 1u << FILLED_BITS)", "if (false)", [UNIT("sqlite_log")]),
    ("sqlite: a position is not written", "runtime/store/sqlite/shard/shard_row.c",
     "        log_position_flush(table, db);\n", "", [UNIT("sqlite_log")]),
    ("sqlite: segments of others are looked into again by every call", "runtime/store/sqlite/shard/claim.c",
     "shard->taken[lane] = max_u64(shard->taken[lane], scan.number);",
     "if (count)\n                shard->taken[lane] = scan.number;", [CONTRACT("store_files")]),
    ("sqlite: a takeover looks from one end only", "runtime/store/sqlite/shard/log.c",
     "found < count && look_back(scan))", "false && look_back(scan))", [UNIT("sqlite_log")]),
    ("sqlite: a look back passes rows over", "runtime/store/sqlite/shard/log.c",
     "bool is_behind = is_there && log_shard(id) > scan->shard &&", "bool is_behind = false &&", [UNIT("sqlite_log")]),
    ("sqlite: a claim goes through the backlog of others", "runtime/store/sqlite/shard/claim.c",
     "                        skip_others(s, shard, (enum lane)lane);", "                        (void)skip_others;", [CONTRACT("store_files")]),
    ("sqlite: a claim skips tasks of its own", "runtime/store/sqlite/shard/claim.c",
     "if (found == queued && !s->db.failure)", "if (found && !s->db.failure)", [CONTRACT("store_files")]),
    ("sqlite: a claim looks into every segment", "runtime/store/sqlite/shard/claim.c",
     "        scan.looks = CLAIM_LOOKS;\n", "", [CONTRACT("store_files")]),
    ("sqlite: an empty lane stays where it was", "runtime/store/sqlite/shard/claim.c",
     "if (!shard->queued[lane])\n                        shard->taken[lane] =", "if (false)\n                        shard->taken[lane] =",
     [CONTRACT("store_files")]),
    ("sqlite: a submit that does not fit begins no segment", "runtime/store/sqlite/shard/log.c",
     "if (p->filled && p->filled + count > SEGMENT_TASKS)", "if (false)", [UNIT("sqlite_log")]),

    # --- what producers know of a shard
    ("sqlite: a producer does not learn of a new holder", "runtime/store/sqlite/shard/shard_row.c",
     "memcmp(s->holder, s->known_holder, STORE_NONCE_SIZE) != 0", "false", [CONTRACT("store_producers")]),
    ("sqlite: a producer does not learn that there is a holder again", "runtime/store/sqlite/shard/shard_row.c",
     "if (s->is_held != s->known_held ||", "if (false ||", [CONTRACT("store_producers")]),
    ("sqlite: a producer goes by any row that it has read", "runtime/store/sqlite/shard/shard_row.c",
     "s->is_known && s->known_leases == leases_get(table, db)", "s->is_known", [CONTRACT("store_producers")]),
    ("sqlite: a producer does not learn what was delayed", "runtime/store/sqlite/shard/shard_row.c",
     " ||\n                s->delayed > s->known_delayed)", ")", [CONTRACT("store_producers")]),
    ("sqlite: what others submit is no backlog", "runtime/store/sqlite/shard/shard_row.c",
     "return s->known_backlog + (shard_tally(table, db, s->shard)->put - s->known_put);", "return s->known_backlog;",
     [CONTRACT("store_producers")]),
    ("sqlite: what was in flight is no backlog", "runtime/store/sqlite/shard/shard_row.c",
     "s->delayed + s->parked + s->in_flight;", "s->delayed + s->parked;", [CONTRACT("store_producers")]),
    ("sqlite: a tally is taken in twice", "runtime/store/sqlite/shard/shard_row.c",
     "        tally_take(table, db, s->shard);\n", "", [CONTRACT("store_producers")]),
    ("sqlite: a row is not what came to it", "runtime/store/sqlite/shard/shard_row.c",
     "                tally_add(s, shard_tally(table, db, s->shard));\n", "", [CONTRACT("store_producers")]),
    ("sqlite: any tally is believed", "runtime/store/sqlite/shard/tally.c",
     "return table->groups[shard / TALLY_SHARDS].is_bad || !is_in_range(t);", "return !t;", [CONTRACT("store_producers")]),
    ("sqlite: after a rollback a producer goes by what was undone", "runtime/store/sqlite/shard/shard_row.c",
     "                table->rows[i].is_known = false;\n", "                continue;\n", [CONTRACT("store_producers")]),

    # --- a dump's chunks are taken once
    ("sqlite: a chunk is taken again", "runtime/store/sqlite/admin/import.c",
     "import->is_repeat = import->number && import->number <= import->taken;", "import->is_repeat = false;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a chunk without the one before", "runtime/store/sqlite/admin/import.c",
     "if (import->taken < import->after) {", "if (false) {", [CONTRACT("store_sqlite")]),

    # --- a submit that may be repeated
    ("sqlite: a name is remembered for ever", "runtime/store/sqlite/shard/idempotency.c",
     "if (query_row(&q) && column_number(&q, 0) > s->now_ms)", "if (query_row(&q))", [CONTRACT("store_sqlite")]),
    ("sqlite: any number of names", "runtime/store/sqlite/shard/idempotency.c",
     "gone || count < s->store.idempotency_max", "gone || s", [CONTRACT("store_sqlite")]),
    ("sqlite: a name is remembered before the limits", "runtime/store/sqlite/shard/submit.c",
     "        if (r != 1)\n                return r;\n",
     "        if (r != 1)\n                return r;\n        if (p->idempotency.size)\n                idempotency_put(s, p);\n",
     [CONTRACT("store_sqlite")]),

    # --- mailboxes
    ("sqlite: a mailbox of any size", "runtime/store/sqlite/records/mail.c",
     "m.messages >= STORE_MAIL_MESSAGES || ", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a mailbox of any bytes", "runtime/store/sqlite/records/mail.c",
     " || m.bytes + post->bytes.size > STORE_MAIL_BYTES", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a number from before a loss removes", "runtime/store/sqlite/records/mail.c",
     " || take->after > m->last)", ")", [CONTRACT("store_sqlite")]),
    ("sqlite: a mailbox is kept for ever", "runtime/store/sqlite/statements.h",
     "FROM mailbox WHERE nonce = ?1 AND until > ?2", "FROM mailbox WHERE nonce = ?1 AND ?2 = ?2", [CONTRACT("store_sqlite")]),
    ("sqlite: a message rings nobody", "runtime/store/sqlite/records/mail.c",
     "        doorbells_add(&s->bells, post->nonce, BELL_MAIL);\n", "", [CONTRACT("store_sqlite")]),
    ("sqlite: wanting is kept for ever", "runtime/store/sqlite/statements.h",
     "FROM wanting WHERE until > ?1 AND", "FROM wanting WHERE ?1 = ?1 AND", [CONTRACT("store_sqlite")]),

    # --- rooms
    ("rooms: a load gives numbers again", "runtime/store/sqlite/records/rooms.c", "append->begin != room.last + 1 || ", "",
     [CONTRACT("store_sqlite")]),
    ("rooms: a load begins a room that is there", "runtime/store/sqlite/records/rooms.c", " || (!append->entries_count && !is_unused)", "",
     [CONTRACT("store_sqlite")]),
    ("sqlite: an entry's time is to come", "runtime/store/sqlite/records/rooms.c", "bind_number(&q, min_u64(at_ms, s->now_ms));", "bind_number(&q, at_ms);",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a room keeps any number", "runtime/store/sqlite/records/room_row.c", "room->entries > room->entries_max || ", "",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a room keeps any bytes", "runtime/store/sqlite/records/room_row.c", "room->bytes > room->bytes_max ||", "",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a source appends again", "runtime/store/sqlite/records/rooms.c", "append->source_number <= highest;", "false;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: any number of rooms", "runtime/store/sqlite/records/room_row.c", "if (rooms >= STORE_ROOMS_MAX) {",
     "if (rooms > UINT64_MAX - 1) {", [CONTRACT("store_sqlite")]),
    ("sqlite: no follower is rung", "runtime/store/sqlite/records/rooms.c",
     "        ring_followers(s, shard_of_key(append->name, s->store.shards));\n",
     "        if (!append->name.size)\n                ring_followers(s, 0);\n", [CONTRACT("store_sqlite")]),

    # --- an outcome keeps what it took
    ("sqlite: a result without its note", "runtime/store/sqlite/shard/advance.c",
     "result_put(s, shard, task, outcome->result, note);", "result_put(s, shard, task, outcome->result, (struct span){ 0 });",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a result has the checkpoint", "runtime/store/sqlite/shard/advance.c",
     "        note.checkpoint = (struct span){ 0 };\n", "", [CONTRACT("store_sqlite")]),

    # --- what is parked is counted by lane
    ("parked: sqlite, is not counted in its lane", "runtime/store/sqlite/shard/side_queue.c",
     "                (*lane_counter(shard, seq))++;\n", "                (*lane_counter(shard, seq)) += 0;\n", [CONTRACT("store_sqlite")]),
    ("parked: sqlite, what goes on is still counted in its lane", "runtime/store/sqlite/shard/side_queue.c",
     "                count_down(lane_counter(shard, seq));\n", "                (void)shard;\n", [CONTRACT("store_sqlite")]),
    ("parked: sqlite, what an older file had is normal", "runtime/store/sqlite/file/schema.c",
     "key > shard << 50 AND key < (shard + 1) << 50 \"\n        \"AND seq >> 48 = 0)", "key > shard << 50 AND key < (shard + 1) << 50 \"\n        \"AND seq >> 48 = 3)",
     [CONTRACT("store_files")]),

    # --- idempotency keys that are loaded
    ("idempotency: sqlite, what is over is dumped", "runtime/store/sqlite/statements.h",
     "> ?3 ORDER BY name LIMIT ?4", "NOTNULL AND ?3 NOTNULL ORDER BY name LIMIT ?4", [CONTRACT("store_sqlite")]),
    ("idempotency: sqlite, another task is not told", "runtime/store/sqlite/shard/idempotency.c",
     "is_same = span_is(column_span(&q, 1), record->id) &&", "is_same =", [CONTRACT("store_sqlite")]),
    ("idempotency: sqlite, what is over stays", "runtime/store/sqlite/shard/idempotency.c",
     "is_there = column_number(&q, 0) > s->now_ms;", "is_there = true;", [CONTRACT("store_sqlite")]),
    ("idempotency: sqlite, what is over is still counted", "runtime/store/sqlite/shard/idempotency.c",
     "                count_set(s, shard, count > gone ? count - gone : 0);\n        record_put", "                (void)count;\n        record_put", [CONTRACT("store_sqlite")]),
]
