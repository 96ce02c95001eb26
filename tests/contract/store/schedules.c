/* Schedules: every time fires once, whoever owns the shard and whatever answer was lost. */
#include "store/schedules.h"
#include "call.h"

#define AT   UINT64_C(1763256000000)
#define HOUR UINT64_C(3600000)

static int set(struct world *w, struct store_schedule_set *s)
{
        return CALL(w, store_schedule_set, s, NULL);
}

static enum store_schedule_change put(
        struct world *w, const char *name, uint64_t version, const char *definition, uint64_t next_ms)
{
        struct store_schedule_set s = { .verb = SCHEDULE_PUT,
                .name = T(name),
                .version = version,
                .definition = T(definition),
                .next_ms = next_ms };
        assert_int_equal(set(w, &s), 0);
        return s.change;
}

static enum store_schedule_change act(struct world *w, enum store_schedule_verb verb, const char *name, uint64_t number)
{
        struct store_schedule_set s = { .verb = verb, .name = T(name), .version = number, .next_ms = number };
        assert_int_equal(set(w, &s), 0);
        return s.change;
}

static void keep_schedules(struct world *w, struct store_request *request)
{
        struct store_schedule_list *l = (struct store_schedule_list *)request;
        l->schedules = keep_array(w, l->schedules, l->schedules_count, sizeof(*l->schedules));
        for (uint32_t i = 0; i < l->schedules_count; i++) {
                l->schedules[i].name = keep(w, l->schedules[i].name);
                l->schedules[i].definition = keep(w, l->schedules[i].definition);
        }
}

static struct store_schedule_list schedules(struct world *w, const char *name)
{
        struct store_schedule_list l = { .name = T(name) };
        assert_int_equal(CALL(w, store_schedule_list, &l, keep_schedules), 0);
        return l;
}

static struct store_schedule schedule(struct world *w, const char *name)
{
        struct store_schedule_list l = schedules(w, name);
        assert_int_equal(l.schedules_count, 1);
        return l.schedules[0];
}

static struct store_fire fire_of(const char *name, uint64_t expected_ms, uint64_t next_ms)
{
        return (struct store_fire){ .name = T(name),
                .version = 1,
                .expected_ms = expected_ms,
                .next_ms = next_ms,
                .has_task = true,
                .task = { .key = T("k"), .handler = T("h"), .payload = T("run"), .lane = LANE_NORMAL } };
}

/* With a number of one's own; a lost answer is -ETIMEDOUT. */
static int fire_call(struct world *w, const struct owner *o, uint64_t call, struct store_fire *fires, uint32_t count,
        enum store_verdict *ret_verdict)
{
        struct store_fires f = { .lease = o->lease, .call = call, .fires = fires, .fires_count = count };
        int r = CALL(w, store_fires, &f, NULL);
        *ret_verdict = f.verdict;
        return r;
}

static struct store_fire fire(struct world *w, struct owner *o, struct store_fire f)
{
        enum store_verdict verdict;
        assert_int_equal(fire_call(w, o, ++o->call, &f, 1, &verdict), 0);
        assert_int_equal(verdict, STORE_OK);
        return f;
}

/* --- records ----------------------------------------------------------------------------------------------------- */

static void the_newest_definition_wins(void **state)
{
        struct world *w = *state;
        assert_int_equal(put(w, "nightly", 3, "0 3 * * *", AT), SCHEDULE_CHANGED);
        assert_int_equal(put(w, "nightly", 3, "0 3 * * *", AT + HOUR), SCHEDULE_SAME);
        assert_int_equal(put(w, "nightly", 3, "0 4 * * *", AT + HOUR), SCHEDULE_STALE);
        assert_int_equal(put(w, "nightly", 2, "0 2 * * *", AT + HOUR), SCHEDULE_STALE);
        struct store_schedule s = schedule(w, "nightly");
        assert_int_equal(s.version, 3);
        assert_int_equal(s.next_ms, AT);
        assert_true(span_is(s.definition, T("0 3 * * *")));
        assert_int_equal(s.state, SCHEDULE_ACTIVE);
        assert_int_equal(put(w, "nightly", 4, "0 4 * * *", STORE_NEVER), SCHEDULE_CHANGED);
        s = schedule(w, "nightly");
        assert_int_equal(s.next_ms, STORE_NEVER);
        assert_true(span_is(s.definition, T("0 4 * * *")));
        world_reopen(w);
        assert_int_equal(schedule(w, "nightly").version, 4);
}

