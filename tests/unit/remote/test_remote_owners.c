/* Tasks that workers outside run, when their shard changes hands, and what workers say through another host. */
#include "remote_rig.h"

/* What an owner before us has counted stands in the history. */
static void silences_are_counted_over_owners(void **state)
{
        (void)state;
        static const struct {
                const char *events;
                uint32_t silences;
        } cases[] = {
                { "event:1 interruption its worker fell silent, after 3s\nevent:2 interruption its worker fell "
                  "silent\n",
                        2 },
                { "event:1 interruption its worker fell silent\nevent:2 attempt refused\n", 0 },
                { "event:1 interruption its worker fell silent\nevent:2 waited it was about to start, and did not\n",
                        1 },
                { "event:1 attempt x\nevent:2 crash its worker fell silent, as those before it\n", 1 },
                { "event:1 interruption its worker fell silent\nevent:2 interruption its host died\n", 0 },
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct world w;
                world_own(&w);
                hand_task(&w, 1, "k")->note.events = rig_span(cases[i].events);
                call_store(&w);
                assert_int_equal(window_find(&w.shard->window, SPAN_TEXT("k"), 1)->silences, cases[i].silences);
                world_close(&w);
        }
}

static void a_new_owner_waits_for_the_worker_of_the_old_one(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_open(&w);
        hand_lent(&w, 1, "k", "worker/7.3/zoe", 2000);
        hand_task(&w, 2, "k");
        hand_task(&w, 3, "l");
        own_shard(&w);
        assert_int_equal(w.shard->lent, 1);
        ask_now(&w, &a, "alice");
        call_store(&w);
        assert_string_equal(a.id, "l"); /* nobody starts key k */
        struct work_report r = { .kind = REPORT_HEARTBEAT, .fence = { 7, 3, 1 } };
        w.now_ms += 1000;
        assert_int_equal(say_report(&w, &t, "k", r), WORK_NONE);
        assert_true(span_is(call_telling(&w, 1, STORE_START)->holder, SPAN_TEXT("worker/7.3/zoe")));
        answer_call(&w, STORE_OK);
        assert_true(t.is_done);
        r = (struct work_report){ .kind = REPORT_OUTCOME, .outcome = OUTCOME_DONE, .fence = { 7, 3, 1 } };
        assert_int_equal(say_report(&w, &t, "k", r), WORK_NONE);
        call_store(&w);
        assert_int_equal(t.saying.verdict, WORK_TAKEN);
        world_close(&w);
}

static void a_new_owner_finds_a_silence_that_is_over(void **state)
{
        (void)state;
        struct world w;
        world_open(&w);
        hand_lent(&w, 1, "k", "worker/7.3/zoe", 0);
        own_shard(&w);
        turn(&w);
        const struct store_outcome *o = call_telling(&w, 1, STORE_INTERRUPTED);
        assert_int_equal(o->cost, COST_INTERRUPTION);
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* Held by a person meanwhile: what the worker has stays where it is, the rest goes back. */
static void a_lent_task_is_adopted_though_its_key_waits(void **state)
{
        (void)state;
        struct world w;
        world_open(&w);
        hand_lent(&w, 1, "k", "worker/7.3/zoe", 2000);
        hand_task(&w, 2, "k");
        w.tasks[0].is_key_waiting = w.tasks[1].is_key_waiting = true;
        own_shard(&w);
        assert_int_equal(w.shard->lent, 1);
        send_call(&w);
        assert_null(outcome_of(&w, 1, STORE_DIVERT));
        assert_non_null(outcome_of(&w, 2, STORE_DIVERT));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* It runs, whoever gave it out. */
static void a_lent_task_that_is_adopted_counts_against_its_limit(void **state)
{
        (void)state;
        struct world w;
        struct limits limits = { .ttl_ms = RIG_TTL_MS };
        struct limit_amount slots = { .version = 1, .concurrency = 1 };
        static char *names[] = { "x" };
        world_open(&w);
        w.dispatch.routes.limits = &limits;
        limit_define(limits_ensure(&limits, "x"), &slots, NULL, 0, 10);
        limits_serve(&limits, 0, &(struct strings){ names, 1 });
        hand_lent(&w, 1, "k", "worker/7.3/zoe", 2000);
        own_shard(&w);
        assert_int_equal(w.shard->lent, 1);
        assert_non_null(limits.buckets);
        assert_int_equal(limits.buckets->in_use, 1);
        turn(&w);
        pass(&w, 3000); /* the worker is silent */
        assert_int_equal(w.shard->lent, 0);
        assert_int_equal(limits.buckets->in_use, 0);
        send_call(&w);
        answer_call(&w, STORE_OK);
        w.dispatch.routes.limits = NULL;
        world_close(&w);
        limits_free(&limits);
}

static void a_shard_is_left_though_workers_have_its_tasks(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct asked b;
        struct told t;
        world_give(&w, &a);
        hand_task(&w, 2, "l");
        call_store(&w);
        ask_now(&w, &b, "bob");
        assert_non_null(w.shard->starts_waiting);
        shard_leave(w.shard, w.now_ms);
        /* What has not been handed out is taken back. */
        remotes_recall(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("k"), 1), w.now_ms);
        remotes_recall(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("l"), 2), w.now_ms);
        turn(&w);
        (void)call_telling(&w, 2, STORE_INTERRUPTED);
        assert_null(outcome_of(&w, 1, STORE_INTERRUPTED));
        answer_call(&w, STORE_OK);
        assert_false(b.is_done);
        assert_int_equal(shard_next_call(w.shard, false, w.now_ms), SHARD_CALL_RELEASE);
        struct store_release release;
        shard_fill_release(w.shard, &release, w.now_ms);
        shard_released(w.shard);
        remotes_stop_task(&w.handlers, window_find(&w.shard->window, SPAN_TEXT("k"), 1), w.now_ms);
        turn(&w);
        assert_null(w.handlers.remotes.all);
        assert_int_equal(w.shard->lent, 0);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_ELSEWHERE);
        world_close(&w);
}

