/* sim_host.c: a host: shard_io.c and dispatch.c as runtime/host has them, with seats instead of pools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
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

/* --- what the shards need their host for --- */

static bool is_page_open(const struct sim_host *h, uint32_t shard)
{
        return h->page[shard].until_ns > h->sim->now_ms * NS_PER_MS;
}

/* One that leaves hands out nothing, but what a runner has may still start. */
bool sim_host_may_start(const struct sim_host *h, uint32_t shard)
{
        bool is_serving = h->shards.list[shard].shard.state == SHARD_OWNED;
        for (uint32_t i = 0; i < SEATS; i++)
                is_serving |= h->seats[i].task && h->seats[i].shard == shard && !h->seats[i].is_started;
        return is_serving && is_page_open(h, shard);
}

static uint64_t on_now_ms(void *self)
{
        const struct sim_host *h = self;
        return h->sim->now_ms;
}

/* Which use of which seat an event is about. */
struct stop {
        uint32_t seat;
        uint64_t stamp;
};

static void on_stopped(struct sim *sim, void *arg);
static void *copy_of(const struct stop *stop);

/* It is told to stop, and killed after the grace. */
static void on_stop(void *self, struct claimed *claimed)
{
        struct sim_host *h = self;
        h->sim->counts.lost += claimed->hold.is_stopping;
        if (claimed->lent) {
                sim_lend_stop(h, claimed);
                return;
        }
        for (uint32_t i = 0; i < SEATS; i++)
                if (h->seats[i].task && sim_batch_has_task(&h->seats[i], claimed))
                        sim_at_host(h, sim_draw(h->sim, GRACE_MS), on_stopped,
                                copy_of(&(struct stop){ i, h->seats[i].stamp }));
}

static void on_failed(void *self, const struct shard *shard, int status, const char *text)
{
        (void)self, (void)shard, (void)status, (void)text;
}

static void on_stale(void *self)
{
        sim_fleet_report(self);
}

static void on_renewed(void *self, const char *failure, uint64_t desired_version)
{
        struct sim_host *h = self;
        if (!failure && desired_version != h->desired_version)
                sim_pause_read(h);
        if (!failure && !h->is_leaving)
                shards_reconcile(&h->shards);
}

static void on_merged(void *self, const struct claimed *into, uint32_t count)
{
        (void)self, (void)into, (void)count;
}

/* Whatever is handed over has started here. */
static void on_recall(void *self, struct claimed *claimed)
{
        if (claimed->lent)
                sim_lend_recall(self, claimed);
}

static void on_reported(void *self, struct shard *shard, const struct store_control *control)
{
        sim_lend_reported(self, shard, control);
}

static const struct shards_events shards_events = { .now_ms = on_now_ms,
        .stop = on_stop,
        .recall = on_recall,
        .reported = on_reported,
        .failed = on_failed,
        .merged = on_merged,
        .stale = on_stale,
        .renewed = on_renewed };

static void on_renewal_due(struct sim *sim, void *arg)
{
        struct sim_host *h = *(struct sim_host **)arg;
        shards_renew(&h->shards, sim->now_ms);
        sim_at_host(h, TTL_MS / 3, on_renewal_due, boxed(h));
}

/* --- handlers --- */

static void end_seat(struct sim_host *h, uint32_t i, const struct store_outcome *outcome)
{
        struct sim_seat *seat = &h->seats[i];
        struct shard *s = &h->shards.list[seat->shard].shard;
        struct sim_seat was = *seat;
        *seat = (struct sim_seat){ 0 };
        if (outcome->kind == STORE_DIVERT) {
                shard_again(s, was.task, h->sim->now_ms);
        } else {
                struct pending_outcome *pending = pending_outcome_new(outcome->kind, COST_NONE, "");
                pending->outcome.is_suspect = outcome->is_suspect;
                shard_ended(s, was.task, pending, h->sim->now_ms);
        }
        sim_batch_end(h, &was, s, outcome);
}

static void free_seat(struct sim_host *h, uint32_t i, enum store_outcome_kind kind)
{
        struct store_outcome outcome = { .kind = kind };
        /* Nobody knows who crashed: whoever ran beside it, or this one. */
        outcome.is_suspect = kind == STORE_INTERRUPTED && sim_happens(h->sim, 3);
        end_seat(h, i, &outcome);
        sim_host_turn(h);
}

