/* sim_lend.c: tasks on other hosts' seats: an owner and a borrower in a line or two each, with the real lent.c,
 * remote.c and borrower.c, and the control list of a store.  Messages between hosts are lost, doubled and late as all
 * others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "host/remote/remote.h"
#include "sim.h"

/* A task of another host; it has a seat from the moment that it comes. */
struct sim_borrowed {
        struct borrowed_time time;
        struct work_fence fence;
        uint64_t call; /* the question to the store that waits for an answer */
};

/* A host as others know it: it may be gone, or another by now. */
struct address {
        uint32_t index;
        uint64_t life;
};

static struct address address_of(const struct sim_host *h)
{
        return (struct address){ h->index, h->life };
}

static struct sim_host *host_at(struct sim *sim, struct address a)
{
        struct sim_host *h = &sim->hosts[a.index];
        return h->is_alive && h->life == a.life ? h : NULL;
}

static void *copy(const void *from, size_t size)
{
        void *to = malloc(size);
        if (!to)
                abort();
        return memcpy(to, from, size);
}

/* To the mailbox of a host, which reads it when it can; or to the store. */
static void send(struct sim *sim, const struct sim_host *from, struct sim_host *to,
        void (*run)(struct sim *sim, void *arg), const void *message, size_t size)
{
        uint32_t copies = sim_happens(sim, 20) ? 2 : 1;
        if (from->store_cut_until_ms > sim->now_ms || sim_happens(sim, 20))
                copies = 0;
        for (uint32_t i = 0; i < copies; i++) {
                uint64_t delay_ms = sim_happens(sim, 20) ? sim_draw(sim, 2 * TTL_MS) : sim_travel_ms(sim);
                if (to)
                        sim_at_host(to, delay_ms, run, copy(message, size));
                else
                        sim_at(sim, delay_ms, run, copy(message, size));
        }
}

/* --- the store ------------------------------------------------------------------------------------------------------
 */

void sim_lend_record(struct sim *sim, struct sim_task *t, const struct sim_call *call, uint32_t outcome)
{
        t->worker_until_ms = sim->now_ms + call->outcomes[outcome].until_ms;
        t->seat = call->seats[outcome].fence;
        memcpy(t->seat_nonce, call->seats[outcome].nonce, sizeof(t->seat_nonce));
}

void sim_lend_note(const struct sim_task *t, struct sim_call *call, uint32_t at)
{
        seat_holder_put(call->holders[at], &t->seat, t->seat_nonce, "host");
        call->tasks[at].note.holder = span_of_text(call->holders[at]);
}

void sim_lend_controls(struct sim_store_shard *s, struct sim_call *call, bool is_next)
{
        if (is_next) {
                memcpy(s->last_reports, s->reports, sizeof(s->reports));
                s->last_reports_count = s->reports_count;
                s->reports_count = 0;
        }
        call->advance.controls = call->controls;
        call->advance.controls_count = s->last_reports_count;
        for (uint32_t i = 0; i < s->last_reports_count; i++) {
                const struct sim_report *r = &s->last_reports[i];
                seat_start_put(call->starts[i], &r->fence);
                call->controls[i] = (struct store_control){ .verb = r->is_outcome ? CONTROL_OUTCOME : CONTROL_HEARTBEAT,
                        .seq = r->fence.seq,
                        .start = span_of_text(call->starts[i]) };
        }
}

struct said {
        struct address from;
        uint32_t seat;
        uint64_t stamp, call;
        uint32_t shard;
        struct sim_report report;
        bool is_stale;
        uint64_t left_ms;
};

static struct sim_seat *seat_of(struct sim_host *h, uint32_t seat, uint64_t stamp)
{
        return h->seats[seat].borrowed && h->seats[seat].stamp == stamp ? &h->seats[seat] : NULL;
}

static void offer_to_seat(struct sim_host *h, struct sim_seat *seat);

