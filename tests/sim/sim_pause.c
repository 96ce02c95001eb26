/* sim_pause.c: a person pauses handlers.  What is wanted stands in the store with a version; hosts are rung, and told
 * the version with each renewal, as runtime/host/handler/desired.c has it. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* What the store said, on its way to a host. */
struct desired {
        struct sim_host *host;
        uint64_t life;
        bool is_paused[POOLS];
        uint64_t version;
};

static void apply(struct sim_host *h, const struct desired *d)
{
        if (d->version <= h->desired_version)
                return;
        h->desired_version = d->version;
        for (uint32_t i = 0; i < POOLS; i++)
                if (h->dispatch.pools[i].is_paused != d->is_paused[i])
                        dispatch_pause(&h->dispatch, i, d->is_paused[i], h->sim->now_ms);
}

static void on_answer(struct sim *sim, void *arg)
{
        const struct desired *d = arg;
        (void)sim;
        apply(d->host, d);
        sim_host_turn(d->host);
}

static void on_arrival(struct sim *sim, void *arg)
{
        struct desired *d = arg;
        memcpy(d->is_paused, sim->is_paused, sizeof(d->is_paused));
        d->version = sim->desired_version;
        if (!d->host->is_alive || d->host->life != d->life || sim_happens(sim, 25) ||
                d->host->store_cut_until_ms > sim->now_ms)
                free(d);
        else
                sim_at_host(d->host, sim_travel_ms(sim), on_answer, d);
}

void sim_pause_read(struct sim_host *h)
{
        struct desired *d = malloc(sizeof(*d));
        if (!d)
                abort();
        if (h->store_cut_until_ms > h->sim->now_ms || sim_happens(h->sim, 25)) {
                free(d);
                return;
        }
        *d = (struct desired){ .host = h, .life = h->life };
        sim_at_owned(h->sim, sim_travel_ms(h->sim), on_arrival, d, free);
}

void sim_pause_start(struct sim_host *h)
{
        struct desired d = { .version = h->sim->desired_version };
        memcpy(d.is_paused, h->sim->is_paused, sizeof(d.is_paused));
        apply(h, &d);
}

static void set(struct sim *sim, uint32_t pool, bool is_paused)
{
        if (sim->is_paused[pool] == is_paused)
                return;
        sim->is_paused[pool] = is_paused;
        sim->pause_ms[pool] = sim->now_ms;
        sim->desired_version++;
        sim->counts.handler_pauses += is_paused;
        for (uint32_t i = 0; i < HOSTS; i++) /* the doorbell */
                if (sim->hosts[i].is_alive && !sim_happens(sim, 4))
                        sim_pause_read(&sim->hosts[i]);
}

void sim_pause_change(struct sim *sim, void *arg)
{
        uint32_t pool = sim_draw(sim, POOLS);
        (void)arg;
        if (sim->is_calm)
                return;
        set(sim, pool, !sim->is_paused[pool]);
        /* Now and then so long that every host must have heard of it. */
        sim_at(sim, sim_draw(sim, 4) ? sim_draw(sim, 2 * TTL_MS) : 6 * TTL_MS, sim_pause_change, NULL);
}

void sim_pause_end(struct sim *sim)
{
        for (uint32_t i = 0; i < POOLS; i++)
                set(sim, i, false);
}
