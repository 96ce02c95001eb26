/* Claiming: tasks go in flight from the log or from a side queue. */
#include <errno.h>
#include <string.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

#define CLAIM_FEW 32u
/* Due keys that one call looks at, even with room for fewer tasks: some may be in a lane without room. */
#define DUE_LOOKS 64u
/* Segments that one call looks into per lane: those of a large backlog may hold only other shards' tasks. */
#define CLAIM_LOOKS 512u
/* If a lane has at most SKIP_TASKS tasks, and the last one is at least SKIP_SEGMENTS segments away, they are searched
 * from both ends, SKIP_SEGMENTS segments far. */
#define SKIP_TASKS    64u
#define SKIP_SEGMENTS 64u
/* With fewer segments per task than this, scanning them costs little more than searching from both ends. */
#define SKIP_SPARSE 16u

void claim_init(struct claim *claim, struct arena_chunk **arena, uint32_t room)
{
        *claim = (struct claim){ .arena = arena, .room = room };
}

/* The slot for the next task; grows on demand because most calls return far fewer tasks than they may. */
static struct store_task *claim_slot(struct claim *claim)
{
        if (claim->count == claim->has_room) {
                claim->has_room = claim->has_room ? 2 * claim->has_room : CLAIM_FEW;
                struct store_task *grown = arena_room(claim->arena, claim->has_room * sizeof(*grown));
                if (claim->count)
                        memcpy(grown, claim->tasks, claim->count * sizeof(*grown));
                claim->tasks = grown;
        }
        return &claim->tasks[claim->count];
}

int claim_add(struct sqlite_store *s, struct claim *claim, const struct sqlite_shard_row *shard, uint64_t seq,
        struct span task, struct span note, struct error *error)
{
        struct store_task *to = claim_slot(claim);
        struct span bytes = arena_copy(claim->arena, task);
        int r = row_read(s, shard->shard, seq, bytes, claim->arena, to, error);
        if (r)
                return r;
        note = note.size ? arena_copy(claim->arena, note) : note;
        store_task_note(to, note, s->now_ms);
        claim->bytes += task.size;
        claim->count++;
        return 0;
}

static void log_remove(struct sqlite_store *s, const struct sqlite_shard_row *shard, uint64_t seq)
{
        struct query q = query(&s->db, STATEMENT_LOG_REMOVE);
        bind_number(&q, log_id(shard->shard, seq));
        (void)query_run(&q);
}

void stray_bury(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct stray *stray)
{
        dead_put_bytes(s, shard, stray->seq, store_set_aside_reason(stray->why),
                (struct span){ stray->error.text, strlen(stray->error.text) }, stray->task, stray->note);
}

void flight_bury(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct stray *stray)
{
        log_remove(s, shard, stray->seq);
        count_down(&shard->in_flight);
        stray_bury(s, shard, stray);
}

/* --- what is due --- */

struct due_task {
        uint64_t id;
        uint64_t lane;
        struct span task;
        struct span note;
};

/* Appends delayed tasks whose time has come to the log. */
static void delayed_join(struct sqlite_store *s, struct sqlite_shard_row *shard, struct arena_chunk **arena)
{
        struct due_task *due = arena_take(arena, STORE_CALL_TASKS * sizeof(*due));
        uint32_t count = 0;
        struct query q = query(&s->db, STATEMENT_DELAYED_DUE);
        bind_number(&q, shard->shard);
        bind_number(&q, s->now_ms);
        bind_number(&q, STORE_CALL_TASKS);
        while (query_row(&q))
                due[count++] = (struct due_task){ column_number(&q, 0), column_number(&q, 1),
                        arena_copy(arena, column_span(&q, 2)), arena_copy(arena, column_span(&q, 3)) };
        query_end(&q);
        for (uint32_t i = 0; i < count; i++) {
                q = query(&s->db, STATEMENT_DELAYED_REMOVE);
                bind_number(&q, due[i].id);
                (void)query_run(&q);
                count_down(&shard->delayed);
                if (due[i].lane < LANES)
                        shard_append(s, shard, (enum lane)due[i].lane, due[i].task, due[i].note);
                else
                        dead_put_bytes(s, shard, STORE_NEVER, SPAN_TEXT("malformed"),
                                SPAN_TEXT("it was delayed for a lane that there is none of"), due[i].task, due[i].note);
        }
}