static void the_same_definition_anew_keeps_the_time_that_is_due(void **state)
{
        struct world *w = *state;
        assert_int_equal(put(w, "nightly", 1, "a", AT), SCHEDULE_CHANGED);
        assert_int_equal(put(w, "nightly", 7, "a", AT + HOUR), SCHEDULE_CHANGED);
        struct store_schedule s = schedule(w, "nightly");
        assert_int_equal(s.version, 7);
        assert_int_equal(s.next_ms, AT);
        assert_int_equal(put(w, "nightly", 6, "b", AT + HOUR), SCHEDULE_STALE);
        /* Of one that was deleted nothing is due. */
        assert_int_equal(act(w, SCHEDULE_DELETE, "nightly", 8), SCHEDULE_CHANGED);
        struct store_schedule_list l = { .name = T("nightly"), .has_deleted = true };
        assert_int_equal(CALL(w, store_schedule_list, &l, keep_schedules), 0);
        assert_int_equal(l.schedules_count, 1);
        assert_int_equal(l.schedules[0].state, SCHEDULE_DELETED);
        assert_int_equal(l.schedules[0].version, 8);
        l = (struct store_schedule_list){ .has_deleted = true };
        assert_int_equal(CALL(w, store_schedule_list, &l, keep_schedules), 0);
        assert_int_equal(l.schedules_count, 1);
        assert_int_equal(schedules(w, "nightly").schedules_count, 0);
        assert_int_equal(put(w, "nightly", 9, "a", AT + HOUR), SCHEDULE_CHANGED);
        assert_int_equal(schedule(w, "nightly").next_ms, AT + HOUR);
}

static void what_was_deleted_stays_so_for_older_versions(void **state)
{
        struct world *w = *state;
        assert_int_equal(put(w, "a", 3, "x", AT), SCHEDULE_CHANGED);
        assert_int_equal(act(w, SCHEDULE_DELETE, "a", 2), SCHEDULE_STALE);
        assert_int_equal(act(w, SCHEDULE_DELETE, "a", 4), SCHEDULE_CHANGED);
        assert_int_equal(act(w, SCHEDULE_DELETE, "a", 4), SCHEDULE_SAME);
        assert_int_equal(schedules(w, "").schedules_count, 0);
        assert_int_equal(schedules(w, "a").schedules_count, 0);
        assert_int_equal(put(w, "a", 3, "x", AT), SCHEDULE_STALE);
        assert_int_equal(put(w, "a", 4, "x", AT), SCHEDULE_STALE);
        struct owner o = own(w, 0, 1, 1);
        assert_int_equal(o.granted.next_schedule_ms, STORE_NEVER);
        assert_int_equal(put(w, "a", 5, "x", AT), SCHEDULE_CHANGED);
        assert_int_equal(schedule(w, "a").version, 5);
}

