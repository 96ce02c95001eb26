/* limits.h: how much of something the whole app may use: shares of named limits.
 *
 * A limit is a rate (tokens per period, with a burst) or a number at once (concurrency), for the app or for each value
 * of something (`by`: a tenant, say).  Whoever starts tasks takes a share first.  A limit has a home of its own, no
 * shard: nobody owns it, a call is one step there, and its clock is the home's.
 *
 * A rate.  Of the tokens of one value, in any time t by the home's clock at most rate × t / period + burst are granted.
 * A token is used within `left_ms` or not at all, and is not given back.  So uses lag behind grants by at most
 * lease_ms: who must not use more than rate × t / period + burst names a burst that is less by rate × lease_ms /
 * period.
 *
 * Concurrency.  A call says how many shares the holder wants in all, and is told how many it has: it takes, renews and
 * gives back, and may be repeated.  Calls of a holder have numbers: one that comes late, after a newer one, changes
 * nothing, for it would take away what the holder has got since.  Nothing is granted that is to start while all that is
 * held is `concurrency` or more.  A share lasts lease_ms from the last call; of a holder that is silent it comes back
 * grace_ms after that, when whatever it was for has been ended.  What a holder says it uses (`keep`) runs already, so
 * it is counted as held even if there is no room for it: the limit was lowered or closed, the holder took the task over
 * from another, or was silent for too long.  Then it gets nothing more, and nor does anybody else.  A holder that gets
 * nothing is remembered as waiting for a moment, so that others hear of it.
 *
 * A value may be closed for a while (`close_ms`): until then nothing more of it is granted to anybody.
 *
 * Hosts may know different definitions for a while: the one with the highest version that the home has seen is used. */
#ifndef QUIVER_STORE_LIMITS_H
#define QUIVER_STORE_LIMITS_H

#include "store/store.h"

#define STORE_LIMIT_ITEMS     64u      /* values of one request */
#define STORE_LIMIT_VALUE_MAX 255u     /* bytes */
#define STORE_LIMIT_MAX       1000000u /* what a rate, a burst, a concurrency and a want may be at most */
#define STORE_LIMIT_PERIOD_MS 172800000u
#define STORE_LIMIT_LEASE_MS  3600000u /* what a lease, a grace and a closure may be at most */
#define STORE_LIMIT_WAIT_MS   2000u    /* so long a holder that got nothing counts as waiting */
#define STORE_LIMIT_VALUES    100000u  /* what values_max may be at most */
#define STORE_LIMIT_HOLDERS   1024u    /* of one value */

struct store_limit {
        struct span name; /* as a handler's */
        uint64_t version; /* of the definition, from 1 */
        uint64_t rate;    /* tokens per period; 0: it is a concurrency */
        uint64_t period_ms;
        uint64_t burst; /* how many tokens there are after a rest, from 1 */
        uint64_t concurrency;
        uint64_t grace_ms;   /* concurrency */
        uint64_t values_max; /* values that are not at rest, from 1 */
};

struct store_limit_item {
        struct span value; /* any bytes, also none: ≤ STORE_LIMIT_VALUE_MAX */
        uint64_t want;     /* a rate: tokens; concurrency: shares in all, 0: gives all back */
        uint64_t keep;     /* concurrency: of these, in use, or may be before the answer comes; ≤ want */
        uint64_t close_ms; /* the value is closed for so long at least; 0: it stays as it is */

        uint64_t granted;   /* of a rate: now; concurrency: in all */
        uint64_t left_ms;   /* what was granted lasts so long from now */
        uint64_t retry_ms;  /* less was granted than wanted: there may be more after this */
        bool is_full;       /* nothing was granted, since there are values_max others that are not at rest */
        bool is_over;       /* concurrency: more is held than there is, so what ends is not replaced */
        bool has_waiting;   /* concurrency: another holder wants some and has none */
        uint64_t closed_ms; /* it is closed for so long from now */
};

/* -ENOTSUP: the app has the feature "limits" not switched on.
 * SQLite: per item 1 row, and 1 per holder.  Redis: one script, per item one HMGET and one HSET. */
struct store_limit_take {
        struct store_request request;
        struct store_limit limit;
        uint8_t holder[STORE_NONCE_SIZE];
        uint64_t lease_ms;
        uint64_t call;                  /* of the holder, of this limit: each has a higher number than the one before */
        struct store_limit_item *items; /* what is granted is written here */
        uint32_t items_count;           /* ≤ STORE_LIMIT_ITEMS; each value once */

        struct store_limit used; /* the definition that was used: this one, or a newer one */
};
void store_limit_take(struct store *store, struct store_limit_take *take);

struct store_limit_value {
        struct span value;
        uint64_t held;    /* concurrency: shares that are held, or not yet back */
        uint64_t holders; /* concurrency: that hold some */
        uint64_t waiting; /* concurrency: that want some and have none */
        uint64_t closed_ms;
        uint64_t tokens; /* a rate: whole ones that there are now */
};

/* A limit as its home has it; changes nothing.  -ENOENT: nobody has used it yet.
 * SQLite: page rows.  Redis: HSCAN. */
struct store_limit_look {
        struct store_request request;
        struct span name;
        uint64_t cursor;      /* 0 at first, then what the last page returned */
        uint32_t page_values; /* ≤ STORE_CALL_TASKS */

        struct store_limit limit;
        uint64_t values_count; /* that are kept */
        uint64_t refused;      /* items that were refused since there were too many values, since the limit was made */
        struct store_limit_value *values;
        uint32_t listed;
        bool is_end;
};
void store_limit_look(struct store *store, struct store_limit_look *look);

#endif