/* The lease is lost before the outcome is durable: whoever said it is not told that it was taken. */
static void an_outcome_that_was_not_recorded_is_not_confirmed(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        struct told t;
        world_give(&w, &a);
        assert_int_equal(say(&w, &t, &a, REPORT_OUTCOME, OUTCOME_DONE), WORK_NONE);
        send_call(&w);
        answer_call(&w, STORE_FENCED);
        turn(&w);
        assert_true(t.is_done);
        assert_int_equal(t.saying.verdict, WORK_UNKNOWN);
        world_close(&w);
}

static void obey(struct world *w, enum store_control_verb verb, const char *id, uint64_t seq, const char *data)
{
        struct store_control control = { .verb = verb, .id = rig_span(id), .seq = seq, .data = rig_span(data) };
        remotes_obey(&w->handlers, w->shard, &control, w->now_ms);
}

static void what_came_through_another_host_is_applied_once(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_give(&w, &a);
        w.now_ms += 2000;
        obey(&w, CONTROL_HEARTBEAT, "k", 1, "{\"fence\":\"40.1.1\"}");
        (void)call_telling(&w, 1, STORE_START);
        answer_call(&w, STORE_OK);
        obey(&w, CONTROL_OUTCOME, "k", 1, "not JSON");
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.2.1\",\"outcome\":\"done\"}");
        obey(&w, CONTROL_OUTCOME, "other", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"done\"}");
        assert_int_equal(w.shard->lent, 1);
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"done\"}");
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"reject\"}");
        (void)call_telling(&w, 1, STORE_DONE);
        assert_null(outcome_of(&w, 1, STORE_DEAD));
        answer_call(&w, STORE_OK);
        world_close(&w);
}

/* Said in time, and read with the call that told of the silence. */
static void an_outcome_that_was_in_time_counts_if_nobody_has_started_the_task_since(void **state)
{
        (void)state;
        struct world w;
        struct asked a;
        world_give(&w, &a);
        pass(&w, TTL_MS);
        call_store(&w);
        obey(&w, CONTROL_OUTCOME, "k", 1, "{\"fence\":\"40.1.1\",\"outcome\":\"done\"}");
        (void)call_telling(&w, 1, STORE_DONE);
        answer_call(&w, STORE_OK);
        /* But not if somebody has. */
        give(&w, &a, 2, "l");
        pass(&w, TTL_MS);
        struct asked b;
        ask(&w, &b, "bob", 1000);
        call_store(&w);
        turn(&w);
        call_store(&w);
        assert_string_equal(b.id, "l");
        obey(&w, CONTROL_OUTCOME, "l", 2, "{\"fence\":\"40.2.2\",\"outcome\":\"done\"}");
        assert_int_equal(w.shard->lent, 1);
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(silences_are_counted_over_owners),
                cmocka_unit_test(a_new_owner_waits_for_the_worker_of_the_old_one),
                cmocka_unit_test(a_new_owner_finds_a_silence_that_is_over),
                cmocka_unit_test(a_lent_task_is_adopted_though_its_key_waits),
                cmocka_unit_test(a_lent_task_that_is_adopted_counts_against_its_limit),
                cmocka_unit_test(a_shard_is_left_though_workers_have_its_tasks),
                cmocka_unit_test(an_outcome_that_was_not_recorded_is_not_confirmed),
                cmocka_unit_test(what_came_through_another_host_is_applied_once),
                cmocka_unit_test(an_outcome_that_was_in_time_counts_if_nobody_has_started_the_task_since),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
