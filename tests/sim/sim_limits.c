/* sim_limits.c: what the handlers are under, even keys' a concurrency and odd keys' a rate, of some runs for each key:
 * the real limit.c of each host and limit_share.c as the limits' homes, with messages between them that are lost,
 * doubled and late. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "store/limit_share.h"

#define SLOTS       0 /* the pool under a concurrency, and its limit */
#define PACE        1
#define SECOND_MS   1000
#define VALUES_MAX  SHARD_KEYS
#define PATIENCE_MS (TTL_MS / 2)
/* A host looks every 10 ms: so much later than its share ends a call is told to stop, or killed. */
#define LATE_MS 30
/* So long after a lower amount is in force at the home, shares that were granted before are of no use any more. */
#define SETTLED_MS (3 * TTL_MS / 2 + GRACE_MS + LATE_MS + PATIENCE_MS)

static const char *const names[POOLS] = { "slots", "pace" };
static const struct span keys[SHARD_KEYS] = { SPAN_TEXT("k0"), SPAN_TEXT("k1"), SPAN_TEXT("k2"), SPAN_TEXT("k3") };

static uint32_t bucket_of(const struct sim_limit *limit, uint32_t key)
{
        return limit->is_by_key ? key : 0;
}

static uint32_t bucket_named(const struct sim *sim, struct span value)
{
        uint32_t i = 0;
        if (!value.size)
                return 0;
        while (i < SHARD_KEYS && !span_is(value, keys[i]))
                i++;
        if (i == SHARD_KEYS)
                sim_fail(sim, "a limit has the value %.*s", (int)value.size, value.data);
        return i;
}

static void draw_amount(struct sim *sim, uint32_t pool)
{
        struct limit_amount *amount = &sim->limits[pool].amount;
        uint64_t version = amount->version + 1;
        *amount = (struct limit_amount){ .version = version };
        if (pool == SLOTS) {
                amount->concurrency = 1 + sim_draw(sim, 3);
                return;
        }
        amount->rate = 20 + sim_draw(sim, 80);
        amount->per_ms = SECOND_MS;
        amount->burst = 1 + sim_draw(sim, 16);
}

void sim_limits_begin(struct sim *sim)
{
        sim->has_limits = sim->seed % 3 != 0;
        for (uint32_t i = 0; i < POOLS; i++) {
                struct sim_limit *limit = &sim->limits[i];
                draw_amount(sim, i);
                limit->is_by_key = sim_draw(sim, 3) == 0;
                limit->used = limit->before = limit->amount;
                for (uint32_t key = 0; key < SHARD_KEYS; key++) {
                        limit->level[key] = limit->amount.burst * SECOND_MS;
                        limit->level_ms[key] = sim->now_ms;
                        limit->full[key] = limit->level[key];
                }
        }
}

void sim_limits_free(struct sim *sim)
{
        for (uint32_t i = 0; i < POOLS * SHARD_KEYS; i++)
                buffer_free(&sim->limits[i / SHARD_KEYS].records[i % SHARD_KEYS]);
}

static void define(struct sim_host *h, uint32_t i)
{
        const struct sim_limit *limit = &h->sim->limits[i];
        limit_define(limits_ensure(&h->fleet, names[i]), &limit->amount, limit->is_by_key ? "key" : NULL,
                GRACE_MS + LATE_MS, VALUES_MAX);
        h->fleet.is_stirred = true;
}

void sim_limits_start(struct sim_host *h)
{
        h->fleet.ttl_ms = TTL_MS;
        for (uint32_t i = 0; i < POOLS; i++) {
                char *items[] = { (char *)names[i] };
                define(h, i);
                limits_serve(&h->fleet, i, &(struct strings){ items, h->sim->has_limits });
        }
        h->dispatch.routes.limits = &h->fleet;
}

void sim_limits_cut(struct sim *sim, void *arg)
{
        (void)arg;
        if (sim->is_calm)
                return;
        sim->hosts[sim_draw(sim, HOSTS)].limits_cut_until_ms = sim->now_ms + 2 * TTL_MS + sim_draw(sim, 3 * TTL_MS);
        sim_at(sim, TTL_MS + sim_draw(sim, 3 * TTL_MS), sim_limits_cut, NULL);
}

/* Of some runs alone: what was allowed before is allowed for a while, and would hide much.  A host that is told nothing
 * hears of it from the home. */
void sim_limits_change(struct sim *sim, void *arg)
{
        uint32_t pool = sim_draw(sim, POOLS);
        (void)arg;
        if (sim->is_calm || sim->seed % 3 == 1)
                return;
        draw_amount(sim, pool);
        sim->counts.changed += sim->has_limits;
        for (uint32_t i = 0; i < HOSTS; i++)
                if (sim->hosts[i].is_alive && !sim_happens(sim, 4))
                        define(&sim->hosts[i], pool);
        sim_at(sim, sim_draw(sim, 4 * TTL_MS), sim_limits_change, NULL);
}

/* --- calls --- */

