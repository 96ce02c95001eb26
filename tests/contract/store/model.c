#include "model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- tasks ------------------------------------------------------------------------------------------------------- */

struct model_task *model_find(struct model *m, unsigned number)
{
        for (unsigned i = 0; i < m->count; i++)
                if (m->tasks[i].number == number)
                        return &m->tasks[i];
        return NULL;
}

unsigned model_count(const struct model *m, enum model_state state)
{
        unsigned count = 0;
        for (unsigned i = 0; i < m->count; i++)
                count += m->tasks[i].state == state;
        return count;
}

static void forget(struct model *m, struct model_task *task)
{
        *task = m->tasks[--m->count];
}

static bool before(const struct model_task *a, const struct model_task *b)
{
        return a->lane != b->lane ? a->lane < b->lane : a->order < b->order;
}

/* The first by seq in a state, of one key or of all (key < 0), after a given task. */
static struct model_task *first(struct model *m, enum model_state state, int key, const struct model_task *after)
{
        struct model_task *best = NULL;
        for (unsigned i = 0; i < m->count; i++) {
                struct model_task *t = &m->tasks[i];
                if (t->state == state && (key < 0 || t->key == (unsigned)key) && (!after || before(after, t)) &&
                        (!best || before(t, best)))
                        best = t;
        }
        return best;
}

unsigned model_flight(struct model *m, unsigned *numbers)
{
        unsigned count = 0;
        for (struct model_task *t = NULL; (t = first(m, MODEL_FLIGHT, -1, t));)
                numbers[count++] = t->number;
        return count;
}

static void enter_log(struct model *m, struct model_task *task)
{
        task->state = MODEL_QUEUED;
        task->order = ++m->next;
}

static struct model_reply *reply_of(struct model *m, unsigned number)
{
        if (number >= m->replies_count) {
                unsigned count = 2 * number;
                m->replies = realloc(m->replies, count * sizeof(*m->replies));
                assert(m->replies);
                memset(m->replies + m->replies_count, 0, (count - m->replies_count) * sizeof(*m->replies));
                m->replies_count = count;
        }
        return &m->replies[number];
}

static void answer(struct model *m, const struct model_task *t, enum store_reply_state state)
{
        if (t->has_reply)
                *reply_of(m, t->number) = (struct model_reply){ state, t->number, t->merged };
}

struct model_task *model_submit(struct model *m, unsigned number, unsigned key, enum lane lane, uint64_t delay_ms)
{
        assert(m->count < MODEL_TASKS);
        struct model_task *t = &m->tasks[m->count++];
        *t = (struct model_task){ .number = number, .payload = number, .key = key, .lane = lane };
        m->submitted++;
        if (delay_ms) {
                t->state = MODEL_DELAYED;
                t->due_ms = m->now_ms + delay_ms;
                t->arrival = ++m->next;
        } else {
                enter_log(m, t);
        }
        return t;
}

static void die(struct model *m, struct model_task *t)
{
        answer(m, t, REPLY_DEAD);
        t->state = MODEL_DEAD;
        t->arrival = ++m->next;
}

/* --- keys -------------------------------------------------------------------------------------------------------- */

static void key_tidy(struct model *m, unsigned key)
{
        if (m->keys[key].state != KEY_HELD && !first(m, MODEL_PARKED, (int)key, NULL))
                m->keys[key].state = KEY_FREE;
}

unsigned model_keys(const struct model *m)
{
        unsigned count = 0;
        for (unsigned i = 0; i < MODEL_KEYS; i++)
                count += m->keys[i].state != KEY_FREE;
        return count;
}

bool model_is_waiting(struct model *m, unsigned number)
{
        const struct model_task *t = model_find(m, number);
        const struct model_task *head = first(m, MODEL_PARKED, (int)t->key, NULL);
        return m->keys[t->key].state >= KEY_PARKED || (head && before(head, t));
}

static void give(struct model *m, struct model_task *t)
{
        t->state = MODEL_FLIGHT;
        m->last[m->last_count++] = t->number;
}

static unsigned take_side(struct model *m, unsigned key, unsigned max)
{
        unsigned taken = 0;
        for (struct model_task *t; taken < max && (t = first(m, MODEL_PARKED, (int)key, NULL)); taken++)
                give(m, t);
        m->keys[key].state = KEY_WAITING;
        m->keys[key].due_ms = m->now_ms + STORE_WAITING_MS;
        key_tidy(m, key);
        return taken;
}

