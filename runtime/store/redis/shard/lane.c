/* lane.c: the driver's view of claimed tasks that are still in their lane's list.
 *
 * They are the list's first elements.  The store has the same view as a text (lua/lib/claimed.lua), and executes a call
 * as meant only if both agree.  Plain data, no I/O. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "store/redis/redis_store.h"

void lane_forget(struct redis_lane *lane)
{
        free(lane->places);
        lane->places = NULL;
        lane->count = lane->room = 0;
        lane->bytes = 0;
}

void view_forget(struct redis_shard *shard, enum redis_view view)
{
        for (unsigned lane = 0; lane < LANES; lane++) {
                lane_forget(&shard->lanes[lane]);
                if (view == VIEW_EMPTY)
                        lane_remember(&shard->lanes[lane], 0, (struct span){ 0 });
        }
        shard->view = view;
}

static uint32_t look_size(struct span bytes)
{
        return (uint32_t)min_u64(bytes.size, LANE_LOOK_BYTES);
}

void lane_remember(struct redis_lane *lane, uint64_t number, struct span bytes)
{
        lane->last_number = number;
        lane->last_size = look_size(bytes);
        if (lane->last_size > lane->last_room) {
                lane->last_room = lane->last_size;
                lane->last = memory_resize(lane->last, lane->last_room);
        }
        if (lane->last_size) {
                memcpy(lane->last, bytes.data, lane->last_size);
                return;
        }
        free(lane->last);
        lane->last = NULL;
        lane->last_room = 0;
}

struct span lane_last(const struct redis_lane *lane)
{
        return (struct span){ lane->last, lane->last_size };
}

void lane_see(struct redis_lane *lane, struct span bytes)
{
        uint64_t size = bytes.size;
        lane->average = (uint32_t)(lane->average ? (lane->average * UINT64_C(63) + size + 63) / 64 : size);
}

uint64_t lane_large(const struct redis_lane *lane)
{
        return UINT64_C(2) * lane->average + 64;
}

/* The checksum that lua/lib/claimed.lua computes.  With 16-bit factors the compiler does eight bytes at a time. */
static uint32_t look_sum(struct span bytes)
{
        uint32_t sum = 0;
        uint16_t weight = 0;
        for (uint32_t i = 0; i < bytes.size; i++) {
                weight = (uint16_t)(weight + 40503u);
                sum += (uint32_t)weight * (uint8_t)bytes.data[i];
        }
        return sum & INT32_MAX;
}

void lane_add(struct redis_lane *lane, struct span bytes)
{
        uint32_t sum = look_sum((struct span){ bytes.data, look_size(bytes) });
        if (lane->count == lane->room) {
                lane->room = lane->room ? lane->room * 2 : 64;
                lane->places = memory_resize(lane->places, lane->room * sizeof(*lane->places));
        }
        lane->places[lane->count++] = (struct redis_place){ .size = (uint32_t)bytes.size, .sum = sum };
        lane->bytes += bytes.size;
}

bool lane_has(const struct redis_lane *lane, uint64_t number)
{
        return number > lane->base && number <= lane->base + lane->count;
}

enum lane_mark lane_mark_done(struct redis_lane *lane, uint64_t number)
{
        if (!lane_has(lane, number))
                return LANE_ELSEWHERE;
        struct redis_place *place = &lane->places[number - lane->base - 1];
        if (place->is_done)
                return LANE_GONE;
        place->is_done = 1;
        return LANE_DONE;
}

uint32_t lane_trim(struct redis_lane *lane)
{
        uint32_t trimmed = 0;
        while (trimmed < lane->count && lane->places[trimmed].is_done)
                lane->bytes -= lane->places[trimmed++].size;
        lane->count -= trimmed;
        lane->base += trimmed;
        if (trimmed)
                memmove(lane->places, lane->places + trimmed, lane->count * sizeof(*lane->places));
        return trimmed;
}

void lane_text(const struct redis_lane *lane, struct buffer *text)
{
        uint32_t last = lane->count;
        while (last && !lane->places[last - 1].is_done)
                last--;
        if (!last)
                return;
        buffer_put(text, ":", 1);
        for (uint32_t from = 0; from < last; from += 4) {
                unsigned digit = 0;
                for (uint32_t i = from; i < from + 4 && i < last; i++)
                        digit |= lane->places[i].is_done ? 1u << (i - from) : 0;
                buffer_put(text, &"0123456789abcdef"[digit], 1);
        }
        buffer_printf(text, ":%" PRIu32 ".%" PRIu32, lane->places[last - 1].size, (uint32_t)lane->places[last - 1].sum);
}
