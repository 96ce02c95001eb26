/* Which tasks may start under the app's limits: hosts and the limits' homes in one process, with a clock of the test's
 * own.  Hosts are killed, stopped and cut off; a limit is never exceeded, and is used. */
#include "check.h"

#include "limit_fixture.h"
#include "store/limit_share.h"

enum { HOSTS = 4, SEATS = 40, LIMITS = 2, STARTS_MAX = 20000, CALLS = 4 };

struct run {
        struct limit_hold hold;
        uint64_t end_ms;
        uint64_t killed_ms; /* from then on it is a stopped host's own, and does not count */
        bool is_there;
};

struct rig_call {
        struct limit *limit;
        struct store_limit_take take;
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        uint64_t arrive_ms, answer_ms;
        bool has_arrived, is_lost;
};

struct rig_host {
        struct limits l;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t until_ms; /* of the leases of its shards */
        uint64_t renewed_ms;
        uint64_t away_ms; /* it is stopped, or cut off, until then */
        bool is_stopped;
        struct run runs[SEATS];
        struct rig_call calls[CALLS];
        uint32_t waiting;
        uint32_t started;
};

struct rig {
        uint64_t now_ms;
        struct rig_host hosts[HOSTS];
        uint32_t hosts_count;
        struct buffer records[LIMITS];
        struct store_limit homes[LIMITS];
        uint64_t task_ms;
        uint32_t seats;
        uint64_t starts[STARTS_MAX];
        uint32_t starts_count;
        uint32_t most; /* that ran at once */
        bool has_key;
};

static const char *const names[LIMITS] = { "api", "smtp" };
static struct rig rig;

static void host_begin(struct rig_host *h, const struct limit_amount *amounts, uint32_t count)
{
        static uint8_t nonces;
        struct strings by = { 0 };
        memset(h->nonce, ++nonces, sizeof(h->nonce));
        h->l.ttl_ms = TTL_MS;
        h->until_ms = rig.now_ms + TTL_MS;
        h->renewed_ms = rig.now_ms;
        for (uint32_t i = 0; i < count; i++) {
                const char *name = names[amounts[i].rate ? 0 : 1];
                if (limits_find(&h->l, name)) /* two of a kind: the second is "api" */
                        name = names[0];
                limit_define(limits_ensure(&h->l, name), &amounts[i], NULL, GRACE_MS, 10);
                strings_add(&by, name);
        }
        limits_serve(&h->l, 0, &by);
        strings_free(&by);
}

static void rig_begin(uint32_t hosts, const struct limit_amount *amounts, uint32_t count)
{
        rig = (struct rig){ .now_ms = UINT64_C(1000000), .hosts_count = hosts, .task_ms = 30, .seats = 10 };
        for (uint32_t i = 0; i < hosts; i++) {
                host_begin(&rig.hosts[i], amounts, count);
                rig.hosts[i].waiting = 1000;
        }
}

static void rig_end(void)
{
        for (uint32_t i = 0; i < rig.hosts_count; i++)
                limits_free(&rig.hosts[i].l);
        for (unsigned i = 0; i < LIMITS; i++)
                buffer_free(&rig.records[i]);
}

/* --- the homes --- */

static void home_take(const struct rig_host *h, struct rig_call *call)
{
        unsigned at = strcmp(call->limit->name, names[0]) != 0;
        struct store_limit *home = &rig.homes[at];
        if (call->take.limit.version > home->version)
                *home = call->take.limit;
        for (uint32_t i = 0; i < call->take.items_count; i++) {
                struct store_limit_item *item = &call->items[i];
                struct limit_share share = { .limit = home,
                        .holder = h->nonce,
                        .lease_ms = call->take.lease_ms,
                        .now_ms = rig.now_ms,
                        .want = item->want,
                        .keep = item->keep,
                        .close_ms = item->close_ms,
                        .record = { (const char *)rig.records[at].data, rig.records[at].size },
                        .is_record_there = rig.records[at].size > 0 };
                limit_share_take(&share);
                item->granted = share.granted;
                item->left_ms = share.left_ms;
                item->retry_ms = share.retry_ms;
                item->closed_ms = share.closed_ms;
                item->has_waiting = share.has_waiting;
                item->is_over = share.is_over;
                if (share.is_changed) {
                        buffer_free(&rig.records[at]);
                        rig.records[at] = share.after;
                } else {
                        buffer_free(&share.after);
                }
        }
        call->take.used = *home;
}

