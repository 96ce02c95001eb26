/* sim_host.c: a host: as runtime/host has it, with messages instead of a loop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* An event's argument. */
static void *boxed(struct sim_host *h)
{
        struct sim_host **box = malloc(sizeof(struct sim_host *));
        if (!box)
                abort();
        *box = h;
        return box;
}

/* --- calls to the store --- */

static uint32_t pool_of(void *arg, struct span handler)
{
        (void)arg, (void)handler;
        return 0;
}

static void show_lease(struct sim_host *h, uint32_t shard)
{
        const struct shard *s = &h->shards[shard];
        h->page_epoch[shard] = s->lease.epoch;
        h->page_until_ms[shard] = shard_is_held(s) ? s->until_ms : 0;
}

static bool is_page_open(const struct sim_host *h, uint32_t shard)
{
        return h->page_until_ms[shard] > h->sim->now_ms;
}

/* One that leaves hands out nothing, but what a runner has may still start. */
bool sim_host_may_start(const struct sim_host *h, uint32_t shard)
{
        bool is_serving = h->shards[shard].state == SHARD_OWNED;
        for (uint32_t i = 0; i < SEATS; i++)
                is_serving |= h->seats[i].task && h->seats[i].shard == shard && !h->seats[i].is_started;
        return is_serving && is_page_open(h, shard);
}

struct stop {
        uint32_t seat;
        uint64_t stamp;
};

static void on_stopped(struct sim *sim, void *arg);
static void *copy_of(const struct stop *stop);

/* What runs under a lost lease is told to stop, and killed after the grace. */
static void cancel_stale(struct sim_host *h, uint32_t shard)
{
        for (uint32_t i = 0; i < SEATS; i++) {
                struct sim_seat *seat = &h->seats[i];
                const struct shard *s = &h->shards[shard];
                if (!seat->task || seat->shard != shard || seat->task->is_told_to_stop ||
                        (seat->task->lease_number == s->lease_number && !s->is_refused))
                        continue;
                seat->task->is_told_to_stop = true;
                sim_at_host(h, sim_draw(h->sim, GRACE_MS), on_stopped, copy_of(&(struct stop){ i, seat->stamp }));
        }
}

static void after_reply(struct sim_host *h, uint32_t shard, uint64_t fenced)
{
        show_lease(h, shard);
        h->sim->counts.fenced += h->shards[shard].fenced - fenced;
        cancel_stale(h, shard);
}

static void take_answer(struct sim_host *h, struct sim_call *call)
{
        struct shard *s = &h->shards[call->shard];
        uint64_t now_ms = h->sim->now_ms;
        uint64_t fenced = s->fenced;
        if (call->is_renewal) {
                if (s->lease.epoch == call->renewal.lease.epoch)
                        shard_renewed(s, &call->renewal, call->sent_ms, now_ms);
        } else if (call->kind == SHARD_CALL_ACQUIRE) {
                shard_acquired(s, &call->acquire, pool_of, NULL, now_ms);
        } else if (call->kind == SHARD_CALL_PAGE) {
                shard_paged(s, &call->page, pool_of, NULL);
        } else if (call->kind == SHARD_CALL_ADVANCE) {
                shard_advanced(s, &call->advance, pool_of, NULL, now_ms);
        } else {
                shard_released(s);
        }
        after_reply(h, call->shard, fenced);
        sim_host_turn(h);
}

static void on_answer(struct sim *sim, void *arg)
{
        struct sim_call *call = arg;
        struct sim_host *h = call->host;
        (void)sim;
        if (!call->is_renewal) {
                if (h->waiting_call[call->shard] != call->number)
                        return;
                h->waiting_call[call->shard] = 0;
        }
        take_answer(h, call);
}

static void on_arrival(struct sim *sim, void *arg)
{
        struct sim_call *call = arg;
        sim_store_execute(sim, call);
        struct sim_host *h = call->host;
        bool is_lost = sim_happens(sim, 25) || h->store_cut_until_ms > sim->now_ms;
        if (is_lost || !h->is_alive || h->life != call->life) {
                free(call);
                return;
        }
        sim_at_host(h, sim_travel_ms(sim), on_answer, call);
}

