/* Producing, owning, consuming: the hot path as calls that wait. */
#include "call.h"

/* --- producing --------------------------------------------------------------------------------------------------- */

struct store_submit submit_call(struct world *w, struct store_submission *items, uint32_t count)
{
        struct store_submit s = { .items = items, .items_count = count };
        (void)CALL(w, store_submit, &s, NULL);
        return s;
}

int submit_items(struct world *w, struct store_submission *items, uint32_t count)
{
        return submit_call(w, items, count).request.status;
}

static struct span submit_one(struct world *w, struct store_submission item)
{
        int r = submit_items(w, &item, 1);
        if (r != -ETIMEDOUT) {
                assert_int_equal(r, 0);
                assert_int_equal(item.status, 0);
        }
        return F(w, "%s", item.id);
}

static struct store_submission item_of(const char *key, const char *payload)
{
        return (struct store_submission){
                .envelope = { .key = T(key), .handler = T("h"), .payload = T(payload), .lane = LANE_NORMAL }
        };
}

struct span submit(struct world *w, const char *key, const char *payload)
{
        return submit_one(w, item_of(key, payload));
}

struct span submit_lane(struct world *w, const char *key, const char *payload, enum lane lane)
{
        struct store_submission item = item_of(key, payload);
        item.envelope.lane = lane;
        return submit_one(w, item);
}

struct span submit_delayed(struct world *w, const char *key, const char *payload, uint64_t delay_ms)
{
        struct store_submission item = item_of(key, payload);
        item.delay_ms = delay_ms;
        return submit_one(w, item);
}

struct span submit_reply(struct world *w, const char *key, const char *payload)
{
        struct store_submission item = item_of(key, payload);
        item.envelope.reply_ms = 60000;
        return submit_one(w, item);
}

/* --- owning ------------------------------------------------------------------------------------------------------ */

struct owner owner_of(uint32_t shard, uint64_t epoch, uint8_t who)
{
        struct owner o = { .lease = { .shard = shard, .epoch = epoch, .ttl_ms = TTL_MS } };
        memset(o.lease.nonce, who, sizeof(o.lease.nonce));
        return o;
}

static void keep_acquire(struct world *w, struct store_request *request)
{
        struct store_acquire *a = (struct store_acquire *)request;
        a->page.tasks = keep_tasks(w, a->page.tasks, a->page.tasks_count);
}

int acquire_full(struct world *w, struct owner *o, bool is_firm, uint64_t drain_ms)
{
        o->granted = (struct store_acquire){
                .lease = o->lease, .is_firm = is_firm, .drain_ms = drain_ms, .page_tasks = STORE_CALL_TASKS
        };
        int r = CALL(w, store_acquire, &o->granted, keep_acquire);
        if (!r && o->granted.grant == STORE_GRANTED)
                o->call = o->granted.call;
        return r;
}

int call_acquire(struct world *w, struct store_acquire *acquire)
{
        return CALL(w, store_acquire, acquire, keep_acquire);
}

int acquire(struct world *w, struct owner *o)
{
        return acquire_full(w, o, false, 0);
}

struct owner own(struct world *w, uint32_t shard, uint64_t epoch, uint8_t who)
{
        struct owner o = owner_of(shard, epoch, who);
        assert_int_equal(acquire(w, &o), 0);
        assert_int_equal(o.granted.grant, STORE_GRANTED);
        return o;
}

static void keep_advance(struct world *w, struct store_request *request)
{
        struct store_advance *a = (struct store_advance *)request;
        a->tasks = keep_tasks(w, a->tasks, a->tasks_count);
        a->controls = keep_array(w, a->controls, a->controls_count, sizeof(*a->controls));
        for (uint32_t i = 0; i < a->controls_count; i++) {
                a->controls[i].key = keep(w, a->controls[i].key);
                a->controls[i].id = keep(w, a->controls[i].id);
                a->controls[i].start = keep(w, a->controls[i].start);
                a->controls[i].data = keep(w, a->controls[i].data);
        }
}

