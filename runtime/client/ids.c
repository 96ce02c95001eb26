#include "client/ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "client/call.h"

#define HORIZON_MS  10000u
#define ANSWER_MS   15000u /* long enough to wait for a killed owner's horizon */
#define NONCE_BYTES 16u
#define SPIN_NS     200000u /* shorter waits are spun */

void client_ids_set(struct qv_client *client, const struct id_layout *layout, uint32_t fixed, uint64_t horizon_ms)
{
        struct client_ids *ids = client_ids(client);
        ids->has_layout = layout != NULL;
        if (layout)
                ids->layout = *layout;
        ids->fixed = fixed;
        ids->horizon_ms = horizon_ms;
}

const struct id_layout *client_ids_layout(struct qv_client *client)
{
        struct client_ids *ids = client_ids(client);
        return ids->has_layout ? &ids->layout : &client_store_info(client)->record->ids;
}

/* --- on the client's thread --------------------------------------------------------------------------------------- */

static void set_timer(void *self);

static void on_timer(uv_timer_t *timer)
{
        struct client_ids *ids = timer->data;
        id_source_tick(&ids->source, clock_boot_ms());
        set_timer(ids);
}

static void set_timer(void *self)
{
        struct client_ids *ids = self;
        uint64_t now_ms = clock_boot_ms();
        uint64_t due_ms = ids->source.due_ms;
        if (due_ms == UINT64_MAX)
                (void)uv_timer_stop(&ids->timer);
        else
                (void)uv_timer_start(&ids->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct client_ids *ids = self;
        id_source_session(&ids->source, state, session);
}

static void on_changed(void *self, const char *path)
{
        (void)self;
        (void)path;
}

static void on_look(void *self)
{
        struct client_ids *ids = self;
        id_source_look(&ids->source);
}

static void finish(struct client_call *call, int status)
{
        call->request.status = status;
        call->request.done(&call->request);
}

static void start_open_ids(struct qv_client *client, struct client_call *call)
{
        struct client_ids *ids = client_ids(client);
        const char *nonce = call->self;
        char machine[65] = "";
        char says[SLOT_SAYS_MAX];
        if (gethostname(machine, sizeof(machine) - 1) < 0)
                machine[0] = 0;
        (void)snprintf(
                says, sizeof(says), "machine=%s pid=%d since_ms=%" PRIu64, machine, (int)getpid(), clock_wall_ms());
        (void)uv_timer_init(client_loop(client), &ids->timer);
        ids->timer.data = ids;
        id_source_open(&ids->source, client_tree(client)->coord,
                &(struct id_source_options){ .layout = client_ids_layout(client),
                        .nonce = nonce,
                        .fixed = ids->fixed,
                        .horizon_ms = ids->horizon_ms ? ids->horizon_ms : HORIZON_MS,
                        .says = says,
                        .due_changed = set_timer,
                        .self = ids },
                0);
        ids->listener.events = (struct coord_events){ on_session, on_changed, on_look, ids };
        client_tree_listen(client, &ids->listener);
        finish(call, 0);
}

/* A block from the client's thread, which may have to take the slot or move its horizon first. */
struct asked_block {
        struct id_ask ask;
        struct client_call *call;
};

static void on_block(struct id_ask *ask)
{
        struct asked_block *asked = container_of(ask, struct asked_block, ask);
        asked->call->request.error = ask->error;
        finish(asked->call, ask->status);
}

static void start_asking(struct qv_client *client, struct client_call *call)
{
        struct asked_block *asked = call->self;
        id_source_ask(&client_ids(client)->source, &asked->ask);
}

static void start_topping_up(struct qv_client *client, struct client_call *call)
{
        struct client_ids *ids = client_ids(client);
        id_source_top_up(&ids->source);
        atomic_store(&ids->is_topping_up, false);
        finish(call, 0);
}

static void on_released(void *self)
{
        finish(self, 0);
}

static void start_release(struct qv_client *client, struct client_call *call)
{
        id_source_release(&client_ids(client)->source, on_released, call);
}

static void on_timer_closed(uv_handle_t *handle)
{
        finish(handle->data, 0);
}

static void start_free(struct qv_client *client, struct client_call *call)
{
        struct client_ids *ids = client_ids(client);
        id_source_free(&ids->source);
        ids->timer.data = call;
        uv_close((uv_handle_t *)&ids->timer, on_timer_closed);
}

/* --- on the callers' ---------------------------------------------------------------------------------------------- */

static int open_ids(struct qv_client *client, struct error *error)
{
        struct client_ids *ids = client_ids(client);
        uint8_t random[NONCE_BYTES];
        char nonce[2 * NONCE_BYTES + 1];
        struct client_call call = { .start = start_open_ids, .self = nonce };
        int r = client_tree_ensure(client, error);
        if (r < 0)
                return r;
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
                return error_set(error, -EIO, "cannot get random numbers from the system");
        (void)units_hex(nonce, random, sizeof(random));
        (void)pthread_mutex_lock(&ids->opening);
        if (!atomic_load(&ids->is_open)) {
                (void)client_call(client, &call, NULL);
                atomic_store(&ids->is_open, true);
        }
        (void)pthread_mutex_unlock(&ids->opening);
        return 0;
}

static uint64_t wall_ns(void)
{
        struct timespec t;
        (void)clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Waits for the next unit of time.  The last part is spun, because a sleep would end too late. */
static void wait_a_little(uint64_t wait_ns)
{
        if (wait_ns <= SPIN_NS)
                return;
        wait_ns -= SPIN_NS / 2;
        struct timespec t = { .tv_sec = (time_t)(wait_ns / NS_PER_S), .tv_nsec = (long)(wait_ns % NS_PER_S) };
        (void)nanosleep(&t, NULL);
}

static void top_up(struct qv_client *client)
{
        struct client_call call = { .start = start_topping_up };
        if (!atomic_exchange(&client_ids(client)->is_topping_up, true))
                (void)client_call(client, &call, NULL);
}

static int ask(struct qv_client *client, uint32_t want, struct id_block *ret_block, struct error *error)
{
        struct asked_block asked = {
                .ask = { .done = on_block, .want = want, .deadline_ms = clock_boot_ms() + ANSWER_MS },
        };
        struct client_call call = { .start = start_asking, .self = &asked };
        asked.call = &call;
        int r = client_call(client, &call, error);
        if (r == 0)
                *ret_block = asked.ask.block;
        return r;
}

int client_ids_take(struct qv_client *client, uint32_t want, struct id_block *ret_block, struct error *error)
{
        struct client_ids *ids = client_ids(client);
        if (!atomic_load_explicit(&ids->is_open, memory_order_acquire)) {
                int r = open_ids(client, error);
                if (r < 0)
                        return r;
        }
        struct id_generator *generator = &ids->source.generator;
        for (;;) {
                enum id_verdict verdict = id_generator_take(generator, wall_ns(), want, ret_block);
                if (verdict == ID_WAIT)
                        wait_a_little(ret_block->wait_ns);
                else if (verdict != ID_GIVEN)
                        return ask(client, want, ret_block, error);
                else {
                        if (id_source_wants_more(&ids->source))
                                top_up(client);
                        return 0;
                }
        }
}

int qv_client_next_id(struct qv_client *client, uint64_t *ret_id)
{
        struct error *error = client_error_start();
        struct id_block block;
        if (!ret_id)
                return error_set(error, -EINVAL, "ret_id: is NULL");
        int r = client_ids_take(client, 1, &block, error);
        if (r == 0)
                *ret_id = block.first;
        return r;
}

void client_ids_close(struct qv_client *client)
{
        struct client_ids *ids = client_ids(client);
        struct client_call release = { .start = start_release, .is_patient = true };
        if (atomic_load(&ids->is_open))
                (void)client_call(client, &release, NULL);
}

void client_ids_free(struct qv_client *client)
{
        struct client_ids *ids = client_ids(client);
        struct client_call freeing = { .start = start_free };
        if (atomic_load(&ids->is_open))
                (void)client_call(client, &freeing, NULL);
        (void)pthread_mutex_destroy(&ids->opening);
}
