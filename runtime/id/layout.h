/* layout.h: how the 63 bits of an id are divided: time, slot, sequence.
 *
 * Two kinds, bit for bit those of the well-known generators, so that ids of both can be read and continued:
 *
 *         snowflake   time (41 bits of 1 ms) | slot (10: data centre 5, worker 5) | sequence (12)
 *         sonyflake   time (39 bits of 10 ms) | sequence (8) | slot (16)
 *
 * Epoch and widths can be changed.  Plain data, no clock. */
#ifndef QUIVER_ID_LAYOUT_H
#define QUIVER_ID_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"

#define ID_BITS         63u
#define ID_SLOT_BITS    22u                 /* the largest width of a slot */
#define ID_EPOCH_MAX_MS (UINT64_C(1) << 46) /* the year 4199 */
#define ID_LAYOUT_MAX   64u                 /* bytes of a layout as text, with the NUL */

enum id_kind { ID_SNOWFLAKE, ID_SONYFLAKE };

struct id_layout {
        enum id_kind kind;
        uint8_t time_bits;
        uint8_t slot_bits;
        uint8_t sequence_bits;
        uint64_t epoch_ms; /* unix time of the id 0 */
};

/* The standard widths and epoch of the kind. */
struct id_layout id_layout_standard(enum id_kind kind);
const char *id_kind_name(enum id_kind kind);
/* Milliseconds per unit of time. */
uint32_t id_unit_ms(const struct id_layout *layout);

/* Each part must have at least one bit, all together 63, and the slot at most ID_SLOT_BITS.  0, or -EINVAL with the
 * text set. */
int id_layout_check(const struct id_layout *layout, struct error *error);
bool id_layout_is_same(const struct id_layout *a, const struct id_layout *b);
/* The first millisecond without ids. */
uint64_t id_layout_end_ms(const struct id_layout *layout);

/* The recorded form: "41.10.12" (time, slot, sequence), preceded by "sonyflake:" for that kind, and followed by
 * "@EPOCH" if that is not the kind's own.  An empty text is the standard snowflake. */
bool id_layout_read(struct span text, struct id_layout *ret_layout);
void id_layout_put(struct buffer *to, const struct id_layout *layout);

/* The parts of an id, each below its width. */
struct id_parts {
        uint64_t time; /* units since the epoch */
        uint32_t slot;
        uint64_t sequence;
};
uint64_t id_compose(const struct id_layout *layout, const struct id_parts *parts);
struct id_parts id_decompose(const struct id_layout *layout, uint64_t id);
/* The difference of two ids of one unit with consecutive sequences. */
uint64_t id_step(const struct id_layout *layout);
/* Unix time of the unit. */
uint64_t id_time_ms(const struct id_layout *layout, uint64_t time);

#endif
