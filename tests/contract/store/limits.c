/* Shares of limits: never more than the limit, whoever asks, dies or sets the clock. */
#include "call.h"
#include "store/app.h"
#include "store/limit_share.h"

#define LEASE_MS 1000
#define GRACE_MS 500

static struct store_limit rate_of(uint64_t rate, uint64_t period_ms, uint64_t burst)
{
        return (struct store_limit){
                .name = T("api"), .version = 1, .rate = rate, .period_ms = period_ms, .burst = burst, .values_max = 100
        };
}

static struct store_limit at_once(uint64_t concurrency)
{
        return (struct store_limit){
                .name = T("smtp"), .version = 1, .concurrency = concurrency, .grace_ms = GRACE_MS, .values_max = 100
        };
}

static int take_items(struct world *w, const struct store_limit *limit, uint8_t who, struct store_limit_item *items,
        uint32_t count, uint64_t *ret_version)
{
        struct store_limit_take take = { .limit = *limit, .lease_ms = LEASE_MS, .items = items, .items_count = count };
        memset(take.holder, who, sizeof(take.holder));
        int r = CALL(w, store_limit_take, &take, NULL);
        if (ret_version)
                *ret_version = take.used.version;
        return r;
}

static struct store_limit_item take(
        struct world *w, const struct store_limit *limit, uint8_t who, const char *value, uint64_t want)
{
        struct store_limit_item item = { .value = T(value), .want = want };
        int r = take_items(w, limit, who, &item, 1, NULL);
        assert_true(r == 0 || r == -ETIMEDOUT);
        return item;
}

static void keep_look(struct world *w, struct store_request *request)
{
        struct store_limit_look *look = (struct store_limit_look *)request;
        look->values = keep_array(w, look->values, look->listed, sizeof(*look->values));
        for (uint32_t i = 0; i < look->listed; i++)
                look->values[i].value = keep(w, look->values[i].value);
}

static struct store_limit_look look(struct world *w, const char *name)
{
        struct store_limit_look look = { .name = T(name), .page_values = 256 };
        assert_int_equal(CALL(w, store_limit_look, &look, keep_look), 0);
        return look;
}

/* --- rates ------------------------------------------------------------------------------------------------------- */

static void a_rate_gives_its_burst_and_then_its_rate(void **state)
{
        struct world *w = *state;
        struct store_limit limit = rate_of(10, 1000, 5);
        struct store_limit_item item = take(w, &limit, 1, "", 8);
        assert_int_equal(item.granted, 5);
        assert_int_equal(item.left_ms, LEASE_MS);
        assert_int_equal(item.retry_ms, 100);
        item = take(w, &limit, 2, "", 8); /* whoever asks */
        assert_int_equal(item.granted, 0);
        assert_int_equal(item.left_ms, 0);
        assert_int_equal(item.retry_ms, 100);
        world_step(w, 99);
        item = take(w, &limit, 2, "", 1);
        assert_int_equal(item.granted, 0);
        assert_int_equal(item.retry_ms, 1);
        world_step(w, 1);
        assert_int_equal(take(w, &limit, 2, "", 1).granted, 1);
        world_step(w, 250);
        assert_int_equal(take(w, &limit, 2, "", 9).granted, 2); /* and half a token stays */
        world_step(w, 50);
        assert_int_equal(take(w, &limit, 1, "", 9).granted, 1);
        world_step(w, 3600 * 1000);
        assert_int_equal(take(w, &limit, 1, "", 9).granted, 5);
}

static void values_are_apart(void **state)
{
        struct world *w = *state;
        struct store_limit limit = rate_of(1, 1000, 1);
        struct store_limit_item items[3] = { { .value = T("a"), .want = 1 }, { .value = T("b"), .want = 1 },
                { .value = T("a b:\n\x01"), .want = 1 } };
        assert_int_equal(take_items(w, &limit, 1, items, 3, NULL), 0);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(items[i].granted, 1);
        assert_int_equal(take(w, &limit, 1, "b", 1).granted, 0);
        assert_int_equal(take(w, &limit, 1, "c", 1).granted, 1);
        assert_int_equal(look(w, "api").values_count, 4);
}

