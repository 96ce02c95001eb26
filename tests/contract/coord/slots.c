/* Slots: a number for each process, and times that no two owners of a number share. */
#include "harness.h"

#include "coord/slot.h"
#include "id/generator.h"

#define AHEAD_MS 10000

/* A process that gives ids. */
struct giver {
        struct slot slot;
        struct client *client;
        unsigned granted, released, failed;
        int status;
        char text[256];
        uint32_t number;
        uint64_t from_ms, until_ms;
};

static uint64_t wall_ms;

static void on_granted(void *self, uint32_t number, uint64_t from_ms, uint64_t until_ms)
{
        struct giver *g = self;
        g->granted++;
        g->number = number;
        g->from_ms = from_ms;
        g->until_ms = until_ms;
}

static void on_released(void *self)
{
        ((struct giver *)self)->released++;
}

static void on_failed(void *self, int status, const char *text)
{
        struct giver *g = self;
        g->failed++;
        g->status = status;
        (void)snprintf(g->text, sizeof(g->text), "%s", text);
}

static uint64_t now(void *self)
{
        (void)self;
        return wall_ms;
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        slot_session(&((struct giver *)self)->slot, state, session);
}

static void on_changed(void *self, const char *path)
{
        (void)self;
        (void)path;
}

static void on_look(void *self)
{
        slot_look(&((struct giver *)self)->slot);
}

static struct giver *giver(struct world *w, const char *nonce, uint32_t numbers, uint32_t fixed)
{
        struct giver *g = arena_take(&w->memory, sizeof(*g));
        memset(g, 0, sizeof(*g));
        g->client = join(w);
        slot_init(&g->slot, g->client->coord,
                &(struct slot_options){
                        .nonce = nonce, .numbers = numbers, .fixed = fixed, .ahead_ms = AHEAD_MS, .says = nonce },
                &(struct slot_events){ on_granted, on_released, on_failed, now, g });
        listen_too(g->client, &(struct coord_events){ on_session, on_changed, on_look, g });
        slot_take(&g->slot);
        return g;
}

static void gone(struct giver *g)
{
        client_close(g->client);
        slot_free(&g->slot);
}

static int slots_setup(void **state)
{
        wall_ms = UINT64_C(1794915000000);
        return world_setup(state);
}

static void ten_that_start_at_once_have_ten_numbers(void **state)
{
        struct world *w = *state;
        struct giver *g[10];
        uint32_t seen = 0;
        for (unsigned i = 0; i < 10; i++)
                g[i] = giver(w, (char[]){ (char)('a' + i), 0 }, 1024, SLOT_ANY);
        for (unsigned i = 0; i < 10; i++) {
                WAIT_FOR(w, g[i]->granted == 1);
                assert_true(g[i]->number < 10);
                assert_false(seen >> g[i]->number & 1);
                seen |= UINT32_C(1) << g[i]->number;
                assert_int_equal(g[i]->until_ms, wall_ms + AHEAD_MS);
        }
        assert_string_equal(children(g[0]->client, "slots", false), "0 1 2 3 4 5 6 7 8 9");
        for (unsigned i = 0; i < 10; i++)
                gone(g[i]);
}

static void when_all_are_taken_the_next_is_told_and_gets_one_later(void **state)
{
        struct world *w = *state;
        struct giver *a = giver(w, "a", 2, SLOT_ANY), *b = giver(w, "b", 2, SLOT_ANY);
        WAIT_FOR(w, a->granted && b->granted);
        struct giver *c = giver(w, "c", 2, SLOT_ANY);
        WAIT_FOR(w, c->failed);
        assert_int_equal(c->status, -EBUSY);
        assert_non_null(strstr(c->text, "all 2 slots"));
        assert_true(slot_release(&a->slot, wall_ms + 5));
        WAIT_FOR(w, a->released);
        slot_retry(&c->slot);
        WAIT_FOR(w, c->granted);
        assert_int_equal(c->number, a->number);
        assert_int_equal(c->from_ms, wall_ms + 5);
        gone(a);
        gone(b);
        gone(c);
}

/* The owner may still believe in its number, and give ids up to its horizon. */
static void a_new_owner_is_granted_nothing_before_the_old_ones_horizon(void **state)
{
        struct world *w = *state;
        struct giver *a = giver(w, "a", 1, SLOT_ANY);
        WAIT_FOR(w, a->granted);
        uint64_t until_ms = a->until_ms;
        gone(a);
        wall_ms += 100;
        struct giver *b = giver(w, "b", 1, SLOT_ANY);
        WAIT_FOR(w, b->granted);
        assert_int_equal(b->from_ms, until_ms);
        assert_int_equal(b->until_ms, until_ms + AHEAD_MS);
        gone(b);
}

static void a_number_that_is_free_at_once_is_preferred(void **state)
{
        struct world *w = *state;
        struct giver *a = giver(w, "a", 1024, SLOT_ANY);
        WAIT_FOR(w, a->granted);
        assert_int_equal(a->number, 0);
        gone(a);
        struct giver *b = giver(w, "b", 1024, SLOT_ANY);
        WAIT_FOR(w, b->granted);
        assert_int_equal(b->number, 1);
        wall_ms += AHEAD_MS;
        struct giver *c = giver(w, "c", 1024, SLOT_ANY);
        WAIT_FOR(w, c->granted);
        assert_int_equal(c->number, 0);
        gone(b);
        gone(c);
}