/* A call on its way to a home and back. */
struct message {
        struct sim_host *host;
        uint64_t life, number;
        uint32_t limit;
        uint64_t lease_ms, call;
        uint8_t holder[STORE_NONCE_SIZE];
        struct limit_amount amount; /* that `given` stands for */
        struct store_limit given;
        struct store_limit_item items[SHARD_KEYS];
        uint32_t count;
        bool is_answered;
};

static void answer(struct sim_host *h, const struct message *m)
{
        struct limit *asked = limits_find(&h->fleet, names[m->limit]);
        struct store_limit_item items[SHARD_KEYS];
        struct store_limit_take take = { .items = items, .items_count = h->asked_count[m->limit] };
        memcpy(items, m->is_answered ? m->items : h->asked[m->limit], sizeof(items));
        h->asked_number[m->limit] = 0;
        if (m->is_answered) {
                take.used = m->given;
                limits_answered(&h->fleet, asked, &take, h->sim->now_ms);
        } else {
                take.request.status = -ETIMEDOUT;
                limits_failed(&h->fleet, asked, &take, h->sim->now_ms);
        }
        sim_host_turn(h);
}

/* An answer, or that there is none. */
static void on_answer(struct sim *sim, void *arg)
{
        const struct message *m = arg;
        (void)sim;
        if (m->host->asked_number[m->limit] == m->number)
                answer(m->host, m);
}

/* The newest definition is used. */
static void use(struct sim *sim, struct sim_limit *limit, const struct message *m)
{
        if (m->given.version <= limit->home.version)
                return;
        bool is_first = !limit->home.version;
        limit->home = m->given;
        bool is_settled = sim->now_ms > limit->used_ms + SETTLED_MS;
        const struct limit_amount *was = &limit->used;
        struct limit_amount *most = &limit->before;
        if (is_settled || is_first)
                *most = *was;
        most->concurrency = most->concurrency > was->concurrency ? most->concurrency : was->concurrency;
        most->rate = most->rate > was->rate ? most->rate : was->rate;
        most->burst = most->burst > was->burst ? most->burst : was->burst;
        limit->used = m->amount;
        limit->used_ms = sim->now_ms;
}

static void take(struct sim *sim, struct sim_limit *limit, const struct message *m, struct store_limit_item *item)
{
        struct buffer *record = &limit->records[bucket_named(sim, item->value)];
        struct limit_share share = { .limit = &limit->home,
                .holder = m->holder,
                .lease_ms = m->lease_ms,
                .call = m->call,
                .now_ms = sim->now_ms,
                .want = item->want,
                .keep = item->keep,
                .close_ms = item->close_ms,
                .record = { (const char *)record->data, record->size },
                .is_record_there = record->size > 0 };
        limit_share_take(&share);
        struct buffer unused = share.is_changed ? *record : share.after;
        if (share.is_changed)
                *record = share.after;
        buffer_free(&unused);
        sim->counts.shares += share.granted;
        item->granted = share.granted;
        item->left_ms = share.left_ms;
        item->retry_ms = share.retry_ms;
        item->closed_ms = share.closed_ms;
        item->has_waiting = share.has_waiting;
        item->is_over = share.is_over;
}

static bool is_cut(const struct sim_host *h)
{
        return h->store_cut_until_ms > h->sim->now_ms || h->limits_cut_until_ms > h->sim->now_ms;
}

static void on_arrival(struct sim *sim, void *arg)
{
        struct message *m = arg;
        struct sim_host *h = m->host;
        struct sim_limit *limit = &sim->limits[m->limit];
        use(sim, limit, m);
        for (uint32_t i = 0; i < m->count; i++)
                take(sim, limit, m, &m->items[i]);
        m->given = limit->home;
        m->is_answered = true;
        if (!h->is_alive || h->life != m->life || sim_happens(sim, 25) || is_cut(h))
                free(m);
        else
                sim_at_host(h, sim_travel_ms(sim), on_answer, m);
}

static struct message *copy_of(const struct message *m)
{
        struct message *copy = malloc(sizeof(*copy));
        if (!copy)
                abort();
        *copy = *m;
        return copy;
}

static void send(struct sim_host *h, struct message *m)
{
        struct sim *sim = h->sim;
        memcpy(m->holder, h->nonce, sizeof(m->holder));
        m->given.name = SPAN_TEXT("");
        for (uint32_t i = 0; i < m->count; i++)
                if (m->items[i].value.size) /* The host's memory may be gone when it arrives. */
                        m->items[i].value = keys[bucket_named(sim, m->items[i].value)];
        memcpy(h->asked[m->limit], m->items, sizeof(m->items));
        h->asked_count[m->limit] = m->count;
        h->asked_number[m->limit] = m->number;
        sim_at_host(h, PATIENCE_MS, on_answer, copy_of(m));
        uint32_t copies = sim_happens(sim, 40) ? 2 : 1;
        if (is_cut(h) || sim_happens(sim, 25))
                copies = 0;
        for (uint32_t i = 0; i < copies; i++) {
                uint64_t delay_ms = sim_happens(sim, 30) ? sim_draw(sim, 2 * TTL_MS) : sim_travel_ms(sim);
                sim_at_owned(sim, delay_ms, on_arrival, copy_of(m), free);
        }
}