void sim_host_end_seats(struct sim_host *h, uint32_t pool)
{
        for (uint32_t i = pool * POOL_SEATS; i < (pool + 1) * POOL_SEATS; i++) {
                struct sim_seat *seat = &h->seats[i];
                struct store_outcome outcome = { .kind = seat->is_started ? STORE_INTERRUPTED : STORE_DIVERT,
                        .is_suspect = seat->is_started };
                if (seat->borrowed)
                        sim_lend_killed(h, seat);
                else if (seat->task)
                        end_seat(h, i, &outcome);
        }
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
        if (sim_happens(sim, 100))
                sim_limits_close(h, seat);
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

static void on_killed(struct sim *sim, void *arg)
{
        const struct stop *stop = arg;
        struct sim_host *h;
        if (seat_of(sim, stop, &h))
                sim_runner_kill(h, stop->seat / POOL_SEATS);
}

/* The runner looks at the lease page, not at what the host thinks by now. */
static void on_start(struct sim *sim, void *arg)
{
        const struct stop *start = arg;
        struct sim_host *h;
        struct sim_seat *seat = seat_of(sim, start, &h);
        if (!seat)
                return;
        if (!leases_allow(&h->leases, seat->shard, seat->epoch, sim->now_ms * NS_PER_MS)) {
                sim_at_host(h, 0, on_given_back, copy_of(start));
                return;
        }
        seat->is_started = true;
        seat->started_ms = sim->now_ms;
        sim_check_start(sim, h, seat);
        sim_batch_check_start(sim, h, seat);
        /* Of some runs, more of those under a concurrency take long: longer than a share that is not renewed lasts. */
        bool is_slow = sim->has_limits && sim->seed % 3 == 1 && seat < h->seats + POOL_SEATS;
        uint64_t takes_ms =
                sim_happens(sim, is_slow ? 3 : 15) ? sim_draw(sim, (is_slow ? 5 : 3) * TTL_MS) : sim_draw(sim, 15);
        sim_at(sim, takes_ms, on_over, copy_of(start));
        sim_at_host(h, takes_ms, on_ended, copy_of(start));
        /* Not only while there is trouble: what is left at the end may all be suspect. */
        if (sim_draw(sim, 24) == 0)
                sim_at_host(h, sim_draw(sim, (uint32_t)takes_ms + 1), on_killed, copy_of(start));
}

static struct sim_seat *find_free(struct sim_host *h, uint32_t pool)
{
        for (uint32_t i = pool * POOL_SEATS; i < (pool + 1) * POOL_SEATS; i++)
                if (!h->seats[i].task && !h->seats[i].borrowed)
                        return &h->seats[i];
        return NULL;
}

static uint32_t count_free(const struct sim_host *h, uint32_t pool)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < POOL_SEATS && sim_runner_takes_tasks(h, pool); i++)
                count += !h->seats[pool * POOL_SEATS + i].task && !h->seats[pool * POOL_SEATS + i].borrowed;
        return count;
}

static void seat_task(struct sim_host *h, uint32_t pool, struct shard *s, struct claimed *c)
{
        struct sim *sim = h->sim;
        if (c->trust == TRUST_DIED_ALONE) {
                /* It should wait for long.  This store has no timers: it is tried once more, alone. */
                c->trust = TRUST_SUSPECT;
                shard_ended(s, c, pending_outcome_new(STORE_INTERRUPTED, COST_NONE, ""), sim->now_ms);
                return;
        }
        struct sim_seat *seat = find_free(h, pool);
        *seat = (struct sim_seat){ .task = c,
                .is_suspect = c->trust == TRUST_SUSPECT,
                .shard = s->number,
                .number = (uint32_t)c->seq - 1,
                .key = sim->shards[s->number].tasks[c->seq - 1].key,
                .epoch = s->lease.epoch,
                .stamp = ++sim->next_number };
        sim_check_seat(sim, h, seat);
        sim_batch_take(h, pool, s, seat);
        /* Not the host's event: a runner goes on while its host is stopped. */
        sim_at(sim, sim_draw(sim, 4), on_start, copy_of(&(struct stop){ (uint32_t)(seat - h->seats), seat->stamp }));
}

static void measure_room(const struct sim_host *h, uint32_t pool, uint32_t room[LANES])
{
        for (unsigned lane = 0; lane < LANES; lane++)
                room[lane] = count_free(h, pool);
}

