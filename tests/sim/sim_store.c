/* sim_store.c: leases, calls and tasks as a store keeps them, without a disk.  See "The lease" in
 * runtime/store/README.md. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

static bool is_ours(const struct sim_store_shard *s, const struct store_lease *lease)
{
        return s->is_held && s->epoch == lease->epoch && !memcmp(s->holder, lease->nonce, STORE_NONCE_SIZE);
}

static bool is_wanted(const struct sim *sim, const struct sim_store_shard *s)
{
        return s->want_epoch > s->epoch && s->want_until_ms > sim->now_ms;
}

static enum store_wanted wanted(const struct sim *sim, const struct sim_store_shard *s)
{
        return !is_wanted(sim, s) ? STORE_NOT_WANTED : s->want_firm_ms ? STORE_WANTED_FIRM : STORE_WANTED_PATIENT;
}

/* True: refused. */
static bool extend(const struct sim *sim, struct sim_store_shard *s)
{
        if (is_wanted(sim, s) && s->want_firm_ms && sim->now_ms >= s->want_firm_ms + DRAIN_MS)
                return true;
        s->until_ms = sim->now_ms + TTL_MS;
        return false;
}

static uint64_t left_ms(const struct sim *sim, const struct sim_store_shard *s)
{
        return s->is_held && s->until_ms > sim->now_ms ? s->until_ms - sim->now_ms : 0;
}

static void give(
        const struct sim *sim, struct sim_call *call, const struct sim_store_shard *s, uint32_t number, uint32_t at)
{
        struct store_task *t = &call->tasks[at];
        int key = snprintf(call->keys[at], sizeof(call->keys[at]), "k%u", s->tasks[number].key);
        int id = s->tasks[number].key == LEND_KEY
                         ? snprintf(call->ids[at], sizeof(call->ids[at]), "k%u", s->tasks[number].key)
                         : snprintf(call->ids[at], sizeof(call->ids[at]), "t%u-%u", number, call->shard);
        *t = (struct store_task){ .seq = number + 1, .key = { call->keys[at], (size_t)key } };
        t->envelope.id = (struct span){ call->ids[at], (size_t)id };
        t->envelope.handler = s->tasks[number].key % POOLS ? SPAN_TEXT("odd") : SPAN_TEXT("even");
        t->envelope.key = t->key;
        int payload = snprintf(call->payloads[at], sizeof(call->payloads[at]), "%u", s->tasks[number].payload);
        t->envelope.payload = (struct span){ call->payloads[at], (size_t)payload };
        t->envelope.is_merge = s->tasks[number].may_merge;
        t->envelope.debounce_ms = s->tasks[number].debounce_ms;
        t->note.is_debounced = s->tasks[number].is_debounced;
        t->note.is_suspect = s->tasks[number].is_suspect;
        t->note.started_epoch = s->tasks[number].started_epoch;
        uint64_t until_ms = s->tasks[number].worker_until_ms;
        if (!until_ms)
                return;
        t->note.holder = SPAN_TEXT("worker");
        if (s->tasks[number].seat.epoch)
                sim_lend_note(&s->tasks[number], call, at);
        t->note.until_ms = until_ms;
        t->busy_ms = until_ms > sim->now_ms ? until_ms - sim->now_ms : 0;
}

/* A few a page, so that there are several. */
static struct store_page page(
        const struct sim *sim, struct sim_call *call, const struct sim_store_shard *s, uint64_t after_seq)
{
        struct store_page p = { .tasks = call->tasks };
        for (uint32_t i = 0; i < s->taken; i++) {
                if (s->tasks[i].state != TASK_FLIGHT || i + 1 <= after_seq)
                        continue;
                if (p.tasks_count == 3) {
                        p.has_more = true;
                        break;
                }
                give(sim, call, s, i, p.tasks_count);
                p.tasks[p.tasks_count++].is_key_waiting = sim_key_is_waiting(s, i);
        }
        return p;
}

/* The owner that is gone had lent one of its tasks to a worker, which may still run it: the first of a key that nobody
 * runs. */
