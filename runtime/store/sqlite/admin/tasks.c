/* Counting, listing, finding and cancelling tasks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

/* --- counts --- */

/* The greatest age of the lanes' first tasks, in flight or queued, by their producers' submission times. */
static uint64_t oldest_ms(struct sqlite_store *s, const struct sqlite_shard_row *shard, struct arena_chunk **arena)
{
        uint64_t oldest = 0;
        for (unsigned lane = 0; lane < LANES; lane++) {
                struct store_task task;
                if (!shard->queued[lane] && !shard->in_flight)
                        continue;
                struct log_scan scan = log_scan(&s->db, shard->shard, (enum lane)lane,
                        shard->in_flight ? 0 : shard->taken[lane], shard->tail[lane]);
                if (log_scan_next(&scan) && !row_read(s, shard->shard, lane_seq((enum lane)lane, scan.number),
                                                    column_span(&scan.row, 1), arena, &task, NULL)) {
                        oldest = max_u64(oldest,
                                store_age_ms(s->store.record.created_ms, task.envelope.submitted_ms, s->now_ms));
                }
                log_scan_end(&scan);
        }
        return oldest;
}

static void host_read(struct sqlite_store *s, uint32_t shard, char ret_host[STORE_HOST_MAX + 1])
{
        struct query q = query(&s->db, STATEMENT_SHARD_HOST);
        bind_number(&q, shard);
        if (query_row(&q)) {
                struct span host = column_span(&q, 0);
                if (store_host_is_good(host))
                        memcpy(ret_host, host.data, host.size);
        }
        query_end(&q);
}

static void count_one(struct sqlite_store *s, uint32_t number, struct store_counts *to, struct arena_chunk **arena)
{
        /* A shard with a bad row counts as empty, so that the others are shown; fsck and the owner's log name it. */
        if (shard_is_bad(&s->shards, &s->db, number)) {
                *to = (struct store_counts){ .shard = number };
                return;
        }
        const struct sqlite_shard_row *shard = shard_read(s, number);
        *to = (struct store_counts){ .shard = number,
                .delayed = shard->delayed,
                .in_flight = shard->in_flight,
                .dead = shard->dead,
                .results = shard->results,
                .controls = shard->controls,
                .keys = shard->keys,
                .submitted = shard->submitted,
                .done = shard->done,
                .dropped = shard->dropped,
                .merged = shard->merged,
                .results_dropped = shard->results_dropped,
                .epoch = shard->epoch,
                .is_held = shard->is_held,
                .left_ms = lease_left_ms(s, shard),
                .wanted = lease_wanted(s, shard),
                .oldest_ms = oldest_ms(s, shard, arena),
                .time_ms = s->now_ms };
        memcpy(to->queued, shard->queued, sizeof(to->queued));
        store_counts_set_parked(to, shard->parked, shard->parked_high, shard->parked_low);
        if (!shard->is_held)
                return;
        memcpy(to->holder, shard->holder, STORE_NONCE_SIZE);
        host_read(s, number, to->host);
}

void sqlite_count(struct sqlite_store *s, struct store_request *request)
{
        struct store_count *count = (struct store_count *)request;
        count->counted = 0;
        for (uint32_t i = 0; i < count->shards && count->first_shard + i < s->store.shards; i++)
                count_one(s, count->first_shard + i, &count->counts[count->counted++], request_arena(request));
}

/* --- scanning --- */

/* Iterates over a shard's tasks in one state, a page at a time, and passes each to `see` as borrowed memory. */
struct scan {
        struct sqlite_store *s;
        const struct sqlite_shard_row *shard;
        enum store_state state;
        struct store_cursor cursor; /* QUEUED, IN_FLIGHT: seq; DELAYED: due, number; PARKED: key, seq; DEAD: number */
        uint32_t left;
        struct arena_chunk **arena;
        bool (*see)(struct scan *scan, const struct store_listed *listed, struct span bytes, struct span note);
        void *self;
};

static void read_task(struct scan *scan, struct store_listed *listed, uint64_t seq, struct span bytes, struct span note)
{
        struct store_task task = { 0 };
        if (row_read(scan->s, scan->shard->shard, seq, bytes, scan->arena, &task, NULL))
                task.envelope.payload = row_bytes(bytes);
        listed->envelope = task.envelope;
        listed->key = task.key;
        if (!listed->id.size)
                listed->id = task.envelope.id;
        if (note_parse(note.data, note.size, &listed->note))
                listed->note = (struct task_note){ 0 };
}