static void calls_step(struct rig_host *h, bool is_cut)
{
        for (unsigned i = 0; i < CALLS; i++) {
                struct rig_call *call = &h->calls[i];
                if (!call->limit)
                        continue;
                call->is_lost |= is_cut;
                if (!call->has_arrived && rig.now_ms >= call->arrive_ms) {
                        call->has_arrived = true;
                        if (!call->is_lost || rand() % 2) /* The answer may be what is lost. */
                                home_take(h, call);
                }
                if (rig.now_ms < call->answer_ms + (call->is_lost ? 100 : 0))
                        continue;
                struct limit *limit = call->limit;
                call->limit = NULL;
                call->take.request.status = call->is_lost ? -1 : 0;
                if (call->is_lost)
                        limits_failed(&h->l, limit, &call->take, rig.now_ms);
                else
                        limits_answered(&h->l, limit, &call->take, rig.now_ms);
        }
}

static void calls_send(struct rig_host *h)
{
        for (unsigned i = 0; i < CALLS; i++) {
                struct rig_call *call = &h->calls[i];
                uint32_t count = 0;
                if (call->limit)
                        continue;
                call->limit = limits_next_call(&h->l, rig.now_ms, call->items, &count);
                if (!call->limit)
                        return;
                call->take = (struct store_limit_take){ .limit = call->limit->store,
                        .lease_ms = limit_lease_ms(&h->l, call->limit),
                        .items = call->items,
                        .items_count = count };
                call->has_arrived = call->is_lost = false;
                call->arrive_ms = rig.now_ms + (uint64_t)rand() % 3;
                call->answer_ms = call->arrive_ms + (uint64_t)rand() % 3;
        }
}

/* --- hosts --- */

static struct limit_task task_of(const struct rig_host *h)
{
        return (struct limit_task){ .until_ms = h->until_ms, .key = SPAN_TEXT("k"), .headers = SPAN_TEXT("") };
}

static void start(struct rig_host *h)
{
        struct limit_task task = task_of(h);
        char name[STORE_NAME_MAX + 1];
        struct run *run = h->runs;
        while (run < h->runs + SEATS && run->is_there)
                run++;
        if (run == h->runs + SEATS || rig.now_ms >= h->until_ms || !h->waiting)
                return;
        if (limits_start(&h->l, &task, rig.now_ms, &run->hold, name) != LIMIT_START)
                return;
        run->is_there = true;
        run->end_ms = rig.now_ms + rig.task_ms;
        run->killed_ms = UINT64_MAX;
        h->started++;
        if (rig.starts_count < STARTS_MAX)
                rig.starts[rig.starts_count++] = rig.now_ms;
}

static void feed(struct rig_host *h)
{
        struct limit_task task = task_of(h);
        uint32_t running = 0;
        uint32_t may_start = 0;
        for (unsigned i = 0; i < SEATS; i++)
                running += h->runs[i].is_there;
        limits_set_room(&h->l, 0, rig.seats > running ? rig.seats - running : 0);
        if (!limits_pass_is_due(&h->l, rig.now_ms))
                return;
        limits_pass_begin(&h->l);
        for (uint32_t i = 0; i < h->waiting && i < 20; i++)
                may_start += limits_look(&h->l, &task, rig.now_ms) == LIMIT_START;
        (void)limits_pass_end(&h->l, rig.now_ms);
        while (may_start--)
                start(h);
}

static void end_runs(struct rig_host *h, bool all)
{
        for (unsigned i = 0; i < SEATS; i++)
                if (h->runs[i].is_there && (all || rig.now_ms >= h->runs[i].end_ms)) {
                        limits_end(&h->l, &h->runs[i].hold);
                        h->runs[i].is_there = false;
                }
}

static void host_step(struct rig_host *h)
{
        bool is_away = rig.now_ms < h->away_ms;
        bool is_cut = is_away && !h->is_stopped;
        if (!is_away && rig.now_ms >= h->renewed_ms + TTL_MS / 3) {
                h->renewed_ms = rig.now_ms;
                h->until_ms = rig.now_ms + TTL_MS;
        }
        if (is_away && h->is_stopped)
                return;
        end_runs(h, rig.now_ms >= h->until_ms + GRACE_MS);
        calls_step(h, is_cut);
        feed(h);
        calls_send(h);
}

/* What runs now; not that of a stopped host whose lease and grace are over. */
static uint32_t count_running(void)
{
        uint32_t count = 0;
        for (uint32_t i = 0; i < rig.hosts_count; i++) {
                const struct rig_host *h = &rig.hosts[i];
                bool is_exempt = h->is_stopped && rig.now_ms >= h->until_ms + GRACE_MS;
                for (unsigned k = 0; k < SEATS && !is_exempt; k++)
                        count += h->runs[k].is_there;
        }
        return count;
}

