/* results_act.h: takes results for a while, and says that they have been dealt with.
 *
 * Each result comes with a receipt: a text that names the result and who holds it.  Whoever has the receipt can commit
 * the result, through any host, and no host has to remember anything. */
#ifndef QUIVER_LOOK_RESULTS_ACT_H
#define QUIVER_LOOK_RESULTS_ACT_H

#include <jansson.h>

#include "look/look.h"

/* --- taking --- */

#define RESULTS_TAKE_STEP  32u  /* results of one request to the store: so many may be beyond bytes_max */
#define RESULTS_TAKE_CALLS 256u /* requests to the store; a shard whose results are all held costs one, too */

/* Zeroed but for what the caller sets, then results_take_init(). */
struct results_take {
        struct look look;
        uint32_t max;
        size_t bytes_max; /* stops once it has so many */
        uint64_t lease_ms;
        uint8_t consumer[STORE_NONCE_SIZE]; /* random: nobody else's */

        json_t *found; /* a list of result_as_json() with `receipt`; also what was taken before a request failed */
        bool has_more; /* There may be others that nobody holds. */

        /* private */
        struct store_counts *counts;
        uint32_t first, at; /* the shard that was asked first; how many after it */
        uint32_t calls;
        size_t bytes;
        bool has_counts;
};

void results_take_init(struct results_take *take);
void results_take_free(struct results_take *take);

/* --- committing --- */

#define RESULT_RECEIPT_MAX 96

struct result_receipt {
        uint32_t shard;
        uint64_t number;
        uint8_t consumer[STORE_NONCE_SIZE];
};

/* Returns `text`. */
const char *result_receipt_text(char text[RESULT_RECEIPT_MAX], const struct result_receipt *receipt);
/* False: it is none of an app with so many shards. */
bool result_receipt_parse(const char *text, uint32_t shards, struct result_receipt *ret_receipt);

/* Zeroed, then results_commit_read(). */
struct results_commit {
        struct look look;

        uint64_t committed; /* also before a request failed */
        json_t *refused;    /* receipts of those that were committed before, or that another consumer has taken */

        /* private */
        struct result_receipt *receipts;
        size_t count, at;
        uint64_t numbers[STORE_CALL_TASKS];
        bool held[STORE_CALL_TASKS];
};

/* Reads {"receipts": [TEXT, …]}, at most `max`.  0, or -EINVAL with the text; free it in either case. */
int results_commit_read(
        struct results_commit *commit, struct span body, uint32_t shards, size_t max, struct error *error);
void results_commit_free(struct results_commit *commit);

#endif
