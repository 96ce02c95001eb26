/* status.h: what `quiver status` found out, and the two ways to show it. */
#ifndef QUIVER_CLI_STATUS_H
#define QUIVER_CLI_STATUS_H

#include <jansson.h>

#include "cli/open.h"

#define STATUS_NONCE_TEXT (2 * STORE_NONCE_SIZE + 1)

/* Zero-initialised is empty. */
struct status {
        struct store_counts *counts; /* one per shard */
        uint32_t shards;
        uint32_t owned; /* of these, under a lease that lasts */
        struct qv_client_counts total;
        json_t *paused;    /* handler, or "" for all → why */
        json_t *desired;   /* whatever else people asked for: name → value */
        json_t *documents; /* what the hosts say, each with "nonce" and "age_ms" */
        /* Out of these, as --json shows them: */
        json_t *members;
        json_t *handlers; /* merged by name over all hosts */
        json_t *rates;
};

/* Asks the store.  0 or -errno with the text; status_free() either way. */
int status_ask(struct cli_store *s, struct status *ret, struct error *error);
void status_free(struct status *status);

/* Fills in members, handlers and rates.  A document may say anything: what is not as expected counts as nothing. */
void status_merge(struct status *status);

/* Prints it all: on several lines, or on one. */
void status_print_json(const struct cli_store *s, const struct status *status, bool is_wide);
/* Prints what goes on a screen of so many lines.  Sorts the counts. */
void status_print_text(const struct cli_store *s, struct status *status, unsigned lines);

const char *status_nonce(char text[STATUS_NONCE_TEXT], const uint8_t nonce[STORE_NONCE_SIZE]);
/* Members of JSON objects that may be something else: "" and 0 then. */
const char *status_text(const json_t *object, const char *name);
uint64_t status_number(const json_t *object, const char *name);

#endif
