/* The advance: commits outcomes, claims tasks and renews the lease. */
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

bool flight_get(struct sqlite_store *s, const struct sqlite_shard_row *shard, uint64_t seq, struct arena_chunk **arena,
        struct flight *ret_flight)
{
        /* A task above the last claimed number is queued, not in flight. */
        if (!seq_is_taken(shard, seq))
                return false;
        struct query q = query(&s->db, STATEMENT_LOG_GET);
        bind_number(&q, log_id(shard->shard, seq));
        bool is_there = query_row(&q);
        if (is_there)
                *ret_flight =
                        (struct flight){ arena_copy(arena, column_span(&q, 0)), arena_copy(arena, column_span(&q, 1)) };
        query_end(&q);
        return is_there;
}

bool flight_remove(struct sqlite_store *s, struct sqlite_shard_row *shard, uint64_t seq)
{
        if (!seq_is_taken(shard, seq))
                return false;
        struct query q = query(&s->db, STATEMENT_LOG_REMOVE);
        bind_number(&q, log_id(shard->shard, seq));
        if (!query_run(&q))
                return false;
        count_down(&shard->in_flight);
        return true;
}

/* The task's note after an outcome.  Every outcome but START ends a start, so the recorded start is cleared. */
static struct span note_after(struct sqlite_store *s, const struct store_outcome *outcome, uint64_t epoch,
        struct span before, struct arena_chunk **arena)
{
        struct task_note note;
        struct buffer scratch = { 0 };
        struct buffer bytes = { 0 };
        if (note_parse(before.data, before.size, &note))
                note = (struct task_note){ 0 };
        switch (outcome->kind) {
        case STORE_START:
                note.started_epoch = epoch;
                note.holder = outcome->holder;
                note.until_ms = outcome->until_ms ? s->now_ms + min_u64(outcome->until_ms, STORE_START_MAX_MS) : 0;
                break;
        case STORE_CHECKPOINT:
                note.checkpoint = outcome->checkpoint;
                break;
        case STORE_DIVERT:
                note.is_debounced |= outcome->is_debounce;
                if (outcome->cost != COST_NONE)
                        note_charge(&note, &scratch, s->now_ms, outcome->cost, outcome->error);
                break;
        default:
                note_clear_start(&note);
                note.is_suspect = outcome->kind == STORE_INTERRUPTED && outcome->is_suspect;
                note_charge(&note, &scratch, s->now_ms, outcome->cost, outcome->error);
        }
        struct span after = { 0 };
        if (!note_is_empty(&note)) {
                note_put(&bytes, &note);
                after = arena_copy(arena, (struct span){ (const char *)bytes.data, bytes.size });
        }
        buffer_free(&scratch);
        buffer_free(&bytes);
        return after;
}

/* Claims up to `refill` of the key's tasks from its side queue. */
static void refill(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        struct claim *claim)
{
        struct key key;
        if (!shard->keys || !key_get(s, shard, outcome->task.key, &key) || key.state != KEY_WAITING)
                return;
        if (outcome->refill)
                side_take(s, shard, &key, outcome->refill, claim);
}

/* The note that a reply or result keeps: counts and history, without recorded start and checkpoint. */
static struct span note_of_done(struct span before, struct arena_chunk **arena)
{
        struct task_note note;
        struct buffer bytes = { 0 };
        struct span after = { 0 };
        if (note_parse(before.data, before.size, &note))
                return after;
        note_clear_start(&note);
        note.is_suspect = false;
        note.checkpoint = (struct span){ 0 };
        if (!note_is_empty(&note)) {
                note_put(&bytes, &note);
                after = arena_copy(arena, (struct span){ (const char *)bytes.data, bytes.size });
        }
        buffer_free(&bytes);
        return after;
}