/* What was counted by a clock that was then set back is not counted again; but nobody waits an hour for it. */
static void a_clock_that_is_set_back_gives_nothing_twice(void **state)
{
        struct world *w = *state;
        struct store_limit limit = rate_of(10, 1000, 5);
        assert_int_equal(take(w, &limit, 1, "", 5).granted, 5);
        world_step(w, 200);
        assert_int_equal(take(w, &limit, 1, "", 1).granted, 1);
        world_step(w, -200);
        assert_int_equal(take(w, &limit, 1, "", 5).granted, 1);
        world_step(w, 200);
        assert_int_equal(take(w, &limit, 1, "", 5).granted, 0);
        world_step(w, 100);
        assert_int_equal(take(w, &limit, 1, "", 5).granted, 1);
        world_step(w, -3600 * 1000);
        struct store_limit_item item = take(w, &limit, 1, "", 5);
        assert_int_equal(item.granted, 0);
        assert_int_equal(item.retry_ms, 100);
        world_step(w, 100);
        assert_int_equal(take(w, &limit, 1, "", 5).granted, 1);
}

struct grant {
        uint64_t at_ms, tokens;
};

/* Of all windows that begin and end with a grant. */
static void check_windows(const struct grant *grants, unsigned count, const struct store_limit *limit)
{
        for (unsigned i = 0; i < count; i++) {
                uint64_t sum = 0;
                for (unsigned j = i; j < count; j++) {
                        sum += grants[j].tokens;
                        uint64_t ms = grants[j].at_ms - grants[i].at_ms;
                        assert_true(sum * limit->period_ms <= ms * limit->rate + limit->burst * limit->period_ms);
                }
        }
}

static void a_rate_is_never_exceeded_in_any_time(void **state)
{
        struct world *w = *state;
        enum { STEPS = 250 };
        struct grant grants[STEPS];
        uint64_t now_ms = 0;
        uint64_t all = 0;
        struct store_limit limit = rate_of(7, 300, 4);
        srand(17);
        for (unsigned i = 0; i < STEPS; i++) {
                uint64_t ms = rand() % 4 ? (uint64_t)rand() % 60 : 0;
                world_step(w, (int64_t)ms);
                now_ms += ms;
                uint64_t granted = take(w, &limit, (uint8_t)(1 + rand() % 9), "", (uint64_t)rand() % 7).granted;
                grants[i] = (struct grant){ now_ms, granted };
                all += granted;
        }
        check_windows(grants, STEPS, &limit);
        assert_true(all * limit.period_ms > now_ms * limit.rate / 2); /* and it does not starve anybody */
}

/* --- concurrency ------------------------------------------------------------------------------------------------- */

static void a_share_is_taken_renewed_and_given_back(void **state)
{
        struct world *w = *state;
        struct store_limit limit = at_once(5);
        assert_int_equal(take(w, &limit, 1, "", 3).granted, 3);
        struct store_limit_item item = take(w, &limit, 2, "", 4);
        assert_int_equal(item.granted, 2);
        assert_int_equal(item.retry_ms, LEASE_MS + GRACE_MS);
        assert_int_equal(take(w, &limit, 1, "", 3).granted, 3); /* again: renewed, not more */
        assert_int_equal(take(w, &limit, 1, "", 1).granted, 1);
        assert_int_equal(take(w, &limit, 2, "", 4).granted, 4);
        assert_int_equal(take(w, &limit, 1, "", 0).granted, 0);
        assert_int_equal(take(w, &limit, 2, "", 9).granted, 5);
        struct store_limit_look l = look(w, "smtp");
        assert_int_equal(l.listed, 1);
        assert_int_equal(l.values[0].held, 5);
        assert_int_equal(l.values[0].holders, 1);
        assert_int_equal(take(w, &limit, 2, "", 0).granted, 0);
        assert_int_equal(look(w, "smtp").values_count, 0);
}

