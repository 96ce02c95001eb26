/* whereabouts.h: where a task is and why it does not run: on which host, in which process, since when, how far; or
 * waiting: for what, behind which task, claimed by whom.
 *
 * Made of the documents of the hosts (host/report/status.h, host/report/survey.h) and of the desired state, once for
 * any number of tasks.  A document may say anything: what is not as expected counts as nothing. */
#ifndef QUIVER_VIEW_WHEREABOUTS_H
#define QUIVER_VIEW_WHEREABOUTS_H

#include <jansson.h>

#include "store/admin.h"

/* Started by whereabouts_init(). */
struct whereabouts {
        json_t *hosts;    /* nonce → name */
        json_t *running;  /* id → what a host says of it, with its name */
        json_t *by_key;   /* key → the same, of what runs for that key */
        json_t *handlers; /* name → a list of what hosts say of it, each with its name and the document's age */
        json_t *unserved; /* name → true: a host has tasks of it and no handler */
        json_t *paused;   /* handler, or "" for all → why */
        json_t *limited;  /* handler → a limit that tasks wait for in a host's windows */
        uint64_t more;    /* tasks that run for long and that no document has room for */
};

/* Whether the key waits because the handler of its first task said LATER. */
bool whereabouts_said_later(const struct store_key_info *key);

void whereabouts_init(struct whereabouts *w);
void whereabouts_free(struct whereabouts *w);
void whereabouts_add_desired(struct whereabouts *w, const struct store_desired *item);
void whereabouts_add_status(struct whereabouts *w, const struct store_status *document);
void whereabouts_add_running(struct whereabouts *w, const struct store_status *document);

/* What is known of the place that a task has in the store. */
struct whereabouts_place {
        const struct store_counts *shard; /* NULL: not known */
        const struct store_key_info *key; /* NULL: not known */
};

/* What is known of it besides what the store keeps: `state` (waiting, running, delayed, parked, held, dead), `stored`
 * (the store's own word) and, as far as they apply, `host`, `pid`, `generation`, `hash` (or `worker`, `until_ms`),
 * `since_ms`, `progress`; `waits_for`, `behind`, `claimed_by`; `start` (holder, host, epoch,
 * until_ms) of one whose start is recorded durably; `suspect`. */
json_t *whereabouts_of(
        const struct whereabouts *w, const struct store_listed *task, const struct whereabouts_place *place);
/* The same for people, on lines of fields. */
void whereabouts_as_text(struct buffer *to, const json_t *whereabouts, uint64_t now_ms);
/* In a few words. */
void whereabouts_as_words(struct buffer *to, const json_t *whereabouts, uint64_t now_ms);

/* What runs, as the documents say. */
const json_t *whereabouts_running(const struct whereabouts *w);
/* What runs for a key; NULL: nothing that has been running for long. */
const json_t *whereabouts_of_key(const struct whereabouts *w, struct span key);
/* Why nothing of a handler starts: paused, unavailable, quarantined, unserved.  False: it is not known that it does
 * not. */
bool whereabouts_handler_waits(const struct whereabouts *w, const char *handler, struct buffer *why);

#endif
