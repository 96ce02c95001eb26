#include "coord/id_source.h"

#include <errno.h>
#include <inttypes.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/units.h"

static void serve(struct id_source *source);

static void finish(struct id_source *source, struct id_ask *ask, int status)
{
        DL_DELETE(source->asks, ask);
        ask->status = status;
        ask->done(ask);
}

int id_verdict_error(enum id_verdict verdict, const struct id_generator *generator, const struct id_block *block,
        struct error *error)
{
        char back[UNITS_TEXT_MAX];
        if (verdict == ID_OVERFLOW)
                return error_set(error, -EOVERFLOW,
                        "the clock is outside the times that ids have: %u bits from %" PRIu64 " ms on; set the clock",
                        generator->layout.time_bits, generator->layout.epoch_ms);
        return error_set(error, -EDOM, "the clock is %s behind the last id; it was set back: wait, or set it right",
                units_format_ms(back, block->back_ms));
}

/* --- the slot ----------------------------------------------------------------------------------------------------- */

static void on_granted(void *self, uint32_t number, uint64_t from_ms, uint64_t until_ms)
{
        struct id_source *source = self;
        source->from_ms = from_ms;
        id_generator_grant(&source->generator, number, from_ms, until_ms);
        serve(source);
}

static void on_released(void *self)
{
        struct id_source *source = self;
        if (source->released)
                source->released(source->released_self);
        source->released = NULL;
}

/* Fails the asks that wait; the next ask tries again. */
static void on_failed(void *self, int status, const char *text)
{
        struct id_source *source = self;
        if (source->released) {
                on_released(source);
                return;
        }
        while (source->asks) {
                (void)error_set(&source->asks->error, status, "%s", text);
                finish(source, source->asks, status);
        }
}

static uint64_t on_wall(void *self)
{
        (void)self;
        return clock_wall_ms();
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

bool id_source_wants_more(const struct id_source *source)
{
        uint64_t until_ms = atomic_load(&source->generator.until_ms);
        return until_ms < clock_wall_ms() + source->horizon_ms / 2;
}

void id_source_top_up(struct id_source *source)
{
        if (!source->is_taking) {
                source->is_taking = true;
                slot_take(&source->slot);
        } else if (source->slot.is_failed) {
                slot_retry(&source->slot);
        } else if (!source->slot.is_extending && id_source_wants_more(source)) {
                slot_extend(&source->slot);
        }
}

static uint64_t wall_ns(void)
{
        struct timespec t;
        (void)clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Whether the slot's grant has not begun: a new owner waits for the end of the previous owner's horizon, if that is no
 * further ahead than a horizon can be. */
static bool is_before_grant(const struct id_source *source, uint64_t now_ns)
{
        uint64_t now_ms = now_ns / NS_PER_MS;
        return now_ms < source->from_ms && source->from_ms - now_ms <= source->horizon_ms + ID_STEP_MS;
}

static void serve(struct id_source *source)
{
        uint64_t now_ms = clock_boot_ms();
        while (source->asks) {
                struct id_ask *ask = source->asks;
                uint64_t now_ns = wall_ns();
                enum id_verdict verdict = id_generator_take(&source->generator, now_ns, ask->want, &ask->block);
                if (verdict == ID_GIVEN) {
                        finish(source, ask, 0);
                        continue;
                }
                if (verdict == ID_WAIT || (verdict == ID_BACKWARD && is_before_grant(source, now_ns))) {
                        source->due_ms = now_ms + ask->block.wait_ns / NS_PER_MS + 1;
                        break;
                }
                if (verdict == ID_BEYOND)
                        break;
                finish(source, ask, id_verdict_error(verdict, &source->generator, &ask->block, &ask->error));
        }
        if (source->asks)
                source->due_ms = min_u64(source->due_ms, source->asks->deadline_ms);
        id_source_top_up(source);
        if (source->due_changed)
                source->due_changed(source->self);
}

void id_source_ask(struct id_source *source, struct id_ask *ask)
{
        DL_APPEND(source->asks, ask);
        serve(source);
}

void id_source_tick(struct id_source *source, uint64_t now_ms)
{
        struct id_ask *ask;
        struct id_ask *next;
        if (now_ms < source->due_ms)
                return;
        source->due_ms = UINT64_MAX;
        for (ask = source->asks; ask; ask = next) {
                next = ask->next;
                if (now_ms >= ask->deadline_ms) {
                        (void)error_set(
                                &ask->error, -ETIMEDOUT, "the coordination did not give this process a slot in time");
                        finish(source, ask, -ETIMEDOUT);
                }
        }
        if (source->asks)
                serve(source);
}

/* --- from outside ------------------------------------------------------------------------------------------------- */

void id_source_open(
        struct id_source *source, struct coord *coord, const struct id_source_options *options, uint64_t session)
{
        struct slot_events events = { on_granted, on_released, on_failed, on_wall, source };
        *source = (struct id_source){ .horizon_ms = options->horizon_ms,
                .due_ms = UINT64_MAX,
                .due_changed = options->due_changed,
                .self = options->self };
        id_generator_init(&source->generator, options->layout);
        slot_init(&source->slot, coord,
                &(struct slot_options){ .nonce = options->nonce,
                        .numbers = UINT32_C(1) << options->layout->slot_bits,
                        .fixed = options->fixed,
                        .ahead_ms = options->horizon_ms,
                        .says = options->says },
                &events);
        if (session)
                slot_session(&source->slot, COORD_ALIVE, session);
}

void id_source_free(struct id_source *source)
{
        while (source->asks) {
                (void)error_set(&source->asks->error, -ECANCELED, "it was closed");
                finish(source, source->asks, -ECANCELED);
        }
        slot_free(&source->slot);
}

void id_source_release(struct id_source *source, void (*released)(void *self), void *self)
{
        uint64_t until_ms = id_generator_stop(&source->generator);
        source->released = released;
        source->released_self = self;
        if (!slot_release(&source->slot, until_ms))
                on_released(source);
}

void id_source_session(struct id_source *source, enum coord_state state, uint64_t session)
{
        slot_session(&source->slot, state, session);
}

void id_source_look(struct id_source *source)
{
        slot_look(&source->slot);
}
