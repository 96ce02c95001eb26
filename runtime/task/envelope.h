/* envelope.h: a task as bytes, the same in every store and every language.
 *
 *         qv1
 *         key:user-17
 *         handler:mail
 *         id:9kq2v7d3c0a8x1m5r4t6-12
 *         submitted:1763256000123
 *         header.traceparent:00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 *         payload, any bytes, to the end
 *
 * The version, then `name:value` lines beginning with the key (empty: none, unordered work), an empty line, the
 * payload. Only key and handler must be there.  Names stand at most once, in any order after the key; header lines come
 * last. Numbers are decimal without sign or leading zeros.  Control characters in a name or value are malformed, and so
 * is a name that is not listed here.  What a store learns about a task later is not in its envelope: see note.h. */
#ifndef QUIVER_TASK_ENVELOPE_H
#define QUIVER_TASK_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"

#define TASK_KEY_MAX     255u
#define TASK_HANDLER_MAX 64u
#define TASK_ID_MAX      64u
#define TASK_HEADERS_MAX 32u
#define TASK_HEAD_MAX    8192u                      /* everything before the payload */
#define TASK_NUMBER_MAX  UINT64_C(9007199254740991) /* 2^53 - 1: what JavaScript and Lua count exactly */

/* Higher lanes are claimed first; order is kept per key within a lane. */
enum lane { LANE_HIGH, LANE_NORMAL, LANE_LOW, LANES };

/* All spans are borrowed: from the parsed bytes, or from whoever fills it in.  Zero and empty mean "not said". */
struct envelope {
        struct span key;     /* empty: none; the id stands in for it */
        struct span handler; /* [A-Za-z][A-Za-z0-9_-]{0,63} */
        struct span id;      /* ends in its shard's number; empty: the store gives one at claim */
        struct span headers; /* `header.NAME:VALUE\n` lines: header_next() reads them, header_put() makes them */
        struct span payload;
        uint64_t not_before_ms; /* unix time before which it is not started */
        uint64_t unique_ms;     /* a second one for handler and key within this time is not taken */
        uint64_t timeout_ms;    /* instead of the handler's */
        uint64_t reply_ms;      /* someone waits for the outcome: keep it this long, apart from the results */
        uint64_t submitted_ms;  /* unix time, for people */
        uint32_t attempts;      /* instead of the handler's */
        enum lane lane;
};

/* "high", "normal", "low". */
const char *lane_name(enum lane lane);
bool lane_parse(struct span name, enum lane *ret_lane);

/* Reads an envelope.  0; -EPROTO: not `qv1`; -EBADMSG: malformed.  The text names the field.  Nothing is copied. */
int envelope_parse(const void *data, size_t size, struct envelope *ret_envelope, struct error *error);

/* Checks what parse would refuse.  0 or -EINVAL; the text names the field. */
int envelope_check(const struct envelope *envelope, struct error *error);

/* Appends the canonical form, up to and without the payload, of an envelope that envelope_check() likes. */
void envelope_put_head(struct buffer *to, const struct envelope *envelope);
/* The same with the payload. */
void envelope_put(struct buffer *to, const struct envelope *envelope);

/* One rule each: 0 or -EINVAL with the reason. */
int task_key_check(struct span key, struct error *error);
int task_handler_check(struct span handler, struct error *error);

/* Appends one header line.  0 or -EINVAL; names are [A-Za-z0-9_-]{1,64}, values at most 1024 bytes. */
int header_put(struct buffer *to, struct span name, struct span value, struct error *error);
/* The first header of *lines, moving *lines past it; false at the end.  Only on lines that were parsed or put. */
bool header_next(struct span *lines, struct span *ret_name, struct span *ret_value);

/* Which of `shards` queues a key belongs to: zlib's CRC-32, modulo. */
uint32_t shard_of_key(struct span key, uint32_t shards);

#endif