static void pass_time(uint64_t ms, uint64_t concurrency)
{
        for (uint64_t i = 0; i < ms; i++) {
                rig.now_ms++;
                for (uint32_t k = 0; k < rig.hosts_count; k++)
                        host_step(&rig.hosts[k]);
                uint32_t running = count_running();
                rig.most = running > rig.most ? running : rig.most;
                if (concurrency)
                        assert_true(running <= concurrency);
        }
}

/* Of any two starts: no more between them than rate × t + burst. */
static void check_rate(uint64_t rate, uint64_t burst)
{
        for (uint32_t i = 0; i < rig.starts_count; i++)
                for (uint32_t k = i; k < rig.starts_count; k++) {
                        uint64_t allowed = rate * (rig.starts[k] - rig.starts[i]) + burst * 1000;
                        if ((uint64_t)(k - i + 1) * 1000 > allowed)
                                fail_msg("%u starts in %u ms", k - i + 1, (unsigned)(rig.starts[k] - rig.starts[i]));
                }
}

static void replace_host(struct rig_host *h, const struct limit_amount *amounts, uint32_t count)
{
        limits_free(&h->l);
        *h = (struct rig_host){ .waiting = 1000 };
        host_begin(h, amounts, count);
}

/* --- tests --- */

static void a_rate_is_used_and_never_exceeded(void **state)
{
        (void)state;
        static const struct {
                uint64_t rate, burst;
        } all[] = { { 100, 20 }, { 10, 2 }, { 2, 1 }, { 500, 30 } };
        srand(7);
        for (size_t i = 0; i < COUNT(all); i++) {
                struct limit_amount amount = rate_of(all[i].rate, all[i].burst);
                rig_begin(HOSTS, &amount, 1);
                pass_time(10000, 0);
                check_rate(all[i].rate, all[i].burst);
                if (rig.starts_count * 10 < all[i].rate * 10 * 9)
                        fail_msg("rate %u: %u starts in 10 s", (unsigned)all[i].rate, rig.starts_count);
                rig_end();
        }
}

static void hosts_die_stop_and_are_cut_off(struct limit_amount amount, unsigned seed)
{
        srand(seed);
        rig_begin(HOSTS, &amount, 1);
        for (unsigned i = 0; i < 40; i++) {
                struct rig_host *h = &rig.hosts[rand() % HOSTS];
                switch (rand() % 3) {
                case 0: /* Its runners end with it, its shares do not. */
                        replace_host(h, &amount, 1);
                        break;
                case 1:
                        h->is_stopped = true;
                        h->away_ms = rig.now_ms + (uint64_t)rand() % 3000;
                        break;
                default:
                        if (rig.now_ms >= h->away_ms) {
                                h->is_stopped = false;
                                h->away_ms = rig.now_ms + (uint64_t)rand() % 3000;
                        }
                }
                pass_time((uint64_t)rand() % 500, amount.concurrency);
        }
        if (amount.rate)
                check_rate(amount.rate, amount.burst);
        assert_true(rig.starts_count > 50);
        rig_end();
}

static void a_limit_is_never_exceeded_whatever_happens_to_hosts(void **state)
{
        (void)state;
        for (unsigned seed = 1; seed <= 8; seed++) {
                hosts_die_stop_and_are_cut_off(at_once(5), seed);
                hosts_die_stop_and_are_cut_off(rate_of(100, 20), seed);
        }
}

static void a_concurrency_is_used_and_no_host_goes_without(void **state)
{
        (void)state;
        for (uint64_t concurrency = 1; concurrency <= 5; concurrency += 4) {
                struct limit_amount amount = at_once(concurrency);
                srand(3);
                rig_begin(HOSTS, &amount, 1);
                pass_time(20000, concurrency);
                assert_int_equal(rig.most, concurrency);
                assert_true(rig.starts_count * rig.task_ms * 10 >= 20000 * concurrency * 8);
                for (unsigned i = 0; i < HOSTS; i++)
                        assert_true(rig.hosts[i].started > 10);
                rig_end();
        }
}

static void shares_of_a_dead_host_come_back_after_lease_and_grace(void **state)
{
        (void)state;
        struct limit_amount amount = at_once(2);
        srand(5);
        rig_begin(2, &amount, 1);
        rig.hosts[1].waiting = 0;
        pass_time(300, 2);
        rig.hosts[0].is_stopped = true; /* for good */
        rig.hosts[0].away_ms = UINT64_MAX;
        rig.hosts[1].waiting = 10;
        rig.hosts[1].l.is_stirred = true; /* as a task that comes does */
        pass_time(TTL_MS, 2);
        assert_int_equal(rig.hosts[1].started, 0);
        pass_time(TTL_MS, 2);
        assert_true(rig.hosts[1].started > 0);
        rig_end();
}

