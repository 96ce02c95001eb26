/* sim.c: the queue of events, and the trouble. */
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the queue --- */

static bool is_before(const struct event *a, const struct event *b)
{
        return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

static void push(struct sim *sim, struct event event)
{
        if (sim->queue_count == sim->queue_room) {
                sim->queue_room = sim->queue_room ? sim->queue_room * 2 : 256;
                sim->queue = realloc(sim->queue, sim->queue_room * sizeof(*sim->queue));
                if (!sim->queue)
                        abort();
        }
        event.number = ++sim->next_number;
        size_t i = sim->queue_count++;
        for (; i && is_before(&event, &sim->queue[(i - 1) / 2]); i = (i - 1) / 2)
                sim->queue[i] = sim->queue[(i - 1) / 2];
        sim->queue[i] = event;
}

static struct event pop(struct sim *sim)
{
        struct event first = sim->queue[0];
        struct event last = sim->queue[--sim->queue_count];
        size_t i = 0;
        for (size_t child; (child = 2 * i + 1) < sim->queue_count; i = child) {
                if (child + 1 < sim->queue_count && is_before(&sim->queue[child + 1], &sim->queue[child]))
                        child++;
                if (!is_before(&sim->queue[child], &last))
                        break;
                sim->queue[i] = sim->queue[child];
        }
        sim->queue[i] = last;
        return first;
}

void sim_at(struct sim *sim, uint64_t delay_ms, void (*run)(struct sim *sim, void *arg), void *arg)
{
        push(sim, (struct event){ .at_ms = sim->now_ms + delay_ms, .run = run, .arg = arg });
}

void sim_at_owned(
        struct sim *sim, uint64_t delay_ms, void (*run)(struct sim *sim, void *arg), void *arg, void (*drop)(void *arg))
{
        push(sim, (struct event){ .at_ms = sim->now_ms + delay_ms, .run = run, .arg = arg, .drop = drop });
}

void sim_at_host(struct sim_host *host, uint64_t delay_ms, void (*run)(struct sim *sim, void *arg), void *arg)
{
        push(host->sim, (struct event){ .at_ms = host->sim->now_ms + delay_ms,
                                .run = run,
                                .arg = arg,
                                .host = host,
                                .life = host->life });
}

/* --- chance --- */

uint32_t sim_draw(struct sim *sim, uint32_t below)
{
        sim->random = sim->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)((sim->random >> 33) % below);
}

bool sim_happens(struct sim *sim, uint32_t odds)
{
        return !sim->is_calm && sim_draw(sim, odds) == 0;
}

uint64_t sim_travel_ms(struct sim *sim)
{
        return sim_happens(sim, 50) ? sim_draw(sim, 400) : sim_draw(sim, 4);
}

_Noreturn void sim_fail(const struct sim *sim, const char *format, ...)
{
        va_list args;
        (void)fprintf(stderr, "\nQUIVER_SIM_SEED=%" PRIu64 " at %" PRIu64 " ms, event %" PRIu64 ": ", sim->seed,
                sim->now_ms, sim->counts.events);
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        (void)fprintf(stderr, "\n");
        abort();
}

/* --- trouble --- */

static void cause_trouble(struct sim *sim, void *arg)
{
        struct sim_host *h = &sim->hosts[sim_draw(sim, HOSTS)];
        (void)arg;
        if (sim->is_calm)
                return;
        sim_at(sim, 20 + sim_draw(sim, 300), cause_trouble, NULL);
        if (!h->is_alive) {
                sim_host_start(h);
                return;
        }
        switch (sim_draw(sim, 8)) {
        case 0:
        case 1:
                sim->counts.kills++;
                sim_host_kill(h, sim_draw(sim, 3) != 0);
                break;
        case 2:
        case 3:
                sim->counts.pauses++;
                sim_host_pause(h, sim_draw(sim, 2) ? sim_draw(sim, 3 * TTL_MS) : sim_draw(sim, 200));
                break;
        case 4:
                sim->counts.cuts++;
                h->tree_cut_until_ms = sim->now_ms + sim_draw(sim, 3 * SESSION_MS);
                break;
        case 5:
                sim->counts.cuts++;
                h->store_cut_until_ms = sim->now_ms + sim_draw(sim, 3 * TTL_MS);
                break;
        case 6:
                if (h->coord && h->coord->session)
                        sim_tree_end_session(sim, h->coord->session);
                break;
        default:
                sim_host_leave(h);
                break;
        }
}

