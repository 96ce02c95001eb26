#include "harness.h"

#include <inttypes.h>

#include "base/clock.h"

#define WAIT_S 30

/* --- the world --------------------------------------------------------------------------------------------------- */

struct waiting {
        struct world *w;
        bool is_done;
};

/* A request that the harness waits for: what is under it is copied by `keep` before the driver frees it. */
struct call {
        struct waiting *waiting;
        void (*keep)(struct world *w, struct store_request *request);
};
static struct call current;

static void on_done(struct store_request *request)
{
        assert_non_null(current.waiting);
        if (current.keep && !request->status)
                current.keep(current.waiting->w, request);
        current.waiting->is_done = true;
}

static void run_until(struct world *w, const bool *flag)
{
        uint64_t end_ns = clock_boot_ns() + WAIT_S * NS_PER_S;
        while (!*flag) {
                if (clock_boot_ns() > end_ns)
                        fail_msg("no answer within %d s", WAIT_S);
                (void)uv_run(&w->loop, UV_RUN_ONCE);
        }
}

static struct waiting prepare(struct world *w, struct store_request *request,
        void (*keep)(struct world *w, struct store_request *request), struct waiting *waiting)
{
        *waiting = (struct waiting){ .w = w };
        current = (struct call){ waiting, keep };
        request->done = on_done;
        return *waiting;
}

/* The rest of a call that has been started: done() must not have been called inside the start. */
static int finish(struct world *w, struct store_request *request, struct waiting *waiting)
{
        assert_false(waiting->is_done);
        run_until(w, &waiting->is_done);
        current = (struct call){ 0 };
        if (w->lose_next) {
                w->lose_next = false;
                request->status = -ETIMEDOUT;
        }
        return request->status;
}

#define CALL(w, start, struct_pointer, keep)                                                                           \
        ({                                                                                                             \
                struct waiting waiting_;                                                                               \
                (void)prepare((w), &(struct_pointer)->request, (keep), &waiting_);                                     \
                start((w)->store, (struct_pointer));                                                                   \
                finish((w), &(struct_pointer)->request, &waiting_);                                                    \
        })

static void on_shard(void *self, uint32_t shard)
{
        struct world *w = self;
        w->rang++;
        w->rang_shard = shard;
}

static void on_desired(void *self)
{
        ((struct world *)self)->rang_desired++;
}

static void on_look(void *self)
{
        ((struct world *)self)->looked++;
}

int world_open(struct world *w, struct store_options options, struct error *error)
{
        struct store_bell bell = { .shard = on_shard, .desired = on_desired, .look = on_look, .self = w };
        struct store_open open = { .options = options };
        struct waiting waiting;
        if (!open.options.app)
                open.options.app = "test";
        open.options.bell = &bell;
        driver->options(w->place, &open.options);
        (void)prepare(w, &open.request, NULL, &waiting);
        store_open(&w->loop, &open);
        int r = finish(w, &open.request, &waiting);
        w->store = open.store;
        if (error)
                *error = open.request.error;
        return r;
}

static void on_closed(void *self)
{
        *(bool *)self = true;
}

void world_close(struct world *w)
{
        bool is_closed = false;
        if (!w->store)
                return;
        store_close(w->store, on_closed, &is_closed);
        w->store = NULL;
        run_until(w, &is_closed);
}

static struct store_options usual(uint32_t shards)
{
        struct store_options options = { .shards = shards, .may_create = true, .sync = STORE_SYNC_NORMAL };
        memset(options.nonce, 1, sizeof(options.nonce));
        return options;
}

void world_reopen(struct world *w)
{
        world_close(w);
        assert_int_equal(world_open(w, usual(0), NULL), 0);
}

static int setup(void **state, uint32_t shards)
{
        struct world *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        (void)uv_loop_init(&w->loop);
        w->place = driver->create();
        struct error error;
        if (world_open(w, usual(shards), &error))
                fail_msg("%s", error.text);
        *state = w;
        return 0;
}

int world_setup(void **state)
{
        return setup(state, 1);
}