/* Removes a task in flight and returns the note for its reply or result. */
static bool flight_take_note(struct sqlite_store *s, struct sqlite_shard_row *shard, uint64_t seq,
        struct arena_chunk **arena, struct span *ret_note)
{
        if (!seq_is_taken(shard, seq))
                return false;
        struct query q = query(&s->db, STATEMENT_LOG_TAKE);
        bind_number(&q, log_id(shard->shard, seq));
        bool is_there = query_row(&q);
        if (is_there)
                *ret_note = note_of_done(column_span(&q, 0), arena);
        (void)query_run(&q);
        if (is_there)
                count_down(&shard->in_flight);
        return is_there;
}

static bool settle_done(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        struct arena_chunk **arena)
{
        const struct store_ref *task = &outcome->task;
        struct span note;
        if (!flight_take_note(s, shard, task->seq, arena, &note))
                return false;
        shard->done++;
        if (task->reply_ms)
                reply_put(s, task, REPLY_DONE, outcome->has_result, outcome->result, (struct span){ 0 }, note);
        else if (outcome->has_result)
                result_put(s, shard, task, outcome->result, note);
        return true;
}

static bool settle_dead(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        struct arena_chunk **arena)
{
        const struct store_ref *task = &outcome->task;
        struct flight flight;
        if (!flight_get(s, shard, task->seq, arena, &flight))
                return false;
        (void)flight_remove(s, shard, task->seq);
        dead_put(s, shard, task, outcome->reason, outcome->error, outcome->cost, flight.task, flight.note);
        return true;
}

/* --- plain DONE --- */

/* Most outcomes are DONE with nothing else to keep. */
static bool is_plain(const struct store_outcome *o)
{
        return o->kind == STORE_DONE && !o->task.reply_ms && !o->has_result && !o->follow_ups_count;
}

/* Settles the plain outcomes that the list begins with; returns their number. */
static uint32_t settle_plain(struct sqlite_store *s, struct sqlite_shard_row *shard,
        const struct store_outcome *outcomes, uint32_t count, struct store_advance *advance)
{
        uint32_t plain = 0;
        for (; plain < count && is_plain(&outcomes[plain]); plain++) {
                uint64_t seq = outcomes[plain].task.seq;
                /* A task above the last claimed number is queued, not in flight. */
                if (seq_is_taken(shard, seq))
                        log_removals_add(&s->removals, shard, seq, advance);
                else
                        advance->gone++;
        }
        return plain;
}

/* --- other outcomes --- */

/* A key waits for what its first task waits for: a task that is put behind it changes nothing. */
static void divert(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        struct key *key, uint64_t due_ms)
{
        const struct store_ref *task = &outcome->task;
        bool is_plain = !key->id || (key->state == KEY_WAITING && !outcome->name.size && !outcome->is_debounce);
        bool is_first = is_plain || task->seq < side_first(s, key);
        bool is_to_wait = is_first && (!key->id || key->state == KEY_NAMED || outcome->is_debounce);
        struct span reason = outcome->reason.size ? outcome->reason : SPAN_TEXT("more than its share");
        if (outcome->name.size && is_first)
                key_set_name(s, shard, task->key, key, outcome->name, reason);
        else if (is_to_wait)
                key_set_state(s, shard, task->key, key, KEY_WAITING, due_ms, reason);
        else if (key->state == KEY_WAITING && key->id && due_ms < key->due_ms)
                key->due_ms = due_ms;
}

/* Why a key waits after a RETRY: the owner's reason, if any, and the error. */
static struct span retry_reason(const struct store_outcome *outcome, struct arena_chunk **arena)
{
        struct buffer text = { 0 };
        if (!outcome->reason.size || !outcome->error.size)
                return outcome->reason.size ? outcome->reason : outcome->error;
        buffer_put(&text, outcome->reason.data, outcome->reason.size);
        buffer_put(&text, ": ", 2);
        buffer_put(&text, outcome->error.data, min_u64(outcome->error.size, NOTE_TEXT_MAX));
        struct span reason = arena_copy(arena, (struct span){ (const char *)text.data, text.size });
        buffer_free(&text);
        return reason;
}