static void change_load(struct sim *sim, void *arg)
{
        struct sim_host *h = &sim->hosts[sim_draw(sim, HOSTS)];
        (void)arg;
        if (sim->is_calm)
                return;
        if (h->is_alive && h->paused_until_ms <= sim->now_ms)
                sim_fleet_load(h);
        sim_at(sim, 10 + sim_draw(sim, 50), change_load, NULL);
}

static void produce(struct sim *sim, void *arg)
{
        (void)arg;
        sim_store_submit(sim);
        sim_at(sim, 5 + sim_draw(sim, 30), produce, NULL);
}

/* --- a run --- */

static void step(struct sim *sim)
{
        struct event event = pop(sim);
        sim->now_ms = event.at_ms;
        struct sim_host *h = event.host;
        if (h && h->is_alive && h->life == event.life && h->paused_until_ms > sim->now_ms) {
                event.at_ms = h->paused_until_ms;
                push(sim, event);
                return;
        }
        sim->counts.events++;
        if (!h || (h->is_alive && h->life == event.life))
                event.run(sim, event.arg);
        if (!event.drop)
                free(event.arg);
        sim_check_always(sim);
}

static bool is_all_done(const struct sim *sim)
{
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                for (uint32_t i = 0; i < SHARD_TASKS; i++)
                        if (!sim_task_is_over(&sim->shards[shard].tasks[i]))
                                return false;
        return true;
}

static void add_counts(struct sim_counts *sum, const struct sim_counts *counts)
{
        uint64_t *to = (uint64_t *)sum;
        const uint64_t *from = (const uint64_t *)counts;
        for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
                to[i] += from[i];
}

void sim_run(uint64_t seed, uint64_t steps, struct sim_counts *counts)
{
        struct sim *sim = calloc(1, sizeof(*sim));
        if (!sim)
                abort();
        sim->seed = sim->random = seed;
        sim->unix_ms = UINT64_C(1763000000000);
        sim->now_ms = 1000000;
        sim_schedule_start(sim);
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                for (uint32_t i = 0; i < SHARD_TASKS; i++)
                        sim->shards[shard].tasks[i].key = sim_draw(sim, SHARD_KEYS);
        sim_merge_start(sim);
        sim_limits_begin(sim);
        sim->tree = sim_tree_new(sim);
        for (uint32_t i = 0; i < HOSTS; i++) {
                sim->hosts[i].sim = sim;
                sim->hosts[i].index = i;
                sim_host_start(&sim->hosts[i]);
        }
        sim_at(sim, 1, sim_tree_beat, NULL);
        sim_at(sim, 1, produce, NULL);
        sim_at(sim, 200, cause_trouble, NULL);
        sim_at(sim, 300, sim_pause_change, NULL);
        sim_at(sim, 100, change_load, NULL);
        sim_at(sim, 400, sim_limits_change, NULL);
        sim_at(sim, 500, sim_limits_cut, NULL);
        while (sim->counts.events < steps)
                step(sim);
        sim->is_calm = true;
        sim->calm_ms = sim->now_ms;
        for (uint32_t i = 0; i < HOSTS; i++) {
                struct sim_host *h = &sim->hosts[i];
                h->tree_cut_until_ms = h->store_cut_until_ms = h->limits_cut_until_ms = 0;
                if (!h->is_alive)
                        sim_host_start(h);
        }
        sim_pause_end(sim);
        while (!is_all_done(sim)) {
                if (sim->now_ms > sim->calm_ms + 60000)
                        sim_fail(sim, "work does not end");
                step(sim);
        }
        sim_check_end(sim);
        for (uint32_t i = 0; i < HOSTS; i++)
                if (sim->hosts[i].is_alive)
                        sim_host_kill(&sim->hosts[i], false);
        while (sim->queue_count) {
                struct event left = pop(sim);
                (left.drop ? left.drop : free)(left.arg);
        }
        free(sim->queue);
        sim_tree_free(sim->tree);
        sim_limits_free(sim);
        add_counts(counts, &sim->counts);
        free(sim);
}