void sim_limits_call(struct sim_host *h)
{
        struct sim *sim = h->sim;
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        struct limit *asked;
        uint32_t count = 0;
        while ((asked = limits_next_call(&h->fleet, sim->now_ms, items, &count))) {
                struct message m = { .host = h,
                        .life = h->life,
                        .number = ++sim->next_number,
                        .limit = strcmp(asked->name, names[SLOTS]) ? PACE : SLOTS,
                        .lease_ms = limit_lease_ms(&h->fleet, asked),
                        .call = asked->counts.calls,
                        .amount = asked->amount,
                        .given = asked->store,
                        .count = count };
                if (count > SHARD_KEYS)
                        sim_fail(sim, "host %u asks for %u values of limit %s", h->index, count, asked->name);
                memcpy(m.items, items, count * sizeof(items[0]));
                send(h, &m);
        }
}

void sim_limits_close(struct sim_host *h, const struct sim_seat *seat)
{
        struct limit_task task = { .pool = (uint32_t)(seat - h->seats) / POOL_SEATS, .key = keys[seat->key] };
        if (limits_close(&h->fleet, &task, sim_draw(h->sim, 2 * TTL_MS), h->sim->now_ms) != h->sim->has_limits)
                sim_fail(h->sim, "pool %u is under no limit, or under one that is not there", task.pool);
        h->sim->counts.closed += h->sim->has_limits;
}

/* --- the promises --- */

uint64_t sim_limits_started_ms(const struct sim *sim, uint32_t name)
{
        uint32_t pool = name < 2 * POOLS ? name - POOLS : (name - 2 * POOLS) % POOLS;
        return sim->limits[pool].started_ms[name < 2 * POOLS ? 0 : name - 2 * POOLS];
}

/* What was allowed a moment ago still is: shares of it are under way. */
static uint64_t most(const struct sim *sim, const struct sim_limit *limit, uint64_t used, uint64_t before)
{
        return before > used && sim->now_ms <= limit->used_ms + SETTLED_MS ? before : used;
}

/* In any time t no more than rate × t + burst: as tokens of a bucket that has `burst` and gets `rate` a second. */
static void check_rate(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat)
{
        struct sim_limit *limit = &sim->limits[PACE];
        uint32_t key = bucket_of(limit, seat->key);
        uint64_t rate = most(sim, limit, limit->used.rate, limit->before.rate);
        uint64_t full = most(sim, limit, limit->used.burst, limit->before.burst) * SECOND_MS;
        uint64_t level = limit->level[key] + (sim->now_ms - limit->level_ms[key]) * rate;
        /* What was started counts against a larger burst as it did against the smaller one. */
        level += full > limit->full[key] ? full - limit->full[key] : 0;
        limit->full[key] = full;
        limit->level[key] = level < full ? level : full;
        limit->level_ms[key] = sim->now_ms;
        if (limit->level[key] < SECOND_MS)
                sim_fail(sim, "host %u starts more than %" PRIu64 " a second and %" PRIu64 " at once", h->index, rate,
                        full / SECOND_MS);
        limit->level[key] -= SECOND_MS;
}

/* The only exception: a call that was running on a host that stands still, or did and has yet to stop it. */
static bool is_left_over(const struct sim *sim, const struct sim_host *h, const struct sim_seat *seat)
{
        return seat->started_ms < h->paused_until_ms && sim->now_ms < h->paused_until_ms + GRACE_MS + LATE_MS;
}

void sim_limits_check_seat(struct sim *sim, const struct sim_host *h, const struct sim_seat *seat)
{
        uint32_t pool = (uint32_t)(seat - h->seats) / POOL_SEATS;
        sim->limits[pool].started_ms[bucket_of(&sim->limits[pool], seat->key)] = sim->now_ms;
        if (pool == PACE && sim->has_limits)
                check_rate(sim, h, seat);
}

void sim_limits_check_start(struct sim *sim, const struct sim_host *h, const struct sim_seat *started)
{
        const struct sim_limit *limit = &sim->limits[SLOTS];
        uint64_t running = 0;
        if ((uint32_t)(started - h->seats) / POOL_SEATS != SLOTS || !sim->has_limits)
                return;
        for (uint32_t i = 0; i < HOSTS * POOL_SEATS; i++) {
                const struct sim_host *other = &sim->hosts[i / POOL_SEATS];
                const struct sim_seat *seat = &other->seats[SLOTS * POOL_SEATS + i % POOL_SEATS];
                if (!other->is_alive || !seat->is_started || seat->is_over ||
                        bucket_of(limit, seat->key) != bucket_of(limit, started->key))
                        continue;
                bool is_exempt = is_left_over(sim, other, seat);
                sim->counts.left_over += is_exempt;
                running += !is_exempt;
        }
        uint64_t allowed = most(sim, limit, limit->used.concurrency, limit->before.concurrency);
        sim->counts.full += running == allowed;
        if (running > allowed)
                sim_fail(sim, "host %u starts task %u of shard %u, and %" PRIu64 " run at once, not %" PRIu64, h->index,
                        started->number, started->shard, running, allowed);
}
