/* idempotency.h: what makes a submit safe to repeat.  Plain data: the drivers keep the records.
 *
 * A record says: under this name, for this key, this task was taken.  The name is the client's (an HTTP
 * Idempotency-Key, say).  The digest tells a repeat from another task that was given the same name by mistake. */
#ifndef QUIVER_STORE_IDEMPOTENCY_H
#define QUIVER_STORE_IDEMPOTENCY_H

#include "base/sha256.h"
#include "task/envelope.h"

/* A name has 1 to 255 bytes and no control characters.  0, or -EINVAL with the text set. */
int idempotency_check(struct span name, struct error *error);

/* SHA-256 of what a client asked for: "delay NUMBER\n", then the envelope in its canonical form with lane, options,
 * headers and payload.  Left out is what differs from try to try: id and `submitted`, which are made for each, and the
 * headers `traceparent` and `tracestate`, which name the call and not the task.  envelope_check() must accept it. */
void idempotency_digest(const struct envelope *envelope, uint64_t delay_ms, uint8_t ret_digest[SHA256_SIZE]);

/* Under which name a record stands in its shard: the client's name, a newline, the task's key (empty: none). */
#define IDEMPOTENCY_SCOPE_MAX (2u * TASK_KEY_MAX + 1u)
struct span idempotency_scope(struct span name, struct span key, char scope[IDEMPOTENCY_SCOPE_MAX]);
/* The two parts of it; false if it is none. */
bool idempotency_scope_split(struct span scope, struct span *ret_name, struct span *ret_key);

/* A record as another store had it.  Its task may be in another shard: one without a key is loaded to where its old
 * shard's tasks go, and its record to where the name will be looked for. */
struct store_remembered {
        struct span scope;
        struct span id;     /* of the task */
        struct span digest; /* SHA256_SIZE bytes */
        uint64_t left_ms;   /* for so long it is still remembered; never 0 */
};
bool idempotency_is_fit(const struct store_remembered *record);

#endif