static void control_apply(struct model *m, enum store_control_verb verb, unsigned key)
{
        struct model_key *k = &m->keys[key];
        if (verb == CONTROL_HOLD) {
                k->state = KEY_HELD;
                return;
        }
        if (k->state < KEY_PARKED || (verb == CONTROL_UNHOLD && k->state != KEY_HELD))
                return;
        struct model_task *head = first(m, MODEL_PARKED, (int)key, NULL);
        if (verb == CONTROL_SKIP && head)
                die(m, head);
        k->state = KEY_PARKED;
        k->due_ms = m->now_ms;
        key_tidy(m, key);
}

int model_key_act(struct model *m, enum store_control_verb verb, unsigned key)
{
        bool may_come = m->is_held && m->controls_count;
        if (verb != CONTROL_HOLD && !may_come && m->keys[key].state < KEY_PARKED)
                return -ENOENT;
        if (m->is_held)
                m->controls[m->controls_count++] = (struct model_control){ verb, key, 0 };
        else
                control_apply(m, verb, key);
        return 0;
}

int model_cancel(struct model *m, unsigned number)
{
        struct model_task *t = model_find(m, number);
        if (!t)
                return -ENOENT;
        if (t->state == MODEL_DEAD)
                return -EALREADY;
        if (t->state == MODEL_FLIGHT && m->is_held) {
                m->controls[m->controls_count++] = (struct model_control){ CONTROL_CANCEL, t->key, number };
                return 0;
        }
        unsigned key = t->key;
        die(m, t);
        key_tidy(m, key);
        return 0;
}

static void clear_start(struct model_task *t)
{
        t->holder = 0;
        t->until_ms = 0;
}

bool model_requeue(struct model *m, unsigned number)
{
        struct model_task *t = model_find(m, number);
        if (!t || t->state != MODEL_DEAD)
                return false;
        t->attempts = t->interruptions = 0;
        clear_start(t);
        enter_log(m, t);
        return true;
}

bool model_drop(struct model *m, unsigned number)
{
        struct model_task *t = model_find(m, number);
        if (!t || t->state != MODEL_DEAD)
                return false;
        forget(m, t);
        m->dropped++;
        return true;
}

/* --- the lease --------------------------------------------------------------------------------------------------- */

enum store_grant model_acquire(struct model *m, unsigned host, uint64_t epoch, uint64_t ttl_ms)
{
        if (epoch < m->epoch || (epoch == m->epoch && host != m->holder))
                return STORE_STALE;
        if (epoch > m->epoch && m->is_held && host != m->holder && m->until_ms > m->now_ms)
                return STORE_BUSY;
        m->epoch = epoch;
        m->holder = host;
        m->is_held = true;
        m->call += 2;
        m->until_ms = m->now_ms + ttl_ms;
        m->last_count = 0;
        /* What was returned to the last call may never have arrived. */
        memmove(m->controls + m->last_controls_count, m->controls, m->controls_count * sizeof(m->controls[0]));
        memcpy(m->controls, m->last_controls, m->last_controls_count * sizeof(m->controls[0]));
        for (unsigned i = 0; i < m->last_controls_count; i++)
                if (m->controls[i].verb != CONTROL_CANCEL)
                        m->controls[i].number = UINT32_MAX; /* applied already */
        m->controls_count += m->last_controls_count;
        m->last_controls_count = 0;
        return STORE_GRANTED;
}

static bool is_ours(const struct model *m, unsigned host, uint64_t epoch)
{
        return m->is_held && m->holder == host && m->epoch == epoch;
}

enum store_verdict model_release(struct model *m, unsigned host, uint64_t epoch, uint64_t call)
{
        if (!m->is_held && m->holder == host && m->epoch == epoch && m->call == call)
                return STORE_OK;
        if (!is_ours(m, host, epoch) || call != m->call + 1)
                return STORE_FENCED;
        m->is_held = false;
        m->call = call;
        m->last_count = 0;
        return STORE_OK;
}

/* --- advance ----------------------------------------------------------------------------------------------------- */

static void controls_take(struct model *m)
{
        unsigned taken = m->controls_count < STORE_CALL_CONTROLS ? m->controls_count : STORE_CALL_CONTROLS;
        for (unsigned i = 0; i < taken; i++) {
                struct model_control *c = &m->controls[i];
                if (c->verb != CONTROL_CANCEL && c->number != UINT32_MAX)
                        control_apply(m, c->verb, c->key);
                m->last_controls[i] = *c;
        }
        m->last_controls_count = taken;
        m->controls_count -= taken;
        memmove(m->controls, m->controls + taken, m->controls_count * sizeof(m->controls[0]));
}