static void a_paused_one_does_not_fire(void **state)
{
        struct world *w = *state;
        (void)put(w, "a", 1, "x", AT);
        assert_int_equal(act(w, SCHEDULE_PAUSE, "a", 0), SCHEDULE_CHANGED);
        assert_int_equal(act(w, SCHEDULE_PAUSE, "a", 0), SCHEDULE_SAME);
        struct owner o = own(w, 0, 1, 1);
        assert_int_equal(o.granted.next_schedule_ms, STORE_NEVER);
        assert_int_equal(fire(w, &o, fire_of("a", AT, AT + HOUR)).fired, STORE_FIRE_STALE);
        assert_int_equal(put(w, "a", 2, "y", AT + HOUR), SCHEDULE_CHANGED);
        assert_int_equal(schedule(w, "a").state, SCHEDULE_PAUSED);
        assert_int_equal(act(w, SCHEDULE_RESUME, "a", AT + 2 * HOUR), SCHEDULE_CHANGED);
        assert_int_equal(schedule(w, "a").next_ms, AT + 2 * HOUR);
        struct store_schedule_set unknown = { .verb = SCHEDULE_PAUSE, .name = T("b") };
        assert_int_equal(set(w, &unknown), -ENOENT);
        expect_sound(w);
}

static void schedules_are_listed_by_name_and_bounded(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < STORE_SCHEDULES_MAX; i++)
                assert_int_equal(put(w, F(w, "s%03u", (i * 7) % STORE_SCHEDULES_MAX).data, 1, "x", AT + i * HOUR),
                        SCHEDULE_CHANGED);
        struct store_schedule_set one_more = { .verb = SCHEDULE_PUT, .name = T("t"), .version = 1, .next_ms = AT };
        assert_int_equal(set(w, &one_more), -E2BIG);
        struct store_schedule_list l = schedules(w, "");
        assert_int_equal(l.schedules_count, STORE_SCHEDULES_MAX);
        for (unsigned i = 0; i < l.schedules_count; i++)
                assert_true(span_is(l.schedules[i].name, F(w, "s%03u", i)));
        assert_int_equal(own(w, 0, 1, 1).granted.next_schedule_ms, AT);
        assert_int_equal(act(w, SCHEDULE_DELETE, "s005", 1), SCHEDULE_CHANGED);
        assert_int_equal(set(w, &one_more), 0); /* what was deleted makes room */
        expect_sound(w);
}

static void what_is_wrong_with_a_schedule_is_said(void **state)
{
        struct world *w = *state;
        char large[STORE_SCHEDULE_DEFINITION + 1] = "";
        struct store_schedule_set good = { .verb = SCHEDULE_PUT,
                .name = T("a"),
                .version = 1,
                .next_ms = AT,
                .definition = { large, sizeof(large) - 1 } };
        struct store_schedule_set wrong[6];
        for (unsigned i = 0; i < 6; i++)
                wrong[i] = good;
        wrong[0].name = T("9");
        wrong[1].name = T("an-endless-name-of-more-than-forty-letters");
        wrong[2].version = 0;
        wrong[3].next_ms = AT + 1;
        wrong[4].definition.size++;
        wrong[5].shard = 1;
        for (unsigned i = 0; i < 6; i++)
                assert_int_equal(set(w, &wrong[i]), -EINVAL);
        assert_int_equal(set(w, &good), 0);
        world_close(w);
        driver->record(w->place, "features", "names");
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
        assert_int_equal(set(w, &good), -ENOTSUP);
}