static void a_horizon_is_moved_on_and_never_back(void **state)
{
        struct world *w = *state;
        struct giver *a = giver(w, "a", 1024, SLOT_ANY);
        const char *data = NULL;
        WAIT_FOR(w, a->granted == 1);
        wall_ms += 6000;
        slot_extend(&a->slot);
        WAIT_FOR(w, a->granted == 2);
        assert_int_equal(a->until_ms, wall_ms + AHEAD_MS);
        uint64_t until_ms = a->until_ms;
        wall_ms -= 3600000;
        slot_extend(&a->slot);
        WAIT_FOR(w, a->granted == 3);
        assert_int_equal(a->until_ms, until_ms);
        assert_int_equal(get(a->client, "horizons/0", false, &data, NULL), 0);
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "%llu a", (unsigned long long)until_ms);
        assert_string_equal(data, expected);
        gone(a);
}

static void after_a_lost_session_the_same_number_goes_on(void **state)
{
        struct world *w = *state;
        struct giver *a = giver(w, "a", 1024, SLOT_ANY);
        WAIT_FOR(w, a->granted == 1);
        lose_session(a->client);
        WAIT_FOR(w, a->granted == 2);
        assert_int_equal(a->number, 0);
        assert_true(a->from_ms <= a->until_ms - AHEAD_MS); /* its own horizon is nothing to wait for */
        gone(a);
}

/* Its horizon was recorded by another meanwhile: it is told, and waits behind that one. */
static void a_horizon_that_another_has_written_is_respected(void **state)
{
        struct world *w = *state;
        struct giver *a = giver(w, "a", 1024, SLOT_ANY);
        char other[64];
        WAIT_FOR(w, a->granted == 1);
        (void)snprintf(other, sizeof(other), "%llu other", (unsigned long long)wall_ms + 50000);
        assert_int_equal(set(a->client, "horizons/0", other, COORD_ANY_VERSION, NULL), 0);
        slot_extend(&a->slot);
        WAIT_FOR(w, a->granted == 2);
        assert_int_equal(a->from_ms, wall_ms + 50000);
        assert_int_equal(a->until_ms, wall_ms + 50000 + AHEAD_MS);
        gone(a);
}

static void a_fixed_number_that_is_anothers_is_refused_and_says_whose(void **state)
{
        struct world *w = *state;
        struct giver *a = giver(w, "alice", 1024, 77);
        WAIT_FOR(w, a->granted);
        assert_int_equal(a->number, 77);
        struct giver *b = giver(w, "bob", 1024, 77);
        WAIT_FOR(w, b->failed);
        assert_int_equal(b->status, -EBUSY);
        assert_non_null(strstr(b->text, "slot 77 is another's: alice"));
        assert_int_equal(b->granted, 0);
        gone(a);
        WAIT_FOR(w, !*children(b->client, "slots", false));
        slot_retry(&b->slot);
        WAIT_FOR(w, b->granted);
        gone(b);
}

static void a_spoilt_horizon_is_never_used(void **state)
{
        struct world *w = *state;
        static const char *const spoilt[] = { "", "x", "12", "99999999999999999999 a", "-5 a", " a" };
        struct client *c = join(w);
        for (unsigned i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
                char path[32];
                (void)snprintf(path, sizeof(path), "horizons/%u", i);
                assert_int_equal(create(c, path, spoilt[i], 0, NULL, NULL), 0);
        }
        assert_int_equal(create(c, "slots/not-a-number", "", 0, NULL, NULL), 0);
        struct giver *a = giver(w, "a", 1024, SLOT_ANY);
        WAIT_FOR(w, a->granted);
        assert_int_equal(a->number, sizeof(spoilt) / sizeof(spoilt[0]));
        struct giver *b = giver(w, "b", 1024, 1);
        WAIT_FOR(w, b->failed);
        assert_int_equal(b->status, -EBADMSG);
        assert_non_null(strstr(b->text, "horizons/1"));
        gone(a);
        gone(b);
}

/* Owners of one number, one after the other, each killed: their ids are different. */
static void owners_of_one_number_give_different_ids(void **state)
{
        struct world *w = *state;
        struct id_layout layout = id_layout_standard(ID_SNOWFLAKE);
        uint64_t last = 0;
        for (unsigned round = 0; round < 5; round++) {
                struct giver *a = giver(w, (char[]){ (char)('a' + round), 0 }, 1, SLOT_ANY);
                struct id_generator generator;
                struct id_block block;
                WAIT_FOR(w, a->granted);
                id_generator_init(&generator, &layout);
                id_generator_grant(&generator, a->number, a->from_ms, a->until_ms);
                /* Each one's clock is behind that of the one before. */
                wall_ms -= 100;
                while (id_generator_take(&generator, wall_ms * 1000000, 1, &block) != ID_GIVEN)
                        wall_ms += 1;
                assert_true(block.first > last);
                while (id_generator_take(&generator, wall_ms * 1000000, 4096, &block) != ID_BEYOND)
                        wall_ms += 500;
                last = block.first + block.count - 1;
                gone(a);
        }
}

#define IN_SLOTS(test) cmocka_unit_test_setup_teardown(test, slots_setup, world_teardown)

const struct CMUnitTest slot_tests[] = {
        IN_SLOTS(ten_that_start_at_once_have_ten_numbers),
        IN_SLOTS(when_all_are_taken_the_next_is_told_and_gets_one_later),
        IN_SLOTS(a_new_owner_is_granted_nothing_before_the_old_ones_horizon),
        IN_SLOTS(a_number_that_is_free_at_once_is_preferred),
        IN_SLOTS(a_horizon_is_moved_on_and_never_back),
        IN_SLOTS(after_a_lost_session_the_same_number_goes_on),
        IN_SLOTS(a_horizon_that_another_has_written_is_respected),
        IN_SLOTS(a_fixed_number_that_is_anothers_is_refused_and_says_whose),
        IN_SLOTS(a_spoilt_horizon_is_never_used),
        IN_SLOTS(owners_of_one_number_give_different_ids),
};
GROUP(slot);