struct store_advance advance_lanes(struct world *w, const struct owner *o, uint64_t call,
        const struct store_outcome *outcomes, uint32_t count, const uint32_t want[LANES])
{
        struct store_advance a = { .lease = o->lease,
                .call = call,
                .outcomes = outcomes,
                .outcomes_count = count,
                .want = { want[LANE_HIGH], want[LANE_NORMAL], want[LANE_LOW] },
                .calls_again = w->calls_again };
        (void)CALL(w, store_advance, &a, keep_advance);
        return a;
}

struct store_advance advance_call(struct world *w, const struct owner *o, uint64_t call,
        const struct store_outcome *outcomes, uint32_t count, uint32_t want)
{
        return advance_lanes(w, o, call, outcomes, count, (uint32_t[LANES]){ want, want, want });
}

struct store_advance advance(
        struct world *w, struct owner *o, const struct store_outcome *outcomes, uint32_t count, uint32_t want)
{
        struct store_advance a = advance_call(w, o, o->call + 1, outcomes, count, want);
        if (!a.request.status && a.verdict == STORE_OK)
                o->call++;
        return a;
}

struct store_advance advance_unrung(
        struct world *w, struct owner *o, const struct store_outcome *outcomes, uint32_t count, uint32_t want)
{
        w->calls_again = true;
        struct store_advance a = advance(w, o, outcomes, count, want);
        w->calls_again = false;
        assert_int_equal(a.verdict, STORE_OK);
        return a;
}

struct store_advance claim(struct world *w, struct owner *o, uint32_t want)
{
        struct store_advance a = advance(w, o, NULL, 0, want);
        assert_int_equal(a.request.status, 0);
        assert_int_equal(a.verdict, STORE_OK);
        return a;
}

struct store_advance claim_each(struct world *w, struct owner *o, uint32_t high, uint32_t normal, uint32_t low)
{
        struct store_advance a = advance_lanes(w, o, ++o->call, NULL, 0, (uint32_t[LANES]){ high, normal, low });
        assert_int_equal(a.request.status, 0);
        assert_int_equal(a.verdict, STORE_OK);
        return a;
}

struct store_advance settle(struct world *w, struct owner *o, struct store_outcome outcome)
{
        struct store_advance a = advance(w, o, &outcome, 1, 0);
        assert_int_equal(a.request.status, 0);
        assert_int_equal(a.verdict, STORE_OK);
        return a;
}

struct store_wake wake_call(struct world *w, const struct owner *o, uint64_t call, struct span name, uint32_t max)
{
        struct store_wake wake = { .lease = o->lease, .call = call, .name = name, .max = max };
        (void)CALL(w, store_wake, &wake, NULL);
        return wake;
}

enum store_verdict release(struct world *w, struct owner *o)
{
        struct store_release r = { .lease = o->lease, .call = o->call + 1 };
        if (CALL(w, store_release, &r, NULL) == 0 && r.verdict == STORE_OK)
                o->call++;
        return r.verdict;
}

struct store_renewal renew(struct world *w, const struct owner *o)
{
        struct store_renewal item = { .lease = o->lease };
        struct store_renew r = { .items = &item, .items_count = 1 };
        assert_int_equal(CALL(w, store_renew, &r, NULL), 0);
        return item;
}

uint64_t renew_version(struct world *w, const struct owner *o)
{
        struct store_renewal item = { .lease = o->lease };
        struct store_renew r = { .items = &item, .items_count = 1 };
        assert_int_equal(CALL(w, store_renew, &r, NULL), 0);
        return r.desired_version;
}

void forward_all(struct world *w, const struct owner *o)
{
        struct store_forward f = { .lease = o->lease };
        do {
                assert_int_equal(CALL(w, store_forward, &f, NULL), 0);
                assert_int_equal(f.verdict, STORE_OK);
        } while (f.has_more);
}

