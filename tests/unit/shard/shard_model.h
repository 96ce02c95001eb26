/* shard_model.h: a small store of the contract that a shard relies on, with keys that wait for a time, a turn or a
 * name, and tasks that are merged: what test_shard_model.c plays against a shard. */
#ifndef QUIVER_TESTS_SHARD_MODEL_H
#define QUIVER_TESTS_SHARD_MODEL_H

#include "shard_rig.h"

#define TASKS   300
#define KEYS    12
#define SEATS   4
#define WAIT_MS 30000

enum place { QUEUED, FLIGHT, SIDE, GONE };

struct model_task {
        enum place place;
        uint64_t seq;
        unsigned key;
        const char *handler;
        bool is_suspect;
        bool is_marked;
        bool may_merge;
        bool is_debounced;
        bool has_run;
        bool came_late; /* its last owner got it while it was leaving */
        uint64_t arrived_ms;
        uint64_t debounce_ms; /* as the last one that was merged into it says; so is the payload */
        uint64_t reply_ms;    /* the longest that it or one that was merged into it asks for */
        uint32_t payload;
        uint32_t into; /* GONE: it was merged into the one with this seq; 0: it was not */
};

struct model_key {
        enum { KEY_FREE, KEY_WAITS, KEY_PARKED, KEY_NAMED } state;
        uint64_t due_ms;
        char name[STORE_NAME_MAX + 1]; /* KEY_NAMED: what it waits for */
};

struct model {
        struct rig rig;
        struct model_task tasks[TASKS];
        struct model_key keys[KEYS];
        uint32_t arrived; /* of the tasks; the rest is still to be submitted */
        uint64_t epoch, call, until_ms;
        bool is_held, is_ours;
        uint32_t last[STORE_CALL_TASKS]; /* what the last call claimed */
        uint32_t last_count;
        enum shard_call call_kind;
        struct store_names names;
        struct store_wake wake;
        struct span name_list[KEYS];
        struct claimed *seats[SEATS];
        uint32_t done, ran, merged;
        uint64_t random;
        bool is_calm; /* nothing goes wrong any more */
        bool is_over; /* the host goes: nothing is assigned to it any more */
};

static const char *const key_names[KEYS] = { "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "kA", "kB" };

static char payloads[TASKS][8]; /* their numbers */

static inline unsigned draw(struct model *m, unsigned below)
{
        m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned)((m->random >> 33) % below);
}

static inline bool happens(struct model *m, unsigned one_in)
{
        return !m->is_calm && !draw(m, one_in);
}

/* --- the store -------------------------------------------------------------------------------------------------------
 */

static inline void give(struct model *m, uint32_t i)
{
        struct model_task *t = &m->tasks[i];
        struct store_task *to = hand(&m->rig, t->seq, key_names[t->key], t->handler);
        t->came_late = m->rig.shard.state == SHARD_LEAVING;
        to->envelope.key = to->key;
        to->envelope.is_merge = t->may_merge;
        to->envelope.debounce_ms = t->debounce_ms;
        to->envelope.reply_ms = t->reply_ms;
        to->envelope.payload = rig_span(payloads[t->payload]);
        to->note.is_debounced = t->is_debounced;
        to->note.is_suspect = t->is_suspect;
        to->note.started_epoch = t->is_marked ? m->epoch : 0;
}

static inline void claim_one(struct model *m, uint32_t i)
{
        m->tasks[i].place = FLIGHT;
        m->last[m->last_count++] = i;
}

/* The first `max` of a key's side queue go in flight. */
static inline void side_take(struct model *m, unsigned key, uint32_t max)
{
        bool has_more = false;
        for (uint32_t i = 0; i < m->arrived; i++) {
                if (m->tasks[i].place != SIDE || m->tasks[i].key != key)
                        continue;
                if (max && m->last_count < STORE_CALL_TASKS) {
                        max--;
                        claim_one(m, i);
                } else {
                        has_more = true;
                }
        }
        m->keys[key] =
                (struct model_key){ .state = has_more ? KEY_WAITS : KEY_FREE, .due_ms = m->rig.now_ms + WAIT_MS };
}