static void on_answer(struct sim *sim, void *arg)
{
        const struct said *said = arg;
        struct sim_host *h = host_at(sim, said->from);
        struct sim_seat *seat = h ? seat_of(h, said->seat, said->stamp) : NULL;
        if (!seat || seat->borrowed->call != said->call)
                return;
        struct borrowed_time *t = &seat->borrowed->time;
        bool was_confirming = t->state == BORROWED_CONFIRMING;
        seat->borrowed->call = 0;
        if (said->is_stale || said->report.is_outcome) {
                borrowed_refused(t);
        } else {
                borrowed_confirmed(t, said->left_ms);
                if (was_confirming)
                        offer_to_seat(h, seat);
        }
        sim_host_turn(h);
}

/* At the store: it must be about the recorded start. */
static void on_said(struct sim *sim, void *arg)
{
        struct said *said = arg;
        struct sim_store_shard *s = &sim->shards[said->shard];
        const struct sim_task *t = &s->tasks[said->report.fence.seq - 1];
        struct sim_host *from = host_at(sim, said->from);
        said->is_stale = t->state != TASK_FLIGHT || !t->seat.epoch || t->seat.epoch != said->report.fence.epoch ||
                         t->seat.start != said->report.fence.start || s->reports_count == STORE_CALL_CONTROLS;
        said->left_ms = t->worker_until_ms > sim->now_ms ? t->worker_until_ms - sim->now_ms : 0;
        if (!said->is_stale && (said->report.is_outcome || said->left_ms < TTL_MS - TTL_MS / 3)) {
                s->reports[s->reports_count++] = said->report;
                for (uint32_t i = 0; i < HOSTS; i++)
                        if (sim->hosts[i].is_alive && !sim_happens(sim, 4))
                                shard_rang(&sim->hosts[i].shards.list[said->shard].shard);
        }
        if (from && from->store_cut_until_ms <= sim->now_ms && !sim_happens(sim, 25))
                sim_at_host(from, sim_travel_ms(sim), on_answer, copy(said, sizeof(*said)));
}

/* --- an owner -------------------------------------------------------------------------------------------------------
 */

struct handed {
        struct address from, to;
        uint32_t shard, number, key, pool;
        struct work_fence fence;
};

static void on_handed(struct sim *sim, void *arg);

static struct lent *find_lent(const struct sim_host *h, const struct shard *shard, uint64_t seq, struct span start)
{
        char text[NOTE_HOLDER_MAX + 1];
        for (struct lent *lent = h->lents; lent; lent = lent->next) {
                seat_start_put(text, &lent->fence);
                if (lent->claimed && !lent->is_ended && lent->shard == shard && lent->fence.seq == seq &&
                        span_is(start, span_of_text(text)))
                        return lent;
        }
        return NULL;
}

static void end(struct sim_host *h, struct lent *lent, enum store_outcome_kind kind)
{
        lent->is_ended = true;
        shard_ended(lent->shard, lent->claimed, pending_outcome_new(kind, COST_NONE, ""), h->sim->now_ms);
}

void sim_lend_reported(struct sim_host *h, struct shard *shard, const struct store_control *control)
{
        struct lent *lent = find_lent(h, shard, control->seq, control->start);
        if (!lent || !lent->is_handed)
                return;
        if (control->verb == CONTROL_OUTCOME) {
                h->sim->counts.borrowed_done++;
                end(h, lent, STORE_DONE);
        } else if (lent_wants_more(lent, TTL_MS, h->sim->now_ms)) {
                shard_extend(shard, lent, TTL_MS);
        }
}

void sim_lend_stop(struct sim_host *h, struct claimed *c)
{
        if (c->lease_number != c->lent->shard->lease_number)
                shard_again(c->lent->shard, c, h->sim->now_ms);
}

void sim_lend_recall(struct sim_host *h, struct claimed *c)
{
        if (!c->lent->is_handed && !c->lent->is_ended)
                end(h, c->lent, STORE_INTERRUPTED);
}

struct asked {
        struct address from, to;
};