static void two_limits_are_taken_together_or_not_at_all(void **state)
{
        (void)state;
        struct limit_amount amounts[] = { at_once(1), at_once(1) };
        srand(11);
        rig_begin(2, amounts, 2);
        pass_time(10000, 1);
        assert_true(rig.starts_count > 100);
        assert_true(rig.hosts[0].started > 5 && rig.hosts[1].started > 5);
        rig_end();
        struct limit_amount mixed[] = { at_once(3), rate_of(50, 10) };
        rig_begin(HOSTS, mixed, 2);
        pass_time(10000, 3);
        check_rate(50, 10);
        assert_true(rig.starts_count > 400);
        rig_end();
}

static void what_a_handler_closes_is_closed_on_every_host(void **state)
{
        (void)state;
        struct limit_amount all[] = { rate_of(100, 20), at_once(3) };
        for (unsigned i = 0; i < 2; i++) {
                srand(13);
                rig_begin(HOSTS, &all[i], 1);
                pass_time(1000, 0);
                struct limit_task task = task_of(&rig.hosts[0]);
                assert_true(limits_close(&rig.hosts[0].l, &task, 5000, rig.now_ms));
                pass_time(1200, 0); /* others hear of it when they ask next */
                uint32_t before = rig.starts_count;
                pass_time(3700, 0);
                assert_int_equal(rig.starts_count, before);
                pass_time(2000, 0);
                assert_true(rig.starts_count > before);
                rig_end();
        }
        struct limits none = { 0 };
        struct limit_task task = { 0 };
        assert_false(limits_close(&none, &task, 5000, 1));
}

static void a_newer_definition_is_used_by_all(void **state)
{
        (void)state;
        struct limit_amount amount = at_once(4);
        srand(17);
        rig_begin(2, &amount, 1);
        pass_time(500, 4);
        amount.concurrency = 1;
        amount.version = 2;
        limit_define(limits_find(&rig.hosts[0].l, "smtp"), &amount, NULL, GRACE_MS, 10);
        pass_time(2000, 4); /* what runs ends */
        assert_int_equal(limits_find(&rig.hosts[1].l, "smtp")->store.concurrency, 1);
        pass_time(2000, 1);
        rig_end();
}

static void a_name_opens_when_its_bucket_has_room(void **state)
{
        (void)state;
        struct limit_amount amount = rate_of(1, 1);
        char name[STORE_NAME_MAX + 1] = "";
        struct limit_hold hold;
        srand(19);
        rig_begin(1, &amount, 1);
        struct limits *l = &rig.hosts[0].l;
        struct limit_task task = task_of(&rig.hosts[0]);
        task.is_to_go = true;
        assert_true(limits_name_opens(l, SPAN_TEXT("limit:api"), 8)); /* nothing is known of it */
        assert_true(limits_name_opens(l, SPAN_TEXT("limit:gone/x"), 8));
        assert_false(limits_name_opens(l, SPAN_TEXT("handler:api"), 8));
        assert_int_equal(limits_start(l, &task, rig.now_ms, &hold, name), LIMIT_AWAY);
        assert_string_equal(name, "limit:api");
        assert_false(limits_name_opens(l, SPAN_TEXT("limit:api"), 8)); /* before a pass has said how many */
        limits_pass_begin(l);
        assert_true(limits_pass_end(l, rig.now_ms));
        assert_true(limits_name_opens(l, SPAN_TEXT("limit:api"), 8));
        assert_false(limits_name_opens(l, SPAN_TEXT("limit:api"), 8)); /* one page is enough for it */
        rig_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_rate_is_used_and_never_exceeded),
                cmocka_unit_test(a_limit_is_never_exceeded_whatever_happens_to_hosts),
                cmocka_unit_test(a_concurrency_is_used_and_no_host_goes_without),
                cmocka_unit_test(shares_of_a_dead_host_come_back_after_lease_and_grace),
                cmocka_unit_test(two_limits_are_taken_together_or_not_at_all),
                cmocka_unit_test(what_a_handler_closes_is_closed_on_every_host),
                cmocka_unit_test(a_newer_definition_is_used_by_all),
                cmocka_unit_test(a_name_opens_when_its_bucket_has_room),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
