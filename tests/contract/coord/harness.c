#include "harness.h"

#include "base/clock.h"

#define WAIT_MS 30000u

static const struct place_driver *const place_drivers[] = { &local_place, &zookeeper_place, &ensemble_place,
        &redis_place, &etcd_place, &etcd_cluster_place };

const struct place_driver *place_driver(void)
{
        const char *name = getenv("QUIVER_COORD_DRIVER");
        for (size_t i = 0; i < sizeof(place_drivers) / sizeof(place_drivers[0]); i++)
                if (!name || !strcmp(name, place_drivers[i]->name))
                        return place_drivers[i];
        return NULL;
}

#define RUN(name) _cmocka_run_group_tests(#name, name##_tests, name##_count, NULL, NULL)

int run_suite(void)
{
        int failed = RUN(node) + RUN(session) + RUN(watch) + RUN(multi) + RUN(wrong);
        return failed ? 1 : 0;
}

/* --- the world --------------------------------------------------------------------------------------------------- */

int world_setup(void **state)
{
        struct world *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        (void)uv_loop_init(&w->loop);
        w->driver = place_driver();
        assert_non_null(w->driver);
        w->place = w->driver->create();
        *state = w;
        if (w->place)
                return 0;
        print_message("%s is not on this machine\n", w->driver->name);
        return -1;
}

int world_teardown(void **state)
{
        struct world *w = *state;
        for (unsigned i = 0; i < w->clients_count; i++)
                client_close(&w->clients[i]);
        w->driver->destroy(w->place);
        while (uv_run(&w->loop, UV_RUN_NOWAIT))
                ;
        assert_int_equal(uv_loop_close(&w->loop), 0);
        arena_free(w->memory);
        free(w);
        return 0;
}

struct patience patience(struct world *w)
{
        return (struct patience){ w, clock_boot_ms() + WAIT_MS };
}

static void on_tick(uv_timer_t *timer)
{
        (void)timer;
}

void patience_turn(struct patience *p, const char *what, const char *file, int queue)
{
        uv_timer_t tick;
        if (clock_boot_ms() > p->end_ms)
                fail_msg("%s:%d: still not: %s", file, queue, what);
        /* Conditions that nothing on the loop announces are looked at now and then. */
        (void)uv_timer_init(&p->w->loop, &tick);
        (void)uv_timer_start(&tick, on_tick, 20, 0);
        (void)uv_run(&p->w->loop, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&tick, NULL);
        (void)uv_run(&p->w->loop, UV_RUN_NOWAIT);
}

const char *keep(struct world *w, const char *data, size_t size)
{
        return arena_copy(&w->memory, (struct span){ data, size }).data;
}

struct span T(const char *text) {
        return (struct span){ text, text ? strlen(text) : 0 };
}

/* --- clients ----------------------------------------------------------------------------------------------------- */

static void
on_session(void *self, enum coord_state state, uint64_t session)
{
        struct client *c = self;
        assert_true(c->states_count < TOLD_MAX);
        c->states[c->states_count] = state;
        c->sessions[c->states_count++] = session;
        if (c->also.session)
                c->also.session(c->also.self, state, session);
}

static void on_changed(void *self, const char *path)
{
        struct client *c = self;
        assert_true(c->changed_count < TOLD_MAX);
        c->changed[c->changed_count++] = keep(c->world, path, strlen(path));
        if (!c->also.changed)
                return;
        /* The recipe looks after it: there may be any number of them. */
        c->changed_count = 0;
        c->also.changed(c->also.self, path);
}

static void on_look(void *self)
{
        struct client *c = self;
        c->looks++;
        if (c->also.look)
                c->also.look(c->also.self);
}

void listen_too(struct client *c, const struct coord_events *events)
{
        c->also = *events;
        events->session(events->self, COORD_ALIVE, session_of(c));
        events->look(events->self);
}

struct opening {
        struct coord_open open;
        unsigned done;
};

static void on_opened(struct coord_request *request)
{
        ((struct opening *)request)->done++;
}

int client_connect(
        struct world *w, struct coord_options options, bool has_events, struct client **ret_client, struct error *error)
{
        assert_true(w->clients_count < CLIENTS_MAX);
        struct client *c = &w->clients[w->clients_count++];
        struct opening opening = { .open = { .request.done = on_opened, .options = options } };
        *c = (struct client){ .world = w, .events = { on_session, on_changed, on_look, c } };
        struct coord_options *o = &opening.open.options;
        if (!o->url)
                w->driver->options(w->place, o);
        if (!o->app)
                o->app = "test";
        if (!o->session_ms)
                o->session_ms = w->driver->session_ms;
        o->events = has_events ? &c->events : NULL;
        coord_open(&w->loop, &opening.open);
        assert_int_equal(opening.done, 0);
        WAIT_FOR(w, opening.done);
        assert_int_equal(opening.done, 1);
        if (error)
                *error = opening.open.request.error;
        c->coord = opening.open.request.status ? NULL : opening.open.coord;
        if (ret_client)
                *ret_client = c;
        return opening.open.request.status;
}

struct client *join(struct world *w)
{
        struct client *c;
        assert_int_equal(client_connect(w, (struct coord_options){ 0 }, true, &c, NULL), 0);
        WAIT_FOR(w, c->looks);
        assert_int_equal(c->states[c->states_count - 1], COORD_ALIVE);
        return c;
}

static void on_closed(void *self)
{
        ((struct client *)self)->closed++;
}