static void the_share_of_a_dead_holder_comes_back_after_lease_and_grace(void **state)
{
        struct world *w = *state;
        struct store_limit limit = at_once(2);
        assert_int_equal(take(w, &limit, 1, "", 2).granted, 2);
        world_step(w, LEASE_MS + GRACE_MS - 1);
        struct store_limit_item item = take(w, &limit, 2, "", 1);
        assert_int_equal(item.granted, 0);
        assert_int_equal(item.retry_ms, 1);
        world_step(w, 1);
        assert_int_equal(take(w, &limit, 2, "", 1).granted, 1);
        /* The first was only slow: what is left of its share is what nobody has taken. */
        assert_int_equal(take(w, &limit, 1, "", 2).granted, 1);
}

static void a_renewed_share_lasts(void **state)
{
        struct world *w = *state;
        struct store_limit limit = at_once(1);
        for (unsigned i = 0; i < 5; i++) {
                assert_int_equal(take(w, &limit, 1, "", 1).granted, 1);
                world_step(w, LEASE_MS - 1);
                assert_int_equal(take(w, &limit, 2, "", 1).granted, 0);
        }
}

static void an_answer_that_is_lost_costs_nothing(void **state)
{
        struct world *w = *state;
        struct store_limit limit = at_once(3);
        w->lose_next = true;
        (void)take(w, &limit, 1, "", 2);
        assert_int_equal(take(w, &limit, 1, "", 2).granted, 2);
        assert_int_equal(take(w, &limit, 2, "", 3).granted, 1);
}

static uint64_t take_as(struct world *w, const struct store_limit *limit, uint64_t call, uint64_t want)
{
        struct store_limit_item item = { .want = want };
        struct store_limit_take take = {
                .limit = *limit, .lease_ms = LEASE_MS, .call = call, .items = &item, .items_count = 1
        };
        memset(take.holder, 1, sizeof(take.holder));
        assert_int_equal(CALL(w, store_limit_take, &take, NULL), 0);
        return item.granted;
}

static void a_call_that_comes_late_takes_nothing_away(void **state)
{
        struct world *w = *state;
        struct store_limit limit = at_once(3);
        assert_int_equal(take_as(w, &limit, 6, 2), 2);
        assert_int_equal(take_as(w, &limit, 5, 0), 0); /* it was sent before, to give all back */
        assert_int_equal(take(w, &limit, 2, "", 3).granted, 1);
        assert_int_equal(take_as(w, &limit, 6, 2), 2); /* a repeat */
        assert_int_equal(take_as(w, &limit, 7, 0), 0);
        assert_int_equal(take(w, &limit, 2, "", 3).granted, 3);
}

/* The driver says what limit_share.c says, in whatever order they come.  Beyond what runs already, in sum no more is
 * granted than there is. */