static void a_loaded_one_is_as_it_was_elsewhere(void **state)
{
        struct world *w = *state;
        struct store_schedule_set load = { .verb = SCHEDULE_LOAD,
                .name = T("a"),
                .version = 3,
                .definition = T("x"),
                .next_ms = AT,
                .state = SCHEDULE_PAUSED,
                .last_ms = AT - HOUR,
                .fired = 7,
                .skipped = 2 };
        struct owner o = own(w, 0, 1, 1);
        assert_int_equal(set(w, &load), 0);
        assert_int_equal(load.change, SCHEDULE_CHANGED);
        assert_int_equal(claim(w, &o, 9).controls_count, 1); /* its owner is told */
        struct store_schedule s = schedule(w, "a");
        assert_true(s.state == SCHEDULE_PAUSED && s.version == 3 && s.next_ms == AT && s.last_ms == AT - HOUR);
        assert_true(s.last_seq == 0 && s.fired == 7 && s.skipped == 2 && span_is(s.definition, T("x")));
        /* Again, after it has gone on here: nothing is changed. */
        assert_int_equal(act(w, SCHEDULE_RESUME, "a", AT + HOUR), SCHEDULE_CHANGED);
        struct store_fire f = fire_of("a", AT + HOUR, AT + 2 * HOUR);
        f.version = 3;
        assert_int_equal(fire(w, &o, f).fired, STORE_FIRED);
        assert_int_equal(set(w, &load), 0);
        assert_int_equal(load.change, SCHEDULE_SAME);
        load.version = 2;
        assert_int_equal(set(w, &load), 0);
        assert_int_equal(load.change, SCHEDULE_STALE);
        s = schedule(w, "a");
        assert_true(s.state == SCHEDULE_ACTIVE && s.fired == 8 && s.last_ms == AT + HOUR && s.last_seq);
        /* An older one is replaced whole; its last task is not this one's. */
        load.version = 4;
        assert_int_equal(set(w, &load), 0);
        assert_int_equal(load.change, SCHEDULE_CHANGED);
        s = schedule(w, "a");
        assert_true(s.state == SCHEDULE_PAUSED && s.fired == 7 && s.last_ms == AT - HOUR && !s.last_seq);
        assert_int_equal(act(w, SCHEDULE_DELETE, "a", 5), SCHEDULE_CHANGED);
        assert_int_equal(set(w, &load), 0);
        assert_int_equal(load.change, SCHEDULE_STALE);
        load.version = 6;
        load.state = SCHEDULE_DELETED;
        assert_int_equal(set(w, &load), -EINVAL);
        load.state = SCHEDULE_ACTIVE;
        load.fired = TASK_NUMBER_MAX + 1;
        assert_int_equal(set(w, &load), -EINVAL);
        expect_sound(w);
}

/* --- firing ------------------------------------------------------------------------------------------------------ */

static void a_time_appends_its_task_and_sets_the_next(void **state)
{
        struct world *w = *state;
        (void)put(w, "nightly", 1, "x", AT);
        struct owner o = own(w, 0, 1, 1);
        assert_int_equal(o.granted.next_schedule_ms, AT);
        struct store_fire f = fire(w, &o, fire_of("nightly", AT, AT + HOUR));
        assert_int_equal(f.fired, STORE_FIRED);
        assert_int_equal(f.stored.next_ms, AT + HOUR);
        assert_int_equal(f.stored.last_ms, AT);
        assert_int_equal(f.stored.fired, 1);
        struct store_advance a = claim(w, &o, 9);
        assert_int_equal(a.tasks_count, 1);
        assert_true(span_is(a.tasks[0].envelope.id, T("nightly.1763256000-0")));
        assert_int_equal(a.tasks[0].seq, f.stored.last_seq);
        /* Again, or another time than the one that is stored: nothing. */
        f = fire(w, &o, fire_of("nightly", AT, AT + HOUR));
        assert_int_equal(f.fired, STORE_FIRE_STALE);
        assert_int_equal(f.stored.next_ms, AT + HOUR);
        assert_int_equal(fire(w, &o, fire_of("nightly", AT + 2 * HOUR, AT + 3 * HOUR)).fired, STORE_FIRE_STALE);
        assert_int_equal(fire(w, &o, fire_of("other", AT, AT + HOUR)).fired, STORE_FIRE_STALE);
        (void)put(w, "nightly", 2, "y", AT + HOUR);
        assert_int_equal(fire(w, &o, fire_of("nightly", AT + HOUR, AT + 2 * HOUR)).fired, STORE_FIRE_STALE);
        assert_int_equal(claim(w, &o, 9).tasks_count, 0);
        struct store_fire last = fire_of("nightly", AT + HOUR, STORE_NEVER);
        last.version = 2;
        assert_int_equal(fire(w, &o, last).fired, STORE_FIRED);
        assert_int_equal(own(w, 0, 2, 1).granted.next_schedule_ms, STORE_NEVER);
        expect_sound(w);
}