/* Handles one row of a scan's statement; true to go on. */
static bool row_see(struct scan *scan, struct query *q)
{
        struct store_listed listed = { .state = scan->state };
        struct span bytes;
        struct span note;
        uint64_t seq;
        switch (scan->state) {
        case STATE_DELAYED:
                listed.number = shard_number(column_number(q, 0));
                uint64_t due_ms = column_number(q, 4);
                listed.due_in_ms = due_ms > scan->s->now_ms ? due_ms - scan->s->now_ms : 0;
                scan->cursor = (struct store_cursor){ due_ms, listed.number };
                seq = lane_seq(column_lane(q, 3), listed.number);
                bytes = column_span(q, 1);
                note = column_span(q, 2);
                break;
        case STATE_PARKED:
                seq = listed.number = column_number(q, 1);
                scan->cursor = (struct store_cursor){ shard_number(column_number(q, 0)), seq };
                bytes = column_span(q, 2);
                note = column_span(q, 3);
                break;
        case STATE_DEAD:
                listed.number = scan->cursor.major = shard_number(column_number(q, 0));
                seq = lane_seq(column_lane(q, 3), listed.number);
                listed.at_ms = column_number(q, 4);
                listed.reason = column_span(q, 5);
                listed.id = column_span(q, 6);
                bytes = column_span(q, 1);
                note = column_span(q, 2);
                break;
        default:
                seq = listed.number = scan->cursor.major = log_seq(column_number(q, 0));
                bytes = column_span(q, 1);
                note = column_span(q, 2);
        }
        read_task(scan, &listed, seq, bytes, note);
        return scan->see(scan, &listed, bytes, note);
}

/* Runs a bound statement.  True if its rows ended, false if the page is full or `see` has seen enough. */
static bool rows_see(struct scan *scan, struct query *q)
{
        bool is_end = true;
        while (query_row(q)) {
                scan->left--;
                if (!row_see(scan, q) || !scan->left) {
                        is_end = false;
                        break;
                }
        }
        query_end(q);
        return is_end;
}

/* Segments of the log that a page looks into: those of a large backlog may hold only other shards' tasks. */
#define SCAN_LOOKS 2048u

static bool scan_log(struct scan *scan)
{
        const struct sqlite_shard_row *shard = scan->shard;
        for (unsigned lane = 0; lane < LANES; lane++) {
                bool is_queued = scan->state == STATE_QUEUED;
                uint64_t first = lane_seq((enum lane)lane, is_queued ? shard->taken[lane] : 0);
                uint64_t last = lane_seq((enum lane)lane, is_queued ? shard->tail[lane] : shard->taken[lane]);
                if (scan->cursor.major > first)
                        first = scan->cursor.major;
                if (first >= last)
                        continue;
                struct log_scan rows =
                        log_scan(&scan->s->db, shard->shard, (enum lane)lane, seq_number(first), seq_number(last));
                rows.looks = SCAN_LOOKS;
                bool has_room = true;
                while (has_room && log_scan_next(&rows)) {
                        scan->left--;
                        has_room = row_see(scan, &rows.row) && scan->left;
                }
                log_scan_end(&rows);
                if (!has_room)
                        return false;
                if (!rows.looks) {
                        scan->cursor.major = lane_seq((enum lane)lane, rows.number);
                        return false;
                }
        }
        return true;
}

static bool scan_run(struct scan *scan)
{
        struct database *db = &scan->s->db;
        uint32_t shard = scan->shard->shard;
        struct query q;
        switch (scan->state) {
        case STATE_DELAYED:
                q = query(db, STATEMENT_DELAYED_PAGE);
                bind_number(&q, shard);
                bind_number(&q, scan->cursor.major);
                bind_number(&q, shard_id(shard, scan->cursor.minor));
                break;
        case STATE_PARKED:
                q = query(db, STATEMENT_SIDE_PAGE);
                bind_number(&q, shard_id(shard, scan->cursor.major));
                bind_number(&q, scan->cursor.minor);
                bind_number(&q, shard_id(shard + 1, 0));
                break;
        case STATE_DEAD:
                q = query(db, STATEMENT_DEAD_PAGE);
                bind_number(&q, shard_id(shard, scan->cursor.major));
                bind_number(&q, shard_id(shard + 1, 0));
                break;
        default:
                return scan_log(scan);
        }
        bind_number(&q, scan->left);
        return rows_see(scan, &q);
}

/* Copies a listed task into the reply's memory. */
static void listed_keep(struct scan *scan, const struct store_listed *from, struct span bytes, struct span note,
        struct store_listed *to)
{
        *to = *from;
        to->id = arena_copy(scan->arena, from->id);
        to->reason = arena_copy(scan->arena, from->reason);
        uint64_t seq = lane_seq(from->envelope.lane, seq_number(from->number));
        read_task(scan, to, seq, arena_copy(scan->arena, bytes), arena_copy(scan->arena, note));
}