static void nobody_holds_more_than_there_is(void **state)
{
        struct world *w = *state;
        enum { HOLDERS = 6, STEPS = 250, SHARES = 10 };
        struct store_limit limit = at_once(SHARES);
        uint64_t held[HOLDERS] = { 0 };
        uint64_t until[HOLDERS] = { 0 };
        uint64_t now_ms = UINT64_C(1000000);
        struct buffer record = { 0 };
        srand(23);
        for (unsigned i = 0; i < STEPS; i++) {
                uint64_t ms = rand() % 3 ? (uint64_t)rand() % 400 : 0;
                world_step(w, (int64_t)ms);
                now_ms += ms;
                unsigned who = (unsigned)rand() % HOLDERS;
                uint8_t nonce[STORE_NONCE_SIZE];
                memset(nonce, (int)who + 1, sizeof(nonce));
                struct limit_share model = { .limit = &limit,
                        .holder = nonce,
                        .lease_ms = LEASE_MS,
                        .now_ms = now_ms,
                        .want = (uint64_t)rand() % 8,
                        .close_ms = rand() % 20 ? 0 : (uint64_t)rand() % 300,
                        .record = { (const char *)record.data, record.size },
                        .is_record_there = record.size > 0 };
                model.keep = (uint64_t)rand() % (model.want + 1);
                limit_share_take(&model);
                struct store_limit_item item = { .want = model.want, .keep = model.keep, .close_ms = model.close_ms };
                assert_int_equal(take_items(w, &limit, (uint8_t)(who + 1), &item, 1, NULL), 0);
                assert_int_equal(item.granted, model.granted);
                assert_int_equal(item.left_ms, model.left_ms);
                assert_int_equal(item.retry_ms, model.retry_ms);
                assert_int_equal(item.closed_ms, model.closed_ms);
                assert_int_equal(item.has_waiting, model.has_waiting);
                assert_int_equal(item.is_over, model.is_over);
                buffer_free(&record);
                record = model.after;
                held[who] = item.granted;
                until[who] = now_ms + LEASE_MS;
                uint64_t sum = 0;
                for (unsigned h = 0; h < HOLDERS; h++)
                        sum += now_ms < until[h] ? held[h] : 0;
                if (item.granted > item.keep)
                        assert_true(sum <= SHARES);
        }
        buffer_free(&record);
}

static void a_closed_value_grants_nothing_to_anybody(void **state)
{
        struct world *w = *state;
        struct store_limit limits[] = { rate_of(10, 1000, 5), at_once(5) };
        for (unsigned i = 0; i < 2; i++) {
                struct store_limit_item item = { .value = T("a"), .want = 2 };
                assert_int_equal(take_items(w, &limits[i], 1, &item, 1, NULL), 0);
                assert_int_equal(item.granted, 2);
                item = (struct store_limit_item){ .value = T("a"), .want = 2, .keep = 1, .close_ms = 5000 };
                assert_int_equal(take_items(w, &limits[i], 1, &item, 1, NULL), 0);
                assert_int_equal(item.granted, i); /* a share in use is kept */
                assert_int_equal(item.closed_ms, 5000);
                /* The time of a server goes on meanwhile. */
                world_step(w, 4000);
                item = take(w, &limits[i], 2, "a", 1);
                assert_int_equal(item.granted, 0);
                assert_in_range(item.closed_ms, 1, 1000);
                assert_in_range(look(w, i ? "smtp" : "api").values[0].closed_ms, 1, item.closed_ms);
                assert_int_equal(take(w, &limits[i], 2, "b", 1).granted, 1);
                world_step(w, item.closed_ms);
                assert_int_equal(take(w, &limits[i], 2, "a", 1).granted, 1);
        }
}

/* --- definitions and values -------------------------------------------------------------------------------------- */

static void the_newest_definition_is_used(void **state)
{
        struct world *w = *state;
        struct store_limit old = at_once(2);
        struct store_limit new = at_once(5);
        struct store_limit_item item = { .value = T(""), .want = 9 };
        uint64_t version = 0;
        new.version = 7;
        assert_int_equal(take(w, &old, 1, "", 9).granted, 2);
        assert_int_equal(take(w, &new, 1, "", 9).granted, 5);
        assert_int_equal(take_items(w, &old, 1, &item, 1, &version), 0);
        assert_int_equal(item.granted, 5);
        assert_int_equal(version, 7);
        assert_int_equal(look(w, "smtp").limit.concurrency, 5);
        new.version = 8;
        new.concurrency = 1; /* fewer: those that are held stay, nobody gets more */
        assert_int_equal(take(w, &new, 2, "", 1).granted, 0);
        assert_int_equal(take(w, &new, 1, "", 9).granted, 1);
}

