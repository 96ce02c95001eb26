"""What holds for every store: runtime/store without its drivers."""
from noticed_by import CONTRACT, UNIT

MUTANTS = [
    # --- ages
    ("age: older than the app", "runtime/store/app.c",
     "return now_ms - max_u64(since_ms, created_ms < now_ms ? created_ms : 0);", "return now_ms - since_ms;",
     [UNIT("view_status")]),

    # --- another lane
    ("move: a schedule's", "runtime/store/admin.c", "        if (is_of_schedule(move->id))\n", "        if (false && is_of_schedule(move->id))\n",
     [CONTRACT("store_sqlite")]),
    ("move: a key's order without force", "runtime/store/admin.c",
     "task->envelope.key.size && !is_forced)", "task->envelope.key.size && false)", [CONTRACT("store_sqlite")]),
    ("move: an outcome to the same lane", "runtime/store/store.c",
     " || outcome->lane == STORE_SEQ_LANE(outcome->task.seq)))", "))", [CONTRACT("store_sqlite")]),
    ("move: the first of a key that waits, SQLite", "runtime/store/sqlite/admin/tasks.c",
     "if (is_retrying(s, shard, move)) {", "if (false && is_retrying(s, shard, move)) {", [CONTRACT("store_sqlite")]),
    ("move: what an owner holds, SQLite", "runtime/store/sqlite/admin/tasks.c",
     "*ret_is_owners = !is_queued && shard->is_held;", "*ret_is_owners = false;", [CONTRACT("store_sqlite")]),
    ("move: the first of a key that waits, Redis", "runtime/store/redis/lua/admin/move.lua",
     "if k.state == 'parked' and", "if false and", [CONTRACT("store_redis")]),
    ("move: no mark is left", "runtime/store/redis/lua/admin/move.lua",
     "\tmarks[lane] = marks[lane] + 1\n", "", [CONTRACT("store_redis")]),
    ("move: what an owner holds, Redis", "runtime/store/redis/lua/admin/move.lua", "== 'held ' then", "== '' then",
     [CONTRACT("store_redis")]),

    # --- merging
    ("merge: submitted before it is on", "runtime/store/store.c",
     'if (e.is_merge && !store_app_has(&store->record, "merge"))', "if (false)", [CONTRACT("store_sqlite")]),
    ("merge: told before it is on", "runtime/store/store.c",
     'request_check_feature(request, "merge");', "(void)request;", [CONTRACT("store_sqlite")]),
    ("merge: a call merges any number", "runtime/store/store.c",
     "if (merged > STORE_CALL_MERGED)", "if (false)", [CONTRACT("store_sqlite")]),
    ("merge: of nothing, or without saying so", "runtime/store/store.c",
     "if ((outcome->kind == STORE_MERGE) != (outcome->merged_count > 0))", "if (false)", [CONTRACT("store_sqlite")]),
    ("merge: of any seq", "runtime/store/store.c",
     "if (outcome->merged[i].seq > STORE_SEQ_MAX)", "if (false)", [CONTRACT("store_sqlite")]),
    ("debounce: with any outcome", "runtime/store/store.c",
     "if (outcome->is_debounce && outcome->kind != STORE_DIVERT)", "if (false)", [CONTRACT("store_sqlite")]),
    ("merge: a wait is led to another shard", "runtime/store/admin.c", "|| shard != its_shard ||", "||", [CONTRACT("store_sqlite")]),
    ("merge: a wait goes round for ever", "runtime/store/admin.c",
     "||\n                reply->hops == STORE_REPLY_HOPS)", ")", [CONTRACT("store_sqlite")]),

    # --- LATER
    ("later: the store takes it without the feature", "runtime/store/store.c",
     '                request_check_feature(request, "later");\n', "                (void)request;\n", [CONTRACT("store_sqlite")]),
    ("later: a cost of any outcome", "runtime/store/store.c",
     "if (outcome->cost == COST_LATER && outcome->kind != STORE_RETRY)", "if (false)", [CONTRACT("store_sqlite")]),

    # --- what a newer Quiver wrote
    ("envelope: reserved names are submitted", "runtime/store/store.c", "r = envelope_check_reserved(&e, error);", "r = 0;",
     [CONTRACT("store_sqlite")]),

    # --- what all hosts of an app agree on
    ("app: a host that lacks a feature is let in", "runtime/store/app.c", "options->is_host ? store_app_lacks(app) : NULL", "NULL",
     [CONTRACT("store_sqlite")]),
    ("app: a command that lacks a feature is refused", "runtime/store/app.c", "options->is_host ? store_app_lacks(app) : NULL",
     "store_app_lacks(app)", [CONTRACT("store_sqlite")]),
    ("app: any number of members", "runtime/store/app.c", "!number_read(texts->max_members, STORE_MEMBERS_MAX, &max_members)",
     "!number_read(texts->max_members, UINT64_MAX, &max_members)", [CONTRACT("store_sqlite")]),
    ("app: ids of any number of bits", "runtime/id/layout.c", "!l->sequence_bits || all != ID_BITS)", "!l->sequence_bits)",
     [CONTRACT("store_sqlite"), UNIT("id")]),
    ("app: any number of features", "runtime/store/app.c", "if (app->features_count == STORE_FEATURES_MAX)", "if (false)",
     [CONTRACT("store_sqlite")]),

    # --- schedules
    ("schedules: any time fires", "runtime/store/schedules.c", " ||\n                stored->next_ms != fire->expected_ms)", ")",
     [CONTRACT("store_sqlite")]),
    ("schedules: any version fires", "runtime/store/schedules.c", " || stored->version != fire->version ||\n                stored->next_ms",
     " ||\n                stored->next_ms", [CONTRACT("store_sqlite")]),
    ("schedules: a paused one fires", "runtime/store/schedules.c", "if (stored->state != SCHEDULE_ACTIVE || ", "if (", [CONTRACT("store_sqlite")]),
    ("schedules: the last task is never alive", "runtime/store/schedules.c", "!(fire->unless_alive && is_alive)", "true",
     [CONTRACT("store_sqlite")]),
    ("schedules: an older definition wins", "runtime/store/schedules.c", "if (is_there && set->version <= schedule->version)", "if (false)",
     [CONTRACT("store_sqlite")]),
    ("schedules: the same again loses a time that is due", "runtime/store/schedules.c",
     "if (is_gone || set->verb == SCHEDULE_LOAD || !span_is(set->definition, schedule->definition))", "if (true)",
     [CONTRACT("store_sqlite")]),
    ("schedules: a loaded one knows a task of another store", "runtime/store/schedules.c", "                        schedule->last_seq = 0;\n", "",
     [CONTRACT("store_sqlite")]),
    ("schedules: a loaded one has any count", "runtime/store/schedules.c", "set->fired > TASK_NUMBER_MAX || ", "",
     [CONTRACT("store_sqlite")]),

    # --- limits
    ("limits: what runs is not counted", "runtime/store/limit_share.c", "is_listed ? s->keep : 0", "0", [UNIT("limit_share")]),
    ("limits: any number of holders keep", "runtime/store/limit_share.c", "is_listed ? s->keep : 0", "s->keep", [UNIT("limit_share")]),
    ("limits: a late call takes away", "runtime/store/limit_share.c", "if (held.own_call > s->call) {", "if (false) {", [UNIT("limit_share")]),
    ("limits: a closed value grants", "runtime/store/limit_share.c", "s->granted = b.closed_ms ? 0 : min_u64", "s->granted = min_u64",
     [UNIT("limit_share")]),
    ("limits: a closed value has room", "runtime/store/limit_share.c", "bool has_room = !held.closed_ms && held.others", "bool has_room = held.others",
     [UNIT("limit_share")]),
    ("limits: a closure is forgotten", "runtime/store/limit_share.c", "put_holder(s, closed, 0, held.closed_ms, 0);", "", [UNIT("limit_share")]),
    ("limits: too much is not said", "runtime/store/limit_share.c", "s->is_over = s->granted > room;", "", [UNIT("limit_share")]),
    ("limits: a bucket has no bottom", "runtime/store/limit_share.c", "b.level -= s->granted * limit->period_ms;", "",
     [UNIT("limit_share"), CONTRACT("store_sqlite")]),
    ("limits: time is counted twice after the clock was set back", "runtime/store/limit_share.c",
     "        if (now_ms > b.at_ms) {", "        if (now_ms < b.at_ms)\n                b.at_ms = now_ms;\n        if (now_ms > b.at_ms) {",
     [UNIT("limit_share"), CONTRACT("store_sqlite")]),
    ("limits: a bucket that is far ahead stays so", "runtime/store/limit_share.c", "s->granted > 0 || b.is_anew", "s->granted > 0",
     [UNIT("limit_share")]),
    ("limits: no grace", "runtime/store/limit_share.c", "uint64_t back_ms = h.until_ms + (h.shares ? limit->grace_ms : 0);", "uint64_t back_ms = h.until_ms;",
     [UNIT("limit_share"), CONTRACT("store_sqlite")]),
    ("limits: what others hold does not count", "runtime/store/limit_share.c",
     "held->others = min_u64(held->others + h.shares, TASK_NUMBER_MAX);", "held->others = 0;", [UNIT("limit_share")]),
    ("limits: unreadable holders hold nothing", "runtime/store/limit_share.c", "others = limit->concurrency;", "others = 0;",
     [UNIT("limit_share")]),
    ("limits: without the feature", "runtime/store/limits.c", '        request_check_feature(request, "limits");\n', "",
     [CONTRACT("store_sqlite")]),

    # --- workers outside
    ("workers: sqlite, any start may speak", "runtime/store/reports.c",
     "        return holder.size == start.size || start.data[start.size - 1] == '/';", "        return true;",
     [CONTRACT("store_sqlite")]),

    # --- keys that wait for a name
    ("names: any name is taken", "runtime/store/store.c",
     "if (outcome->name.size && (outcome->kind", "if (false && (outcome->kind", [CONTRACT("store_sqlite")]),

    # --- a start that somebody else may hold
    ("start: without a holder", "runtime/store/store.c",
     "outcome->kind == STORE_START ? !note_holder_is_good(outcome->holder) : outcome->holder.size > 0", "false",
     [CONTRACT("store_sqlite")]),

    # --- a submit that may be repeated
    ("idempotency: any task is a repeat", "runtime/store/store.c",
     "item->is_repeat = !memcmp(digest.data, prepared->digest, SHA256_SIZE);", "item->is_repeat = true;",
     [CONTRACT("store_sqlite"), CONTRACT("store_redis")]),
    ("idempotency: the payload is not compared", "runtime/store/idempotency.c",
     "        sha256_put(&h, e.payload.data, e.payload.size);\n", "", [CONTRACT("store_sqlite")]),
    ("idempotency: the delay is not compared", "runtime/store/idempotency.c",
     "buffer_printf(&text, \"delay %\" PRIu64 \"\\n\", delay_ms);", "(void)delay_ms;", [CONTRACT("store_sqlite")]),
    ("idempotency: the trace is compared", "runtime/store/idempotency.c",
     "if (is_of_the_call(header.name))", "if (is_of_the_call(header.name) && !header.name.size)", [CONTRACT("store_sqlite")]),
    ("idempotency: names run into keys", "runtime/store/idempotency.c", "        *at++ = '\\n';\n", "",
     [CONTRACT("store_sqlite")]),
    ("idempotency: a task without a key goes anywhere", "runtime/store/store.c",
     "struct span place = e.key.size ? e.key : name;", "struct span place = e.key;\n        (void)name;",
     [CONTRACT("store_sqlite")]),

    # --- rooms
    ("rooms: a load begins at any number", "runtime/store/rooms.c", "if (append->begin > STORE_ROOM_BEGIN_MAX)", "if (false)", [CONTRACT("store_sqlite")]),
    ("rooms: a gap is not told", "runtime/store/rooms.c", "return from && (from < first || from > last + 1);",
     "return from > last + 1;", [CONTRACT("store_sqlite")]),
    ("rooms: nobody is told that the room is another", "runtime/store/rooms.c", "from < first || from > last + 1",
     "from < first || last > from + TASK_NUMBER_MAX", [CONTRACT("store_sqlite")]),

    # --- what is parked is counted by lane
    ("parked: more in a lane than there are", "runtime/store/admin.c",
     "c->parked[LANE_HIGH] = min_u64(high, all);", "c->parked[LANE_HIGH] = high;", [UNIT("view_status")]),

    # --- idempotency keys that are loaded
    ("idempotency: anything is loaded", "runtime/store/admin.c",
     "if (!idempotency_is_fit(&import->names[i]))", "if (false)", [CONTRACT("store_sqlite")]),
    ("idempotency: of any length of time", "runtime/store/idempotency.c",
     "record->left_ms && record->left_ms <= TASK_NUMBER_MAX / 2", "record->left_ms", [CONTRACT("store_sqlite")]),
]