/* --- list --- */

static bool list_see(struct scan *scan, const struct store_listed *listed, struct span bytes, struct span note)
{
        struct store_list *list = scan->self;
        if (!list->handler.size || span_is(listed->envelope.handler, list->handler))
                listed_keep(scan, listed, bytes, note, &list->tasks[list->tasks_count++]);
        return true;
}

void sqlite_list(struct sqlite_store *s, struct store_request *request)
{
        struct store_list *list = (struct store_list *)request;
        struct scan scan = { .s = s,
                .shard = shard_read(s, list->shard),
                .state = list->state,
                .cursor = list->cursor,
                .left = list->page_tasks,
                .arena = request_arena(request),
                .see = list_see,
                .self = list };
        list->tasks = arena_take(scan.arena, list->page_tasks * sizeof(*list->tasks));
        list->tasks_count = 0;
        list->is_end = scan_run(&scan);
        list->cursor = scan.cursor;
}

/* --- find --- */

/* In the order of a task's life, so that a task that moves on meanwhile is met later. */
static const enum store_state find_order[] = { STATE_DELAYED, STATE_QUEUED, STATE_IN_FLIGHT, STATE_PARKED, STATE_DEAD };
#define FIND_STAGES (sizeof(find_order) / sizeof(find_order[0]))
#define FIND_SHIFT  56 /* a cursor's top bits hold the stage, the others the place within it */

static bool find_see(struct scan *scan, const struct store_listed *listed, struct span bytes, struct span note)
{
        struct store_find *find = scan->self;
        if (!span_is(listed->id, find->id))
                return true;
        struct store_listed *found = arena_take(scan->arena, sizeof(*found));
        listed_keep(scan, listed, bytes, note, found);
        find->task = found;
        return false;
}

void sqlite_find(struct sqlite_store *s, struct store_request *request)
{
        struct store_find *find = (struct store_find *)request;
        uint32_t shard = 0;
        uint64_t stage = find->cursor.major >> FIND_SHIFT;
        (void)task_id_check(find->id, &shard, NULL);
        struct scan scan = { .s = s,
                .shard = shard_read(s, shard),
                .cursor = { find->cursor.major & ((UINT64_C(1) << FIND_SHIFT) - 1), find->cursor.minor },
                .left = STORE_FIND_SLICE,
                .arena = request_arena(request),
                .see = find_see,
                .self = find };
        bool is_first_call = !find->cursor.major && !find->cursor.minor;
        find->task = NULL;
        for (; stage < FIND_STAGES; stage++, scan.cursor = (struct store_cursor){ 0 }) {
                scan.state = find_order[stage];
                if (!scan_run(&scan))
                        break;
        }
        if (stage == FIND_STAGES && !is_first_call) {
                /* Since the first call a retry may have gone back in flight. */
                scan.state = STATE_IN_FLIGHT;
                scan.left = STORE_FIND_SLICE;
                (void)scan_run(&scan);
        }
        find->is_end = stage == FIND_STAGES || find->task;
        find->merged_into = (struct span){ 0 };
        if (find->is_end && !find->task &&
                !merged_find(s, shard, find->id, scan.arena, &find->merged_into, &find->merged_ms))
                find->merged_into = (struct span){ 0 };
        find->cursor = (struct store_cursor){ stage << FIND_SHIFT | scan.cursor.major, scan.cursor.minor };
}

/* --- cancel --- */

struct sqlite_found {
        uint64_t seq;
        struct span task;
        struct span note;
};

/* Takes a statement's row, with (task, note) from column `at` on, if it is the task to cancel. */
static bool row_take(struct sqlite_store *s, const struct store_cancel *cancel, struct arena_chunk **arena,
        uint32_t shard, struct query *q, int at, struct sqlite_found *found)
{
        struct store_task task;
        bool is_there = query_row(q);
        if (is_there) {
                if (at)
                        found->seq = lane_seq(column_lane(q, 0), cancel->number);
                found->task = arena_copy(arena, column_span(q, at));
                found->note = arena_copy(arena, column_span(q, at + 1));
        }
        query_end(q);
        return is_there && !row_read(s, shard, found->seq, found->task, arena, &task, NULL) &&
               span_is(task.envelope.id, cancel->id);
}

