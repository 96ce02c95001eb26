/* What drivers with a server share (coord/remote.h), with a server that answers when the test says so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "check.h"
#include "coord/remote.h"

#define SESSION_MS 1000u
#define NUMBER     7u

struct fake_call {
        struct coord_request *request;
        bool is_out;
};

struct fake {
        struct remote remote; /* first */
        struct rig *rig;
};

struct rig {
        uv_loop_t loop;
        struct fake *fake;
        struct coord_open open;
        struct coord_events events;
        struct coord_get get, late; /* `late` is started when the session expires, if its path is set */
        unsigned opened, sent, beats, forgotten, looks, told, done, closed;
        enum coord_state states[8];
};

static struct rig *rig_of(struct remote *remote)
{
        return ((struct fake *)remote)->rig;
}

/* --- the driver --- */

static struct fake_call *new_call(struct coord_request *request)
{
        struct fake_call *call = calloc(1, sizeof(*call));
        assert_non_null(call);
        call->request = request;
        return call;
}

static void *make(struct remote *remote, struct coord_request *request)
{
        (void)remote;
        return new_call(request);
}

static void send_call(struct remote *remote, struct coord_request *request)
{
        struct fake_call *call = request->driver;
        if (call->is_out || !remote_is_proven(remote))
                return;
        call->is_out = true;
        rig_of(remote)->sent++;
}

static struct rig *the_rig;

static void forget(void *call)
{
        the_rig->forgotten++;
        free(call);
}

static void *beat(struct remote *remote)
{
        rig_of(remote)->beats++;
        return new_call(NULL);
}

static uint64_t tick(struct remote *remote, uint64_t now_ms)
{
        if (remote->opening)
                remote_tell_opened(remote);
        return remote->has_session ? remote_beat_tick(remote, now_ms) : UINT64_MAX;
}

static void free_fake(struct remote *remote)
{
        free(remote);
}

static const struct remote_hooks hooks = {
        .make = make,
        .send = send_call,
        .forget = forget,
        .beat = beat,
        .tick = tick,
        .close = remote_end,
        .free = free_fake,
};

static void fake_close(struct coord *coord, void (*closed)(void *self), void *self)
{
        remote_close((struct remote *)coord, closed, self);
}

static const struct coord_driver fake_driver = { .scheme = "fake", .start = remote_start, .close = fake_close };

/* --- its owner --- */

static void on_done(struct coord_request *request)
{
        (void)request;
        the_rig->done++;
}

static void on_opened(struct coord_request *request)
{
        (void)request;
        the_rig->opened++;
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct rig *rig = self;
        assert_int_equal(session, NUMBER);
        assert_true(rig->told < 8);
        rig->states[rig->told++] = state;
        if (state == COORD_EXPIRED && rig->late.path)
                coord_get(&rig->fake->remote.coord, &rig->late);
}

static void on_look(void *self)
{
        ((struct rig *)self)->looks++;
}

static void on_closed(void *self)
{
        ((struct rig *)self)->closed++;
}

/* The test's own time limit ends what never happens. */
static void run_until(struct rig *rig, const unsigned *count, unsigned enough)
{
        while (*count < enough)
                (void)uv_run(&rig->loop, UV_RUN_ONCE);
}

static void open_fake(struct rig *rig, int status)
{
        rig->fake = calloc(1, sizeof(*rig->fake));
        assert_non_null(rig->fake);
        rig->fake->rig = rig;
        rig->events = (struct coord_events){ .session = on_session, .look = on_look, .self = rig };
        rig->open = (struct coord_open){
                .request = { .done = on_opened, .status = status },
                .options = { .app = "test", .session_ms = SESSION_MS, .events = &rig->events },
        };
        remote_init(&rig->fake->remote, &hooks, &rig->loop, &rig->open, &fake_driver, "fake:");
        assert_int_equal(rig->opened, 0);
        run_until(rig, &rig->opened, 1);
}

static int setup(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));
        assert_non_null(rig);
        assert_int_equal(uv_loop_init(&rig->loop), 0);
        log_set_level(LEVEL_ERROR);
        rig->get = (struct coord_get){ .request.done = on_done, .path = "node" };
        rig->late = (struct coord_get){ .request.done = on_done };
        *state = the_rig = rig;
        return 0;
}

static int teardown(void **state)
{
        struct rig *rig = *state;
        if (rig->open.coord && !rig->closed) {
                coord_close(rig->open.coord, on_closed, rig);
                run_until(rig, &rig->closed, 1);
        }
        assert_int_equal(uv_loop_close(&rig->loop), 0);
        free(rig);
        return 0;
}

/* The server has begun a session and answers the heartbeat that was sent at that time. */
static bool answer_beat(struct rig *rig, uint64_t sent_ms)
{
        struct remote *remote = &rig->fake->remote;
        remote_forget_beat(remote);
        remote->has_session = true;
        remote->beat_sent_ms = sent_ms;
        remote->next_beat_ms = sent_ms + remote_beat_every_ms(remote);
        bool is_proof = remote_prove(remote, NUMBER, false);
        remote_wake_at(remote, remote->next_beat_ms);
        return is_proof;
}

static void open_alive(struct rig *rig)
{
        open_fake(rig, 0);
        assert_true(answer_beat(rig, clock_boot_ms()));
}

/* --- tests --- */