static void a_lost_answer_fires_nothing_twice(void **state)
{
        struct world *w = *state;
        enum store_verdict verdict;
        (void)put(w, "a", 1, "x", AT);
        (void)put(w, "b", 1, "x", AT);
        struct owner o = own(w, 0, 1, 1);
        struct store_fire fires[2] = { fire_of("a", AT, AT + HOUR), fire_of("b", AT, AT + HOUR) };
        fires[1].has_task = false;
        w->lose_next = true;
        assert_int_equal(fire_call(w, &o, o.call + 1, fires, 2, &verdict), -ETIMEDOUT);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(fire_call(w, &o, o.call + 1, fires, 2, &verdict), 0);
                assert_int_equal(verdict, STORE_OK);
                assert_int_equal(fires[0].fired, STORE_FIRED);
                assert_int_equal(fires[1].fired, STORE_FIRE_SKIPPED);
                assert_int_equal(fires[0].stored.fired, 1);
                assert_int_equal(fires[1].stored.skipped, 1);
        }
        assert_int_equal(fire_call(w, &o, o.call + 3, fires, 2, &verdict), 0);
        assert_int_equal(verdict, STORE_FENCED);
        o.call++;
        assert_int_equal(claim(w, &o, 9).tasks_count, 1);
}

/* The first owner's call arrives late, or its answer is lost; the second fires what is stored. */
static void a_takeover_fires_each_time_once(void **state)
{
        struct world *w = *state;
        enum store_verdict verdict;
        (void)put(w, "a", 1, "x", AT);
        struct owner first = own(w, 0, 1, 1);
        for (uint64_t round = 0; round < 8; round++) {
                uint64_t at_ms = AT + round * HOUR;
                bool is_lost = round % 2;
                struct store_fire f = fire_of("a", at_ms, at_ms + HOUR);
                if (is_lost) {
                        w->lose_next = true;
                        assert_int_equal(fire_call(w, &first, first.call + 1, &f, 1, &verdict), -ETIMEDOUT);
                }
                world_step(w, TTL_MS + 1);
                struct owner second = own(w, 0, 2 + round, (uint8_t)(2 + round));
                if (!is_lost) {
                        assert_int_equal(fire_call(w, &first, first.call + 1, &f, 1, &verdict), 0);
                        assert_int_equal(verdict, STORE_FENCED);
                }
                /* Neither the number of the call nor the epoch alone is the fence. */
                struct owner stranger = second;
                memset(stranger.lease.nonce, 99, sizeof(stranger.lease.nonce));
                assert_int_equal(fire_call(w, &stranger, second.call + 1, &f, 1, &verdict), 0);
                assert_int_equal(verdict, STORE_FENCED);
                uint64_t due_ms = schedule(w, "a").next_ms;
                assert_int_equal(second.granted.next_schedule_ms, due_ms);
                assert_int_equal(due_ms, is_lost ? at_ms + HOUR : at_ms);
                f = fire_of("a", at_ms, at_ms + HOUR);
                assert_int_equal(fire(w, &second, f).fired, is_lost ? STORE_FIRE_STALE : STORE_FIRED);
                first = second;
        }
        struct store_advance a = claim(w, &first, 20);
        assert_int_equal(a.tasks_count, 8);
        for (unsigned i = 0; i < 8; i++)
                assert_true(span_is(a.tasks[i].envelope.id, F(w, "a.%u-0", (unsigned)(AT / 1000 + i * 3600))));
        assert_int_equal(schedule(w, "a").fired, 8);
        expect_sound(w);
}