/* RETRY, HOLD, DIVERT: moves the task into its key's side queue, at its place. */
static bool settle_aside(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        uint64_t epoch, struct arena_chunk **arena)
{
        const struct store_ref *task = &outcome->task;
        struct flight flight;
        struct key key;
        if (!flight_get(s, shard, task->seq, arena, &flight))
                return false;
        (void)flight_remove(s, shard, task->seq);
        uint64_t due_ms = s->now_ms + min_u64(outcome->delay_ms, TASK_NUMBER_MAX);
        bool is_there = key_get(s, shard, task->key, &key);
        if (outcome->kind == STORE_HOLD)
                key_set_state(s, shard, task->key, &key, KEY_HELD, 0, outcome->error);
        else if (outcome->kind == STORE_RETRY && (!is_there || key.state != KEY_HELD))
                key_set_state(s, shard, task->key, &key, KEY_PARKED, due_ms, retry_reason(outcome, arena));
        else if (!is_there || key.state == KEY_WAITING || key.state == KEY_NAMED)
                divert(s, shard, outcome, &key, due_ms);
        side_put(s, shard, &key, task->seq, flight.task, note_after(s, outcome, epoch, flight.note, arena));
        key_save(s, shard, &key);
        return true;
}

/* START, INTERRUPTED, CHECKPOINT: the task stays in flight with a new note. */
static bool settle_noted(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        uint64_t epoch, struct arena_chunk **arena)
{
        struct flight flight;
        if (!flight_get(s, shard, outcome->task.seq, arena, &flight))
                return false;
        struct span note = note_after(s, outcome, epoch, flight.note, arena);
        struct query q = query(&s->db, STATEMENT_LOG_NOTE);
        bind_number(&q, log_id(shard->shard, outcome->task.seq));
        if (note.size)
                bind_span(&q, note);
        else
                bind_null(&q);
        (void)query_run(&q);
        return true;
}

/* MOVE: appends the task to another lane. */
static bool settle_move(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        struct arena_chunk **arena)
{
        struct flight flight;
        if (!flight_get(s, shard, outcome->task.seq, arena, &flight))
                return false;
        (void)flight_remove(s, shard, outcome->task.seq);
        lane_append(s, shard, outcome->lane, flight.task, flight.note);
        return true;
}

static bool settle(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_outcome *outcome,
        const struct store_prepared *follow_ups, uint64_t epoch, struct arena_chunk **arena)
{
        bool is_there;
        switch (outcome->kind) {
        case STORE_DONE:
                is_there = settle_done(s, shard, outcome, arena);
                for (uint32_t i = 0; i < outcome->follow_ups_count && is_there; i++)
                        shard_append_prepared(s, &follow_ups[i]);
                return is_there;
        case STORE_DEAD:
                return settle_dead(s, shard, outcome, arena);
        case STORE_RETRY:
        case STORE_HOLD:
        case STORE_DIVERT:
                return settle_aside(s, shard, outcome, epoch, arena);
        case STORE_MERGE:
                return settle_merge(s, shard, outcome, arena);
        case STORE_MOVE:
                return settle_move(s, shard, outcome, arena);
        default:
                return settle_noted(s, shard, outcome, epoch, arena);
        }
}

static void outcomes_apply(
        struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_advance *advance, struct claim *claim)
{
        const struct store_outcome *outcome = advance->outcomes;
        const struct store_outcome *end = outcome + advance->outcomes_count;
        const struct store_prepared *follow_ups = advance->prepared;
        while (outcome < end) {
                const struct store_outcome *settled =
                        outcome + settle_plain(s, shard, outcome, (uint32_t)(end - outcome), advance);
                if (settled == outcome) {
                        advance->gone += !settle(s, shard, outcome, follow_ups, advance->lease.epoch, claim->arena);
                        follow_ups += outcome->follow_ups_count;
                        settled++;
                }
                for (; outcome < settled; outcome++)
                        if (outcome->kind == STORE_DONE || outcome->kind == STORE_DEAD ||
                                outcome->kind == STORE_MERGE || outcome->kind == STORE_MOVE)
                                refill(s, shard, outcome, claim);
        }
}

