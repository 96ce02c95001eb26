#include "call.h"

#include "base/clock.h"

#define WAIT_S 30

/* --- the world --------------------------------------------------------------------------------------------------- */

/* A request that the harness waits for: what is under it is copied by `copy` before the driver frees it. */
struct call {
        struct call_waiting *waiting;
        void (*copy)(struct world *w, struct store_request *request);
};
static struct call current;

static void on_done(struct store_request *request)
{
        assert_non_null(current.waiting);
        if (current.copy && !request->status)
                current.copy(current.waiting->w, request);
        current.waiting->is_done = true;
}

static void run_until(struct world *w, const bool *flag)
{
        uint64_t end_ns = clock_boot_ns() + WAIT_S * NS_PER_S;
        for (unsigned turn = 1; !*flag; turn++) {
                if (clock_boot_ns() > end_ns)
                        fail_msg("no answer within %d s", WAIT_S);
                (void)uv_run(&w->loop, UV_RUN_ONCE);
                if (w->on_turn)
                        w->on_turn(w, turn);
        }
}

struct call_waiting call_prepare(struct world *w, struct store_request *request,
        void (*copy)(struct world *w, struct store_request *request), struct call_waiting *waiting)
{
        *waiting = (struct call_waiting){ .w = w };
        current = (struct call){ waiting, copy };
        request->done = on_done;
        return *waiting;
}

int call_finish(struct world *w, struct store_request *request, struct call_waiting *waiting)
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

static void on_mail(void *self)
{
        ((struct world *)self)->rang_mail++;
}

static void on_wanting(void *self)
{
        ((struct world *)self)->rang_wanting++;
}

static void on_room(void *self, uint32_t shard)
{
        struct world *w = self;
        w->rang_room++;
        w->rang_shard = shard;
}

static void on_look(void *self)
{
        ((struct world *)self)->looked++;
}

int world_open(struct world *w, struct store_options options, struct error *error)
{
        struct store_bell bell = { .shard = on_shard,
                .desired = on_desired,
                .mail = on_mail,
                .wanting = on_wanting,
                .room = on_room,
                .look = on_look,
                .self = w };
        struct store_open open = { .options = options };
        struct call_waiting waiting;
        if (!open.options.app)
                open.options.app = "test";
        if (w->is_client)
                bell = (struct store_bell){ .room = on_room, .look = on_look, .self = w };
        open.options.bell = &bell;
        driver->options(w->place, &open.options);
        (void)call_prepare(w, &open.request, NULL, &waiting);
        store_open(&w->loop, &open);
        int r = call_finish(w, &open.request, &waiting);
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
        while (*flag < value && clock_boot_ns() < end_ns)
                (void)uv_run(&w->loop, UV_RUN_ONCE);
        /* Also if it fails: the end of the test waits until the loop has nothing left to do. */
        uv_close((uv_handle_t *)&tick, NULL);
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        if (*flag < value)
                fail_msg("nothing happened within %d s", WAIT_S);
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

struct span keep(struct world *w, struct span bytes)
{
        return arena_copy(&w->memory, bytes);
}

static void keep_envelope(struct world *w, struct envelope *e)
{
        e->key = keep(w, e->key);
        e->handler = keep(w, e->handler);
        e->id = keep(w, e->id);
        e->headers = keep(w, e->headers);
        e->others = keep(w, e->others);
        e->payload = keep(w, e->payload);
}

void keep_note(struct world *w, struct task_note *note)
{
        note->events = keep(w, note->events);
        note->checkpoint = keep(w, note->checkpoint);
        note->holder = keep(w, note->holder);
}

void *keep_array(struct world *w, const void *array, size_t count, size_t size)
{
        void *copy = arena_take(&w->memory, count * size + 1);
        if (count)
                memcpy(copy, array, count * size);
        return copy;
}

struct store_task *keep_tasks(struct world *w, const struct store_task *tasks, uint32_t count)
{
        struct store_task *kept = keep_array(w, tasks, count, sizeof(*tasks));
        for (uint32_t i = 0; i < count; i++) {
                keep_envelope(w, &kept[i].envelope);
                kept[i].key = keep(w, kept[i].key);
                keep_note(w, &kept[i].note);
        }
        return kept;
}

void keep_listed(struct world *w, struct store_listed *listed)
{
        keep_envelope(w, &listed->envelope);
        listed->id = keep(w, listed->id);
        listed->key = keep(w, listed->key);
        listed->reason = keep(w, listed->reason);
        keep_note(w, &listed->note);
}
