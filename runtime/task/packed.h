/* packed.h: an envelope in fewer bytes, for a store that nobody else writes to.
 *
 * The text of envelope.h costs about 80 bytes besides the payload, most of them names and the id.  This form leaves out
 * what its place says already (the shard, the lane) and keeps an id that was made here as the 100 bits it is:
 *
 *         flags               1 byte, the top bit set; no text begins so
 *         key, handler        a length of 1 byte and the text
 *         id                  made: 13 bytes; given: a length of 1 byte and the text; or none
 *         submitted           with a made id: how long after the id's own time; else unix time; or nothing
 *         more                which of the other numbers follow, and those; the headers with their length; or nothing
 *         payload             to the end
 *
 * Numbers are written seven bits a byte, the lowest first, the top bit set but in the last. */
#ifndef QUIVER_TASK_PACKED_H
#define QUIVER_TASK_PACKED_H

#include "task/id.h"

/* Whether these bytes are to be read with packed_parse(). */
static inline bool packed_is(struct span bytes)
{
        return bytes.size && (unsigned char)bytes.data[0] & 0x80;
}

/* Appends an envelope that envelope_check() likes, up to and without the payload.  Its id, if it has one, ends in
 * `shard`.  Its lane is not kept: the place it is put tells. */
void packed_put_head(struct buffer *to, const struct envelope *envelope, uint32_t shard);

/* Reads what was put.  0, or -EBADMSG with what is wrong.  Nothing is copied, but a made id is written to `id`. */
int packed_parse(struct span bytes, uint32_t shard, char id[TASK_ID_MADE_ROOM], struct envelope *ret_envelope,
        struct error *error);

#endif
