#include "id/generator.h"

#include "base/clock.h"
#include "base/numbers.h"

static uint64_t sequence_max(const struct id_layout *layout)
{
        return (UINT64_C(1) << layout->sequence_bits) - 1;
}

/* The first unit that begins at `ms` or later. */
static uint64_t unit_from(const struct id_layout *layout, uint64_t ms)
{
        uint64_t unit = id_unit_ms(layout);
        return ms <= layout->epoch_ms ? 0 : (ms - layout->epoch_ms + unit - 1) / unit;
}

void id_generator_init(struct id_generator *g, const struct id_layout *layout)
{
        g->layout = *layout;
        atomic_init(&g->last, 0);
        atomic_init(&g->until_ms, 0);
}

void id_generator_grant(struct id_generator *g, uint32_t slot, uint64_t from_ms, uint64_t until_ms)
{
        const struct id_layout *layout = &g->layout;
        uint64_t was_until_ms = atomic_load(&g->until_ms);
        struct id_parts last = id_decompose(layout, atomic_load(&g->last));
        if (was_until_ms && last.slot == slot && from_ms <= was_until_ms) {
                atomic_store(&g->until_ms, max_u64(was_until_ms, until_ms));
                return;
        }
        /* No id can be taken while the slot changes.  A thread that then sees the new horizon also sees the new slot:
         * an id of the old slot is taken by replacing `last`, which fails once it has changed. */
        atomic_store(&g->until_ms, 0);
        uint64_t seen = atomic_load(&g->last);
        struct id_parts next;
        do {
                last = id_decompose(layout, seen);
                uint64_t first = max_u64(unit_from(layout, from_ms), was_until_ms ? last.time + 1 : 1);
                next = (struct id_parts){ .time = first - 1, .slot = slot, .sequence = sequence_max(layout) };
        } while (!atomic_compare_exchange_weak(&g->last, &seen, id_compose(layout, &next)));
        atomic_store(&g->until_ms, until_ms);
}

static enum id_verdict wait_for(
        const struct id_layout *layout, uint64_t time, uint64_t now_ns, struct id_block *ret_block)
{
        uint64_t at_ns = id_time_ms(layout, time) * NS_PER_MS;
        uint64_t wait_ns = at_ns > now_ns ? at_ns - now_ns : 0;
        ret_block->wait_ns = wait_ns;
        ret_block->back_ms = wait_ns / NS_PER_MS;
        return wait_ns > ID_STEP_MS * NS_PER_MS ? ID_BACKWARD : ID_WAIT;
}

enum id_verdict id_generator_take(struct id_generator *g, uint64_t now_ns, uint32_t want, struct id_block *ret_block)
{
        const struct id_layout *layout = &g->layout;
        uint64_t now_ms = now_ns / NS_PER_MS;
        uint64_t unit_ms = id_unit_ms(layout);
        if (now_ms < layout->epoch_ms)
                return ID_OVERFLOW;
        uint64_t now = (now_ms - layout->epoch_ms) / unit_ms;
        if (now >> layout->time_bits)
                return ID_OVERFLOW;
        uint64_t seen = atomic_load(&g->last);
        for (;;) {
                struct id_parts parts = id_decompose(layout, seen);
                uint64_t until_ms = atomic_load(&g->until_ms);
                uint64_t full = sequence_max(layout);
                if (parts.time < now)
                        parts = (struct id_parts){ .time = now, .slot = parts.slot };
                else if (parts.sequence < full)
                        parts.sequence++;
                else
                        parts = (struct id_parts){ .time = parts.time + 1, .slot = parts.slot };
                if (!until_ms)
                        return ID_BEYOND;
                if (parts.time > now)
                        return wait_for(layout, parts.time, now_ns, ret_block);
                if (id_time_ms(layout, parts.time) + unit_ms > until_ms)
                        return ID_BEYOND;
                struct id_parts to = parts;
                uint32_t count = (uint32_t)min_u64(want, full - parts.sequence + 1);
                to.sequence += count - 1;
                if (atomic_compare_exchange_weak(&g->last, &seen, id_compose(layout, &to))) {
                        *ret_block = (struct id_block){
                                .first = id_compose(layout, &parts), .step = id_step(layout), .count = count
                        };
                        return ID_GIVEN;
                }
        }
}

uint64_t id_generator_stop(struct id_generator *g)
{
        uint64_t until_ms = atomic_exchange(&g->until_ms, 0);
        struct id_parts last = id_decompose(&g->layout, atomic_load(&g->last));
        return min_u64(until_ms, id_time_ms(&g->layout, last.time + 1));
}