static uint32_t want_sum(const struct claim *claim)
{
        uint32_t sum = claim->want[LANE_HIGH] + claim->want[LANE_NORMAL] + claim->want[LANE_LOW];
        return min_u64(sum, claim->room - claim->count);
}

/* The lane of a key's head; LANES if it has no valid one. */
static unsigned head_lane(struct sqlite_store *s, const struct key *key)
{
        uint64_t seq = side_first(s, key);
        return seq <= STORE_SEQ_MAX ? STORE_SEQ_LANE(seq) : LANES;
}

/* Claims the heads of due keys.  A head whose lane has no room stays in its side queue. */
static void keys_take(struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim)
{
        uint32_t count = 0;
        uint32_t looks = (uint32_t)max_u64(want_sum(claim), DUE_LOOKS);
        uint32_t before = claim->count;
        bool has_due[LANES] = { false };
        struct key *keys = arena_take(claim->arena, looks * sizeof(*keys));
        struct query q = query(&s->db, STATEMENT_KEY_DUE);
        bind_number(&q, shard->shard);
        bind_number(&q, s->now_ms);
        bind_number(&q, looks);
        while (query_row(&q))
                keys[count++] = (struct key){ .id = column_number(&q, 0),
                        .state = column_key_state(&q, 2),
                        .due_ms = column_number(&q, 3),
                        .since_ms = column_number(&q, 4),
                        .tasks = column_number(&q, 5) };
        query_end(&q);
        bool is_all = count < looks;
        for (uint32_t i = 0; i < count; i++) {
                unsigned lane = head_lane(s, &keys[i]);
                if (claim->count == claim->room) {
                        is_all = false;
                        break;
                }
                if (lane < LANES && !claim->want[lane]) {
                        has_due[lane] = true;
                        continue;
                }
                uint32_t taken = claim->count;
                side_take(s, shard, &keys[i], 1, claim);
                /* Also claims tasks that may be merged with it, so that it does not start before. */
                if (claim->count > taken && keys[i].id && claim->tasks[taken].envelope.is_merge && lane < LANES)
                        side_take(s, shard, &keys[i], min_u64(claim->want[lane], STORE_MERGE_TASKS) - 1, claim);
                if (lane < LANES)
                        claim->want[lane] -= min_u64(claim->want[lane], claim->count - taken);
        }
        /* If no head had room, keys behind them wait until there is room.  Otherwise the next call continues there at
         * once. */
        if (is_all || claim->count == before)
                memcpy(claim->has_due, has_due, sizeof(has_due));
}

void claim_due(struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim)
{
        if (!want_sum(claim))
                return;
        if (shard->delayed)
                delayed_join(s, shard, claim->arena);
        if (shard->keys)
                keys_take(s, shard, claim);
}

/* --- the lanes --- */

/* Sets aside a task that no host can run; `why` decides where it goes. */
static void set_aside(struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim, uint64_t seq,
        struct span bytes, int why, const struct error *error)
{
        log_remove(s, shard, seq);
        stray_bury(s, shard, &(struct stray){ .seq = seq, .task = bytes, .why = why, .error = *error });
        claim->set_aside++;
}

/* Handles a task just taken from its lane: it goes in flight, or where else it belongs. */
static void settle(struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim, uint64_t seq,
        struct span bytes, struct span note)
{
        struct store_task *task = claim_slot(claim);
        struct error error = { "" };
        struct key key;
        int r = row_read(s, shard->shard, seq, bytes, claim->arena, task, &error);
        count_down(&shard->queued[STORE_SEQ_LANE(seq)]);
        claim->bytes += bytes.size;
        if (r) {
                set_aside(s, shard, claim, seq, bytes, r, &error);
        } else if (!note.size && task->envelope.not_before_ms > s->now_ms) {
                /* Without a note it has not waited for its time before. */
                log_remove(s, shard, seq);
                shard_delay(s, shard, task->envelope.lane, task->envelope.not_before_ms, bytes, note);
        } else if (key_get(s, shard, task->key, &key)) {
                log_remove(s, shard, seq);
                side_put(s, shard, &key, seq, bytes, note);
                key_save(s, shard, &key);
        } else {
                store_task_note(task, note, s->now_ms);
                shard->in_flight++;
                claim->count++;
        }
}

