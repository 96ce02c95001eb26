#include "ring/layout.h"

#include <errno.h>
#include <string.h>

#include "base/numbers.h"

#define PAGE 4096

static size_t align_to(size_t size, size_t alignment)
{
        return (size + alignment - 1) / alignment * alignment;
}

/* Reserves `size` bytes at the end of the layout and returns their offset. */
static size_t place(struct ring_offsets *o, size_t size)
{
        size_t at = o->total;
        o->total = align_to(at + size, PAGE);
        return at;
}

int ring_offsets(const struct ring_shape *shape, struct ring_offsets *ret)
{
        const uint64_t bytes_max = UINT64_C(256) << 20;
        uint32_t entries = shape->entries;
        if (!shape->seats || shape->seats > RING_SEATS_MAX || !entries || entries > 65536 || (entries & (entries - 1)))
                return -EINVAL;
        if (shape->task_bytes_max > bytes_max || shape->answer_bytes_max > bytes_max)
                return -EINVAL;
        struct ring_offsets o = { 0 };
        (void)place(&o, sizeof(struct ring_header));
        o.submit_cells = place(&o, entries * sizeof(uint64_t));
        o.answer_cells = place(&o, entries * sizeof(uint64_t));
        o.entries = place(&o, entries * sizeof(struct ring_entry));
        o.answers = place(&o, entries * sizeof(struct ring_answer));
        o.seats = place(&o, shape->seats * sizeof(struct ring_seat));
        o.task_spill_stride = align_to(shape->task_bytes_max, PAGE);
        o.answer_spill_stride = align_to(shape->answer_bytes_max, PAGE);
        o.task_spills = place(&o, RING_SPILLS * o.task_spill_stride);
        o.answer_spills = place(&o, RING_SPILLS * o.answer_spill_stride);
        *ret = o;
        return 0;
}

void ring_map_init(struct ring_map *map, void *base, const struct ring_shape *shape)
{
        *map = (struct ring_map){ .base = base, .shape = *shape };
        (void)ring_offsets(shape, &map->offsets);
        const struct ring_offsets *o = &map->offsets;
        map->header = base;
        map->submit_cells = (_Atomic uint64_t *)(map->base + o->submit_cells);
        map->answer_cells = (_Atomic uint64_t *)(map->base + o->answer_cells);
        map->entries = (struct ring_entry *)(map->base + o->entries);
        map->answers = (struct ring_answer *)(map->base + o->answers);
        map->seats = (struct ring_seat *)(map->base + o->seats);
}

uint8_t *ring_task_spill(const struct ring_map *map, uint32_t index)
{
        return map->base + map->offsets.task_spills + index * map->offsets.task_spill_stride;
}

uint8_t *ring_answer_spill(const struct ring_map *map, uint32_t index)
{
        return map->base + map->offsets.answer_spills + index * map->offsets.answer_spill_stride;
}

void ring_words_put(_Atomic uint64_t *words, const void *from, size_t size)
{
        const uint8_t *bytes = from;
        for (size_t done = 0; done < size; done += sizeof(uint64_t)) {
                uint64_t word = 0;
                size_t part = min_u64(size - done, sizeof(word));
                memcpy(&word, bytes + done, part);
                atomic_store_explicit(&words[done / sizeof(word)], word, memory_order_relaxed);
        }
}

void ring_words_get(void *to, const _Atomic uint64_t *words, size_t size)
{
        uint8_t *bytes = to;
        for (size_t done = 0; done < size; done += sizeof(uint64_t)) {
                uint64_t word = atomic_load_explicit(&words[done / sizeof(word)], memory_order_relaxed);
                size_t part = min_u64(size - done, sizeof(word));
                memcpy(bytes + done, &word, part);
        }
}
