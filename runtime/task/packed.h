/* packed.h: an envelope in fewer bytes, for a store that nobody else writes to.
 *
 * The text of envelope.h costs about 80 bytes besides the payload, most of them names and the id.  This form omits what
 * the place in the store implies (the shard, the lane) and keeps an id that task_id_make() made as its 100 bits:
 *
 *         flags               1 byte with the top bit set, which no text form begins with
 *         key, handler        a length of 1 byte and the text
 *         id                  made: 13 bytes; given: a length of 1 byte and the text; or none
 *         submitted           with a made id: how long after the id's own time; else unix time; or nothing
 *         more                a bit set of further numbers, and these numbers; the lines of unknown names, then the
 *                             headers, each with a length; or nothing
 *         payload             to the end
 *
 * Numbers are written seven bits per byte, the lowest first, with the top bit set in every byte except the last. */
#ifndef QUIVER_TASK_PACKED_H
#define QUIVER_TASK_PACKED_H

#include "task/id.h"

/* Whether these bytes are in the packed form, for packed_parse(). */
static inline bool packed_is(struct span bytes)
{
        return bytes.size && (unsigned char)bytes.data[0] & 0x80;
}

/* Appends an envelope, which envelope_check() must accept, without the payload.  Its id, if it has one, ends in
 * `shard`.  The lane is not kept: the place in the store implies it. */
void packed_put_head(struct buffer *to, const struct envelope *envelope, uint32_t shard);

/* Reads a packed envelope.  0, or -EBADMSG with the text set.  Spans point into `bytes`; a made id is written to
 * `id`. */
int packed_parse(struct span bytes, uint32_t shard, char id[TASK_ID_MADE_ROOM], struct envelope *ret_envelope,
        struct error *error);

#endif