static void lend(struct sim *sim, struct sim_store_shard *s, uint32_t shard)
{
        uint32_t key = sim_draw(sim, SHARD_KEYS), i = 0;
        while (i < s->taken && (s->tasks[i].key != key || sim_task_is_over(&s->tasks[i])))
                i++;
        if (i == s->taken || s->tasks[i].state != TASK_FLIGHT || s->tasks[i].is_suspect || s->tasks[i].seat.epoch ||
                sim_is_running(sim, shard, key))
                return;
        s->tasks[i].started_epoch = s->epoch;
        s->tasks[i].worker_until_ms = sim->now_ms + sim_draw(sim, 2 * TTL_MS);
        sim->counts.workers++;
}

static void acquire(struct sim *sim, struct sim_store_shard *s, struct sim_call *call)
{
        struct store_acquire *a = &call->acquire;
        bool is_same = !memcmp(s->holder, a->lease.nonce, STORE_NONCE_SIZE);
        a->stored_epoch = s->epoch;
        if (a->lease.epoch < s->epoch || (a->lease.epoch == s->epoch && !is_same)) {
                a->grant = STORE_STALE;
                return;
        }
        if (a->lease.epoch > s->epoch && s->is_held && !is_same && left_ms(sim, s)) {
                a->grant = STORE_BUSY;
                a->busy_ms = left_ms(sim, s);
                memcpy(a->holder, s->holder, STORE_NONCE_SIZE);
                if (is_wanted(sim, s) && s->want_epoch > a->lease.epoch)
                        return;
                bool is_again = is_wanted(sim, s) && s->want_epoch == a->lease.epoch;
                s->want_firm_ms = !a->is_firm ? 0 : is_again && s->want_firm_ms ? s->want_firm_ms : sim->now_ms;
                s->want_epoch = a->lease.epoch;
                s->want_until_ms = sim->now_ms + TTL_MS;
                return;
        }
        a->grant = STORE_GRANTED;
        a->is_recovery = s->is_held && !is_same;
        sim->counts.handovers += s->epoch != a->lease.epoch;
        if (a->is_recovery && sim_happens(sim, 2))
                lend(sim, s, call->shard);
        s->epoch = a->lease.epoch;
        memcpy(s->holder, a->lease.nonce, STORE_NONCE_SIZE);
        s->is_held = true;
        s->is_unrung = false;
        s->call += 2;
        s->last_count = 0;
        (void)extend(sim, s);
        a->call = s->call;
        a->left_ms = left_ms(sim, s);
        a->page = page(sim, call, s, 0);
        a->has_work = true;
        for (uint32_t i = 0; i < NAMES; i++)
                a->has_names |= sim_keys_wait_for(s, i);
        a->next_due_ms = sim_keys_due_ms(sim, s);
        a->next_schedule_ms = s->schedule_ms;
}

static void apply(struct sim *sim, struct sim_store_shard *s, struct sim_call *call, const struct store_outcome *o)
{
        struct sim_task *t = &s->tasks[o->task.seq - 1];
        uint32_t number = (uint32_t)o->task.seq - 1;
        if (o->kind == STORE_RETRY || o->kind == STORE_HOLD || o->kind == STORE_DEAD)
                sim_fail(sim, "shard %u: nobody said %d", call->shard, (int)o->kind);
        if (t->state != TASK_FLIGHT)
                sim_fail(sim, "shard %u: an outcome of task %u, which is not in flight", call->shard, number);
        if (o->kind == STORE_DIVERT) {
                sim->counts.debounced += o->is_debounce;
                sim_key_divert(sim, s, number, call->waits_for[o - call->outcomes], o);
                return;
        }
        if (o->kind == STORE_MERGE) {
                sim_merge_apply(sim, s, call, (uint32_t)(o - call->outcomes));
                return;
        }
        t->worker_until_ms = 0;
        t->seat = (struct work_fence){ 0 };
        if (o->kind == STORE_START) {
                t->started_epoch = s->epoch;
                if (o->until_ms)
                        sim_lend_record(sim, t, call, (uint32_t)(o - call->outcomes));
        }
        if (o->kind == STORE_INTERRUPTED) {
                t->started_epoch = 0;
                t->is_suspect |= o->is_suspect;
        }
        if (o->kind == STORE_DONE) {
                t->state = TASK_DONE;
                t->done_count++;
                sim->counts.done++;
                sim_check_done(sim, call->shard, number, call->advance.lease.epoch);
                sim_merge_done(sim, call->shard, number);
                sim_key_refill(sim, s, t->key, o->refill);
        }
}