static void keep_in_flight(struct world *w, struct store_request *request)
{
        struct store_in_flight *i = (struct store_in_flight *)request;
        i->page.tasks = keep_tasks(w, i->page.tasks, i->page.tasks_count);
}

struct store_page in_flight_page(struct world *w, const struct owner *o, uint64_t after_seq, uint32_t size)
{
        struct store_in_flight i = { .lease = o->lease, .after_seq = after_seq, .page_tasks = size };
        assert_int_equal(CALL(w, store_in_flight, &i, keep_in_flight), 0);
        assert_int_equal(i.verdict, STORE_OK);
        return i.page;
}

struct store_ref ref(const struct store_task *task)
{
        return (struct store_ref){ .seq = task->seq,
                .id = task->envelope.id,
                .key = task->key,
                .handler = task->envelope.handler,
                .reply_ms = task->envelope.reply_ms };
}

struct store_outcome done(const struct store_task *task)
{
        return (struct store_outcome){ .kind = STORE_DONE, .task = ref(task), .refill = 1 };
}

struct store_outcome retry(const struct store_task *task, uint64_t delay_ms)
{
        return (struct store_outcome){ .kind = STORE_RETRY,
                .task = ref(task),
                .cost = COST_ATTEMPT,
                .error = T("not now"),
                .delay_ms = delay_ms };
}

struct store_outcome hold(const struct store_task *task)
{
        return (struct store_outcome){
                .kind = STORE_HOLD, .task = ref(task), .cost = COST_ATTEMPT, .error = T("gave up")
        };
}

struct store_outcome dead(const struct store_task *task, const char *reason)
{
        return (struct store_outcome){ .kind = STORE_DEAD,
                .task = ref(task),
                .cost = COST_ATTEMPT,
                .reason = T(reason),
                .error = T("no"),
                .refill = 1 };
}

struct store_outcome divert(const struct store_task *task)
{
        return (struct store_outcome){ .kind = STORE_DIVERT, .task = ref(task), .delay_ms = 60000 };
}

/* --- results ----------------------------------------------------------------------------------------------------- */

static void keep_consume(struct world *w, struct store_request *request)
{
        struct store_consume *c = (struct store_consume *)request;
        c->results = keep_array(w, c->results, c->results_count, sizeof(*c->results));
        for (uint32_t i = 0; i < c->results_count; i++) {
                c->results[i].id = keep(w, c->results[i].id);
                c->results[i].key = keep(w, c->results[i].key);
                c->results[i].handler = keep(w, c->results[i].handler);
                c->results[i].data = keep(w, c->results[i].data);
                keep_note(w, &c->results[i].note);
        }
}

struct store_consume consume(struct world *w, uint8_t who, uint32_t max, uint64_t lease_ms)
{
        struct store_consume c = { .lease_ms = lease_ms, .results_max = max };
        memset(c.consumer, who, sizeof(c.consumer));
        assert_int_equal(CALL(w, store_consume, &c, keep_consume), 0);
        return c;
}

bool commit_one(struct world *w, uint8_t who, uint64_t number)
{
        bool held = false;
        struct store_commit c = { .numbers = &number, .numbers_count = 1, .held = &held };
        memset(c.consumer, who, sizeof(c.consumer));
        assert_int_equal(CALL(w, store_commit, &c, NULL), 0);
        return held;
}

static void keep_reply(struct world *w, struct store_request *request)
{
        struct store_reply *r = (struct store_reply *)request;
        r->data = keep(w, r->data);
        r->reason = keep(w, r->reason);
        keep_note(w, &r->note);
}

struct store_reply reply(struct world *w, struct span id, uint64_t wait_ms)
{
        struct store_reply r = { .id = id, .wait_ms = wait_ms };
        assert_int_equal(CALL(w, store_reply, &r, keep_reply), 0);
        return r;
}
