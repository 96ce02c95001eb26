#!/usr/bin/python3
"""Removes one check at a time and says which test noticed.

A check that can be removed without any test turning red protects nobody: somebody will remove it.  Each mutant is one
replacement in one file of a copy of the tree; the tests named for it run in order, until one of them fails.

usage: mutants.py [NAME …]      only those whose name contains one of the words
"""
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"

UNIT = "unit/test_{}".format
CONTRACT = "contract/test_{}".format
SIM = "sim/test_sim"

# name, file, what stands there, what stands there in the mutant, the tests that should notice
MUTANTS = [
    # --- the fence of the SQLite store: epoch, nonce, call
    ("sqlite: any epoch", "runtime/store/sqlite/lease.c",
     "return shard->is_held && shard->epoch == lease->epoch &&", "return shard->is_held &&", [CONTRACT("store_sqlite")]),
    ("sqlite: any nonce", "runtime/store/sqlite/lease.c",
     "shard->epoch == lease->epoch && is_nonce(shard->holder, lease->nonce);", "shard->epoch == lease->epoch;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: also after release", "runtime/store/sqlite/lease.c",
     "return shard->is_held && shard->epoch", "return shard->epoch", [CONTRACT("store_sqlite")]),
    ("sqlite: any call number", "runtime/store/sqlite/lease.c",
     "        if (call == shard->call + 1)\n                return FENCE_OK;\n"
     "        return call == shard->call ? FENCE_REPEAT : FENCE_FENCED;",
     "        return call == shard->call ? FENCE_REPEAT : FENCE_OK;", [CONTRACT("store_sqlite")]),
    ("sqlite: a repeat is done again", "runtime/store/sqlite/lease.c",
     "return call == shard->call ? FENCE_REPEAT : FENCE_FENCED;", "return call == shard->call ? FENCE_OK : FENCE_FENCED;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a grant does not jump", "runtime/store/sqlite/lease.c",
     "shard->call += 2;", "shard->call += 0;", [CONTRACT("store_sqlite")]),
    ("sqlite: a lower epoch is granted", "runtime/store/sqlite/lease.c",
     "        if (lease->epoch < shard->epoch)\n                return STORE_STALE;\n", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a lasting lease is taken", "runtime/store/sqlite/lease.c",
     "if (!shard->is_held || is_same_nonce || !lease_left_ms(s, shard))", "if (true)", [CONTRACT("store_sqlite")]),
    ("sqlite: renewal is not fenced", "runtime/store/sqlite/lease.c",
     "        if (!lease_is_ours(shard_read(s, lease->shard), lease))\n                return;\n", "", [CONTRACT("store_sqlite")]),
    ("sqlite: release is not fenced", "runtime/store/sqlite/lease.c",
     "if (fence_check(shard, lease, release->call) != FENCE_OK) {", "if (false) {", [CONTRACT("store_sqlite")]),
    ("sqlite: a firm want never refuses", "runtime/store/sqlite/lease.c",
     "if (is_wanted(s, shard) && shard->want_firm_ms &&", "if (false && is_wanted(s, shard) && shard->want_firm_ms &&",
     [CONTRACT("store_sqlite")]),

    # --- what people are shown of a store
    ("sqlite: the oldest is what nobody claimed", "runtime/store/sqlite/tasks.c",
     "if (!shard->queued[lane] && !shard->in_flight)", "if (!shard->queued[lane])", [CONTRACT("store_sqlite")]),
    ("sqlite: a dead task is in no group", "runtime/store/sqlite/dead.c",
     "dead_group_count(s, shard->shard, row->handler, row->reason, error, 1);", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a requeued task stays in its group", "runtime/store/sqlite/dead.c",
     "dead_group_count(s, shard->shard, handler, reason, error, -1);", "", [CONTRACT("store_sqlite")]),
    ("sqlite: groups without end", "runtime/store/sqlite/dead_groups.c",
     "groups_of(s, shard) < STORE_DEAD_GROUPS", "true", [CONTRACT("store_sqlite")]),
    ("sqlite: a counter that is put twice counts twice", "runtime/store/sqlite/desired.c",
     "(void)counter_get(s, STATEMENT_COUNTED_GET, &nonce, counter->name, &counted);", "", [CONTRACT("store_sqlite")]),
    ("redis: the oldest is what nobody claimed", "runtime/store/redis/lua/count.lua",
     "	see_age(redis.call('HGET', flight, decimal(seq)))", "", [CONTRACT("store_redis")]),
    ("redis: a dropped task stays in its group", "runtime/store/redis/lua/dead.lua",
     "	group_count(d, -1)\n", "", [CONTRACT("store_redis")]),
    ("redis: groups without end", "runtime/store/redis/lua/lib/dead.lua",
     "(by < 0 or redis.call('HLEN', groups) >= GROUPS_MAX)", "by < 0", [CONTRACT("store_redis")]),
    ("redis: a host that comes back counts twice", "runtime/store/redis/lua/status_put.lua",
     "(whole(counted[name]) or whole(ARGV[i + 1]) or value)", "(whole(counted[name]) or 0)", [CONTRACT("store_redis")]),
    ("sqlite: opening needs the write lock", "runtime/store/sqlite/open.c",
     "if (!r && !setup_reading(s, options, &r, error)) {", "if (!r) {", [CONTRACT("store_files")]),

    ("alarm: hosts fires when there are enough", "runtime/view/alarm.c",
     "c->is_below ? found >= alarm->limit : found < alarm->limit", "found < alarm->limit", [UNIT("view_status")]),
    ("alarm: what is claimed does not wait", "runtime/view/status.c",
     "store_counts_queued(&status->total) + status->total.in_flight + status->total.parked",
     "store_counts_queued(&status->total)", [UNIT("view_status")]),
    ("status: anybody says what runs in a shard", "runtime/view/status.c",
     "if (!c->is_held || !c->left_ms || memcmp(c->holder, found->nonce, STORE_NONCE_SIZE) != 0)", "if (false)",
     [UNIT("view_status")]),
    ("status: a busy key's surplus is parked", "runtime/view/status.c",
     "status->parked_keys += key->state == KEY_PARKED;", "status->parked_keys++;", [UNIT("view_status")]),

    # --- who else could have written what a host runs
    ("trust: any owner", "runtime/base/file_trust.c", "st->st_uid != 0 && st->st_uid != geteuid()) {", "false) {",
     [UNIT("file_trust")]),
    ("trust: writable by everybody", "runtime/base/file_trust.c", "has_mode && (st->st_mode & S_IWOTH)) {", "false) {",
     [UNIT("file_trust")]),
    ("trust: writable by any group", "runtime/base/file_trust.c", "!is_our_group(st->st_gid)", "false", [UNIT("file_trust")]),
    ("trust: folders on the way do not count", "runtime/base/file_trust.c",
     "                judge(w, &st, ON_THE_WAY);\n                (void)close(w->dir);", "                (void)close(w->dir);",
     [UNIT("file_trust")]),
    ("trust: links do not count", "runtime/base/file_trust.c", "                judge(w, &st, A_LINK);\n", "", [UNIT("file_trust")]),
    ("trust: a plugin is taken anyway", "runtime/host/handler/plugin_copy.c", "source == PLUGIN_TRUSTED && trust.verdict != FILE_TRUST_SOUND",
     "false", [UNIT("plugin_copy")]),

    # --- what is read has a range
    ("window: any lane", "runtime/host/shard/window.c",
     "        if (task->seq > STORE_SEQ_MAX)\n                return NULL; /* there is no line for it */\n", "",
     [UNIT("window")]),
    ("note: a checkpoint of any length", "runtime/task/note.c",
     "                if (text.size > NOTE_CHECKPOINT_MAX)\n                        return -EBADMSG;\n", "", [UNIT("envelope")]),

    # --- what a newer Quiver wrote
    ("envelope: any number of unknown names", "runtime/task/envelope.c", "if (++p->others > TASK_OTHERS_MAX)", "if (false)",
     [UNIT("envelope")]),
    ("envelope: unknown names of any size", "runtime/task/envelope.c", "if (size > LINES_SIZE_MAX)", "if (false)", [UNIT("envelope")]),
    ("envelope: an unknown name twice", "runtime/task/envelope_others.c", "if (span_is(other, name))", "if (false)", [UNIT("envelope")]),
    ("envelope: reserved names are submitted", "runtime/store/store.c", "r = envelope_check_reserved(&e, error);", "r = 0;",
     [CONTRACT("store_sqlite")]),
    ("envelope: packed without unknown names", "runtime/task/packed.c", "(e->others.size ? MORE_OTHERS : 0)", "0",
     [UNIT("packed"), CONTRACT("store_sqlite")]),
    ("shard: runs what it does not understand", "runtime/host/shard/shard.c",
     "        if (needs.size)\n                return WINDOW_NO_POOL;\n", "", [UNIT("shard_route")]),

    # --- what all hosts of an app agree on
    ("app: a host that lacks a feature is let in", "runtime/store/app.c", "options->is_host ? store_app_lacks(app) : NULL", "NULL",
     [CONTRACT("store_sqlite")]),
    ("app: a command that lacks a feature is refused", "runtime/store/app.c", "options->is_host ? store_app_lacks(app) : NULL",
     "store_app_lacks(app)", [CONTRACT("store_sqlite")]),
    ("app: any number of members", "runtime/store/app.c", "!number_read(texts->max_members, STORE_MEMBERS_MAX, &max_members)",
     "!number_read(texts->max_members, UINT64_MAX, &max_members)", [CONTRACT("store_sqlite")]),
    ("app: ids of any number of bits", "runtime/store/app.c", "at == text.size && bits[0] + bits[1] + bits[2] == 63", "at == text.size",
     [CONTRACT("store_sqlite")]),
    ("app: any number of features", "runtime/store/app.c", "if (app->features_count == STORE_FEATURES_MAX)", "if (false)",
     [CONTRACT("store_sqlite")]),
    ("app: any number of features on Redis", "runtime/store/redis/lua/app_set.lua", "if #names > tonumber(ARGV[2]) then", "if false then",
     [CONTRACT("store_redis")]),
    ("app: another schema is opened", "runtime/store/redis/app.c", "int r = schema_check(s, reply_span(reply_at(reply, REPLY_SCHEMA)), error);",
     "int r = 0;", [CONTRACT("store_redis")]),

    # --- schedules
    ("schedules: any time fires", "runtime/store/schedules.c", " ||\n                stored->next_ms != fire->expected_ms)", ")",
     [CONTRACT("store_sqlite")]),
    ("schedules: any version fires", "runtime/store/schedules.c", " || stored->version != fire->version ||\n                stored->next_ms",
     " ||\n                stored->next_ms", [CONTRACT("store_sqlite")]),
    ("schedules: a paused one fires", "runtime/store/schedules.c", "if (stored->state != SCHEDULE_ACTIVE || ", "if (", [CONTRACT("store_sqlite")]),
    ("schedules: the last task is never alive", "runtime/store/schedules.c", "!(fire->unless_alive && is_alive)", "true",
     [CONTRACT("store_sqlite")]),
    ("schedules: firing is not fenced", "runtime/store/sqlite/schedules.c",
     "        if (fence == FENCE_FENCED)\n                return;\n        fires->verdict", "        fires->verdict", [CONTRACT("store_sqlite")]),
    ("schedules: a repeat fires again", "runtime/store/sqlite/schedules.c", "fire_one(s, shard, fires, i, fence == FENCE_REPEAT);",
     "fire_one(s, shard, fires, i, false);", [CONTRACT("store_sqlite")]),
    ("schedules: an older definition wins", "runtime/store/schedules.c", "if (is_there && set->version <= schedule->version)", "if (false)",
     [CONTRACT("store_sqlite")]),
    ("schedules: any number", "runtime/store/sqlite/schedules.c", "if (count < STORE_SCHEDULES_MAX)", "if (true)", [CONTRACT("store_sqlite")]),
    ("schedules: the owner is not told", "runtime/store/sqlite/schedules.c", "        if (shard->is_held)\n", "        if (false)\n",
     [CONTRACT("store_sqlite")]),
    ("redis schedules: any time fires", "runtime/store/redis/lua/fires.lua", " or s[3] ~= expected then", " then", [CONTRACT("store_redis")]),
    ("redis schedules: any version fires", "runtime/store/redis/lua/fires.lua", " or s[2] ~= version or ", " or ", [CONTRACT("store_redis")]),
    ("redis schedules: a paused one fires", "runtime/store/redis/lua/fires.lua", "if s[1] ~= ACTIVE or ", "if ", [CONTRACT("store_redis")]),
    ("redis schedules: the last task is never alive", "runtime/store/redis/lua/fires.lua", "not (unless_alive and is_alive(s[5]))", "true",
     [CONTRACT("store_redis")]),
    ("redis schedules: firing is not fenced", "runtime/store/redis/lua/fires.lua", "if fields[1] ~= ARGV[1] then", "if false then",
     [CONTRACT("store_redis")]),
    ("redis schedules: any call number fires", "runtime/store/redis/lua/fires.lua", "if call ~= last_call + 1 and call ~= last_call then",
     "if false then", [CONTRACT("store_redis")]),
    ("redis schedules: an older definition wins", "runtime/store/redis/lua/schedule_set.lua", "if s and version <= s[2] then", "if false then",
     [CONTRACT("store_redis")]),
    ("redis schedules: any number", "runtime/store/redis/lua/schedule_set.lua", "if #gone == 0 then", "if false then", [CONTRACT("store_redis")]),
    ("redis schedules: the owner is not told", "runtime/store/redis/lua/schedule_set.lua", "== 'held ' then", "== 'nobody' then",
     [CONTRACT("store_redis")]),

    # --- limits
    ("limits: a bucket has no bottom", "runtime/store/limit_share.c", "b.level -= s->granted * limit->period_ms;", "",
     [UNIT("limit_share"), CONTRACT("store_sqlite")]),
    ("limits: time is counted twice after the clock was set back", "runtime/store/limit_share.c",
     "        if (now_ms > b.at_ms) {", "        if (now_ms < b.at_ms)\n                b.at_ms = now_ms;\n        if (now_ms > b.at_ms) {",
     [UNIT("limit_share"), CONTRACT("store_sqlite")]),
    ("limits: a bucket that is far ahead stays so", "runtime/store/limit_share.c", "s->granted > 0 || b.is_anew", "s->granted > 0",
     [UNIT("limit_share")]),
    ("limits: no grace", "runtime/store/limit_share.c", "if (h.until_ms + limit->grace_ms <= s->now_ms ||", "if (h.until_ms <= s->now_ms ||",
     [UNIT("limit_share"), CONTRACT("store_sqlite")]),
    ("limits: what others hold does not count", "runtime/store/limit_share.c",
     "others = min_u64(others + h.shares, TASK_NUMBER_MAX);", "others = 0;", [UNIT("limit_share")]),
    ("limits: unreadable holders hold nothing", "runtime/store/limit_share.c", "others = limit->concurrency;", "others = 0;",
     [UNIT("limit_share")]),
    ("limits: any number of values", "runtime/store/sqlite/limits.c", "return home->values < home->limit.values_max;", "return true;",
     [CONTRACT("store_sqlite")]),
    ("limits: an older definition is used", "runtime/store/sqlite/limits.c", "home.is_there && stored.version >= given->version",
     "false", [CONTRACT("store_sqlite")]),
    ("limits: without the feature", "runtime/store/limits.c", '        request_check_feature(request, "limits");\n', "",
     [CONTRACT("store_sqlite")]),
    ("redis limits: a bucket has no bottom", "runtime/store/redis/lua/limit_take.lua", "level = level - granted * period", "",
     [CONTRACT("store_redis")]),
    ("redis limits: time is counted twice", "runtime/store/redis/lua/limit_take.lua", "level, since = math.min(l, full), s",
     "level, since = math.min(l, full), math.min(s, now)", [CONTRACT("store_redis")]),
    ("redis limits: a bucket that is far ahead stays so", "runtime/store/redis/lua/limit_take.lua", "(granted > 0 or is_anew) and", "granted > 0 and",
     [CONTRACT("store_redis")]),
    ("redis limits: no grace", "runtime/store/redis/lua/limit_take.lua", "if till + grace > now and", "if till > now and",
     [CONTRACT("store_redis")]),
    ("redis limits: any number of values", "runtime/store/redis/lua/limit_take.lua",
     "is_full = redis.call('HLEN', values) >= values_max", "is_full = false", [CONTRACT("store_redis")]),
    ("redis limits: an older definition is used", "runtime/store/redis/lua/limit_take.lua", "if stored and stored[1] >= d[1] then",
     "if false then", [CONTRACT("store_redis")]),

    # --- the same in the script that owners call on Redis
    ("redis: any lease", "runtime/store/redis/lua/advance.lua",
     "if fields[1] ~= ARGV[1] then", "if false then", [CONTRACT("store_redis")]),
    ("redis: any call number", "runtime/store/redis/lua/advance.lua",
     "if call ~= last_call + 1 and call ~= last_call then", "if false then", [CONTRACT("store_redis")]),
    ("redis: a repeat is done again", "runtime/store/redis/lua/advance.lua",
     "if call > last_call and ARGV[9]", "if ARGV[9]", [CONTRACT("store_redis")]),
    ("redis: what is claimed stays in its lane", "runtime/store/redis/lua/advance.lua",
     "redis.pcall('LPOP', list, format('%d', asked))", "redis.pcall('LRANGE', list, 0, asked - 1)",
     [CONTRACT("store_redis")]),
    ("redis: what was taken beyond the wanted bytes is lost", "runtime/store/redis/lua/advance.lua",
     "redis.call('LPUSH', list, some[i])", "do end", [CONTRACT("store_redis")]),
    ("redis: a number below ten has a zero before it", "runtime/store/redis/lua/advance.lua",
     "first < 10 and '' or format", "format", [CONTRACT("store_redis")]),
    ("redis: what is too much is claimed", "runtime/store/redis/lua/advance.lua",
     "if size > limit or (bytes >= want_bytes and p > 0) then", "if size > limit then", [CONTRACT("store_redis")]),
    ("redis: what is too long is requeued", "runtime/store/redis/lua/dead.lua",
     "if verb == 0 and d[5] == 'too long' then", "if false then", [CONTRACT("store_redis")]),

    # --- each lane has room of its own
    ("lanes: redis, a lane takes the others' room", "runtime/store/redis/lua/advance.lua",
     "local first, rest = seq + 1, math.min(want[lane], 256 - p / 2)", "local first, rest = seq + 1, 256 - p / 2",
     [CONTRACT("store_redis")]),
    ("lanes: redis, a call brings any number", "runtime/store/redis/lua/advance.lua",
     "math.min(want[lane], 256 - p / 2)", "want[lane]", [CONTRACT("store_redis")]),
    ("lanes: redis, a key that is due needs no room", "runtime/store/redis/lua/lib/claim.lua",
     "elseif lane and want[lane] == 0 then", "elseif false then", [CONTRACT("store_redis")]),
    ("lanes: redis, what is taken for a key does not count", "runtime/store/redis/lua/lib/claim.lua",
     "want[lane] = want[lane] - 1", "do end", [CONTRACT("store_redis_model")]),
    ("lanes: sqlite, a lane takes the others' room", "runtime/store/sqlite/claim.c",
     "uint32_t until = min_u64(claim->count + claim->want[lane], claim->room);", "uint32_t until = claim->room;",
     [CONTRACT("store_sqlite")]),
    ("lanes: sqlite, a key that is due needs no room", "runtime/store/sqlite/claim.c",
     "if (lane < LANES && !claim->want[lane]) {", "if (false) {", [CONTRACT("store_sqlite")]),
    ("lanes: sqlite, a key without room is due at once", "runtime/store/sqlite/advance.c",
     "has_waiting ? s->now_ms + 1 : 0", "0", [CONTRACT("store_sqlite")]),
    ("lanes: no room of its own", "runtime/host/shard/shard_pace.c",
     "max_u64(own, shared_room(s, kept - own))", "shared_room(s, 0)", [UNIT("shard")]),
    ("lanes: the others' room is not kept", "runtime/host/shard/shard_pace.c",
     "shared_room(s, kept - own)", "shared_room(s, 0)", [UNIT("shard")]),
    ("lanes: a full lane is asked for again", "runtime/host/shard/shard_pace.c",
     "has_known |= want.tasks[lane] && s->has_more[lane];", "has_known |= s->has_more[lane];", [UNIT("shard")]),

    # --- keys that wait for a name
    ("names: sqlite, a wake is not fenced", "runtime/store/sqlite/names.c",
     "        if (fence == FENCE_FENCED)\n                return;\n", "", [CONTRACT("store_sqlite")]),
    ("names: sqlite, a wake is repeated", "runtime/store/sqlite/names.c",
     "fence == FENCE_REPEAT ? 0 : wake->max", "wake->max", [CONTRACT("store_sqlite")]),
    ("names: sqlite, any task changes the name", "runtime/store/sqlite/advance.c",
     "bool is_first = is_plain || task->seq < side_first(s, key);", "bool is_first = true;", [CONTRACT("store_sqlite")]),
    ("names: sqlite, the names are for anybody", "runtime/store/sqlite/names.c",
     "        if (!lease_is_ours(shard_read(s, names->lease.shard), &names->lease))\n                return;\n", "",
     [CONTRACT("store_sqlite")]),
    ("names: sqlite, no room is for half a minute", "runtime/store/sqlite/side_queue.c",
     "(count || !max)", "count", [CONTRACT("store_sqlite")]),
    ("names: redis, a wake is not fenced", "runtime/store/redis/lua/wake.lua",
     "if fields[1] ~= ARGV[1] then", "if false then", [CONTRACT("store_redis")]),
    ("names: redis, a wake of any number", "runtime/store/redis/lua/wake.lua",
     "if call ~= last_call + 1 and call ~= last_call then", "if false then", [CONTRACT("store_redis")]),
    ("names: redis, a wake is repeated", "runtime/store/redis/lua/wake.lua",
     "if call > last_call then", "if true then", [CONTRACT("store_redis")]),
    ("names: redis, any task changes the name", "runtime/store/redis/lua/lib/outcomes.lua",
     "is_first = not head or seq < tonumber(side_field(head))", "is_first = true", [CONTRACT("store_redis")]),
    ("names: redis, the index keeps who has gone", "runtime/store/redis/lua/lib/key.lua",
     "redis.call('ZREM', named, k.place)", "do end", [CONTRACT("store_redis")]),
    ("names: redis, no room is for half a minute", "runtime/store/redis/lua/lib/outcomes.lua",
     "(#strays > 0 or is_cut or count == room)", "(#strays > 0 or is_cut)", [CONTRACT("store_redis")]),
    ("names: any name is taken", "runtime/store/store.c",
     "if (outcome->name.size && (outcome->kind", "if (false && (outcome->kind", [CONTRACT("store_sqlite")]),
    ("names: a shut name is woken", "runtime/host/shard/shard_names.c",
     "routes->states[pool] == ROUTE_OPEN", "true", [UNIT("shard_names")]),
    ("names: what was diverted is forgotten", "runtime/host/shard/shard.c",
     "if (kind == STORE_DIVERT && c->pending->outcome.name.size)", "if (false)", [UNIT("shard_names")]),
    ("names: a new owner does not read them", "runtime/host/shard/shard.c",
     "s->names.must_read = acquire->has_names;", "s->names.must_read = false;", [UNIT("shard_names")]),
    ("names: woken without end", "runtime/host/shard/shard.c",
     "s->names.has_woken = advance->has_due_waiting;", "s->names.has_woken = false;", [UNIT("shard_names")]),
    ("names: a lost wake is another one", "runtime/host/shard/shard.c",
     "if (s->is_repeat && s->last_call >= SHARD_CALL_ADVANCE)", "if (s->is_repeat && s->last_call == SHARD_CALL_ADVANCE)",
     [UNIT("shard_names")]),

    # --- a start that somebody else may hold
    ("start: the time is not kept", "runtime/store/sqlite/advance.c",
     "note.until_ms = outcome->until_ms ?", "note.until_ms = false ?", [CONTRACT("store_sqlite")]),
    ("start: redis, the time is not kept", "runtime/store/redis/lua/lib/outcomes.lua",
     "o[18] > 0 and now + o[18] or 0", "0", [CONTRACT("store_redis")]),
    ("start: redis, an end keeps the mark", "runtime/store/redis/lua/lib/note.lua",
     "n.started, n['until'], n.holder = 0, 0, ''", "n.started = 0", [CONTRACT("store_redis")]),
    ("start: without a holder", "runtime/store/store.c",
     "outcome->kind == STORE_START ? !note_holder_is_good(outcome->holder) : outcome->holder.size > 0", "false",
     [CONTRACT("store_sqlite")]),
    ("start: what runs elsewhere is started", "runtime/host/shard/shard.c",
     "else if (is_busy_elsewhere(s, &tasks[i]))", "else if (false)", [UNIT("shard_suspects")]),
    ("start: our own is kept from us", "runtime/host/shard/shard.c",
     "return !span_is(task->note.holder, (struct span){ own, strlen(own) });", "return true;", [UNIT("shard_suspects")]),
    ("start: a worker's silence is a host's death", "runtime/host/shard/window.c",
     " && !task->note.until_ms;", ";", [UNIT("shard_suspects")]),

    # --- a dump's chunks are taken once
    ("sqlite: a run of done tasks goes over the end of a segment", "runtime/store/sqlite/log.h",
     "return next == seq + 1 && (next & LOG_PLACE_MASK);", "return next == seq + 1;", [CONTRACT("store_files")]),
    ("sqlite: a number that a claim has passed is given", "runtime/store/sqlite/log.c",
     "max_u64(shard->tail[lane], tally->tail[lane]), shard->taken[lane]) + 1;",
     "max_u64(shard->tail[lane], tally->tail[lane]), 0) + 1;",
     [UNIT("sqlite_log")]),
    ("sqlite: any position is believed", "runtime/store/sqlite/log.c",
     "if (value > POSITION_MAX || value < 1u << FILLED_BITS)", "if (false)", [UNIT("sqlite_log")]),
    ("sqlite: a position is not written", "runtime/store/sqlite/shard_row.c",
     "        log_position_flush(table, db);\n", "", [UNIT("sqlite_log")]),
    ("sqlite: segments of others are looked into again by every call", "runtime/store/sqlite/claim.c",
     "shard->taken[lane] = max_u64(shard->taken[lane], scan.number);",
     "if (count)\n                shard->taken[lane] = scan.number;", [CONTRACT("store_files")]),
    ("sqlite: a claim looks into every segment", "runtime/store/sqlite/claim.c",
     "        scan.looks = CLAIM_LOOKS;\n", "", [CONTRACT("store_files")]),
    ("sqlite: an empty lane stays where it was", "runtime/store/sqlite/claim.c",
     "if (!shard->queued[lane])\n                        shard->taken[lane] =", "if (false)\n                        shard->taken[lane] =",
     [CONTRACT("store_files")]),
    ("sqlite: a submit that does not fit begins no segment", "runtime/store/sqlite/log.c",
     "if (p->filled && p->filled + count > SEGMENT_TASKS)", "if (false)", [UNIT("sqlite_log")]),
    ("sqlite: a producer does not learn of a new holder", "runtime/store/sqlite/shard_row.c",
     "memcmp(s->holder, s->known_holder, STORE_NONCE_SIZE) != 0", "false", [CONTRACT("store_producers")]),
    ("sqlite: a producer does not learn that there is a holder again", "runtime/store/sqlite/shard_row.c",
     "if (s->is_held != s->known_held ||", "if (false ||", [CONTRACT("store_producers")]),
    ("sqlite: a producer goes by any row that it has read", "runtime/store/sqlite/shard_row.c",
     "s->is_known && s->known_leases == leases_get(table, db)", "s->is_known", [CONTRACT("store_producers")]),
    ("sqlite: a producer does not learn what was delayed", "runtime/store/sqlite/shard_row.c",
     " ||\n                s->delayed > s->known_delayed)", ")", [CONTRACT("store_producers")]),
    ("sqlite: what others submit is no backlog", "runtime/store/sqlite/shard_row.c",
     "return s->known_backlog + (shard_tally(table, db, s->shard)->put - s->known_put);", "return s->known_backlog;",
     [CONTRACT("store_producers")]),
    ("sqlite: what was in flight is no backlog", "runtime/store/sqlite/shard_row.c",
     "s->delayed + s->parked + s->in_flight;", "s->delayed + s->parked;", [CONTRACT("store_producers")]),
    ("sqlite: a tally is taken in twice", "runtime/store/sqlite/shard_row.c",
     "        tally_take(table, db, s->shard);\n", "", [CONTRACT("store_producers")]),
    ("sqlite: a row is not what came to it", "runtime/store/sqlite/shard_row.c",
     "                tally_add(s, shard_tally(table, db, s->shard));\n", "", [CONTRACT("store_producers")]),
    ("sqlite: any tally is believed", "runtime/store/sqlite/tally.c",
     "return table->groups[shard / TALLY_SHARDS].is_bad || !is_in_range(t);", "return !t;", [CONTRACT("store_producers")]),
    ("sqlite: after a rollback a producer goes by what was undone", "runtime/store/sqlite/shard_row.c",
     "                table->rows[i].is_known = false;\n", "                continue;\n", [CONTRACT("store_producers")]),
    ("sqlite: a chunk is taken again", "runtime/store/sqlite/import.c",
     "import->is_repeat = import->number && import->number <= import->taken;", "import->is_repeat = false;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a chunk without the one before", "runtime/store/sqlite/import.c",
     "if (import->taken < import->after) {", "if (false) {", [CONTRACT("store_sqlite")]),
    ("redis: a chunk is taken again", "runtime/store/redis/lua/import.lua",
     "if number <= taken or taken < after then", "if number == 0 or taken < after then", [CONTRACT("store_redis")]),
    ("redis: a chunk without the one before", "runtime/store/redis/lua/import.lua",
     "if number <= taken or taken < after then", "if number <= taken then", [CONTRACT("store_redis")]),

    # --- a submit that may be repeated
    ("idempotency: any task is a repeat", "runtime/store/store.c",
     "item->is_repeat = !memcmp(digest.data, prepared->digest, SHA256_SIZE);", "item->is_repeat = true;",
     [CONTRACT("store_sqlite"), CONTRACT("store_redis")]),
    ("idempotency: the payload is not compared", "runtime/store/idempotency.c",
     "        sha256_put(&h, e.payload.data, e.payload.size);\n", "", [CONTRACT("store_sqlite")]),
    ("idempotency: the delay is not compared", "runtime/store/idempotency.c",
     "buffer_printf(&text, \"delay %\" PRIu64 \"\\n\", delay_ms);", "(void)delay_ms;", [CONTRACT("store_sqlite")]),
    ("idempotency: the trace is compared", "runtime/store/idempotency.c",
     "if (!is_of_the_call(name))", "if (!is_of_the_call(name) || name.size)", [CONTRACT("store_sqlite")]),
    ("idempotency: names run into keys", "runtime/store/idempotency.c", "        *at++ = '\\n';\n", "",
     [CONTRACT("store_sqlite")]),
    ("idempotency: a task without a key goes anywhere", "runtime/store/store.c",
     "struct span place = e.key.size ? e.key : name;", "struct span place = e.key;\n        (void)name;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a name is remembered for ever", "runtime/store/sqlite/idempotency.c",
     "if (query_row(&q) && column_number(&q, 0) > s->now_ms)", "if (query_row(&q))", [CONTRACT("store_sqlite")]),
    ("sqlite: any number of names", "runtime/store/sqlite/idempotency.c",
     "gone || count < s->store.idempotency_max", "gone || s", [CONTRACT("store_sqlite")]),
    ("sqlite: a name is remembered before the limits", "runtime/store/sqlite/submit.c",
     "        if (r != 1)\n                return r;\n",
     "        if (r != 1)\n                return r;\n        if (p->idempotency.size)\n                idempotency_put(s, p);\n",
     [CONTRACT("store_sqlite")]),
    ("redis: a name is remembered for ever", "runtime/store/redis/lua/lib/idempotency.lua",
     "return till > now and { id, digest } or nil", "return { id, digest }", [CONTRACT("store_redis")]),
    ("redis: any number of names", "runtime/store/redis/lua/submit.lua",
     "if redis.call('HLEN', idempotent) >= names_max then", "if false then", [CONTRACT("store_redis")]),
    ("redis: a repeat is refused by a full backlog", "runtime/store/redis/lua/submit.lua",
     "\tif name ~= '' then\n\t\tlocal known", "\tif name ~= '' and backlog < 1 then\n\t\tlocal known", [CONTRACT("store_redis")]),
    ("redis: nothing is remembered", "runtime/store/redis/lua/submit.lua",
     "idempotent_put(name, keep_ms, digest, id)", "do end", [CONTRACT("store_redis")]),

    # --- mailboxes
    ("sqlite: a mailbox of any size", "runtime/store/sqlite/mail.c",
     "m.messages >= STORE_MAIL_MESSAGES || ", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a mailbox of any bytes", "runtime/store/sqlite/mail.c",
     " || m.bytes + post->bytes.size > STORE_MAIL_BYTES", "", [CONTRACT("store_sqlite")]),
    ("sqlite: a number from before a loss removes", "runtime/store/sqlite/mail.c",
     " || take->after > m->last)", ")", [CONTRACT("store_sqlite")]),
    ("sqlite: a mailbox is kept for ever", "runtime/store/sqlite/statements.h",
     "FROM mailbox WHERE nonce = ?1 AND until > ?2", "FROM mailbox WHERE nonce = ?1 AND ?2 = ?2", [CONTRACT("store_sqlite")]),
    ("sqlite: a message rings nobody", "runtime/store/sqlite/mail.c",
     "        doorbells_add(&s->bells, post->nonce, BELL_MAIL);\n", "", [CONTRACT("store_sqlite")]),
    ("redis: a mailbox of any size", "runtime/store/redis/lua/post.lua",
     "messages >= tonumber(ARGV[3]) or ", "", [CONTRACT("store_redis")]),
    ("redis: a mailbox of any bytes", "runtime/store/redis/lua/post.lua",
     " or bytes + #ARGV[1] > tonumber(ARGV[4])", "", [CONTRACT("store_redis")]),
    ("redis: a number from before a loss removes", "runtime/store/redis/lua/mail_take.lua",
     "if after <= last then", "if true then", [CONTRACT("store_redis")]),
    ("redis: a mailbox gives a number again", "runtime/store/redis/lua/post.lua",
     "math.max(last + 1, clock[1] * 1000000 + clock[2])", "messages + 1", [CONTRACT("store_redis")]),
    ("redis: a mailbox is kept for ever", "runtime/store/redis/lua/post.lua",
     "redis.call('PEXPIREAT', mail, till)\nredis.call('PEXPIREAT', box, till)", "", [CONTRACT("store_redis")]),
    ("redis: wanting is kept for ever", "runtime/store/redis/lua/wanting_list.lua", "'(' .. now", "'-inf'",
     [CONTRACT("store_redis")]),
    ("sqlite: wanting is kept for ever", "runtime/store/sqlite/statements.h",
     "FROM wanting WHERE until > ?1 AND", "FROM wanting WHERE ?1 = ?1 AND", [CONTRACT("store_sqlite")]),

    # --- rooms
    ("rooms: a gap is not told", "runtime/store/rooms.c", "return from && (from < first || from > last + 1);",
     "return from > last + 1;", [CONTRACT("store_sqlite")]),
    ("rooms: nobody is told that the room is another", "runtime/store/rooms.c", "from < first || from > last + 1",
     "from < first || last > from + TASK_NUMBER_MAX", [CONTRACT("store_sqlite")]),
    ("sqlite: a room keeps any number", "runtime/store/sqlite/room_row.c", "room->entries > room->entries_max || ", "",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a room keeps any bytes", "runtime/store/sqlite/room_row.c", "room->bytes > room->bytes_max ||", "",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a source appends again", "runtime/store/sqlite/rooms.c", "append->source_number <= highest;", "false;",
     [CONTRACT("store_sqlite")]),
    ("sqlite: any number of rooms", "runtime/store/sqlite/room_row.c", "if (rooms >= STORE_ROOMS_MAX) {",
     "if (rooms > UINT64_MAX - 1) {", [CONTRACT("store_sqlite")]),
    ("sqlite: no follower is rung", "runtime/store/sqlite/rooms.c",
     "        ring_followers(s, shard_of_key(append->name, s->store.shards));\n",
     "        if (!append->name.size)\n                ring_followers(s, 0);\n", [CONTRACT("store_sqlite")]),
    ("redis: a room keeps any number", "runtime/store/redis/lua/lib/room.lua", "room.entries > room.entries_max or ", "",
     [CONTRACT("store_redis")]),
    ("redis: a room keeps any age", "runtime/store/redis/lua/lib/room.lua", "when + room.age <= now or", "",
     [CONTRACT("store_redis")]),
    ("redis: a source appends again", "runtime/store/redis/lua/room_append.lua",
     "if highest and source_number <= highest then", "if false then", [CONTRACT("store_redis")]),
    ("redis: a room remembers any source", "runtime/store/redis/lua/room_append.lua",
     "if #all / 2 < tonumber(ARGV[7]) then", "if true then", [CONTRACT("store_redis")]),
    ("redis: a read has any bytes", "runtime/store/redis/lua/room_read.lua",
     "(count > 0 and bytes + #text > room_bytes)", "false", [CONTRACT("store_redis")]),

    # --- numbers of a source
    ("redis: an outside source is remembered for ever", "runtime/store/redis/lua/lib/sources.lua",
     "return count >= max and oldest or nil", "return nil", [CONTRACT("store_redis")]),

    # --- an outcome keeps what it took
    ("sqlite: a result without its note", "runtime/store/sqlite/advance.c",
     "result_put(s, shard, task, outcome->result, note);", "result_put(s, shard, task, outcome->result, (struct span){ 0 });",
     [CONTRACT("store_sqlite")]),
    ("sqlite: a result has the checkpoint", "runtime/store/sqlite/advance.c",
     "        note.checkpoint = (struct span){ 0 };\n", "", [CONTRACT("store_sqlite")]),
    ("redis: a reply without its note", "runtime/store/redis/lua/lib/outcomes.lua",
     "reply_put(o[3], o[6], 1, o[11], o[14], '', note)", "reply_put(o[3], o[6], 1, o[11], o[14], '', '')",
     [CONTRACT("store_redis")]),
    ("redis: a result has the checkpoint and the mark", "runtime/store/redis/lua/lib/note.lua",
     "	note_clear_start(n)\n	n.suspect, n.checkpoint = 0, ''", "", [CONTRACT("store_redis")]),

    # --- the owner's own deadline, and what it holds
    ("shard: starts past its deadline", "runtime/host/shard/shard.c",
     "        if (s->state != SHARD_OWNED || now_ms >= s->until_ms)\n                return NULL;",
     "        if (s->state != SHARD_OWNED)\n                return NULL;", [UNIT("shard_lease"), SIM]),
    ("shard: starts before all was read", "runtime/host/shard/shard.c",
     "        if (s->state != SHARD_OWNED || now_ms >= s->until_ms)\n                return NULL;",
     "        if (!shard_is_held(s) || now_ms >= s->until_ms)\n                return NULL;", [UNIT("shard"), SIM]),
    ("shard: the deadline counts from the answer", "runtime/host/shard/shard.c",
     "        uint64_t sent_ms = s->sent_ms;\n        answered(s);", "        uint64_t sent_ms = now_ms;\n        answered(s);",
     [UNIT("shard_lease"), SIM]),
    ("shard: no margin", "runtime/host/shard/shard_lease.c",
     "min_u64(left_ms, ttl_ms) - margin_ms(ttl_ms);", "min_u64(left_ms, ttl_ms);",
     [UNIT("shard_lease")]),
    ("shard: an outcome of a lost lease counts", "runtime/host/shard/shard.c",
     "        if (c->lease_number != s->lease_number) {\n                pending_outcome_free(pending);\n                forget_stale(s, c);\n"
     "                return;\n        }\n", "", [UNIT("shard_lease"), SIM]),
    ("shard: what was forgotten is not read again", "runtime/host/shard/shard.c",
     "        s->must_reread = true;\n        if (s->state == SHARD_OWNED)\n                s->state = SHARD_READING;", "",
     [UNIT("shard_lease"), UNIT("shard_model"), SIM]),
    ("shard: a fenced call is taken for done", "runtime/host/shard/shard.c",
     "        if (advance->verdict == STORE_FENCED) {", "        if (false) {", [UNIT("shard_lease"), SIM]),
    ("shard: a lost answer is forgotten", "runtime/host/shard/shard.c",
     "        if (s->is_repeat && s->last_call >= SHARD_CALL_ADVANCE)\n"
     "                return s->last_call;\n", "", [UNIT("shard"), UNIT("shard_lease"), UNIT("shard_model"), SIM]),
    ("shard: a planned move cuts", "runtime/host/shard/shard_lease.c",
     "        if (!has_long_call(s, now_ms))\n                begin_leaving(s, now_ms);\n}\n\nvoid shard_leave",
     "        begin_leaving(s, now_ms);\n}\n\nvoid shard_leave", [UNIT("shard_move")]),
    ("shard: patience never ends", "runtime/host/shard/shard_lease.c",
     "        if (now_ms < shard_lease_due_ms(s))\n                return;", "        if (now_ms)\n                return;",
     [UNIT("shard_move")]),
    ("shard: sought under its old epoch", "runtime/host/shard/shard_lease.c",
     "seek(s, s->lease.nonce, max_u64(s->epoch, s->lease.epoch));",
     "seek(s, s->lease.nonce, s->lease.epoch);", [UNIT("shard_move")]),
    ("shards: who stands by takes its shards back", "runtime/host/shard/shard_io.c",
     "owner && !all->is_standing_by && !memcmp", "owner && !memcmp", [UNIT("shard_assign")]),
    ("shards: a stale epoch is tried again", "runtime/host/shard/shard_io.c",
     "is_ours(all, i) && s->stale_epoch < all->assignment->slots[i].epoch)", "is_ours(all, i))", [UNIT("shard_assign")]),

    # --- who gets the next seat
    ("dispatch: two suspects at once", "runtime/host/handler/dispatch.c",
     "                if (window_marks(w, pool))\n                        return;\n", "", [UNIT("dispatch"), SIM]),
    ("dispatch: a paused pool starts what came back", "runtime/host/handler/dispatch.c",
     "p->is_round = p->is_paused || state == DISPATCH_GONE;", "p->is_round = state == DISPATCH_GONE;", [UNIT("dispatch")]),
    ("dispatch: urgent shards have all the room", "runtime/host/handler/dispatch.c",
     "return room / SHARDS_AT_LEAST;", "return room;", [UNIT("dispatch")]),
    ("dispatch: urgent shards have every place where there is hardly room", "runtime/host/handler/dispatch.c",
     "return p->was_urgent ? 0 : 1;", "return 1;", [UNIT("dispatch")]),
    ("dispatch: always the first shard", "runtime/host/handler/dispatch.c",
     "p->next_shard = p->shard + 1;", ";", [UNIT("dispatch")]),
    ("dispatch: a name that was given to another", "runtime/host/handler/dispatch.c",
     "!routes_serves(&d->routes, pool, c->handler)", "false", [UNIT("dispatch")]),
    ("shard: a pool that is down fills the window", "runtime/host/shard/shard.c",
     "return s->window.count < s->limits->window_tasks / 2 ? pool : WINDOW_SHUT_POOL;", "return pool;", [UNIT("dispatch")]),
    ("retry: the wait has no bound", "runtime/host/shard/retry.c",
     "min_u64(more, ALONE_DOUBLINGS_MAX)", "(more & 63)", [UNIT("retry")]),

    # --- the runner's last look, and the seat
    ("runner: no last look at the lease", "runtime/runner/seat.c",
     "        if (!leases_allow(&s->runner->leases, task->lease, task->fence_epoch, now_ns))\n"
     "                return \"not started: the lease of its shard had run out\";\n", "",
     [UNIT("runner_seat"), UNIT("runner_process")]),
    ("lease page: the deadline", "runtime/ring/leases.c", "return now_ns < until_ns && ", "return until_ns && ",
     [UNIT("ring"), UNIT("runner_seat"), UNIT("ring_seats")]),
    ("lease page: the epoch", "runtime/ring/leases.c",
     "return now_ns < until_ns && atomic_load_explicit(&l->slots[index].epoch, memory_order_acquire) == epoch;",
     "return now_ns < until_ns;", [UNIT("ring"), UNIT("runner_seat"), UNIT("ring_seats")]),
    ("seat: started without winning the entry", "runtime/ring/runner_side.c",
     "        if (!atomic_compare_exchange_strong_explicit(&e->word, &word, RING_WORD(ticket, seat, ENTRY_STARTED),\n"
     "                    memory_order_acq_rel, memory_order_relaxed))\n                return false;",
     "        atomic_store(&e->word, RING_WORD(ticket, seat, ENTRY_STARTED));", [UNIT("ring_seats")]),
    ("seat: started though it was taken back", "runtime/ring/runner_side.c",
     "        if (RING_WORD_STATE(word) != ENTRY_QUEUED)\n                return false;\n        uint64_t ticket", "        uint64_t ticket",
     [UNIT("ring"), UNIT("ring_seats"), UNIT("ring_load")]),
    ("ring: an answer for another task", "runtime/ring/host_side.c",
     "if (ticket != r->flights[index].ticket || reply.ticket != ticket || !is_runner_outcome(reply.outcome))",
     "if (!is_runner_outcome(reply.outcome))", [UNIT("ring_hostile"), UNIT("ring")]),

    # --- who overrides whom in a configuration
    ("config: an included file overrides its includer", "runtime/config/parse.c", "return other != NULL;", "return true;",
     [UNIT("config_text")]),
    ("config: a mistake in a handler stops a producer", "runtime/config/problems.c",
     "(p->is_in_handlers && p->reader == READER_COMMAND)", "false", [UNIT("config_text")]),

    # --- a hung master
    ("redis: nobody asks while an answer is overdue", "runtime/redis/redis.c", "if (!is_one_silent)", "if (true)",
     [CONTRACT("redis_sentinel"), CONTRACT("redis_cluster")]),
    ("redis: a replaced master is waited for", "runtime/redis/server.c",
     "if (server->leave_at_ms && now_ms >= server->leave_at_ms && server->main)", "if (false)", [CONTRACT("redis_sentinel")]),
    ("redis: a server without slots is waited for", "runtime/redis/cluster.c",
     "server->main->sent && !conn_is_silent(server->main, now_ms);", "server->main->sent;", [CONTRACT("redis_cluster")]),

    # --- the leader
    ("assigner: decides before it knows everybody", "runtime/host/membership/assigner.c",
     "c->is_leading && c->has_read && c->is_known && !c->is_writing", "c->is_leading && c->has_read && !c->is_writing",
     [UNIT("assigner")]),
    ("assigner: decides without leading", "runtime/host/membership/assigner.c",
     "c->is_leading && c->has_read && c->is_known", "c->has_read && c->is_known", [UNIT("assigner")]),
    ("queue: an old session's place will do", "runtime/coord/queue.c",
     "if (!status && queue->get.stat.owner == queue->session) {", "if (!status) {", [CONTRACT("coord_recipes"), SIM]),
    ("queue: any place will do", "runtime/coord/queue.c",
     "if (!is_own && !queue->request.status && !queue->get.stat.owner) {", "if (false) {", [CONTRACT("coord_recipes")]),
    ("queue: an empty one stays", "runtime/coord/queue.c",
     "queue->is_untidy = queue->removes_empty;", "queue->is_untidy = false;", [CONTRACT("coord_recipes")]),
    ("member: nobody's node will do", "runtime/coord/member.c",
     "} else if (status == 0 && mate->get.stat.owner) {", "} else if (status == 0) {", [CONTRACT("coord_recipes")]),
    ("remote tree: an answer that came too late is proof", "runtime/coord/remote.c",
     "if (remote->coord.answered_ms - remote->proof_ms > remote->coord.session_ms)", "if (false)", [UNIT("coord_remote")]),
    ("remote tree: a request outlives its session", "runtime/coord/remote.c",
     "for (struct coord_request *request; count && (request = coord->requests); count--) {",
     "for (struct coord_request *request; false && count && (request = coord->requests); count--) {",
     [UNIT("coord_remote")]),
    ("redis tree: any number", "runtime/coord/redis/lua/lib/tree.lua",
     "or not string.find(text, '^%d+$') then", "then", [CONTRACT("coord_redis_values")]),
    ("redis tree: any type", "runtime/coord/redis/lua/lib/tree.lua",
     "if found == kind or found == 'none' then", "if true then", [CONTRACT("coord_redis_values")]),
    ("redis tree: any name", "runtime/coord/remote.c",
     "if (coord_name_is_good(name)) {", "if (name.data) {", [CONTRACT("coord_redis_values")]),
    ("local tree: any record", "runtime/coord/local/tree.c",
     "parent->stat.owner || coord_path_check(path, NULL) : stat->owner != 0)", "false : false)", [UNIT("coord_replica")]),
    ("queue: waits for a place of its own", "runtime/coord/queue.c",
     "if (before && is_ours(queue, before)) {", "if (false) {", [CONTRACT("coord_recipes")]),
    ("member: an old session's node will do", "runtime/coord/member.c",
     "m->get.stat.owner != m->session", "false", [CONTRACT("coord_recipes"), SIM]),
    ("member: creation ids are not compared", "runtime/coord/member.c",
     "mate->is_told && mate->created != stat->created", "false", [CONTRACT("coord_recipes")]),
    ("assign: a moved shard keeps its epoch", "runtime/host/membership/assign.c",
     "slot->epoch = w->generation;", ";", [UNIT("assign"), UNIT("assigner")]),
    ("assign: a stale report raises nothing", "runtime/host/membership/assign.c",
     "w->generation = stale->epoch + 1;", ";", [UNIT("assign"), UNIT("assigner")]),
    ("local tree: any version will do", "runtime/coord/local/tree.c",
     "return version == COORD_ANY_VERSION || version == node->stat.version ? 0 : -ESTALE;", "return version ? 0 : 0;",
     [CONTRACT("coord")]),

    # --- the guard
    ("guard: releases before the runners are gone", "runtime/guard/guard.c",
     "        if (!await_runners(g)) {", "        if (false) {", [CONTRACT("guard")]),
    ("rollout: an idle probation proves it", "runtime/host/handler/rollout.c",
     "has_served ? NEWS_GOOD : NEWS_UNPROVEN", "true ? NEWS_GOOD : NEWS_UNPROVEN", [UNIT("rollout")]),
    ("recall: it goes to the next runner", "runtime/host/pool/pool.c",
     "pool->is_retreating || task->is_recalled", "pool->is_retreating", [UNIT("pool_retreat")]),
    ("predecessor: its runners may live", "runtime/host/state_locks.c",
     "        l->is_alone = !l->why_not;", "        l->is_alone = true;", [UNIT("last_run")]),
    ("predecessor: runners hold no lock", "runtime/base/file_lock.c",
     "        int r = file_lock_take(shared, FILE_LOCK_SHARED, 0);", "        int r = 0;", [UNIT("last_run")]),
    ("predecessor: of any boot", "runtime/host/last_run.c",
     "        if (!*now->boot_id || strcmp(last->boot_id, now->boot_id) != 0)", "        if (false)", [UNIT("last_run")]),
    ("predecessor: of a copied folder", "runtime/host/last_run.c",
     "        if (last->alive_id[0] != now->alive_id[0] || last->alive_id[1] != now->alive_id[1])",
     "        if (false)", [UNIT("last_run")]),
    ("predecessor: of any store", "runtime/host/last_run.c",
     "        if (strcmp(last->store, now->store) != 0)", "        if (false)", [UNIT("last_run")]),
    ("predecessor: anybody may have written it", "runtime/host/last_run_io.c",
     "|| (st.st_mode & 022))", ")", [UNIT("last_run")]),
    ("locks: two hosts of one name", "runtime/host/state_locks.c",
     "        if (r == -EAGAIN)\n", "        if (false)\n", [UNIT("last_run")]),
    ("guard: kills nobody", "runtime/guard/guard.c",
     "        kill_runners(g);\n", "", [CONTRACT("guard")]),
]