/* A key waits for what its first task waits for. */
static void divert(struct model *m, const struct model_task *t, const struct model_outcome *o, uint64_t due)
{
        struct model_key *k = &m->keys[t->key];
        bool is_first = first(m, MODEL_PARKED, (int)t->key, NULL) == t;
        if (o->name && (is_first || k->state == KEY_FREE))
                *k = (struct model_key){ KEY_NAMED, 0, o->name, m->now_ms };
        else if (k->state == KEY_FREE || (is_first && (k->state == KEY_NAMED || o->is_debounce)))
                *k = (struct model_key){ KEY_WAITING, due, 0, 0 };
        else if (k->state == KEY_WAITING && due < k->due_ms)
                k->due_ms = due;
}

static void aside(struct model *m, struct model_task *t, const struct model_outcome *o)
{
        struct model_key *k = &m->keys[t->key];
        uint64_t due = m->now_ms + o->delay_ms;
        if (o->kind != STORE_DIVERT) {
                t->attempts++;
                clear_start(t);
        }
        t->is_debounced |= o->is_debounce;
        t->interruptions += o->is_interruption;
        t->state = MODEL_PARKED;
        if (o->kind == STORE_HOLD) {
                k->state = KEY_HELD;
        } else if (o->kind == STORE_RETRY && k->state != KEY_HELD) {
                *k = (struct model_key){ KEY_PARKED, due, 0, 0 };
        } else if (k->state != KEY_PARKED && k->state != KEY_HELD) {
                divert(m, t, o, due);
        }
}

/* --- merging ------------------------------------------------------------------------------------------------------ */

static bool can_merge(const struct model_task *t)
{
        return t->state == MODEL_FLIGHT && t->may_merge && !t->attempts && !t->interruptions && !t->holder;
}

unsigned model_next_to_merge(struct model *m, unsigned number)
{
        const struct model_task *into = model_find(m, number);
        if (!into || !can_merge(into))
                return 0;
        const struct model_task *next = first(m, MODEL_FLIGHT, (int)into->key, into);
        const struct model_task *parked = first(m, MODEL_PARKED, (int)into->key, into);
        bool is_neighbour = next && next->lane == into->lane && !(parked && before(parked, next));
        return is_neighbour && can_merge(next) ? next->number : 0;
}

static void merge(struct model *m, const struct model_outcome *o)
{
        for (unsigned i = 0; i < o->merged_count; i++) {
                struct model_task *into = model_find(m, o->number);
                struct model_task *t = model_find(m, o->merged[i]);
                assert(t && t->state == MODEL_FLIGHT);
                into->payload = t->payload;
                into->debounce_ms = t->debounce_ms;
                into->has_reply |= t->has_reply;
                into->merged++;
                if (t->has_reply)
                        *reply_of(m, t->number) = (struct model_reply){ REPLY_MERGED, o->number, 0 };
                m->merges[m->merged % STORE_MERGED_KEPT].number = t->number;
                m->merges[m->merged++ % STORE_MERGED_KEPT].into = o->number;
                forget(m, t);
        }
}

struct model_reply model_reply(const struct model *m, unsigned number)
{
        struct model_reply reply = { .state = REPLY_MERGED, .number = number };
        for (unsigned hops = 0; reply.state == REPLY_MERGED; hops++) {
                if (hops > STORE_REPLY_HOPS || reply.number >= m->replies_count)
                        return (struct model_reply){ .state = REPLY_PENDING };
                reply = m->replies[reply.number];
        }
        return reply;
}

unsigned model_merged_into(const struct model *m, unsigned number)
{
        for (unsigned i = 0; i < STORE_MERGED_KEPT && i < m->merged; i++)
                if (m->merges[i].number == number)
                        return m->merges[i].into;
        return 0;
}

static void outcome_apply(struct model *m, const struct model_outcome *o)
{
        struct model_task *t = model_find(m, o->number);
        bool is_there = t && t->state == MODEL_FLIGHT;
        assert(is_there);
        unsigned key = t->key;
        enum lane lane = t->lane;
        switch (o->kind) {
        case STORE_DONE:
                answer(m, t, REPLY_DONE);
                forget(m, t);
                m->done++;
                if (o->follow_up)
                        model_submit(m, o->follow_up, key, lane, 0);
                break;
        case STORE_DEAD:
                t->attempts++;
                die(m, t);
                break;
        case STORE_START:
                t->holder = o->holder;
                t->until_ms = o->until_ms ? m->now_ms + o->until_ms : 0;
                break;
        case STORE_INTERRUPTED:
                clear_start(t);
                break;
        case STORE_MERGE:
                if (o->is_one_gone)
                        m->last_gone++;
                else
                        merge(m, o);
                break;
        default:
                aside(m, t, o);
        }
        bool may_refill = o->kind == STORE_DONE || o->kind == STORE_DEAD || o->kind == STORE_MERGE;
        if (may_refill && o->refill && m->keys[key].state == KEY_WAITING)
                (void)take_side(m, key, o->refill);
}