struct patience {
        struct sim_host *host;
        uint32_t shard;
        uint64_t number;
};

static void on_no_answer(struct sim *sim, void *arg)
{
        struct patience *p = arg;
        struct sim_host *h = p->host;
        if (h->waiting_call[p->shard] != p->number)
                return;
        h->waiting_call[p->shard] = 0;
        shard_failed(&h->shards[p->shard], sim->now_ms);
        sim_host_turn(h);
}

/* As shard_io.c. */
static void fill_acquire(struct sim_host *h, struct shard *s, struct sim_call *call)
{
        shard_fill_acquire(s, &call->acquire, h->sim->now_ms);
        if (assignment_lists(&h->assignment, s->holder))
                call->acquire.is_firm = false;
}

/* Each sending is a message of its own: lost, doubled, or so late that its sender has given up. */
static void post(struct sim_host *h, const struct sim_call *call)
{
        struct sim *sim = h->sim;
        uint32_t copies = sim_happens(sim, 40) ? 2 : 1;
        if (h->store_cut_until_ms > sim->now_ms || sim_happens(sim, 25))
                copies = 0;
        for (uint32_t i = 0; i < copies; i++) {
                struct sim_call *copy = malloc(sizeof(*copy));
                if (!copy)
                        abort();
                *copy = *call;
                copy->advance.outcomes = copy->outcomes;
                uint64_t delay_ms = sim_happens(sim, 30) ? sim_draw(sim, 2 * TTL_MS) : sim_travel_ms(sim);
                sim_at_owned(sim, delay_ms, on_arrival, copy, free);
        }
}

static void send(struct sim_host *h, uint32_t shard, enum shard_call kind)
{
        struct sim *sim = h->sim;
        struct shard *s = &h->shards[shard];
        struct sim_call *call = calloc(1, sizeof(*call));
        struct patience *patience = malloc(sizeof(*patience));
        if (!call || !patience)
                abort();
        *call = (struct sim_call){ .host = h,
                .life = h->life,
                .shard = shard,
                .kind = kind,
                .number = ++sim->next_number,
                .sent_ms = sim->now_ms };
        if (kind == SHARD_CALL_ACQUIRE)
                fill_acquire(h, s, call);
        else if (kind == SHARD_CALL_PAGE)
                shard_fill_page(s, &call->page, sim->now_ms);
        else if (kind == SHARD_CALL_RELEASE)
                shard_fill_release(s, &call->release, sim->now_ms);
        else {
                shard_fill_advance(s, &call->advance, sim->now_ms);
                memcpy(call->outcomes, call->advance.outcomes, call->advance.outcomes_count * sizeof(*call->outcomes));
        }
        h->waiting_call[shard] = call->number;
        *patience = (struct patience){ h, shard, call->number };
        sim_at_host(h, TTL_MS / 2, on_no_answer, patience);
        post(h, call);
        free(call);
}

static void on_renewal_due(struct sim *sim, void *arg)
{
        struct sim_host *h = *(struct sim_host **)arg;
        for (uint32_t i = 0; i < SHARDS; i++) {
                struct sim_call *call = calloc(1, sizeof(*call));
                if (!call)
                        abort();
                *call = (struct sim_call){
                        .host = h, .life = h->life, .shard = i, .is_renewal = true, .sent_ms = sim->now_ms
                };
                call->renewal.lease = h->shards[i].lease;
                if (shard_is_held(&h->shards[i]))
                        post(h, call);
                free(call);
        }
        sim_at_host(h, TTL_MS / 3, on_renewal_due, boxed(h));
}

/* --- handlers --- */

static void free_seat(struct sim_host *h, uint32_t i, enum store_outcome_kind kind)
{
        struct sim_seat *seat = &h->seats[i];
        struct shard *s = &h->shards[seat->shard];
        struct claimed *c = seat->task;
        *seat = (struct sim_seat){ 0 };
        if (kind == STORE_DIVERT)
                shard_again(s, c, h->sim->now_ms);
        else
                shard_ended(s, c, pending_outcome_new(kind, COST_NONE, ""), h->sim->now_ms);
        sim_host_turn(h);
}