struct log_row {
        uint64_t seq;
        struct span task;
        struct span note;
};

/* Reads the next tasks of a lane; returns how many it looked at. */
static uint32_t claim_lane(struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, struct claim *claim,
        uint32_t max, uint64_t want_bytes)
{
        struct log_row rows[STORE_CALL_TASKS];
        uint32_t count = 0;
        uint64_t bytes = claim->bytes;
        struct log_scan scan = log_scan(&s->db, shard->shard, lane, shard->taken[lane], shard->tail[lane]);
        scan.looks = CLAIM_LOOKS;
        /* Read all rows first: the log must not change under the statement that reads it. */
        while (count < max && (!count || bytes < want_bytes) && log_scan_next(&scan)) {
                struct span note = column_span(&scan.row, 2);
                rows[count] = (struct log_row){ lane_seq(lane, scan.number),
                        arena_copy(claim->arena, column_span(&scan.row, 1)),
                        note.size ? arena_copy(claim->arena, note) : note };
                bytes += rows[count].task.size;
                count++;
        }
        log_scan_end(&scan);
        if (s->db.failure)
                return 0;
        for (uint32_t i = 0; i < count; i++)
                settle(s, shard, claim, rows[i].seq, rows[i].task, rows[i].note);
        /* Segments without tasks of this shard count as claimed, so that the next call continues behind them. */
        shard->taken[lane] = max_u64(shard->taken[lane], scan.number);
        return count;
}

/* If a shard was idle while others gathered millions of tasks, its few tasks are at the end: skips the segments before
 * them. */
static void skip_others(struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane)
{
        uint64_t seqs[SKIP_TASKS], after[LANES] = { 0 }, last[LANES] = { 0 };
        uint64_t queued = shard->queued[lane];
        uint64_t many = max_u64(SKIP_SEGMENTS, queued * SKIP_SPARSE);
        if (!queued || queued > SKIP_TASKS ||
                number_segment(shard->tail[lane]) < number_segment(shard->taken[lane]) + many)
                return;
        after[lane] = shard->taken[lane];
        last[lane] = shard->tail[lane];
        uint32_t found = log_both_ways(&s->db, shard->shard, after, last, SKIP_SEGMENTS, seqs, (uint32_t)queued);
        if (found == queued && !s->db.failure)
                shard->taken[lane] = seq_number(seqs[0]) - 1;
}

void claim_lanes(struct sqlite_store *s, struct sqlite_shard_row *shard, struct claim *claim, uint32_t want_bytes)
{
        /* A call is bounded by the tasks that it looks at, not by those that it returns: diverted ones are work,
         * too. */
        uint32_t looks = STORE_CALL_TASKS;
        for (unsigned lane = 0; lane < LANES; lane++) {
                uint32_t until = min_u64(claim->count + claim->want[lane], claim->room);
                if (claim->count < until)
                        skip_others(s, shard, (enum lane)lane);
                while (shard->queued[lane] && claim->count < until && looks && !s->db.failure &&
                        (claim->bytes < want_bytes || looks == STORE_CALL_TASKS)) {
                        uint32_t max = min_u64(until - claim->count, looks);
                        uint32_t looked = claim_lane(s, shard, (enum lane)lane, claim, max, want_bytes);
                        if (!looked)
                                break;
                        looks -= looked;
                }
                /* The lane is empty: its next task will be in this segment or a later one, so later claims skip the
                 * segments before, however many other shards fill. */
                if (!shard->queued[lane])
                        shard->taken[lane] = max_u64(shard->taken[lane], log_before(&s->shards, &s->db));
        }
}

/* Remembers the claimed seqs for a repeat of this call, as ranges of consecutive seqs. */
void claim_remember(struct sqlite_shard_row *shard, const struct claim *claim)
{
        struct seq_range *last = shard_last_room(shard);
        uint32_t count = 0;
        for (uint32_t i = 0; i < claim->count; i++) {
                uint64_t seq = claim->tasks[i].seq;
                if (count && last[count - 1].first + last[count - 1].count == seq)
                        last[count - 1].count++;
                else
                        last[count++] = (struct seq_range){ seq, 1 };
        }
        shard->last_count = count;
}