static void delayed_join(struct model *m)
{
        for (;;) {
                struct model_task *best = NULL;
                for (unsigned i = 0; i < m->count; i++) {
                        struct model_task *t = &m->tasks[i];
                        if (t->state == MODEL_DELAYED && t->due_ms <= m->now_ms &&
                                (!best || t->due_ms < best->due_ms ||
                                        (t->due_ms == best->due_ms && t->arrival < best->arrival)))
                                best = t;
                }
                if (!best)
                        return;
                enter_log(m, best);
        }
}

/* Keys are named so that their numbers sort like their names. */
static int next_due_key(struct model *m, const bool has_come[MODEL_KEYS], const unsigned want[LANES])
{
        int best = -1;
        for (unsigned i = 0; i < MODEL_KEYS; i++) {
                const struct model_key *k = &m->keys[i];
                const struct model_task *head = first(m, MODEL_PARKED, (int)i, NULL);
                bool can_be_due = (k->state == KEY_PARKED || k->state == KEY_WAITING) && head && want[head->lane];
                if (can_be_due && !has_come[i] && k->due_ms <= m->now_ms &&
                        (best < 0 || k->due_ms < m->keys[best].due_ms))
                        best = (int)i;
        }
        return best;
}

static void claim_due(struct model *m, unsigned want[LANES])
{
        delayed_join(m);
        bool has_come[MODEL_KEYS] = { false };
        for (int key; (key = next_due_key(m, has_come, want)) >= 0;) {
                const struct model_task *head = first(m, MODEL_PARKED, key, NULL);
                enum lane lane = head->lane;
                unsigned max = !head->may_merge ? 1 : want[lane] < STORE_MERGE_TASKS ? want[lane] : STORE_MERGE_TASKS;
                bool is_last = head->may_merge && max == 1;
                has_come[key] = true;
                want[lane] -= take_side(m, (unsigned)key, max);
                if (is_last)
                        m->keys[key].due_ms = m->now_ms;
        }
}

static struct model_task *first_queued(struct model *m, const unsigned want[LANES])
{
        struct model_task *t = NULL;
        while ((t = first(m, MODEL_QUEUED, -1, t)) && !want[t->lane])
                ;
        return t;
}

static void claim_lanes(struct model *m, unsigned want[LANES])
{
        struct model_task *t;
        while ((t = first_queued(m, want))) {
                if (m->keys[t->key].state != KEY_FREE) {
                        t->state = MODEL_PARKED;
                        continue;
                }
                give(m, t);
                want[t->lane]--;
        }
}

/* The key that has waited longest for that name; -1 if none does. */
static int next_named(const struct model *m, unsigned name)
{
        int best = -1;
        for (unsigned i = 0; i < MODEL_KEYS; i++) {
                const struct model_key *k = &m->keys[i];
                if (k->state == KEY_NAMED && k->name == name && (best < 0 || k->since_ms < m->keys[best].since_ms))
                        best = (int)i;
        }
        return best;
}

enum store_verdict model_wake(struct model *m, unsigned host, uint64_t epoch, uint64_t call, unsigned name,
        unsigned max, unsigned *ret_woken, bool *ret_has_more)
{
        if (!is_ours(m, host, epoch) || (call != m->call && call != m->call + 1))
                return STORE_FENCED;
        bool is_repeat = call == m->call;
        *ret_woken = 0;
        for (int key; !is_repeat && *ret_woken < max && (key = next_named(m, name)) >= 0; ++*ret_woken)
                m->keys[key] = (struct model_key){ KEY_WAITING, m->now_ms, 0, 0 };
        *ret_has_more = next_named(m, name) >= 0;
        m->call = call;
        if (!is_repeat)
                m->last_count = 0;
        return STORE_OK;
}

enum store_verdict model_advance(struct model *m, unsigned host, uint64_t epoch, uint64_t call, uint64_t ttl_ms,
        const struct model_outcome *outcomes, unsigned count, const unsigned want[LANES])
{
        if (!is_ours(m, host, epoch) || (call != m->call && call != m->call + 1))
                return STORE_FENCED;
        m->last_gone = 0;
        if (call == m->call)
                return STORE_OK;
        m->call = call;
        m->last_count = 0;
        m->last_controls_count = 0;
        controls_take(m);
        for (unsigned i = 0; i < count; i++)
                outcome_apply(m, &outcomes[i]);
        m->until_ms = m->now_ms + ttl_ms;
        unsigned left[LANES] = { want[LANE_HIGH], want[LANE_NORMAL], want[LANE_LOW] };
        if (left[LANE_HIGH] || left[LANE_NORMAL] || left[LANE_LOW])
                claim_due(m, left);
        claim_lanes(m, left);
        return STORE_OK;
}