static void claim(struct sim *sim, struct sim_store_shard *s, const struct store_advance *a)
{
        uint32_t stop = s->last_count + (a->want[LANE_HIGH] < 8 ? a->want[LANE_HIGH] : 8);
        sim_keys_take_due(sim, s, stop - s->last_count);
        for (; s->taken < s->arrived && s->last_count < stop && s->last_count < CALL_MAX; s->taken++) {
                struct sim_task *t = &s->tasks[s->taken];
                bool waits = s->keys[t->key].state != SIM_KEY_FREE;
                t->state = waits ? TASK_PARKED : TASK_FLIGHT;
                if (!waits)
                        s->last[s->last_count++] = s->taken;
        }
}

static void advance(struct sim *sim, struct sim_store_shard *s, struct sim_call *call)
{
        struct store_advance *a = &call->advance;
        bool is_next = a->call == s->call + 1;
        if (!is_ours(s, &a->lease) || (!is_next && a->call != s->call)) {
                a->verdict = STORE_FENCED;
                return;
        }
        a->verdict = STORE_OK;
        s->is_unrung = a->calls_again;
        if (is_next) {
                s->call = a->call;
                s->last_count = 0;
                for (uint32_t i = 0; i < a->outcomes_count; i++)
                        apply(sim, s, call, &call->outcomes[i]);
                a->is_refused = extend(sim, s);
                if (!a->is_refused)
                        claim(sim, s, a);
        }
        sim_lend_controls(s, call, is_next);
        a->tasks = call->tasks;
        a->tasks_count = s->last_count;
        for (uint32_t i = 0; i < s->last_count; i++)
                give(sim, call, s, s->last[i], i);
        a->next_due_ms = sim_keys_due_ms(sim, s);
        a->has_more[LANE_HIGH] = s->taken < s->arrived || a->next_due_ms == 0;
        a->has_due_waiting = a->next_due_ms == 0 && !a->want[LANE_HIGH];
        a->wanted = wanted(sim, s);
        a->left_ms = left_ms(sim, s);
}

static void renew(struct sim *sim, struct sim_store_shard *s, struct store_renewal *r)
{
        r->verdict = is_ours(s, &r->lease) ? STORE_OK : STORE_FENCED;
        if (r->verdict == STORE_FENCED)
                return;
        r->is_refused = extend(sim, s);
        r->wanted = wanted(sim, s);
        r->next_due_ms = sim_keys_due_ms(sim, s);
        r->has_work = s->taken < s->arrived || r->next_due_ms == 0 || s->reports_count;
        r->left_ms = left_ms(sim, s);
}

static void release(struct sim_store_shard *s, struct store_release *r)
{
        bool is_ok = is_ours(s, &r->lease) && r->call == s->call + 1;
        r->verdict = is_ok ? STORE_OK : STORE_FENCED;
        if (is_ok) {
                s->call = r->call;
                s->is_held = false;
                s->last_count = 0;
        }
}

static void wake(struct sim *sim, struct sim_store_shard *s, struct sim_call *call)
{
        struct store_wake *w = &call->wake;
        bool is_next = w->call == s->call + 1;
        w->verdict = is_ours(s, &w->lease) && (is_next || w->call == s->call) ? STORE_OK : STORE_FENCED;
        if (w->verdict == STORE_FENCED)
                return;
        w->woken = is_next ? sim_keys_wake(sim, s, call->name, w->max) : 0;
        w->has_more = sim_keys_wait_for(s, call->name);
        sim->counts.woken += w->woken;
        if (is_next)
                s->last_count = 0;
        s->call = w->call;
}