static inline void set_aside(struct model *m, struct model_task *t, const struct store_outcome *o)
{
        struct model_key *key = &m->keys[t->key];
        uint64_t due_ms = m->rig.now_ms + o->delay_ms;
        t->place = SIDE;
        t->is_debounced |= o->is_debounce;
        bool is_first = true;
        for (const struct model_task *other = m->tasks; other < t; other++)
                is_first &= other->place != SIDE || other->key != t->key;
        bool can_change = key->state == KEY_FREE || (is_first && key->state != KEY_PARKED);
        if (o->kind == STORE_RETRY) {
                *key = (struct model_key){ .state = KEY_PARKED, .due_ms = due_ms };
        } else if (o->name.size && can_change) {
                *key = (struct model_key){ .state = KEY_NAMED };
                memcpy(key->name, o->name.data, o->name.size);
        } else if (key->state == KEY_FREE || (is_first && (key->state == KEY_NAMED || o->is_debounce) && can_change))
                *key = (struct model_key){ .state = KEY_WAITS, .due_ms = due_ms };
        else if (key->state == KEY_WAITS && due_ms < key->due_ms)
                key->due_ms = due_ms;
}

/* --- merging ---------------------------------------------------------------------------------------------------------
 */

/* It has not started, nor does it run here. */
static inline void check_mergeable(const struct model *m, const struct model_task *t)
{
        assert_int_equal(t->place, FLIGHT);
        assert_true(t->may_merge && !t->is_marked);
        for (unsigned i = 0; i < SEATS; i++)
                assert_false(m->seats[i] && m->seats[i]->seq == t->seq);
}

/* They are neighbours in the order of their key. */
static inline void merge(struct model *m, struct model_task *into, const struct store_outcome *o)
{
        const struct model_task *last = into;
        check_mergeable(m, into);
        for (uint32_t i = 0; i < o->merged_count; i++) {
                struct model_task *t = &m->tasks[o->merged[i].seq - 1];
                check_mergeable(m, t);
                assert_true(t > last && t->key == into->key && t->handler == into->handler);
                for (const struct model_task *between = last + 1; between < t; between++)
                        assert_true(between->key != t->key || between->place == GONE);
                assert_int_equal(o->merged[i].reply_ms, t->reply_ms);
                last = t;
                t->place = GONE;
                t->into = (uint32_t)into->seq;
                into->reply_ms = t->reply_ms > into->reply_ms ? t->reply_ms : into->reply_ms;
                m->merged++;
        }
        into->payload = last->payload;
        into->debounce_ms = last->debounce_ms;
}

/* What stands behind it was merged into it before, and it waited for others to join it. */
static inline void check_merged(const struct model *m, const struct claimed *c)
{
        const struct model_task *t = &m->tasks[c->seq - 1];
        assert_true(span_is(c->payload, rig_span(payloads[t->payload])));
        if (!t->may_merge || t->has_run || t->is_suspect || t->is_marked)
                return;
        /* What came while the shard was leaving, and stays after all, is merged when another of its key comes. */
        bool is_next_like_it = c->next && c->next->may_merge && span_is(c->next->handler, c->handler);
        if (is_next_like_it && !m->tasks[c->next->seq - 1].came_late)
                assert_int_not_equal(c->next->state, CLAIMED_WAITING);
        assert_true(t->is_debounced || m->rig.now_ms >= t->arrived_ms + t->debounce_ms);
}

/* Who waits for a merged one is led to a task that has ended, and whose outcome was kept long enough. */
static inline void check_replies(const struct model *m)
{
        for (uint32_t i = 0; i < TASKS; i++) {
                const struct model_task *t = &m->tasks[i];
                while (t->into)
                        t = &m->tasks[t->into - 1];
                assert_true(!m->tasks[i].into || t->place == GONE || t->key == KEYS - 1);
                assert_true(t->reply_ms >= m->tasks[i].reply_ms);
        }
}

/* --- calls -----------------------------------------------------------------------------------------------------------
 */

static inline void apply(struct model *m, const struct store_outcome *o)
{
        struct model_task *t = &m->tasks[o->task.seq - 1];
        assert_int_equal(t->place, FLIGHT);
        assert_int_equal(o->task.reply_ms, t->reply_ms);
        switch (o->kind) {
        case STORE_DONE:
        case STORE_DEAD:
        case STORE_MERGE:
                if (o->kind == STORE_MERGE) {
                        merge(m, t, o);
                } else {
                        t->place = GONE;
                        m->done++;
                }
                if (o->refill && m->keys[t->key].state == KEY_WAITS)
                        side_take(m, t->key, o->refill);
                break;
        case STORE_START:
                t->is_marked = true;
                break;
        case STORE_INTERRUPTED:
                t->is_marked = false;
                t->is_suspect = o->is_suspect;
                break;
        default:
                t->is_marked &= o->kind == STORE_DIVERT;
                set_aside(m, t, o);
        }
}