void client_close(struct client *c)
{
        if (!c->coord)
                return;
        coord_close(c->coord, on_closed, c);
        c->coord = NULL;
        WAIT_FOR(c->world, c->closed);
}

uint64_t session_of(const struct client *c)
{
        struct coord_info info;
        coord_info(c->coord, &info);
        return info.session;
}

bool was_told(const struct client *c, enum coord_state state, uint64_t session)
{
        for (unsigned i = 0; i < c->states_count; i++)
                if (c->states[i] == state && c->sessions[i] == session)
                        return true;
        return false;
}

bool has_heard(const struct client *c, const char *path)
{
        for (unsigned i = 0; i < c->changed_count; i++)
                if (!strcmp(c->changed[i], path))
                        return true;
        return false;
}

void forget_heard(struct client *c)
{
        c->changed_count = 0;
        c->looks = 0;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

void pending_done(struct coord_request *request)
{
        struct pending *p = (struct pending *)request;
        p->done++;
        p->status = request->status;
}

/* The reply is gone after done(): what the calls below want of it is copied there. */
static struct {
        struct client *client;
        unsigned done;
        const char *text;
} answer;

static void expect_answer(struct client *c)
{
        answer.client = c;
        answer.done = 0;
        answer.text = NULL;
}

static int wait_answer(const struct coord_request *request)
{
        assert_int_equal(answer.done, 0);
        WAIT_FOR(answer.client->world, answer.done);
        assert_int_equal(answer.done, 1);
        if (request->status && !request->error.text[0])
                fail_msg("status %d without a text", request->status);
        if (!request->status)
                assert_string_equal(request->error.text, "");
        return request->status;
}

static void on_done(struct coord_request *request)
{
        (void)request;
        answer.done++;
}

static void on_created(struct coord_request *request)
{
        const struct coord_create *create = (const struct coord_create *)request;
        if (!request->status)
                answer.text = keep(answer.client->world, create->made, strlen(create->made));
        answer.done++;
}

int create(struct client *c, const char *path, const char *data, unsigned flags, const char **ret_made,
        struct coord_stat *ret_stat)
{
        struct coord_create request = { .request.done = on_created, .path = path, .data = T(data), .flags = flags };
        expect_answer(c);
        coord_create(c->coord, &request);
        int r = wait_answer(&request.request);
        if (!r && ret_made)
                *ret_made = answer.text;
        if (!r && ret_stat)
                *ret_stat = request.stat;
        return r;
}

static void on_got(struct coord_request *request)
{
        const struct coord_get *got = (const struct coord_get *)request;
        if (!request->status)
                answer.text = keep(answer.client->world, got->data.data, got->data.size);
        answer.done++;
}

int get(struct client *c, const char *path, bool watch, const char **ret_data, struct coord_stat *ret_stat)
{
        struct coord_get request = { .request.done = on_got, .path = path, .watch = watch };
        expect_answer(c);
        coord_get(c->coord, &request);
        int r = wait_answer(&request.request);
        if (!r && ret_data)
                *ret_data = answer.text;
        if (!r && ret_stat)
                *ret_stat = request.stat;
        return r;
}

int set(struct client *c, const char *path, const char *data, uint64_t version, struct coord_stat *ret_stat)
{
        struct coord_set request = { .request.done = on_done, .path = path, .data = T(data), .version = version };
        expect_answer(c);
        coord_set(c->coord, &request);
        int r = wait_answer(&request.request);
        if (!r && ret_stat)
                *ret_stat = request.stat;
        return r;
}

int del(struct client *c, const char *path, uint64_t version)
{
        struct coord_delete request = { .request.done = on_done, .path = path, .version = version };
        expect_answer(c);
        coord_delete(c->coord, &request);
        return wait_answer(&request.request);
}

static void on_children(struct coord_request *request)
{
        const struct coord_children *got = (const struct coord_children *)request;
        char *at = arena_take(&answer.client->world->memory, 256 * (size_t)got->names_count + 1);
        answer.text = at;
        for (uint32_t i = 0; !request->status && i < got->names_count; i++)
                at += sprintf(at, "%s%s", i ? " " : "", got->names[i]);
        answer.done++;
}

const char *children(struct client *c, const char *path, bool watch)
{
        struct coord_children request = { .request.done = on_children, .path = path, .watch = watch };
        expect_answer(c);
        coord_children(c->coord, &request);
        assert_int_equal(wait_answer(&request.request), 0);
        return answer.text;
}

int multi(struct client *c, struct coord_multi_op *ops, uint32_t count)
{
        struct coord_multi request = { .request.done = on_done, .ops = ops, .ops_count = count };
        expect_answer(c);
        coord_multi(c->coord, &request);
        return wait_answer(&request.request);
}

struct session_end {
        struct coord_end_session end;
        unsigned done;
};

static void on_session_ended(struct coord_request *request)
{
        ((struct session_end *)request)->done++;
}

int end_session(struct world *w, const char *token)
{
        struct session_end b = { .end = { .request.done = on_session_ended, .options.app = "test", .token = token } };
        w->driver->options(w->place, &b.end.options);
        coord_end_session(&w->loop, &b.end);
        assert_int_equal(b.done, 0);
        WAIT_FOR(w, b.done);
        return b.end.request.status;
}

void lose_session(struct client *c)
{
        char token[COORD_TOKEN_MAX];
        coord_token(c->coord, token);
        assert_int_equal(end_session(c->world, token), 0);
}