/* As handler_feed(). */
static void feed(struct sim_host *h, uint32_t pool)
{
        uint64_t now_ms = h->sim->now_ms;
        uint32_t room[LANES];
        struct shard *shard;
        struct claimed *c;
        measure_room(h, pool, room);
        dispatch_begin(&h->dispatch, pool, DISPATCH_OPEN, room, now_ms);
        while ((c = dispatch_next(&h->dispatch, pool, room, now_ms, &shard))) {
                seat_task(h, pool, shard, c);
                measure_room(h, pool, room);
        }
}

/* As handler_set_limits(). */
static void set_room(struct sim_host *h, uint32_t pool)
{
        uint32_t room = count_free(h, pool);
        if (!room && dispatch_has_waiting(&h->dispatch, pool))
                sim_runner_start(h, pool);
        limits_set_room(&h->fleet, pool, room);
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
        dispatch_look(&h->dispatch, &h->shards.schedule.changed);
        sim_lend_feed(h);
        for (uint32_t i = 0; i < POOLS; i++)
                set_room(h, i);
        dispatch_look_at_limits(&h->dispatch, sim->now_ms);
        for (uint32_t i = 0; i < POOLS; i++)
                feed(h, i);
        shards_look_at_shares(&h->shards);
        dispatch_look(&h->dispatch, &h->shards.schedule.changed);
        sim_lend_turn(h);
        shards_call(&h->shards, sim->now_ms);
        sim_limits_call(h);
        sim_fleet_report(h);
        sim_fleet_chair(h);
        if (!h->is_leaving)
                return;
        for (uint32_t i = 0; i < SHARDS; i++) {
                const struct shard *s = &h->shards.list[i].shard;
                if (s->state != SHARD_AWAY || s->is_calling || s->running)
                        return;
        }
        /* Everything was given back: it goes. */
        if (!h->is_going)
                sim_at_host(h, 0, on_gone, boxed(h));
        h->is_going = true;
}

static void open_shards(struct sim_host *h)
{
        static const char *const names[POOLS] = { "even", "odd" };
        h->store = (struct store){ .driver = &sim_store_driver, .shards = SHARDS };
        h->leases = (struct leases){ .fd = -1, .count = SHARDS, .slots = h->page };
        h->store.record.features_count = 2;
        (void)snprintf(h->store.record.features[0], sizeof(h->store.record.features[0]), "merge");
        (void)snprintf(h->store.record.features[1], sizeof(h->store.record.features[1]), "schedules");
        h->shards = (struct shards){ .store = &h->store,
                .dispatch = &h->dispatch,
                .leases = &h->leases,
                .assignment = &h->assignment,
                .nonce = h->nonce,
                .limits = &h->limits,
                .events = &shards_events,
                .self = h };
        dispatch_init(&h->dispatch, SHARDS);
        shards_init(&h->shards, CALLS_MAX, CALLS_GROUP, 64);
        for (uint32_t i = 0; i < POOLS; i++) {
                char *items[] = { (char *)names[i] };
                dispatch_serve(
                        &h->dispatch, dispatch_add_pool(&h->dispatch), &(struct strings){ items, 1 }, h->sim->now_ms);
        }
}

void sim_host_start(struct sim_host *h)
{
        struct sim *sim = h->sim;
        uint64_t life = h->life + 1;
        uint32_t index = h->index;
        *h = (struct sim_host){ .sim = sim, .index = index, .is_alive = true, .life = life, .born_ms = sim->now_ms };
        for (size_t i = 0; i < sizeof(h->nonce); i++)
                h->nonce[i] = (uint8_t)sim_draw(sim, 256);
        h->limits = (struct shard_limits){ .can_merge = true,
                .ttl_ms = TTL_MS,
                .drain_ms = DRAIN_MS,
                .gather_ms = 10,
                .ring_costs = true,
                .window_tasks = WINDOW,
                .window_bytes = 1 << 20,
                .seats = SEATS };
        open_shards(h);
        sim_limits_start(h);
        sim_pause_start(h);
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
                b->epochs[i] = h->page[i].epoch;
                b->is_held[i] = h->page[i].until_ns > 0;
        }
        /* What a real store would answer with -ECANCELED. */
        for (uint32_t i = 0; i < SHARDS; i++)
                if (h->waiting_call[i])
                        arena_free(*request_arena(&h->shards.list[i].request));
        shards_free(&h->shards);
        sim_lend_free(h); /* what its shards were about to tell of is not freed before them */
        dispatch_free(&h->dispatch);
        limits_free(&h->fleet);
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
        h->fleet.is_leaving = true;
        leader_stand(&h->leader, false);
        shards_leave(&h->shards, h->sim->now_ms);
        sim_fleet_report(h);
}
