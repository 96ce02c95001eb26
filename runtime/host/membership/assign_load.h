/* assign_load.h: evens out the load of members by exchanging two shards.  Used by assign.c only.
 *
 * Counts come first: a busy shard of a member with too much load is exchanged for a quiet one of another, so that both
 * own as many shards as before, and no member has more or fewer than its quota for this reason.  One exchange at a
 * time.  The loads are what members say about themselves (load.h), so they are not trusted: whatever they say, the
 * result is an exchange of two shards or none. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGN_LOAD_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGN_LOAD_H

#include "host/membership/assign_quota.h"

struct load_exchange {
        uint32_t busy, quiet; /* the shards */
        uint32_t from, to;    /* indices into quotas->items: the busy shard's owner, and the quiet one's */
};

/* True: there is an exchange that makes the busier of two members at least an eighth less loaded.  *ret_is_uneven: some
 * member's load is far above the mean, whether or not an exchange would help. */
bool assign_load_find(const struct assignment *previous, const struct assign_input *input, const struct quotas *quotas,
        struct load_exchange *ret_exchange, bool *ret_is_uneven);

#endif