static void on_asked(struct sim *sim, void *arg)
{
        const struct asked *asked = arg;
        struct sim_host *h = host_at(sim, asked->to);
        h->asking[asked->from.index] = 1;
        h->asking_life[asked->from.index] = asked->from.life;
        sim_host_turn(h);
}

static bool lend_to(struct sim_host *h, const struct sim_host *to)
{
        struct sim *sim = h->sim;
        struct shard *shard;
        struct claimed *c = dispatch_next_to_lend(&h->dispatch, LEND_KEY % POOLS, sim->now_ms, sim->now_ms, &shard);
        if (!c)
                return false;
        struct lent *lent = memory_zero(1, sizeof(*lent));
        lent->is_seat = true;
        lent->slot = to->index;
        lent->place[0] = to->life;
        lent->fence = (struct work_fence){ shard->lease.epoch, ++shard->starts, c->seq };
        memcpy(lent->nonce, to->nonce, sizeof(lent->nonce));
        (void)snprintf(lent->worker, sizeof(lent->worker), "host");
        lent->for_ms = TTL_MS;
        lent->started_ms = sim->now_ms;
        shard_lend(shard, c, lent);
        DL_APPEND(h->lents, lent);
        sim->counts.lent++;
        return true;
}

void sim_lend_feed(struct sim_host *h)
{
        for (uint32_t i = 0; i < HOSTS && !h->is_leaving; i++) {
                const struct sim_host *to = host_at(h->sim, (struct address){ i, h->asking_life[i] });
                if (h->asking[i] && (!to || lend_to(h, to)))
                        h->asking[i] = 0;
        }
}

static void hand(struct sim_host *h, struct lent *lent)
{
        struct sim *sim = h->sim;
        struct handed m = { .from = address_of(h),
                .to = { lent->slot, lent->place[0] },
                .shard = lent->shard->number,
                .number = (uint32_t)lent->fence.seq - 1,
                .pool = lent->claimed->pool,
                .fence = lent->fence };
        struct sim_host *to = host_at(sim, m.to);
        m.key = sim->shards[m.shard].tasks[m.number].key;
        lent->is_handed = true;
        if (to)
                send(sim, h, to, on_handed, &m, sizeof(m));
}

/* As remotes_decline(). */
static void on_declined(struct sim *sim, void *arg)
{
        const struct handed *m = arg;
        struct sim_host *h = host_at(sim, m->from);
        char start[NOTE_HOLDER_MAX + 1];
        seat_start_put(start, &m->fence);
        struct lent *lent = find_lent(h, &h->shards.list[m->shard].shard, m->fence.seq, span_of_text(start));
        if (!lent)
                return;
        sim->counts.declined++;
        end(h, lent, STORE_INTERRUPTED);
        sim_host_turn(h);
}

static void look_at_lent(struct sim_host *h, struct lent *lent)
{
        if (!lent->claimed && !lent->is_to_tell && !lent->is_telling) {
                DL_DELETE(h->lents, lent);
                free(lent);
                return;
        }
        if (!lent->claimed || lent->is_ended)
                return;
        if (lent->told_ms && !lent->is_handed)
                hand(h, lent);
        if (h->sim->now_ms >= lent_due_ms(lent)) {
                h->sim->counts.seats_silent++;
                end(h, lent, STORE_INTERRUPTED);
        }
}

/* --- a borrower -----------------------------------------------------------------------------------------------------
 */

bool sim_lend_is_late(const struct sim *sim, const struct sim_seat *seat)
{
        return sim->now_ms >= seat->borrowed->time.until_ms;
}

static struct sim_seat *find_free(struct sim_host *h, uint32_t pool)
{
        for (uint32_t i = pool * POOL_SEATS; i < (pool + 1) * POOL_SEATS; i++)
                if (!h->seats[i].task && !h->seats[i].borrowed)
                        return &h->seats[i];
        return NULL;
}