/* The host and the seat that an event is about; NULL if that use of the seat is over. */
static struct sim_seat *seat_of(struct sim *sim, const struct stop *stop, struct sim_host **ret_host)
{
        for (uint32_t i = 0; i < HOSTS; i++) {
                struct sim_host *h = &sim->hosts[i];
                if (!h->is_alive || !h->seats[stop->seat].task || h->seats[stop->seat].stamp != stop->stamp)
                        continue;
                *ret_host = h;
                return &h->seats[stop->seat];
        }
        return NULL;
}

/* It has ended by itself; should the host sleep, that learns of it later. */
static void on_over(struct sim *sim, void *arg)
{
        struct sim_host *h;
        struct sim_seat *seat = seat_of(sim, arg, &h);
        if (seat)
                seat->is_over = true;
}

static void *copy_of(const struct stop *stop)
{
        struct stop *copy = malloc(sizeof(*copy));
        if (!copy)
                abort();
        *copy = *stop;
        return copy;
}

static void on_ended(struct sim *sim, void *arg)
{
        const struct stop *stop = arg;
        struct sim_host *h;
        const struct sim_seat *seat = seat_of(sim, stop, &h);
        if (!seat)
                return;
        bool is_cut = seat->task->is_told_to_stop || sim_happens(sim, 20);
        free_seat(h, stop->seat, is_cut ? STORE_INTERRUPTED : STORE_DONE);
}

static void on_stopped(struct sim *sim, void *arg)
{
        const struct stop *stop = arg;
        struct sim_host *h;
        if (seat_of(sim, stop, &h))
                free_seat(h, stop->seat, STORE_INTERRUPTED);
}

static void on_given_back(struct sim *sim, void *arg)
{
        const struct stop *stop = arg;
        struct sim_host *h;
        if (seat_of(sim, stop, &h))
                free_seat(h, stop->seat, STORE_DIVERT);
}

/* The runner looks at the lease page, not at what the host thinks by now. */
static void on_start(struct sim *sim, void *arg)
{
        const struct stop *start = arg;
        struct sim_host *h;
        struct sim_seat *seat = seat_of(sim, start, &h);
        if (!seat)
                return;
        if (h->page_epoch[seat->shard] != seat->epoch || !is_page_open(h, seat->shard)) {
                sim_at_host(h, 0, on_given_back, copy_of(start));
                return;
        }
        seat->is_started = true;
        sim_check_start(sim, h, seat);
        uint64_t takes_ms = sim_happens(sim, 15) ? sim_draw(sim, 3 * TTL_MS) : sim_draw(sim, 15);
        sim_at(sim, takes_ms, on_over, copy_of(start));
        sim_at_host(h, takes_ms, on_ended, copy_of(start));
}

static bool seat_task(struct sim_host *h, uint32_t i, uint32_t shard)
{
        struct sim *sim = h->sim;
        struct shard *s = &h->shards[shard];
        uint32_t marks = 0;
        for (uint32_t j = 0; j < SHARDS; j++)
                marks += window_marks(&h->shards[j].window, 0);
        if (!marks)
                (void)shard_mark_next(s, 0, sim->now_ms);
        struct claimed *c = shard_next(s, 0, sim->now_ms);
        if (!c)
                return false;
        if (c->has_died_alone) {
                shard_ended(s, c, pending_outcome_new(STORE_INTERRUPTED, COST_NONE, ""), sim->now_ms);
                return true;
        }
        h->seats[i] = (struct sim_seat){ .task = c,
                .shard = shard,
                .number = (uint32_t)c->seq - 1,
                .key = sim->shards[shard].tasks[c->seq - 1].key,
                .epoch = s->lease.epoch,
                .stamp = ++sim->next_number };
        /* Not the host's event: a runner goes on while its host is stopped. */
        sim_at(sim, sim_draw(sim, 4), on_start, copy_of(&(struct stop){ i, h->seats[i].stamp }));
        return true;
}

/* --- the loop --- */

static void on_tick(struct sim *sim, void *arg)
{
        struct sim_host *h = *(struct sim_host **)arg;
        (void)sim;
        sim_fleet_tick(h);
        sim_host_turn(h);
        sim_at_host(h, 10, on_tick, boxed(h));
}

