/* sim_schedule.c: a schedule on each shard, as a store keeps it: a time is compared, and then it has fired. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define EVERY_MS 5000u
/* Every missed time fires: so none may be passed over. */
#define DEFINITION "{\"handler\":\"even\",\"every_ms\":5000,\"catchup\":\"all\",\"catchup_ms\":86400000}"

void sim_schedule_start(struct sim *sim)
{
        for (uint32_t i = 0; i < SHARDS; i++) {
                struct sim_store_shard *s = &sim->shards[i];
                s->schedule_ms = sim->now_ms / EVERY_MS * EVERY_MS + EVERY_MS;
                /* A name that belongs there, as a key. */
                for (unsigned n = 0; !n || shard_of_key(span_of_text(s->schedule), SHARDS) != i; n++)
                        (void)snprintf(s->schedule, sizeof(s->schedule), "tick%u", n);
        }
}

void sim_schedule_list(const struct sim_store_shard *s, struct sim_call *call)
{
        call->schedule = (struct store_schedule){ .name = span_of_text(s->schedule),
                .state = SCHEDULE_ACTIVE,
                .version = 1,
                .next_ms = s->schedule_ms,
                .fired = s->times_fired,
                .definition = SPAN_TEXT(DEFINITION) };
        call->schedules.schedules = &call->schedule;
        call->schedules.schedules_count = 1;
}

static void fire(struct sim *sim, struct sim_store_shard *s, uint32_t shard, struct store_fire *f, bool is_repeat)
{
        if (is_repeat) {
                f->fired = s->schedule_ms == f->next_ms ? STORE_FIRED : STORE_FIRE_STALE;
        } else if (f->expected_ms != s->schedule_ms) {
                f->fired = STORE_FIRE_STALE;
        } else {
                if (!f->has_task || f->next_ms != s->schedule_ms + EVERY_MS)
                        sim_fail(sim,
                                "a time of the schedule of shard %u is passed over: after %" PRIu64 " comes %" PRIu64,
                                shard, s->schedule_ms, f->next_ms);
                if (f->expected_ms > sim->now_ms)
                        sim_fail(sim, "the schedule of shard %u fires %" PRIu64 " ms too early", shard,
                                f->expected_ms - sim->now_ms);
                f->fired = STORE_FIRED;
                s->schedule_ms = f->next_ms;
                s->times_fired++;
                sim->counts.fired++;
        }
        f->stored = (struct store_schedule){
                .state = SCHEDULE_ACTIVE, .version = 1, .next_ms = s->schedule_ms, .fired = s->times_fired
        };
}

void sim_schedule_fire(struct sim *sim, struct sim_store_shard *s, struct sim_call *call, bool is_ours)
{
        struct store_fires *f = &call->fires;
        bool is_next = f->call == s->call + 1;
        f->verdict = is_ours && (is_next || f->call == s->call) ? STORE_OK : STORE_FENCED;
        if (f->verdict == STORE_FENCED)
                return;
        for (uint32_t i = 0; i < f->fires_count; i++)
                fire(sim, s, call->shard, &call->fired[i], !is_next);
        s->call = f->call;
        s->last_count = 0;
}

/* In calm each shard is owned, and what was missed is caught up. */
void sim_schedule_check(struct sim *sim)
{
        for (uint32_t i = 0; sim->is_calm && i < SHARDS; i++)
                if (sim->now_ms > sim->calm_ms + SIM_CAUGHT_UP_MS &&
                        sim->shards[i].schedule_ms + SIM_CAUGHT_UP_MS < sim->now_ms)
                        sim_fail(sim, "the schedule of shard %u stands still since %" PRIu64, i,
                                sim->shards[i].schedule_ms);
}