static void leave_seat(struct sim_seat *seat)
{
        free(seat->borrowed);
        *seat = (struct sim_seat){ 0 };
}

struct use {
        struct address host;
        uint32_t seat;
        uint64_t stamp;
};

static struct sim_seat *used(struct sim *sim, const struct use *use, struct sim_host **ret_host)
{
        *ret_host = host_at(sim, use->host);
        return *ret_host ? seat_of(*ret_host, use->seat, use->stamp) : NULL;
}

static void on_over(struct sim *sim, void *arg)
{
        struct sim_host *h;
        struct sim_seat *seat = used(sim, arg, &h);
        if (seat)
                seat->is_over = true;
}

static void on_ended(struct sim *sim, void *arg)
{
        struct sim_host *h;
        struct sim_seat *seat = used(sim, arg, &h);
        if (!seat || seat->borrowed->time.has_ended)
                return;
        seat->is_over = true;
        if (!seat->is_started)
                seat->borrowed->time.until_ms = 0; /* it was taken back: nobody waits for an outcome */
        borrowed_ended(&seat->borrowed->time, sim->now_ms);
        sim_host_turn(h);
}

/* The runner looks at the page, which stands still while its host does. */
static void on_start(struct sim *sim, void *arg)
{
        struct sim_host *h;
        struct sim_seat *seat = used(sim, arg, &h);
        if (!seat || seat->borrowed->time.has_ended)
                return;
        if (seat->borrowed->time.state != BORROWED_HELD || sim->now_ms >= seat->borrowed->time.until_ms) {
                sim_at_host(h, 0, on_ended, copy(arg, sizeof(struct use)));
                return;
        }
        const struct sim_task *t = &sim->shards[seat->shard].tasks[seat->number];
        if (t->seat.epoch != seat->borrowed->fence.epoch || t->seat.start != seat->borrowed->fence.start ||
                t->worker_until_ms <= sim->now_ms)
                sim_fail(sim, "host %u starts the borrowed task %u of shard %u, and the store has another start",
                        h->index, seat->number, seat->shard);
        seat->is_started = true;
        sim_check_start(sim, h, seat);
        uint64_t takes_ms = sim_happens(sim, 6) ? sim_draw(sim, 3 * TTL_MS) : sim_draw(sim, 30);
        sim_at(sim, takes_ms, on_over, copy(arg, sizeof(struct use)));
        sim_at_host(h, takes_ms, on_ended, copy(arg, sizeof(struct use)));
}

static struct use use_of(const struct sim_host *h, const struct sim_seat *seat)
{
        return (struct use){ address_of(h), (uint32_t)(seat - h->seats), seat->stamp };
}

static void offer_to_seat(struct sim_host *h, struct sim_seat *seat)
{
        struct use use = use_of(h, seat);
        sim_runner_start(h, (uint32_t)(seat - h->seats) / POOL_SEATS);
        if (borrowed_may_start(&seat->borrowed->time, h->sim->now_ms))
                sim_at(h->sim, sim_draw(h->sim, 4), on_start, copy(&use, sizeof(use)));
        else
                borrowed_refused(&seat->borrowed->time);
}

static void on_handed(struct sim *sim, void *arg)
{
        const struct handed *m = arg;
        struct sim_host *h = host_at(sim, m->to);
        struct sim_seat *seat = find_free(h, m->pool);
        if (!borrower_is_new(&h->starts[m->shard], &m->fence))
                return;
        if (!seat || h->is_leaving) {
                struct sim_host *owner = host_at(sim, m->from);
                if (owner)
                        send(sim, h, owner, on_declined, m, sizeof(*m));
                return;
        }
        *seat = (struct sim_seat){ .borrowed = memory_zero(1, sizeof(struct sim_borrowed)),
                .shard = m->shard,
                .number = m->number,
                .key = m->key,
                .epoch = m->fence.epoch,
                .stamp = ++sim->next_number };
        seat->borrowed->fence = m->fence;
        borrowed_begin(&seat->borrowed->time, TTL_MS, sim->now_ms);
        sim_host_turn(h);
}

