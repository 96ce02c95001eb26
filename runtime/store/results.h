/* results.h: what handlers returned, for whoever wants it.
 *
 * A result belongs to its shard and is numbered there.  A consumer takes some for a while and says which ones it is
 * done with; those of a consumer that died come back, in order.  `submit --wait` does not use results but a reply of
 * its own. */
#ifndef QUIVER_STORE_RESULTS_H
#define QUIVER_STORE_RESULTS_H

#include "store/store.h"

#define STORE_RESULTS_LEASED_MAX 1024u /* of one shard, by all consumers */
#define STORE_RESULT_NUMBER_MAX  ((UINT64_C(1) << 50) - 1)

struct store_result {
        uint64_t number;
        uint64_t at_ms; /* store time */
        struct span id;
        struct span key;
        struct span handler;
        struct span data;
        /* What had happened to the task before it was done: counts and history, without checkpoint and marks.  Empty if
         * it was done at its first start. */
        struct task_note note;
};

/* Takes the oldest results of a shard that nobody holds.  Fewer than asked, also none, is not an error.
 * SQLite: the n taken + at most STORE_RESULTS_LEASED_MAX rows read.  Redis: one script; expired leases by score, the
 * rest LPOP. */
struct store_consume {
        struct store_request request;
        uint32_t shard;
        uint8_t consumer[STORE_NONCE_SIZE];
        uint64_t lease_ms;
        uint32_t results_max; /* ≤ STORE_CALL_TASKS */

        struct store_result *results;
        uint32_t results_count;
};
void store_consume(struct store *store, struct store_consume *consume);

/* Done with these: they are gone.  An expired lease that nobody else took still counts.
 * SQLite: n rows.  Redis: one script. */
struct store_commit {
        struct store_request request;
        uint32_t shard;
        uint8_t consumer[STORE_NONCE_SIZE];
        const uint64_t *numbers; /* each ≤ STORE_RESULT_NUMBER_MAX */
        uint32_t numbers_count;  /* ≤ STORE_CALL_TASKS */
        bool *held;              /* one per number: false if it is not ours any more, and was left alone */

        uint32_t refused;
};
void store_commit(struct store *store, struct store_commit *commit);

enum store_reply_state {
        REPLY_PENDING, /* not ended yet; or unknown, or forgotten: its time is over */
        REPLY_DONE,
        REPLY_DEAD,
        REPLY_MERGED /* only in a store: the outcome is that of another task.  A request is led there by itself */
};

#define STORE_REPLY_HOPS 64u /* a task may have been merged into one that then was merged itself, and so on */

/* Waits for the outcome of a task that was submitted with reply_ms.  Of one that was merged into another it is that
 * one's outcome.
 * SQLite: 1 row to announce oneself, then the doorbell.  Redis: a blocking read. */
struct store_reply {
        struct store_request request;
        struct span id;
        uint64_t wait_ms; /* 0: only look */

        enum store_reply_state state;
        struct span data; /* DONE: the result */
        bool has_data;
        struct span reason;    /* DEAD: one word */
        struct task_note note; /* the history, as in store_result; DEAD: the last event says why */

        char into[TASK_ID_MAX + 1]; /* private: it was merged into this one, which is looked for instead */
        uint32_t hops;              /* private: so often it was led on */
        bool is_led_on;             /* private: the last look did */
        uint64_t deadline_ms;       /* private */
        bool is_announced;          /* private */
};
void store_reply(struct store *store, struct store_reply *reply);

/* For drivers.  The task that is to be looked for: what was asked for, or what it was merged into. */
struct span store_reply_id(const struct store_reply *reply);
/* For drivers: it was merged into `into`.  False if that cannot be: it is no task of the same shard, or the way does
 * not end. */
bool store_reply_follow(struct store_reply *reply, struct span into);

#endif
