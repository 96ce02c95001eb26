/* results_act.h: takes results for a while, and commits them.
 *
 * Each result comes with a receipt: a text that names the result and its holder.  Anybody with the receipt can commit
 * the result through any host, and no host has to remember anything. */
#ifndef QUIVER_LOOK_RESULTS_ACT_H
#define QUIVER_LOOK_RESULTS_ACT_H

#include <jansson.h>

#include "look/look.h"

/* --- taking --- */

#define RESULTS_TAKE_STEP  32u  /* results per store request; up to this many may exceed bytes_max */
#define RESULTS_TAKE_CALLS 256u /* store requests; a shard whose results are all held also costs one */

/* Zero it, set the caller's fields, then call results_take_init(). */
struct results_take {
        struct look look;
        uint32_t max;
        size_t bytes_max; /* stop at this many bytes */
        uint64_t lease_ms;
        uint8_t consumer[STORE_NONCE_SIZE]; /* random, and therefore unique */

        json_t *found; /* a list of result_as_json() with `receipt`; keeps what was taken before a request failed */
        bool has_more; /* there may be further results that nobody holds */

        /* private */
        struct store_counts *counts;
        uint32_t first, at; /* the first shard, and the number of shards after it so far */
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
/* False: it is not a receipt of an app with that many shards. */
bool result_receipt_parse(const char *text, uint32_t shards, struct result_receipt *ret_receipt);

/* Zero it, then call results_commit_read(). */
struct results_commit {
        struct look look;

        uint64_t committed; /* includes those before a request failed */
        json_t *refused;    /* receipts of results that were committed before, or that another consumer has taken */

        /* private */
        struct result_receipt *receipts;
        size_t count, at;
        uint64_t numbers[STORE_CALL_TASKS];
        bool held[STORE_CALL_TASKS];
};

/* Parses {"receipts": [TEXT, …]}, at most `max`.  0, or -EINVAL with the text set; free it in either case. */
int results_commit_read(
        struct results_commit *commit, struct span body, uint32_t shards, size_t max, struct error *error);
void results_commit_free(struct results_commit *commit);

#endif