static void on_no_answer(struct sim *sim, void *arg)
{
        const struct said *said = arg;
        struct sim_host *h = host_at(sim, said->from);
        struct sim_seat *seat = seat_of(h, said->seat, said->stamp);
        if (!seat || seat->borrowed->call != said->call)
                return;
        seat->borrowed->call = 0;
        borrowed_failed(&seat->borrowed->time, sim->now_ms);
        sim_host_turn(h);
}

static void say(struct sim_host *h, struct sim_seat *seat, bool is_outcome)
{
        struct sim *sim = h->sim;
        struct said said = { .from = address_of(h),
                .seat = (uint32_t)(seat - h->seats),
                .stamp = seat->stamp,
                .call = ++sim->next_number,
                .shard = seat->shard,
                .report = { seat->borrowed->fence, is_outcome } };
        seat->borrowed->call = said.call;
        send(sim, h, NULL, on_said, &said, sizeof(said));
        sim_at_host(h, TTL_MS / 4, on_no_answer, copy(&said, sizeof(said)));
}

static void go_on(struct sim_host *h, struct sim_seat *seat)
{
        struct use use = use_of(h, seat);
        switch (borrowed_next(&seat->borrowed->time, h->sim->now_ms)) {
        case BORROWED_WAIT:
                break;
        case BORROWED_ASK:
                say(h, seat, false);
                break;
        case BORROWED_TELL:
                say(h, seat, true);
                break;
        case BORROWED_STOP:
                sim_at_host(h, sim_draw(h->sim, GRACE_MS), on_ended, copy(&use, sizeof(use)));
                break;
        case BORROWED_DROP:
                leave_seat(seat);
                break;
        }
}

void sim_lend_killed(struct sim_host *h, struct sim_seat *seat)
{
        if (seat->borrowed->time.has_ended)
                return;
        seat->is_over = true;
        seat->borrowed->time.until_ms = 0;
        borrowed_ended(&seat->borrowed->time, h->sim->now_ms);
}

/* Whoever it is: what `wanting` and a ring would bring about. */
static void ask_somebody(struct sim_host *h)
{
        struct sim *sim = h->sim;
        uint32_t pool = LEND_KEY % POOLS;
        struct sim_host *to = &sim->hosts[sim_draw(sim, HOSTS)];
        if (h->is_leaving || to == h || !to->is_alive || !find_free(h, pool) || h->dispatch.pools[pool].is_paused)
                return;
        struct asked asked = { address_of(h), address_of(to) };
        send(sim, h, to, on_asked, &asked, sizeof(asked));
}

/* --- both -----------------------------------------------------------------------------------------------------------
 */

void sim_lend_turn(struct sim_host *h)
{
        const struct shard_set *changed = &h->shards.schedule.changed;
        for (uint32_t i = 0; (i = shard_set_from(changed, i)) != SHARD_SET_NONE; i++) {
                for (struct lent *lent = shard_take_adopted(&h->shards.list[i].shard), *next; lent; lent = next) {
                        next = lent->next;
                        lent->told_ms = h->sim->now_ms;
                        h->sim->counts.adopted++;
                        DL_APPEND(h->lents, lent);
                }
        }
        for (struct lent *lent = h->lents, *next; lent; lent = next) {
                next = lent->next;
                look_at_lent(h, lent);
        }
        for (uint32_t i = 0; i < SEATS; i++)
                if (h->seats[i].borrowed)
                        go_on(h, &h->seats[i]);
        if (sim_draw(h->sim, 8) == 0)
                ask_somebody(h);
}

void sim_lend_free(struct sim_host *h)
{
        while (h->lents) {
                struct lent *lent = h->lents;
                DL_DELETE(h->lents, lent);
                free(lent);
        }
        for (uint32_t i = 0; i < SEATS; i++)
                if (h->seats[i].borrowed)
                        leave_seat(&h->seats[i]);
}