/* One a page, so that there are several. */
static void names(struct sim_store_shard *s, struct sim_call *call)
{
        struct store_names *n = &call->names;
        n->verdict = is_ours(s, &n->lease) ? STORE_OK : STORE_FENCED;
        n->names = call->names_found;
        for (uint32_t i = call->name == NAMES ? 0 : call->name + 1; i < NAMES; i++) {
                if (!sim_keys_wait_for(s, i))
                        continue;
                n->has_more = n->names_count == 1;
                if (!n->names_count)
                        call->names_found[n->names_count++] = sim_store_name(i);
        }
}

struct span sim_store_name(uint32_t name)
{
        static const char *const texts[NAMES] = { "handler:even", "handler:odd", "limit:slots", "limit:pace",
                "limit:slots/k0", "limit:pace/k1", "limit:slots/k2", "limit:pace/k3" };
        return (struct span){ texts[name], strlen(texts[name]) };
}

uint32_t sim_store_name_of(struct span text)
{
        uint32_t name = 0;
        while (name < NAMES && !span_is(text, sim_store_name(name)))
                name++;
        return name;
}

void sim_store_execute(struct sim *sim, struct sim_call *call)
{
        struct sim_store_shard *s = &sim->shards[call->shard];
        sim->counts.calls++;
        switch (call->op) {
        case OP_RENEW:
                for (uint32_t i = 0; i < call->renew.items_count; i++)
                        renew(sim, &sim->shards[call->renewals[i].lease.shard], &call->renewals[i]);
                call->renew.desired_version = sim->desired_version;
                break;
        case OP_WAKE:
                wake(sim, s, call);
                break;
        case OP_NAMES:
                names(s, call);
                break;
        case OP_SCHEDULE_LIST:
                sim_schedule_list(s, call);
                break;
        case OP_FIRES:
                sim_schedule_fire(sim, s, call, is_ours(s, &call->fires.lease));
                break;
        case OP_ACQUIRE:
                acquire(sim, s, call);
                break;
        case OP_ADVANCE:
                advance(sim, s, call);
                break;
        case OP_RELEASE:
                release(s, &call->release);
                break;
        case OP_IN_FLIGHT:
                call->page.verdict = is_ours(s, &call->page.lease) ? STORE_OK : STORE_FENCED;
                if (call->page.verdict == STORE_OK)
                        call->page.page = page(sim, call, s, call->page.after_seq);
                break;
        default:
                sim_fail(sim, "nobody asks for %s", store_op_name(call->op));
        }
}

void sim_store_bury(struct sim *sim, uint32_t shard, uint64_t epoch, const uint8_t nonce[STORE_NONCE_SIZE])
{
        struct sim_store_shard *s = &sim->shards[shard];
        struct store_lease lease = { .shard = shard, .epoch = epoch };
        memcpy(lease.nonce, nonce, STORE_NONCE_SIZE);
        if (!is_ours(s, &lease))
                return;
        s->call += 3;
        s->until_ms = 0;
        s->last_count = 0;
}

void sim_store_submit(struct sim *sim)
{
        struct sim_store_shard *s = &sim->shards[sim_draw(sim, SHARDS)];
        if (s->arrived == SHARD_TASKS)
                for (uint32_t i = 0; i < SHARDS && s->arrived == SHARD_TASKS; i++)
                        s = &sim->shards[i];
        if (s->arrived == SHARD_TASKS)
                return;
        s->tasks[s->arrived].arrived_ms = sim->now_ms;
        s->tasks[s->arrived++].state = TASK_QUEUED;
        for (uint32_t i = 0; i < HOSTS; i++) /* the doorbell */
                if (sim->hosts[i].is_alive && !s->is_unrung && !sim_happens(sim, 4))
                        shard_rang(&sim->hosts[i].shards.list[s - sim->shards].shard);
}