/* The head of a key that is due, and what it may be merged with. */
static inline void take_due(struct model *m, unsigned key, uint32_t room)
{
        const struct model_task *head = m->tasks;
        while (head->place != SIDE || head->key != key)
                head++;
        side_take(m, key, !head->may_merge ? 1 : room < STORE_MERGE_TASKS ? room : STORE_MERGE_TASKS);
        if (head->may_merge && room == 1)
                m->keys[key].due_ms = m->rig.now_ms;
}

static inline void claim_tasks(struct model *m, uint32_t want)
{
        uint32_t most = m->last_count + want < STORE_CALL_TASKS ? m->last_count + want : STORE_CALL_TASKS;
        for (unsigned key = 0; key < KEYS; key++)
                if (m->keys[key].state != KEY_FREE && m->keys[key].state != KEY_NAMED &&
                        m->keys[key].due_ms <= m->rig.now_ms && m->last_count < most)
                        take_due(m, key, most - m->last_count);
        for (uint32_t i = 0; i < m->arrived && m->last_count < most; i++) {
                if (m->tasks[i].place != QUEUED)
                        continue;
                if (m->keys[m->tasks[i].key].state == KEY_FREE)
                        claim_one(m, i);
                else
                        m->tasks[i].place = SIDE;
        }
}

static inline bool is_fenced(const struct model *m, const struct store_lease *lease)
{
        return !m->is_held || !m->is_ours || lease->epoch != m->epoch;
}

static inline void do_advance(struct model *m, struct store_advance *a)
{
        a->verdict = is_fenced(m, &a->lease) || a->call < m->call || a->call > m->call + 1 ? STORE_FENCED : STORE_OK;
        if (a->verdict == STORE_FENCED || a->call == m->call)
                return;
        m->call = a->call;
        m->last_count = 0;
        m->until_ms = m->rig.now_ms + RIG_TTL_MS;
        for (uint32_t i = 0; i < a->outcomes_count; i++)
                apply(m, &a->outcomes[i]);
        claim_tasks(m, a->want[LANE_HIGH]);
}

static inline void do_acquire(struct model *m, struct store_acquire *a)
{
        bool is_same = m->is_ours && a->lease.epoch == m->epoch;
        if (a->lease.epoch <= m->epoch && !is_same)
                a->grant = STORE_STALE;
        else if (m->is_held && !m->is_ours && m->until_ms > m->rig.now_ms)
                a->grant = STORE_BUSY;
        else
                a->grant = STORE_GRANTED;
        a->stored_epoch = m->epoch;
        a->busy_ms = a->grant == STORE_BUSY ? m->until_ms - m->rig.now_ms : 0;
        if (a->grant != STORE_GRANTED)
                return;
        m->epoch = a->lease.epoch;
        m->is_held = m->is_ours = true;
        m->call += 2;
        m->last_count = 0;
        m->until_ms = m->rig.now_ms + RIG_TTL_MS;
}

/* It is to be given back: its key waits for more than its turn, or one before it stands in the key's side queue. */
static inline bool is_key_waiting(const struct model *m, const struct model_task *t)
{
        for (const struct model_task *other = m->tasks; other < t; other++)
                if (other->key == t->key && other->place == SIDE)
                        return true;
        return m->keys[t->key].state >= KEY_PARKED;
}

/* A few a page, so that there are several. */
static inline bool fill_page(struct model *m, uint64_t after_seq)
{
        for (uint32_t i = 0; i < m->arrived; i++) {
                if (m->tasks[i].place != FLIGHT || m->tasks[i].seq <= after_seq)
                        continue;
                if (m->rig.tasks_count == 5)
                        return true;
                give(m, i);
                m->rig.tasks[m->rig.tasks_count - 1].is_key_waiting = is_key_waiting(m, &m->tasks[i]);
        }
        return false;
}

#endif