static void a_request_goes_out_when_the_session_is_proven(void **state)
{
        struct rig *rig = *state;
        open_fake(rig, 0);
        coord_get(rig->open.coord, &rig->get);
        assert_int_equal(rig->sent, 0);
        assert_true(answer_beat(rig, clock_boot_ms()));
        assert_int_equal(rig->sent, 1);
        assert_int_equal(rig->states[0], COORD_ALIVE);
        assert_int_equal(rig->looks, 1);
        assert_true(answer_beat(rig, clock_boot_ms()));
        assert_int_equal(rig->sent, 1);
        assert_int_equal(rig->told, 1);
        assert_int_equal(rig->looks, 1);
}

static void a_request_without_an_answer_ends_at_its_deadline(void **state)
{
        struct rig *rig = *state;
        open_fake(rig, 0);
        uint64_t start_ms = clock_boot_ms();
        coord_get(rig->open.coord, &rig->get);
        run_until(rig, &rig->done, 1);
        assert_int_equal(rig->get.request.status, -ETIMEDOUT);
        assert_true(clock_boot_ms() - start_ms >= SESSION_MS);
        assert_int_equal(rig->forgotten, 1);
}

static void a_refused_request_ends_on_the_loop(void **state)
{
        struct rig *rig = *state;
        open_fake(rig, 0);
        coord_get(rig->open.coord, &rig->get);
        remote_refuse_all(&rig->fake->remote, -EACCES, "wrong password");
        assert_int_equal(rig->done, 0);
        run_until(rig, &rig->done, 1);
        assert_int_equal(rig->get.request.status, -EACCES);
        assert_non_null(strstr(rig->get.request.error.text, "get node: wrong password"));
        coord_get(rig->open.coord, &rig->get);
        assert_int_equal(rig->done, 1);
        run_until(rig, &rig->done, 2);
        assert_int_equal(rig->get.request.status, -EACCES);
}

static void what_was_asked_of_a_session_ends_with_it(void **state)
{
        struct rig *rig = *state;
        open_alive(rig);
        rig->late.path = "late";
        coord_get(rig->open.coord, &rig->get);
        remote_expired(&rig->fake->remote, "the test says so");
        assert_int_equal(rig->states[1], COORD_EXPIRED);
        assert_int_equal(rig->get.request.status, -EOWNERDEAD);
        /* The request of whoever was told is for the next session. */
        assert_int_equal(rig->done, 1);
        assert_int_equal(rig->sent, 1);
        assert_true(answer_beat(rig, clock_boot_ms()));
        assert_int_equal(rig->sent, 2);
        assert_int_equal(rig->looks, 2);
}

static void a_heartbeat_without_an_answer_suspends_the_session(void **state)
{
        struct rig *rig = *state;
        open_alive(rig);
        run_until(rig, &rig->told, 2);
        assert_int_equal(rig->states[1], COORD_SUSPENDED);
        assert_int_equal(rig->beats, 1);
        assert_true(answer_beat(rig, clock_boot_ms()));
        assert_int_equal(rig->states[2], COORD_ALIVE);
        assert_int_equal(rig->looks, 1);
}

static void an_answer_that_came_too_late_proves_nothing(void **state)
{
        struct rig *rig = *state;
        open_fake(rig, 0);
        assert_false(answer_beat(rig, clock_boot_ms() - SESSION_MS - 1));
        assert_int_equal(rig->told, 0);
        assert_false(remote_is_proven(&rig->fake->remote));
        assert_true(remote_is_over(&rig->fake->remote, clock_boot_ms()));
}

static void closing_ends_everything_under_way(void **state)
{
        struct rig *rig = *state;
        open_alive(rig);
        coord_get(rig->open.coord, &rig->get);
        coord_close(rig->open.coord, on_closed, rig);
        assert_int_equal(rig->done + rig->closed, 0);
        rig->late.path = "late";
        coord_get(rig->open.coord, &rig->late);
        run_until(rig, &rig->closed, 1);
        assert_int_equal(rig->done, 2);
        assert_int_equal(rig->get.request.status, -ECANCELED);
        assert_int_equal(rig->late.request.status, -ECANCELED);
}

static void an_opening_that_was_refused_leaves_no_tree(void **state)
{
        struct rig *rig = *state;
        open_fake(rig, -EINVAL);
        assert_int_equal(rig->open.request.status, -EINVAL);
        assert_null(rig->open.coord);
}

static void children_are_sorted_and_what_is_no_name_is_left_out(void **state)
{
        struct rig *rig = *state;
        struct coord_children children = { .request.done = on_done, .path = "members" };
        open_fake(rig, 0);
        coord_children(rig->open.coord, &children);
        remote_names_begin(&children, 4);
        remote_names_add(&children, SPAN_TEXT("b"));
        remote_names_add(&children, SPAN_TEXT("x/y"));
        remote_names_add(&children, SPAN_TEXT("a"));
        remote_names_add(&children, SPAN_TEXT(""));
        remote_names_end(&children);
        assert_int_equal(children.names_count, 2);
        assert_string_equal(children.names[0], "a");
        assert_string_equal(children.names[1], "b");
        remote_forget(&children.request);
        coord_finish(&children.request, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_request_goes_out_when_the_session_is_proven),
                TEST(a_request_without_an_answer_ends_at_its_deadline),
                TEST(a_refused_request_ends_on_the_loop),
                TEST(what_was_asked_of_a_session_ends_with_it),
                TEST(a_heartbeat_without_an_answer_suspends_the_session),
                TEST(an_answer_that_came_too_late_proves_nothing),
                TEST(closing_ends_everything_under_way),
                TEST(an_opening_that_was_refused_leaves_no_tree),
                TEST(children_are_sorted_and_what_is_no_name_is_left_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
