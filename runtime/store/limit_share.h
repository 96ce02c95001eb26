/* limit_share.h: how much of a limit a holder gets.  Plain data, no I/O, no clock: a value's record and the time go in,
 * a new record comes out.  redis/lua/records/limit_take.lua decides the same on Redis, and tests/contract compares the
 * two.
 *
 * A record is text.  Of a rate: `LEVEL AT`, and `LEVEL AT CLOSED` if it was closed until then.  A token is period_ms of
 * level; every ms after AT adds `rate`, up to burst tokens.  So there are no fractions.  Of a concurrency:
 * `NONCE:SHARES:UNTIL` or `NONCE:SHARES:UNTIL:CALL` of each holder, with a space between two; one without shares waits
 * for some, and CALL is the number of its last call.  The nonce of
 * nothing but f is no holder's: until then it is closed.  What cannot be read counts as used up: a rate begins empty, a
 * concurrency is held by nobody for a lease and grace. */
#ifndef QUIVER_STORE_LIMIT_SHARE_H
#define QUIVER_STORE_LIMIT_SHARE_H

#include "base/buffer.h"
#include "store/limits.h"

struct limit_share {
        const struct store_limit *limit;
        const uint8_t *holder;
        uint64_t lease_ms;
        uint64_t call;
        uint64_t now_ms;
        uint64_t want, keep, close_ms;
        struct span record;   /* empty: the value is at rest */
        bool is_record_there; /* also an empty text may stand there */

        uint64_t granted;
        uint64_t left_ms;
        uint64_t retry_ms;
        uint64_t closed_ms;
        bool has_waiting, is_over;
        struct buffer after; /* the new record; empty: the value is at rest.  The caller frees it */
        bool is_changed;     /* `after` is to be stored */
        uint64_t rest_ms;    /* when the value is at rest, unless somebody takes more */
};
void limit_share_take(struct limit_share *share);

/* What a record says at that time. */
void limit_share_look(
        const struct store_limit *limit, struct span record, uint64_t now_ms, struct store_limit_value *value);

/* A definition as text, `VERSION RATE PERIOD BURST CONCURRENCY GRACE VALUES`, as both drivers keep it. */
void limit_put(struct buffer *to, const struct store_limit *limit);
/* False: it is none; all numbers are then as they were. */
bool limit_read(struct span text, struct store_limit *limit);
/* What is wrong with a definition; NULL: nothing. */
const char *limit_wrong(const struct store_limit *limit);

#endif
