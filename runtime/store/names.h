/* names.h: keys that wait for a name instead of a time.
 *
 * STORE_DIVERT may say what a key waits for: `handler:mail` (paused, or not served here), `limit:api/tenant-7`.  Such a
 * key has no due time and costs nothing while it waits; claim puts its new tasks behind the others, as for any key with
 * a record.  It is found in an index by name, in the order in which the keys began to wait.
 *
 * Only the owner of a shard knows whether a name is open, so only it wakes keys: store_wake() makes some of them due,
 * and the next advance claims their heads, in order.  A wake that was lost with its owner is made again by the next
 * one, who asks store_names() what keys of the shard wait for, if `has_names` of its acquire says that some do. */
#ifndef QUIVER_STORE_NAMES_H
#define QUIVER_STORE_NAMES_H

#include "store/store.h"

#define STORE_NAME_MAX   200u /* bytes */
#define STORE_CALL_NAMES 64u  /* names that one call returns */

/* 1 to STORE_NAME_MAX printable ASCII characters, no space. */
bool store_name_is_good(struct span name);

/* Up to `max` keys that wait for `name` are due from now on: those that have waited longest.  A numbered call, fenced
 * as an advance; a repeat wakes nobody.  Claims nothing, and does not renew the lease. SQLite: 1 row per key.  Redis:
 * one script, 4 commands per key. */
struct store_wake {
        struct store_request request;
        struct store_lease lease;
        uint64_t call;
        struct span name;
        uint32_t max; /* cut to STORE_CALL_TASKS */

        enum store_verdict verdict;
        uint32_t woken; /* 0 in a repeat */
        bool has_more;  /* others wait for that name */
};
void store_wake(struct store *store, struct store_wake *wake);

/* What keys of a shard wait for, by name.  Changes nothing, so it has no call number.
 * SQLite: 1 row per name.  Redis: one script, read-only, 1 command per name. */
struct store_names {
        struct store_request request;
        struct store_lease lease;
        struct span after; /* names behind this one; empty: from the first */

        enum store_verdict verdict;
        struct span *names;
        uint32_t names_count; /* ≤ STORE_CALL_NAMES */
        bool has_more;        /* ask again with after = the last one */
};
void store_names(struct store *store, struct store_names *names);

#endif