int world_setup_4(void **state)
{
        return setup(state, 4);
}

int world_teardown(void **state)
{
        struct world *w = *state;
        if (w->store)
                expect_sound(w);
        world_close(w);
        (void)uv_run(&w->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&w->loop), 0);
        driver->destroy(w->place);
        arena_free(w->memory);
        free(w);
        return 0;
}

void world_step(struct world *w, int64_t ms)
{
        driver->step_clock(w->place, ms);
}

static void on_tick(uv_timer_t *timer)
{
        (void)timer;
}

void world_wait(struct world *w, const unsigned *flag, unsigned value)
{
        uint64_t end_ns = clock_boot_ns() + WAIT_S * NS_PER_S;
        uv_timer_t tick;
        (void)uv_timer_init(&w->loop, &tick);
        (void)uv_timer_start(&tick, on_tick, 5, 5);
        while (*flag < value) {
                if (clock_boot_ns() > end_ns)
                        fail_msg("nothing happened within %d s", WAIT_S);
                (void)uv_run(&w->loop, UV_RUN_ONCE);
        }
        uv_close((uv_handle_t *)&tick, NULL);
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
}

struct span T(const char *text) {
        return (struct span){ text, strlen(text) };
}

struct span
F(struct world *w, const char *format, ...) {
        char text[512];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        return arena_copy(&w->memory, T(text));
}

struct span
key_of(struct world *w, uint32_t shard, unsigned number)
{
        for (unsigned i = 0;; i++) {
                struct span name = F(w, "key%u.%u", number, i);
                if (shard_of_key(name, 4) == shard)
                        return name;
        }
}

/* --- copies ------------------------------------------------------------------------------------------------------ */

static struct span keep(struct world *w, struct span bytes)
{
        return arena_copy(&w->memory, bytes);
}

static void keep_envelope(struct world *w, struct envelope *e)
{
        e->key = keep(w, e->key);
        e->handler = keep(w, e->handler);
        e->id = keep(w, e->id);
        e->headers = keep(w, e->headers);
        e->payload = keep(w, e->payload);
}

static void keep_note(struct world *w, struct task_note *note)
{
        note->events = keep(w, note->events);
        note->checkpoint = keep(w, note->checkpoint);
}

static void *keep_array(struct world *w, const void *array, size_t count, size_t size)
{
        void *copy = arena_take(&w->memory, count * size + 1);
        if (count)
                memcpy(copy, array, count * size);
        return copy;
}

static struct store_task *keep_tasks(struct world *w, const struct store_task *tasks, uint32_t count)
{
        struct store_task *kept = keep_array(w, tasks, count, sizeof(*tasks));
        for (uint32_t i = 0; i < count; i++) {
                keep_envelope(w, &kept[i].envelope);
                kept[i].key = keep(w, kept[i].key);
                keep_note(w, &kept[i].note);
        }
        return kept;
}

static void keep_listed(struct world *w, struct store_listed *listed)
{
        keep_envelope(w, &listed->envelope);
        listed->id = keep(w, listed->id);
        listed->key = keep(w, listed->key);
        listed->reason = keep(w, listed->reason);
        keep_note(w, &listed->note);
}

/* --- producing --------------------------------------------------------------------------------------------------- */

int submit_items(struct world *w, struct store_submission *items, uint32_t count)
{
        struct store_submit s = { .items = items, .items_count = count };
        return CALL(w, store_submit, &s, NULL);
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
        }
}

struct store_advance advance_call(struct world *w, const struct owner *o, uint64_t call,
        const struct store_outcome *outcomes, uint32_t count, uint32_t want)
{
        struct store_advance a = {
                .lease = o->lease, .call = call, .outcomes = outcomes, .outcomes_count = count, .want_tasks = want
        };
        (void)CALL(w, store_advance, &a, keep_advance);
        return a;
}

struct store_advance advance(
        struct world *w, struct owner *o, const struct store_outcome *outcomes, uint32_t count, uint32_t want)
{
        struct store_advance a = advance_call(w, o, o->call + 1, outcomes, count, want);
        if (!a.request.status && a.verdict == STORE_OK)
                o->call++;
        return a;
}