static void values_at_rest_are_forgotten_and_others_wait(void **state)
{
        struct world *w = *state;
        struct store_limit limit = rate_of(1, 1000, 1);
        limit.values_max = 3;
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(take(w, &limit, 1, F(w, "v%u", i).data, 1).granted, 1);
        struct store_limit_item item = take(w, &limit, 1, "v3", 1);
        assert_int_equal(item.granted, 0);
        assert_true(item.is_full);
        assert_true(item.retry_ms > 0 && item.retry_ms <= 1000);
        assert_int_equal(look(w, "api").refused, 1);
        assert_int_equal(take(w, &limit, 1, "v0", 1).granted, 0); /* which is known, and just has none left */
        assert_int_equal(look(w, "api").refused, 1);
        world_step(w, 1000);
        item = take(w, &limit, 1, "v3", 1);
        assert_int_equal(item.granted, 1);
        assert_false(item.is_full);
        assert_true(look(w, "api").values_count <= 3);
}

static void what_is_wrong_with_a_limit_is_said(void **state)
{
        struct world *w = *state;
        struct store_limit_item item = { .want = 1 };
        struct store_limit wrong[7];
        for (unsigned i = 0; i < 7; i++)
                wrong[i] = rate_of(10, 1000, 5);
        wrong[0].name = T("9");
        wrong[1].concurrency = 1;
        wrong[2].burst = 0;
        wrong[3].period_ms = 0;
        wrong[4].rate = STORE_LIMIT_MAX + 1;
        wrong[5].version = 0;
        wrong[6].values_max = 0;
        for (unsigned i = 0; i < 7; i++)
                assert_int_equal(take_items(w, &wrong[i], 1, &item, 1, NULL), -EINVAL);
        struct store_limit_look nothing = { .name = T("unknown"), .page_values = 1 };
        assert_int_equal(CALL(w, store_limit_look, &nothing, NULL), -ENOENT);
}

static void an_app_without_the_feature_has_no_limits(void **state)
{
        struct world *w = *state;
        struct store_limit limit = at_once(5);
        struct store_limit_item item = { .want = 1 };
        world_close(w);
        driver->record(w->place, "features", "names");
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
        assert_int_equal(take_items(w, &limit, 1, &item, 1, NULL), -ENOTSUP);
        struct span name = T("limits");
        struct store_app_set set = { .features = &name, .features_count = 1 };
        struct store_app_get get = { 0 };
        assert_int_equal(CALL(w, store_app_set, &set, NULL), 0);
        assert_int_equal(CALL(w, store_app_get, &get, NULL), 0); /* as a host does when it is rung */
        assert_int_equal(take_items(w, &limit, 1, &item, 1, NULL), 0);
}

const struct CMUnitTest limit_tests[] = {
        IN_WORLD(a_rate_gives_its_burst_and_then_its_rate),
        IN_WORLD(values_are_apart),
        IN_WORLD(a_closed_value_grants_nothing_to_anybody),
        IN_WORLD(a_clock_that_is_set_back_gives_nothing_twice),
        IN_WORLD(a_rate_is_never_exceeded_in_any_time),
        IN_WORLD(a_share_is_taken_renewed_and_given_back),
        IN_WORLD(the_share_of_a_dead_holder_comes_back_after_lease_and_grace),
        IN_WORLD(a_renewed_share_lasts),
        IN_WORLD(an_answer_that_is_lost_costs_nothing),
        IN_WORLD(a_call_that_comes_late_takes_nothing_away),
        IN_WORLD(nobody_holds_more_than_there_is),
        IN_WORLD(the_newest_definition_is_used),
        IN_WORLD(values_at_rest_are_forgotten_and_others_wait),
        IN_WORLD(what_is_wrong_with_a_limit_is_said),
        IN_WORLD(an_app_without_the_feature_has_no_limits),
};
GROUP(limit);