static void reply_fill(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct store_advance *advance,
        const struct claim *claim)
{
        advance->verdict = STORE_OK;
        advance->tasks = claim->tasks;
        advance->tasks_count = claim->count;
        advance->set_aside = claim->set_aside;
        /* Due keys without room in their lane come once it has room, so next_due_ms ignores them. */
        bool has_waiting = claim->has_due[LANE_HIGH] || claim->has_due[LANE_NORMAL] || claim->has_due[LANE_LOW];
        advance->has_due_waiting = has_waiting;
        advance->next_due_ms = shard_next_due_ms(s, shard, has_waiting ? s->now_ms + 1 : 0);
        for (unsigned lane = 0; lane < LANES; lane++)
                advance->has_more[lane] = shard->queued[lane] || claim->has_due[lane] || advance->next_due_ms == 0;
        advance->wanted = lease_wanted(s, shard);
        advance->left_ms = lease_left_ms(s, shard);
}

/* The answer to the last call was lost: returns the tasks that it claimed, which are in flight, again. */
static void repeat(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct store_advance *advance)
{
        struct claim claim;
        struct flight flight;
        claim_init(&claim, request_arena(&advance->request), STORE_CALL_TASKS);
        for (uint32_t i = 0; i < shard->last_count; i++)
                for (uint64_t n = 0; n < shard->last[i].count && claim.count < claim.room; n++)
                        if (flight_get(s, shard, shard->last[i].first + n, claim.arena, &flight))
                                (void)claim_add(
                                        s, &claim, shard, shard->last[i].first + n, flight.task, flight.note, NULL);
        control_repeat(s, shard, advance);
        reply_fill(s, shard, advance, &claim);
}

static uint32_t refills(const struct store_advance *advance)
{
        uint64_t sum = 0;
        for (uint32_t i = 0; i < advance->outcomes_count; i++)
                sum += advance->outcomes[i].refill;
        return (uint32_t)min_u64(sum, STORE_CALL_TASKS);
}

void sqlite_advance(struct sqlite_store *s, struct store_request *request)
{
        struct store_advance *advance = (struct store_advance *)request;
        struct sqlite_shard_row *shard = shard_write(s, advance->lease.shard);
        advance->tasks_count = advance->controls_count = advance->gone = advance->set_aside = 0;
        advance->has_outbox = advance->is_refused = advance->has_due_waiting = advance->is_costly = false;
        memset(advance->has_more, 0, sizeof(advance->has_more));
        advance->verdict = STORE_FENCED;
        switch (fence_check(shard, &advance->lease, advance->call)) {
        case FENCE_FENCED:
                return;
        case FENCE_REPEAT:
                repeat(s, shard, advance);
                return;
        case FENCE_OK:
                break;
        }
        struct claim claim;
        uint32_t room = refills(advance);
        for (unsigned lane = 0; lane < LANES; lane++)
                room += advance->want[lane];
        claim_init(&claim, request_arena(request), min_u64(room, STORE_CALL_TASKS));
        memcpy(claim.want, advance->want, sizeof(claim.want));
        control_take(s, shard, advance);
        outcomes_apply(s, shard, advance, &claim);
        advance->is_refused = lease_extend(s, shard, advance->lease.ttl_ms);
        if (!advance->is_refused) {
                claim_due(s, shard, &claim);
                claim_lanes(s, shard, &claim, advance->want_bytes);
        }
        shard->call = advance->call;
        claim_remember(shard, &claim);
        reply_fill(s, shard, advance, &claim);
}