def prepare():
    """The tree as it is now, without what was built."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, symlinks=True, ignore=shutil.ignore_patterns("build", ".git"))


def binary(test):
    return f"build/tests/{test}"


def is_red(test):
    """Runs one test in the copy."""
    made = subprocess.run(["make", "-sj2", binary(test)], cwd=COPY, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    try:
        done = subprocess.run([COPY / binary(test)], cwd=COPY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def try_mutant(_name, path, old, new, tests):
    file = COPY / path
    text = file.read_text()
    file.write_text(text.replace(old, new))
    try:
        return next((test for test in tests if is_red(test)), None)
    finally:
        file.write_text(text)


def main(words):
    for name, path, old, _new, _tests in MUTANTS:
        places = (ROOT / path).read_text().count(old)
        assert places == 1, f"{name}: {path} has {places} places like that; mend tests/mutants"
    chosen = [m for m in MUTANTS if not words or any(word in m[0] for word in words)]
    prepare()
    survivors = 0
    for mutant in chosen:
        began = time.monotonic()
        test = try_mutant(*mutant)
        survivors += test is None
        print(f"{'SURVIVED' if test is None else 'noticed':9} {mutant[0]:45} {test or '-':25} "
              f"{time.monotonic() - began:4.0f} s", flush=True)
    shutil.rmtree(COPY, ignore_errors=True)
    print(f"{len(chosen)} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