/* Removes a queued or claimed task, unless its owner has it. */
static bool take_log(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_cancel *cancel,
        struct arena_chunk **arena, struct sqlite_found *found, bool *ret_is_owners)
{
        enum lane lane = STORE_SEQ_LANE(found->seq);
        if (lane >= LANES)
                return false;
        bool is_queued = seq_number(found->seq) > shard->taken[lane];
        if (is_queued != (cancel->state == STATE_QUEUED))
                return false;
        struct query q = query(&s->db, STATEMENT_LOG_GET);
        bind_number(&q, log_id(shard->shard, found->seq));
        if (!row_take(s, cancel, arena, shard->shard, &q, 0, found))
                return false;
        *ret_is_owners = !is_queued && shard->is_held;
        if (*ret_is_owners)
                return true;
        q = query(&s->db, STATEMENT_LOG_REMOVE);
        bind_number(&q, log_id(shard->shard, found->seq));
        (void)query_run(&q);
        count_down(is_queued ? &shard->queued[lane] : &shard->in_flight);
        return true;
}

static bool cancel_log(
        struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_cancel *cancel, struct sqlite_found *found)
{
        if (!take_log(s, shard, cancel, request_arena(&cancel->request), found, &cancel->is_pending))
                return false;
        if (cancel->is_pending)
                control_add(s, shard, CONTROL_CANCEL, cancel->key, (struct span){ 0 }, cancel->id, found->seq);
        return true;
}

static bool cancel_delayed(
        struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_cancel *cancel, struct sqlite_found *found)
{
        struct query q = query(&s->db, STATEMENT_DELAYED_GET);
        bind_number(&q, shard_id(shard->shard, cancel->number));
        if (!row_take(s, cancel, request_arena(&cancel->request), shard->shard, &q, 1, found))
                return false;
        q = query(&s->db, STATEMENT_DELAYED_REMOVE);
        bind_number(&q, shard_id(shard->shard, cancel->number));
        (void)query_run(&q);
        count_down(&shard->delayed);
        return true;
}

static bool cancel_parked(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_cancel *cancel,
        struct arena_chunk **arena, struct sqlite_found *found)
{
        struct key key;
        if (!key_get(s, shard, cancel->key, &key))
                return false;
        struct query q = query(&s->db, STATEMENT_SIDE_GET);
        bind_number(&q, key.id);
        bind_number(&q, found->seq);
        if (!row_take(s, cancel, arena, shard->shard, &q, 0, found))
                return false;
        side_remove(s, shard, &key, found->seq);
        key_save(s, shard, &key);
        return true;
}

void sqlite_cancel_task(struct sqlite_store *s, struct store_request *request)
{
        struct store_cancel *cancel = (struct store_cancel *)request;
        uint32_t number = 0;
        (void)task_id_check(cancel->id, &number, NULL);
        struct sqlite_shard_row *shard = shard_write(s, number);
        struct sqlite_found found = { .seq = cancel->number };
        bool is_found = false;
        cancel->is_pending = false;
        switch (cancel->state) {
        case STATE_QUEUED:
        case STATE_IN_FLIGHT:
                is_found = cancel_log(s, shard, cancel, &found);
                break;
        case STATE_DELAYED:
                is_found = cancel_delayed(s, shard, cancel, &found);
                break;
        case STATE_PARKED:
                is_found = cancel_parked(s, shard, cancel, request_arena(request), &found);
                break;
        default:
                operation_refuse(
                        request, -EALREADY, "task %.*s is dead already", (int)cancel->id.size, cancel->id.data);
                return;
        }
        if (!is_found)
                operation_refuse(request, -ENOENT, "task %.*s is not %s any more", (int)cancel->id.size,
                        cancel->id.data, store_state_name(cancel->state));
        else if (!cancel->is_pending)
                dead_put_bytes(s, shard, found.seq, SPAN_TEXT("cancelled"), (struct span){ 0 }, found.task, found.note);
}

/* --- move --- */

/* Makes the note of a task that changes its lane. */
static void moved_note(struct sqlite_store *s, struct span before, enum lane lane, struct buffer *ret)
{
        struct task_note note;
        struct buffer events = { 0 };
        if (note_parse(before.data, before.size, &note))
                note = (struct task_note){ 0 };
        note_add_event(&note, &events, s->now_ms, "moved", span_of_text(lane_name(lane)));
        note_put(ret, &note);
        buffer_free(&events);
}

void lane_append(
        struct sqlite_store *s, struct sqlite_shard_row *shard, enum lane lane, struct span task, struct span note)
{
        struct buffer after = { 0 };
        moved_note(s, note, lane, &after);
        shard_append(s, shard, lane, task, (struct span){ (const char *)after.data, after.size });
        buffer_free(&after);
}