static void on_gone(struct sim *sim, void *arg)
{
        struct sim_host *h = *(struct sim_host **)arg;
        uint64_t session = h->coord->session;
        sim_host_kill(h, false);
        sim_tree_end_session(sim, session);
        if (sim->is_calm)
                sim_host_start(h);
}

void sim_host_turn(struct sim_host *h)
{
        struct sim *sim = h->sim;
        for (uint32_t i = 0; i < SEATS; i++)
                for (uint32_t j = 0; j < SHARDS && !h->seats[i].task; j++)
                        (void)seat_task(h, i, (j + i) % SHARDS);
        for (uint32_t i = 0; i < SHARDS; i++) {
                shard_tick(&h->shards[i], sim->now_ms);
                enum shard_call call = shard_next_call(&h->shards[i], sim_draw(sim, 2), sim->now_ms);
                if (call != SHARD_CALL_NONE)
                        send(h, i, call);
        }
        sim_fleet_report(h);
        sim_fleet_chair(h);
        if (!h->is_leaving)
                return;
        for (uint32_t i = 0; i < SHARDS; i++)
                if (h->shards[i].state != SHARD_AWAY || h->shards[i].is_calling || h->shards[i].running)
                        return;
        /* Everything was given back: it goes. */
        if (!h->is_going)
                sim_at_host(h, 0, on_gone, boxed(h));
        h->is_going = true;
}

void sim_host_start(struct sim_host *h)
{
        struct sim *sim = h->sim;
        uint64_t life = h->life + 1;
        uint32_t index = h->index;
        *h = (struct sim_host){ .sim = sim, .index = index, .is_alive = true, .life = life };
        for (size_t i = 0; i < sizeof(h->nonce); i++)
                h->nonce[i] = (uint8_t)sim_draw(sim, 256);
        h->limits = (struct shard_limits){ .ttl_ms = TTL_MS,
                .drain_ms = DRAIN_MS,
                .gather_ms = 10,
                .window_tasks = WINDOW,
                .window_bytes = 1 << 20,
                .seats = SEATS };
        for (uint32_t i = 0; i < SHARDS; i++)
                if (shard_init(&h->shards[i], i, &h->limits, 1, 64) < 0)
                        abort();
        sim_fleet_open(h);
        sim_at_host(h, 1, on_tick, boxed(h));
        sim_at_host(h, TTL_MS / 3, on_renewal_due, boxed(h));
}

struct session_end {
        uint64_t session;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t epochs[SHARDS];
        bool is_held[SHARDS];
};

/* Its runners are gone, so its guard may give back what the page showed. */
static void on_session_ended(struct sim *sim, void *arg)
{
        const struct session_end *b = arg;
        for (uint32_t i = 0; i < SHARDS; i++)
                if (b->is_held[i])
                        sim_store_bury(sim, i, b->epochs[i], b->nonce);
        sim_tree_end_session(sim, b->session);
}

void sim_host_kill(struct sim_host *h, bool has_guard)
{
        struct sim *sim = h->sim;
        struct session_end *b = calloc(1, sizeof(*b));
        if (!b)
                abort();
        b->session = h->coord->session;
        memcpy(b->nonce, h->nonce, sizeof(h->nonce));
        for (uint32_t i = 0; i < SHARDS; i++) {
                b->epochs[i] = h->page_epoch[i];
                b->is_held[i] = h->page_until_ms[i] > 0;
                shard_free(&h->shards[i]);
        }
        if (has_guard)
                sim_at(sim, 1 + sim_draw(sim, 20), on_session_ended, b);
        else
                free(b);
        h->is_alive = false;
        sim_fleet_free(h);
}

void sim_host_pause(struct sim_host *h, uint64_t ms)
{
        if (h->paused_until_ms < h->sim->now_ms)
                h->paused_until_ms = h->sim->now_ms + ms;
}

void sim_host_leave(struct sim_host *h)
{
        if (h->is_leaving)
                return;
        h->is_leaving = true;
        leader_stand(&h->leader, false);
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_leave(&h->shards[i], h->sim->now_ms);
        sim_fleet_report(h);
}
