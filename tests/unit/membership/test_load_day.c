/* A day of a fleet whose load varies: what the hosts measure and tell, and what the leader moves for that.  Fake time;
 * the code that measures, tells and decides is the real one. */
#include "check.h"

#include <stdlib.h>

#include "base/clock.h"
#include "host/membership/assigner.h"
#include "host/shard/shard_load.h"

#define HOSTS   8u
#define SHARDS  64u
#define STEP_MS 3333u /* a third of the lease's ttl */
#define TELL_MS 15000u
#define UNIX_MS UINT64_C(1763256000000)
#define MINUTE  60000u
#define HOUR    (60 * MINUTE)
#define DAY     (24 * HOUR)
#define TASK_NS (10 * NS_PER_MS)

struct day {
        uint64_t now_ms, random;
        struct assigner assigner;
        struct buffer assign, moves;
        struct shard_load measured[HOSTS][SHARDS];
        struct load_summary told[HOSTS];
        uint64_t told_ms[HOSTS];
        uint32_t rate[SHARDS]; /* what tasks of the shard take, on average, in thousandths of a seat */
        uint64_t burst_until_ms[SHARDS];
        uint64_t call_ns;
        uint32_t spread_permille; /* how much that varies from step to step */

        uint32_t moved, tellings, most_a_minute;
        uint64_t moved_ms[4096];
};

static uint32_t draw(struct day *d, uint32_t below)
{
        d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)((d->random >> 33) % below);
}

static void node_of(uint32_t host, char ret_node[8])
{
        (void)snprintf(ret_node, 8, "h%u", host);
}

static void tell(struct day *d, uint32_t host)
{
        static struct member_doc doc;
        struct error error;
        struct buffer text = { 0 };
        char node[8];
        node_of(host, node);
        doc = (struct member_doc){ .member = { .weight = 1, .sees_store = true, .load = d->told[host] } };
        memset(doc.member.nonce, (int)host + 1, sizeof(doc.member.nonce));
        (void)snprintf(doc.member.name, sizeof(doc.member.name), "%s", node);
        member_doc_put(&text, &doc);
        assert_int_equal(assigner_member(&d->assigner, node, host + 1,
                                 (struct span){ (const char *)text.data, text.size }, d->now_ms, &error),
                0);
        buffer_free(&text);
}

static bool owns(const struct day *d, uint32_t host, uint32_t shard)
{
        const struct assign_owner *owner = assignment_owner(&d->assigner.current, shard);
        return owner && owner->nonce[0] == host + 1;
}

/* How many exchanged shards there were in the minute that ends with the last one. */
static void note_moves(struct day *d, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if (d->moved < COUNT(d->moved_ms))
                        d->moved_ms[d->moved++] = d->now_ms;
        uint32_t within = 0;
        for (uint32_t i = d->moved; i && d->moved_ms[i - 1] + MINUTE > d->now_ms; i--)
                within++;
        if (within > d->most_a_minute)
                d->most_a_minute = within;
}

static void decide(struct day *d)
{
        while (assigner_due_ms(&d->assigner) <= d->now_ms) {
                if (!assigner_plan(&d->assigner, d->now_ms, UNIX_MS + d->now_ms, &d->assign, &d->moves))
                        continue;
                uint32_t loads = 0;
                for (uint32_t i = 0; i < d->assigner.plan.moves_count; i++)
                        loads += d->assigner.plan.moves[i].reason == ASSIGN_LOAD;
                if (loads)
                        note_moves(d, loads);
                assigner_wrote(&d->assigner, 0, ++d->assigner.version, d->now_ms);
        }
}

static void start(struct day *d, uint64_t seed)
{
        struct error error;
        struct span none = { "", 0 };
        *d = (struct day){ .now_ms = 1000000, .random = seed };
        assigner_init(&d->assigner, SHARDS, 0);
        assigner_even_load(&d->assigner, true, d->now_ms);
        assigner_lead(&d->assigner, true, d->now_ms);
        for (uint32_t host = 0; host < HOSTS; host++) {
                d->told[host].is_known = true;
                tell(d, host);
        }
        assigner_know(&d->assigner, true, d->now_ms);
        assert_int_equal(assigner_read(&d->assigner, false, none, 0, none, d->now_ms, &error), 0);
        for (int i = 0; i < 30; i++) {
                d->now_ms += 1000;
                decide(d);
        }
}

static void end(struct day *d)
{
        assigner_free(&d->assigner);
        buffer_free(&d->assign);
        buffer_free(&d->moves);
}

/* The tasks of one interval: as many as the rate says, give or take. */
static void work(struct day *d, uint32_t host, uint32_t shard)
{
        uint64_t rate = d->rate[shard] * (d->now_ms < d->burst_until_ms[shard] ? 10u : 1u);
        uint64_t spread = rate * d->spread_permille / 1000;
        if (spread)
                rate = rate - spread + draw(d, (uint32_t)(2 * spread));
        uint64_t used_ns = rate * STEP_MS * 1000 + draw(d, TASK_NS);
        for (; used_ns >= TASK_NS; used_ns -= TASK_NS)
                shard_load_add(&d->measured[host][shard], ++d->call_ns, TASK_NS);
}

