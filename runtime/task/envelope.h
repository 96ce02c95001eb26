/* envelope.h: a task as bytes, the same in every store and every language.
 *
 *         qv1
 *         key:user-17
 *         handler:mail
 *         id:9kq2v7d3c0a8x1m5r4t6-12
 *         submitted:1763256000123
 *         header.traceparent:00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *         header64.digest:AAECA/8=
 *
 *         payload, any bytes, to the end
 *
 * The version, then `name:value` lines of which the key is the first (an empty key means unordered work), an empty
 * line, the payload.  Only key and handler are required.  A name stands at most once, in any order after the key; no
 * name of the list in envelope.c stands after a header.  Numbers are decimal without sign or leading zeros.  A control
 * character in a name or value makes the envelope malformed, so a header whose value is bytes is a header64, in base64
 * with padding.  What a store learns about a task later is not in its envelope: see note.h.
 *
 * Names that this build does not know (`[!][A-Za-z0-9_.-]{1,64}`, values of at most 1024 bytes, at most TASK_OTHERS_MAX
 * lines) are kept, ignored and passed on: a newer Quiver may have written them.  The host that runs the task must
 * understand a name that begins with `!`: if it does not, the task waits. */
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
#define TASK_OTHERS_MAX  16u   /* lines of unknown names; also header64 lines, which older builds do not know */
#define TASK_HEADER_MAX  1024u /* bytes of a header's value that is text */
/* Bytes of a header64 value: its base64 fits the limit on values of builds that do not know header64. */
#define TASK_HEADER_BYTES_MAX 768u
#define TASK_HEAD_MAX         8192u /* everything before the payload */
/* Bytes of all headers and unknown names.  The remaining 1 KiB holds all other fields, each of which has its own
 * limit. */
#define TASK_HEADER_LINES_MAX (TASK_HEAD_MAX - 1024u)
#define TASK_DEBOUNCE_MAX     UINT64_C(86400000)         /* a day, in milliseconds */
#define TASK_NUMBER_MAX       UINT64_C(9007199254740991) /* 2^53 - 1: JavaScript and Lua hold integers exactly up to here */

/* Higher lanes are claimed first; order is kept per key within a lane. */
enum lane { LANE_HIGH, LANE_NORMAL, LANE_LOW, LANES };

/* All spans are borrowed: from the parsed bytes, or from the caller that fills it in.  Zero and empty mean "not
 * set". */
struct envelope {
        struct span key;     /* empty: the task has none, and its id is used as its key */
        struct span handler; /* [A-Za-z][A-Za-z0-9_-]{0,63} */
        struct span id;      /* ends in the shard's number; empty: the store makes one when it claims the task */
        struct span headers; /* `header.NAME:VALUE\n` and `header64.NAME:BASE64\n` lines: header_next() reads them,
                                header_put() and header_put_bytes() make them */
        struct span others;  /* `NAME:VALUE\n` lines of names that this build does not know: others_next() reads them */
        struct span payload;
        uint64_t not_before_ms; /* unix time before which the task is not started */
        uint64_t unique_ms;     /* for this long, a second task of the same handler and key is refused */
        uint64_t timeout_ms;    /* overrides the handler's timeout */
        uint64_t reply_ms;      /* a client waits for the outcome: keep it this long, apart from the results */
        uint64_t submitted_ms;  /* unix time, for people */
        uint64_t debounce_ms;   /* is_merge: how long the first of the merging tasks waits for others */
        uint32_t attempts;      /* overrides the handler's limit */
        enum lane lane;
        bool is_merge; /* may be merged with its neighbours of the same handler and key while they wait; needs a key */
};

/* "high", "normal", "low". */
const char *lane_name(enum lane lane);
bool lane_parse(struct span name, enum lane *ret_lane);

/* Reads an envelope.  0; -EPROTO: not `qv1`; -EBADMSG: malformed.  The text names the field.  Nothing is copied. */
int envelope_parse(const void *data, size_t size, struct envelope *ret_envelope, struct error *error);

/* Checks the fields by the rules of envelope_parse().  0 or -EINVAL; the text names the field. */
int envelope_check(const struct envelope *envelope, struct error *error);

/* Appends the canonical form without the payload.  envelope_check() must accept the envelope. */
void envelope_put_head(struct buffer *to, const struct envelope *envelope);
/* As envelope_put_head(), with the payload. */
void envelope_put(struct buffer *to, const struct envelope *envelope);

/* Each checks one field: 0, or -EINVAL with the text set. */
int task_key_check(struct span key, struct error *error);
int task_handler_check(struct span handler, struct error *error);

/* Appends one header line.  0 or -EINVAL; names are [A-Za-z0-9_-]{1,64}, values at most TASK_HEADER_MAX bytes. */
int header_put(struct buffer *to, struct span name, struct span value, struct error *error);
/* The same for a value of any bytes: without a control character it is an ordinary header with its limit, otherwise it
 * is a header64 of at most TASK_HEADER_BYTES_MAX bytes. */
int header_put_bytes(struct buffer *to, struct span name, struct span value, struct error *error);
/* The same for a value that is given in base64. */
int header_put_base64(struct buffer *to, struct span name, struct span value, struct error *error);

struct task_header {
        struct span name;
        struct span value; /* as in the envelope */
        bool is_base64;    /* the value is in base64: header_put_value() decodes it */
};
/* Reads the next header of *lines and moves *lines past it; false at the end.  `lines` must come from envelope_parse(),
 * header_put() or header_put_bytes(); lines of other names between them are skipped. */
bool header_next(struct span *lines, struct task_header *ret_header);
/* Appends the header's value, as bytes. */
void header_put_value(struct buffer *to, const struct task_header *header);

/* The same for unknown names; the name includes its `!`. */
bool others_next(struct span *lines, struct span *ret_name, struct span *ret_value);
/* The first unknown name with a `!`, without the `!`; empty: none.  A host that finds one does not run the task, which
 * waits for a newer Quiver. */
struct span envelope_needs(const struct envelope *envelope);
/* Refuses names that are reserved for later features (`gate`, `expires`, …) and that this build does not use: nobody
 * would do what a producer wants with them.  In a stored envelope they are kept like any unknown name.  0 or -EINVAL;
 * the text names it. */
int envelope_check_reserved(const struct envelope *envelope, struct error *error);
/* Whether a name is reserved.  For messages about a name that was not given in an envelope. */
bool task_name_is_reserved(struct span name);

/* The task that results when a later one of the same handler and key is merged into `into`: it keeps id, place and
 * submission time, and gets everything else from `later`: payload, headers, timeout, attempts, unknown names.  The
 * outcome is kept for the longer of both times.  Borrows from both. */
struct envelope envelope_merge(const struct envelope *into, const struct envelope *later);

/* The shard, of `shards`, that a key belongs to: zlib's CRC-32 modulo `shards`. */
uint32_t shard_of_key(struct span key, uint32_t shards);

#endif
