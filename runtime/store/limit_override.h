/* limit_override.h: what a person has set of a limit for a while, beside the configuration: the value of the desired
 * state `limit.NAME`.
 *
 * Text: `version=N`, then what is set: `rate=20 per=1000 burst=5 concurrency=3`, and `until=MS` (since 1970) if it ends
 * by itself.  Without any of these it was cleared; the record stays, since its version tells the limit's home that what
 * was set before is over (store/limits.h). */
#ifndef QUIVER_STORE_LIMIT_OVERRIDE_H
#define QUIVER_STORE_LIMIT_OVERRIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

#define LIMIT_OVERRIDE_PREFIX "limit."

/* 0: it is not set. */
struct limit_override {
        uint64_t version; /* when it was set, in ms since 1970, or later */
        uint64_t rate, per_ms, burst, concurrency;
        uint64_t until_ms;
};

void limit_override_put(struct buffer *to, const struct limit_override *override);
/* False: it is none. */
bool limit_override_read(struct span text, struct limit_override *ret);
/* Something is set, and its time is not over. */
bool limit_override_is_on(const struct limit_override *override, uint64_t wall_ms);
/* The version that a definition has with it. */
uint64_t limit_override_version(const struct limit_override *override, uint64_t wall_ms);

#endif