static void step(struct day *d)
{
        d->now_ms += STEP_MS;
        for (uint32_t host = 0; host < HOSTS; host++) {
                struct load_summary now = { 0 };
                for (uint32_t shard = 0; shard < SHARDS; shard++) {
                        struct shard_load *l = &d->measured[host][shard];
                        if (owns(d, host, shard))
                                work(d, host, shard);
                        shard_load_sample(l, STEP_MS, owns(d, host, shard));
                        if (l->mean)
                                load_summary_add(&now, shard, l->mean);
                }
                load_summary_end(&now);
                if (d->now_ms < d->told_ms[host] + TELL_MS || !load_summary_differs(&d->told[host], &now))
                        continue;
                d->told[host] = now;
                d->told_ms[host] = d->now_ms;
                d->tellings++;
                tell(d, host);
        }
        decide(d);
}

/* The load of the busiest host, by the true rates. */
static uint64_t busiest(const struct day *d)
{
        uint64_t most = 0;
        for (uint32_t host = 0; host < HOSTS; host++) {
                uint64_t sum = 0;
                for (uint32_t shard = 0; shard < SHARDS; shard++)
                        sum += owns(d, host, shard) ? d->rate[shard] : 0;
                most = sum > most ? sum : most;
        }
        return most;
}

static void report(const struct day *d, const char *what)
{
        (void)printf("%s: %u shards moved, at most %u in a minute; %u tellings of %u hosts\n", what, d->moved,
                d->most_a_minute, d->tellings, HOSTS);
}

static void equal_load_with_noise_moves_nothing_in_a_day(void **state)
{
        (void)state;
        struct day *d = malloc(sizeof(*d));
        start(d, 1);
        d->spread_permille = 300;
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                d->rate[shard] = 250 + 10 * (shard % 10);
        for (uint64_t until_ms = d->now_ms + DAY; d->now_ms < until_ms;)
                step(d);
        report(d, "equal load, 30 % noise, a day");
        assert_int_equal(d->moved, 0);
        /* The first of each host, and hardly any more. */
        assert_in_range(d->tellings, HOSTS, 6 * HOSTS);
        end(d);
        free(d);
}

static void three_busy_shards_are_spread_within_a_minute_and_stay(void **state)
{
        (void)state;
        struct day *d = malloc(sizeof(*d));
        start(d, 2);
        d->spread_permille = 300;
        uint32_t hot = 0;
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
                d->rate[shard] = 20;
                if (hot < 3 && owns(d, 0, shard)) {
                        d->rate[shard] = 2000;
                        hot++;
                }
        }
        assert_int_equal(hot, 3);
        assert_true(busiest(d) > 6000);
        uint64_t begun_ms = d->now_ms;
        while (busiest(d) > 2300 && d->now_ms < begun_ms + HOUR)
                step(d);
        (void)printf("three busy shards of one host: even after %u s\n", (unsigned)((d->now_ms - begun_ms) / 1000));
        assert_in_range(d->now_ms - begun_ms, 1, MINUTE);
        while (d->now_ms < begun_ms + DAY)
                step(d);
        report(d, "the same, a day");
        assert_int_equal(d->moved, 4);
        end(d);
        free(d);
}

/* Shards get ten times their load for half a minute, now this one and now that one. */
static void bursts_that_pass_by_themselves_move_little(void **state)
{
        (void)state;
        struct day *d = malloc(sizeof(*d));
        start(d, 3);
        d->spread_permille = 300;
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                d->rate[shard] = 50 + 5 * (shard % 8);
        for (uint64_t until_ms = d->now_ms + DAY; d->now_ms < until_ms;) {
                if (!draw(d, 180)) /* one in ten minutes */
                        d->burst_until_ms[draw(d, SHARDS)] = d->now_ms + 30000;
                step(d);
        }
        report(d, "a burst of half a minute every ten minutes, a day");
        assert_in_range(d->moved, 0, 100);
        assert_in_range(d->most_a_minute, 0, 6);
        end(d);
        free(d);
}

/* The worst case: the busy shards are others every two minutes, for a day. */
static void load_that_wanders_moves_a_few_shards_a_minute_at_most(void **state)
{
        (void)state;
        struct day *d = malloc(sizeof(*d));
        start(d, 4);
        d->spread_permille = 300;
        uint64_t next_ms = 0;
        for (uint64_t until_ms = d->now_ms + DAY; d->now_ms < until_ms;) {
                if (d->now_ms >= next_ms) {
                        for (uint32_t shard = 0; shard < SHARDS; shard++)
                                d->rate[shard] = draw(d, 8) ? 20 : 1000;
                        next_ms = d->now_ms + 2 * MINUTE;
                }
                step(d);
        }
        report(d, "other busy shards every two minutes, a day");
        assert_in_range(d->most_a_minute, 1, 6);
        end(d);
        free(d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(equal_load_with_noise_moves_nothing_in_a_day),
                cmocka_unit_test(three_busy_shards_are_spread_within_a_minute_and_stay),
                cmocka_unit_test(bursts_that_pass_by_themselves_move_little),
                cmocka_unit_test(load_that_wanders_moves_a_few_shards_a_minute_at_most),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
