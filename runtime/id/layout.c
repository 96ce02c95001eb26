#include "id/layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct id_layout standards[] = {
        [ID_SNOWFLAKE] = { ID_SNOWFLAKE, 41, 10, 12, UINT64_C(1288834974657) }, /* 2010-11-04T01:42:54.657Z */
        [ID_SONYFLAKE] = { ID_SONYFLAKE, 39, 16, 8, UINT64_C(1409529600000) },  /* 2014-09-01T00:00:00Z */
};

static const char *const names[] = { [ID_SNOWFLAKE] = "snowflake", [ID_SONYFLAKE] = "sonyflake" };

struct id_layout id_layout_standard(enum id_kind kind)
{
        return standards[kind];
}

const char *id_kind_name(enum id_kind kind)
{
        return names[kind];
}

uint32_t id_unit_ms(const struct id_layout *layout)
{
        return layout->kind == ID_SONYFLAKE ? 10 : 1;
}

int id_layout_check(const struct id_layout *l, struct error *error)
{
        unsigned all = (unsigned)l->time_bits + l->slot_bits + l->sequence_bits;
        if (!l->time_bits || !l->slot_bits || !l->sequence_bits || all != ID_BITS)
                return error_set(error, -EINVAL,
                        "an id has 63 bits, at least one each for time, slot and sequence; %u + %u + %u are %u",
                        l->time_bits, l->slot_bits, l->sequence_bits, all);
        if (l->slot_bits > ID_SLOT_BITS)
                return error_set(error, -EINVAL, "a slot has at most %u bits, not %u", ID_SLOT_BITS, l->slot_bits);
        if (l->epoch_ms > ID_EPOCH_MAX_MS)
                return error_set(error, -EINVAL, "the epoch lies too far ahead");
        return 0;
}

bool id_layout_is_same(const struct id_layout *a, const struct id_layout *b)
{
        return a->kind == b->kind && a->time_bits == b->time_bits && a->slot_bits == b->slot_bits &&
               a->sequence_bits == b->sequence_bits && a->epoch_ms == b->epoch_ms;
}

uint64_t id_layout_end_ms(const struct id_layout *layout)
{
        uint64_t units = UINT64_C(1) << layout->time_bits;
        uint64_t end_ms;
        if (__builtin_mul_overflow(units, id_unit_ms(layout), &end_ms) ||
                __builtin_add_overflow(end_ms, layout->epoch_ms, &end_ms))
                return UINT64_MAX;
        return end_ms;
}

/* --- as text ----------------------------------------------------------------------------------------------------- */

/* Reads one or more digits from *at on, and moves *at past them. */
static bool number_read(struct span text, size_t *at, uint64_t max, uint64_t *ret)
{
        uint64_t number = 0;
        size_t begin = *at;
        for (; *at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9'; ++*at) {
                number = number * 10 + (uint64_t)(text.data[*at] - '0');
                if (number > max)
                        return false;
        }
        *ret = number;
        return *at > begin;
}

bool id_layout_read(struct span text, struct id_layout *ret_layout)
{
        static const char prefix[] = "sonyflake:";
        bool is_sony = text.size >= sizeof(prefix) - 1 && !memcmp(text.data, prefix, sizeof(prefix) - 1);
        struct id_layout layout = standards[is_sony ? ID_SONYFLAKE : ID_SNOWFLAKE];
        size_t at = is_sony ? sizeof(prefix) - 1 : 0;
        uint64_t bits[3] = { 0 };
        *ret_layout = layout;
        if (!text.size)
                return true;
        for (unsigned i = 0; i < 3; i++) {
                if (i && (at == text.size || text.data[at++] != '.'))
                        return false;
                if (!number_read(text, &at, ID_BITS, &bits[i]))
                        return false;
        }
        if (at < text.size && (text.data[at++] != '@' || !number_read(text, &at, ID_EPOCH_MAX_MS, &layout.epoch_ms)))
                return false;
        layout.time_bits = (uint8_t)bits[0];
        layout.slot_bits = (uint8_t)bits[1];
        layout.sequence_bits = (uint8_t)bits[2];
        if (at != text.size || id_layout_check(&layout, NULL) < 0)
                return false;
        *ret_layout = layout;
        return true;
}

void id_layout_put(struct buffer *to, const struct id_layout *l)
{
        buffer_printf(to, "%s%u.%u.%u", l->kind == ID_SONYFLAKE ? "sonyflake:" : "", l->time_bits, l->slot_bits,
                l->sequence_bits);
        if (l->epoch_ms != standards[l->kind].epoch_ms)
                buffer_printf(to, "@%llu", (unsigned long long)l->epoch_ms);
}

/* --- the parts ---------------------------------------------------------------------------------------------------- */

static unsigned slot_shift(const struct id_layout *l)
{
        return l->kind == ID_SONYFLAKE ? 0 : l->sequence_bits;
}

static unsigned sequence_shift(const struct id_layout *l)
{
        return l->kind == ID_SONYFLAKE ? l->slot_bits : 0;
}

static uint64_t mask_of(unsigned bits)
{
        return (UINT64_C(1) << bits) - 1;
}

uint64_t id_compose(const struct id_layout *l, const struct id_parts *parts)
{
        return parts->time << (l->slot_bits + l->sequence_bits) | (uint64_t)parts->slot << slot_shift(l) |
               parts->sequence << sequence_shift(l);
}

struct id_parts id_decompose(const struct id_layout *l, uint64_t id)
{
        return (struct id_parts){ .time = id >> (l->slot_bits + l->sequence_bits) & mask_of(l->time_bits),
                .slot = (uint32_t)(id >> slot_shift(l) & mask_of(l->slot_bits)),
                .sequence = id >> sequence_shift(l) & mask_of(l->sequence_bits) };
}

uint64_t id_step(const struct id_layout *layout)
{
        return UINT64_C(1) << sequence_shift(layout);
}

uint64_t id_time_ms(const struct id_layout *layout, uint64_t time)
{
        return layout->epoch_ms + time * id_unit_ms(layout);
}