static void a_time_is_skipped_while_the_last_task_is_alive(void **state)
{
        struct world *w = *state;
        (void)put(w, "a", 1, "x", AT);
        struct owner o = own(w, 0, 1, 1);
        struct store_fire f = fire_of("a", AT, AT + HOUR);
        f.unless_alive = true;
        assert_int_equal(fire(w, &o, f).fired, STORE_FIRED);
        for (unsigned i = 1; i <= 4; i++) { /* queued, in flight, parked, over */
                f = fire_of("a", AT + i * HOUR, AT + (i + 1) * HOUR);
                f.unless_alive = true;
                struct store_fire said = fire(w, &o, f);
                assert_int_equal(said.fired, i < 4 ? STORE_FIRE_SKIPPED : STORE_FIRED);
                assert_int_equal(said.stored.next_ms, AT + (i + 1) * HOUR);
                if (i == 1) {
                        assert_int_equal(claim(w, &o, 9).tasks_count, 1);
                } else if (i == 2) {
                        struct store_page page = in_flight_page(w, &o, 0, 9);
                        (void)settle(w, &o, retry(&page.tasks[0], 5000));
                } else if (i == 3) {
                        world_step(w, 5000);
                        struct store_advance a = claim(w, &o, 9);
                        assert_int_equal(a.tasks_count, 1);
                        (void)settle(w, &o, done(&a.tasks[0]));
                }
        }
        assert_int_equal(schedule(w, "a").skipped, 3);
        assert_int_equal(schedule(w, "a").fired, 2);
        f = fire_of("a", AT + 5 * HOUR, AT + 6 * HOUR); /* which may overlap */
        assert_int_equal(fire(w, &o, f).fired, STORE_FIRED);
        assert_int_equal(claim(w, &o, 9).tasks_count, 2);
}

static void firing_is_exempt_from_the_limit_of_the_backlog(void **state)
{
        struct world *w = *state;
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .backlog_max = 1 }, NULL), 0);
        (void)submit(w, "k", "1");
        (void)put(w, "a", 1, "x", AT);
        struct owner o = own(w, 0, 1, 1);
        assert_int_equal(fire(w, &o, fire_of("a", AT, AT + HOUR)).fired, STORE_FIRED);
        expect_tasks(w, claim(w, &o, 9), "1 run");
}

static void the_owner_is_told_of_changes(void **state)
{
        struct world *w = *state;
        (void)put(w, "a", 1, "x", AT); /* nobody owns it: its owner will look */
        struct owner o = own(w, 0, 1, 1);
        assert_int_equal(claim(w, &o, 9).controls_count, 0);
        unsigned rang = w->rang;
        (void)put(w, "b", 1, "x", AT);
        world_wait(w, &w->rang, rang + 1);
        struct store_advance a = claim(w, &o, 9);
        assert_int_equal(a.controls_count, 1);
        assert_int_equal(a.controls[0].verb, CONTROL_SCHEDULES);
        assert_true(span_is(a.controls[0].key, T("b")));
        assert_int_equal(key(w, "b").state, KEY_FREE); /* it is no key */
        (void)put(w, "b", 1, "x", AT);
        assert_int_equal(claim(w, &o, 9).controls_count, 0);
        expect_sound(w);
}

const struct CMUnitTest schedule_tests[] = {
        IN_WORLD(the_newest_definition_wins),
        IN_WORLD(the_same_definition_anew_keeps_the_time_that_is_due),
        IN_WORLD(what_was_deleted_stays_so_for_older_versions),
        IN_WORLD(a_paused_one_does_not_fire),
        IN_WORLD(schedules_are_listed_by_name_and_bounded),
        IN_WORLD(what_is_wrong_with_a_schedule_is_said),
        IN_WORLD(a_loaded_one_is_as_it_was_elsewhere),
        IN_WORLD(a_time_appends_its_task_and_sets_the_next),
        IN_WORLD(a_lost_answer_fires_nothing_twice),
        IN_WORLD(a_takeover_fires_each_time_once),
        IN_WORLD(a_time_is_skipped_while_the_last_task_is_alive),
        IN_WORLD(firing_is_exempt_from_the_limit_of_the_backlog),
        IN_WORLD(the_owner_is_told_of_changes),
};
GROUP(schedule);