static bool move_delayed(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_move *move,
        const struct store_cancel *meant, struct arena_chunk **arena)
{
        struct sqlite_found found = { 0 };
        struct buffer note = { 0 };
        struct query q = query(&s->db, STATEMENT_DELAYED_GET);
        bind_number(&q, shard_id(shard->shard, move->number));
        if (!row_take(s, meant, arena, shard->shard, &q, 1, &found))
                return false;
        moved_note(s, found.note, move->lane, &note);
        q = query(&s->db, STATEMENT_DELAYED_LANE);
        bind_number(&q, shard_id(shard->shard, move->number));
        bind_number(&q, move->lane);
        bind_span(&q, (struct span){ (const char *)note.data, note.size });
        (void)query_run(&q);
        buffer_free(&note);
        return true;
}

/* Whether the task is the head of a parked key: moving it would skip the wait for its retry. */
static bool is_retrying(struct sqlite_store *s, const struct sqlite_shard_row *shard, const struct store_move *move)
{
        struct key key;
        return move->state == STATE_PARKED && key_get(s, shard, move->key, &key) && key.state == KEY_PARKED &&
               side_first(s, &key) == move->number;
}

void sqlite_move(struct sqlite_store *s, struct store_request *request)
{
        struct store_move *move = (struct store_move *)request;
        struct store_cancel meant = { .id = move->id, .key = move->key, .state = move->state, .number = move->number };
        struct arena_chunk **arena = request_arena(request);
        struct sqlite_found found = { .seq = move->number };
        uint32_t number = 0;
        bool is_found;
        (void)task_id_check(move->id, &number, NULL);
        struct sqlite_shard_row *shard = shard_write(s, number);
        move->is_pending = false;
        if (is_retrying(s, shard, move)) {
                operation_refuse(request, -EPERM, "task %.*s is the first of a key that waits for its retry",
                        (int)move->id.size, move->id.data);
                return;
        }
        if (move->state == STATE_DELAYED)
                is_found = move_delayed(s, shard, move, &meant, arena);
        else if (move->state == STATE_PARKED)
                is_found = cancel_parked(s, shard, &meant, arena, &found);
        else
                is_found = take_log(s, shard, &meant, arena, &found, &move->is_pending);
        if (!is_found) {
                operation_refuse(request, -ENOENT, "task %.*s is not %s any more", (int)move->id.size, move->id.data,
                        store_state_name(move->state));
                return;
        }
        if (move->is_pending)
                control_add(
                        s, shard, CONTROL_MOVE, move->key, span_of_text(lane_name(move->lane)), move->id, found.seq);
        else if (move->state != STATE_DELAYED)
                lane_append(s, shard, move->lane, found.task, found.note);
        ring_holder(s, shard);
}

/* --- reschedule --- */

void sqlite_reschedule(struct sqlite_store *s, struct store_request *request)
{
        const struct store_reschedule *asked = (const struct store_reschedule *)request;
        const struct store_cancel meant = { .id = asked->id, .number = asked->number };
        struct arena_chunk **arena = request_arena(request);
        struct sqlite_found found = { 0 };
        struct task_note note;
        struct buffer events = { 0 };
        struct buffer bytes = { 0 };
        char due[24];
        uint64_t due_ms = asked->at_ms ? asked->at_ms : s->now_ms + asked->delay_ms;
        uint32_t number = 0;
        (void)task_id_check(asked->id, &number, NULL);
        struct sqlite_shard_row *shard = shard_write(s, number);
        struct query q = query(&s->db, STATEMENT_DELAYED_GET);
        bind_number(&q, shard_id(number, asked->number));
        if (!row_take(s, &meant, arena, number, &q, 1, &found)) {
                operation_refuse(
                        request, -ENOENT, "task %.*s is not delayed any more", (int)asked->id.size, asked->id.data);
                return;
        }
        if (note_parse(found.note.data, found.note.size, &note))
                note = (struct task_note){ 0 };
        (void)snprintf(due, sizeof(due), "%" PRIu64, due_ms);
        note_add_event(&note, &events, s->now_ms, "rescheduled", span_of_text(due));
        note_put(&bytes, &note);
        q = query(&s->db, STATEMENT_DELAYED_MOVE);
        bind_number(&q, shard_id(number, asked->number));
        bind_number(&q, due_ms);
        bind_span(&q, (struct span){ (const char *)bytes.data, bytes.size });
        (void)query_run(&q);
        buffer_free(&events);
        buffer_free(&bytes);
        ring_holder(s, shard);
}