struct store_advance claim(struct world *w, struct owner *o, uint32_t want)
{
        struct store_advance a = advance(w, o, NULL, 0, want);
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

/* --- looking ----------------------------------------------------------------------------------------------------- */

struct store_counts counts(struct world *w, uint32_t shard)
{
        struct store_counts found;
        struct store_count c = { .first_shard = shard, .shards = 1, .counts = &found };
        assert_int_equal(CALL(w, store_count, &c, NULL), 0);
        assert_int_equal(c.counted, 1);
        assert_int_equal(found.submitted, found.queued[0] + found.queued[1] + found.queued[2] + found.delayed +
                                                  found.in_flight + found.parked + found.dead + found.done +
                                                  found.dropped);
        return found;
}

static void keep_list(struct world *w, struct store_request *request)
{
        struct store_list *l = (struct store_list *)request;
        l->tasks = keep_array(w, l->tasks, l->tasks_count, sizeof(*l->tasks));
        for (uint32_t i = 0; i < l->tasks_count; i++)
                keep_listed(w, &l->tasks[i]);
}

struct store_list list(struct world *w, uint32_t shard, enum store_state state)
{
        struct store_list l = { .shard = shard, .state = state };
        assert_int_equal(CALL(w, store_list, &l, keep_list), 0);
        return l;
}

void list_next(struct world *w, struct store_list *l)
{
        assert_int_equal(CALL(w, store_list, l, keep_list), 0);
}

uint32_t list_pages(struct world *w, uint32_t shard, enum store_state state, uint32_t size)
{
        struct store_list l = { .shard = shard, .state = state, .page_tasks = size };
        uint32_t count = 0;
        struct span seen[512];
        do {
                assert_int_equal(CALL(w, store_list, &l, keep_list), 0);
                assert_true(l.tasks_count <= size);
                for (uint32_t i = 0; i < l.tasks_count; i++) {
                        for (uint32_t j = 0; j < count; j++)
                                assert_false(span_is(seen[j], l.tasks[i].id));
                        assert_true(count < 512);
                        seen[count++] = l.tasks[i].id;
                }
        } while (!l.is_end);
        return count;
}

static void keep_find(struct world *w, struct store_request *request)
{
        struct store_find *f = (struct store_find *)request;
        if (!f->task)
                return;
        struct store_listed *copy = keep_array(w, f->task, 1, sizeof(*copy));
        keep_listed(w, copy);
        f->task = copy;
}

const struct store_listed *find(struct world *w, struct span id)
{
        struct store_find f = { .id = id };
        do {
                assert_int_equal(CALL(w, store_find, &f, keep_find), 0);
        } while (!f.is_end && !f.task);
        return f.task;
}

int cancel(struct world *w, struct span id, bool *ret_pending)
{
        const struct store_listed *task = find(w, id);
        if (!task)
                return -ENOENT;
        struct store_cancel c = { .id = id, .key = task->key, .state = task->state, .number = task->number };
        int r = CALL(w, store_cancel, &c, NULL);
        if (ret_pending)
                *ret_pending = c.is_pending;
        return r;
}

static void keep_keys(struct world *w, struct store_request *request)
{
        struct store_keys *k = (struct store_keys *)request;
        k->keys = keep_array(w, k->keys, k->keys_count, sizeof(*k->keys));
        for (uint32_t i = 0; i < k->keys_count; i++) {
                k->keys[i].key = keep(w, k->keys[i].key);
                k->keys[i].reason = keep(w, k->keys[i].reason);
                k->keys[i].head = keep(w, k->keys[i].head);
        }
}

struct store_key_info key(struct world *w, const char *name)
{
        struct store_keys k = { .key = T(name) };
        assert_int_equal(CALL(w, store_keys, &k, keep_keys), 0);
        assert_int_equal(k.keys_count, 1);
        return k.keys[0];
}

uint32_t keys_pages(struct world *w, uint32_t shard, uint32_t size)
{
        struct store_keys k = { .shard = shard, .page_keys = size };
        uint32_t count = 0;
        do {
                assert_int_equal(CALL(w, store_keys, &k, keep_keys), 0);
                for (uint32_t i = 0; i < k.keys_count; i++) {
                        assert_true(k.keys[i].state >= KEY_WAITING);
                        assert_true(k.keys[i].head.size > 0 && k.keys[i].reason.size > 0);
                }
                count += k.keys_count;
        } while (!k.is_end);
        return count;
}

int key_act(struct world *w, enum store_control_verb verb, const char *name)
{
        struct store_key_act a = { .verb = verb, .key = T(name), .reason = T("by the test") };
        return CALL(w, store_key_act, &a, NULL);
}

struct store_dead dead_act(struct world *w, enum store_dead_verb verb, struct span id, const char *handler)
{
        struct store_dead d = { .verb = verb, .ids = id.size ? &id : NULL, .ids_count = 1 };
        if (handler)
                d.handler = T(handler);
        assert_int_equal(CALL(w, store_dead, &d, NULL), 0);
        return d;
}

int call_desired_set(struct world *w, struct store_desired_set *set)
{
        return CALL(w, store_desired_set, set, NULL);
}

uint64_t desired_set(struct world *w, const char *name, const char *value)
{
        struct store_desired_set set = { .item = { .name = T(name), .value = T(value ? value : "") },
                .has_value = value != NULL };
        assert_int_equal(call_desired_set(w, &set), 0);
        return set.version;
}

static void keep_desired(struct world *w, struct store_request *request)
{
        struct store_desired_get *g = (struct store_desired_get *)request;
        g->items = keep_array(w, g->items, g->items_count, sizeof(*g->items));
        for (uint32_t i = 0; i < g->items_count; i++)
                g->items[i] = (struct store_desired){ keep(w, g->items[i].name), keep(w, g->items[i].value) };
}

struct store_desired_get desired_get(struct world *w)
{
        struct store_desired_get get = { 0 };
        assert_int_equal(CALL(w, store_desired_get, &get, keep_desired), 0);
        return get;
}

int status_put(struct world *w, uint8_t who, const char *document, uint64_t keep_ms)
{
        struct store_status_put put = { .document = T(document), .keep_ms = keep_ms };
        memset(put.nonce, who, sizeof(put.nonce));
        return CALL(w, store_status_put, &put, NULL);
}

static void keep_status(struct world *w, struct store_request *request)
{
        struct store_status_list *l = (struct store_status_list *)request;
        l->items = keep_array(w, l->items, l->items_count, sizeof(*l->items));
        for (uint32_t i = 0; i < l->items_count; i++)
                l->items[i].document = keep(w, l->items[i].document);
}

struct store_status_list status_list(struct world *w)
{
        struct store_status_list l = { 0 };
        assert_int_equal(CALL(w, store_status_list, &l, keep_status), 0);
        return l;
}

static void keep_fsck(struct world *w, struct store_request *request)
{
        struct store_fsck *f = (struct store_fsck *)request;
        f->report = keep(w, f->report);
}

void expect_sound(struct world *w)
{
        struct store_info info;
        store_info(w->store, &info);
        for (uint32_t i = 0; i < info.shards; i++) {
                struct store_fsck f = { .shard = i };
                assert_int_equal(CALL(w, store_fsck, &f, keep_fsck), 0);
                if (f.problems)
                        fail_msg("%s", f.report.data);
        }
}

const char *payloads(struct world *w, const struct store_task *tasks, uint32_t count)
{
        struct buffer b = { 0 };
        for (uint32_t i = 0; i < count; i++) {
                if (i)
                        buffer_put(&b, " ", 1);
                buffer_put(&b, tasks[i].envelope.payload.data, tasks[i].envelope.payload.size);
        }
        const char *text = keep(w, (struct span){ (const char *)b.data, b.size }).data;
        buffer_free(&b);
        return text;
}
