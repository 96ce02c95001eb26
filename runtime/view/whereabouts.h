/* whereabouts.h: where a task is and why it does not run: its host, process, start and progress; or what it waits for,
 * behind which task, claimed by whom.
 *
 * Made from the hosts' documents (host/report/status.h, host/report/survey.h) and the desired state, once for any
 * number of tasks.  A document is input: malformed parts are ignored. */
#ifndef QUIVER_VIEW_WHEREABOUTS_H
#define QUIVER_VIEW_WHEREABOUTS_H

#include <jansson.h>

#include "store/admin.h"

/* Initialise with whereabouts_init(). */
struct whereabouts {
        json_t *hosts;   /* nonce → name */
        json_t *running; /* id → the running task in a host's document, with the host's name */
        json_t *by_key;  /* key → the running task of that key, in the same form */
        json_t *handlers; /* name → list of what hosts report of it, each with the host's name and the document's age */
        json_t *unserved; /* name → true: a host has such tasks and no handler */
        json_t *paused;   /* handler, or "" for all → why */
        json_t *limited;  /* handler → a limit that tasks wait for in a host's windows */
        uint64_t more;    /* long-running tasks that no document has room for */
};

/* Whether the key waits because the handler of its first task answered LATER. */
bool whereabouts_said_later(const struct store_key_info *key);

void whereabouts_init(struct whereabouts *w);
void whereabouts_free(struct whereabouts *w);
void whereabouts_add_desired(struct whereabouts *w, const struct store_desired *item);
void whereabouts_add_status(struct whereabouts *w, const struct store_status *document);
void whereabouts_add_running(struct whereabouts *w, const struct store_status *document);

/* A task's place in the store. */
struct whereabouts_place {
        const struct store_counts *shard; /* NULL: unknown */
        const struct store_key_info *key; /* NULL: unknown */
};

/* What is known of the task besides the store's record: `state` (waiting, running, delayed, parked, held, dead),
 * `stored` (the store's own word) and, as far as they apply, `host`, `pid`, `generation`, `hash` (or `worker`,
 * `until_ms`), `since_ms`, `progress`; `waits_for`, `behind`, `claimed_by`; `start` (holder, host, epoch, until_ms) of
 * a recorded start; `suspect`. */
json_t *whereabouts_of(
        const struct whereabouts *w, const struct store_listed *task, const struct whereabouts_place *place);
/* As lines of fields, for people. */
void whereabouts_as_text(struct buffer *to, const json_t *whereabouts, uint64_t now_ms);
/* In a few words. */
void whereabouts_as_words(struct buffer *to, const json_t *whereabouts, uint64_t now_ms);

/* All running tasks in the documents. */
const json_t *whereabouts_running(const struct whereabouts *w);
/* The long-running task of a key; NULL: none. */
const json_t *whereabouts_of_key(const struct whereabouts *w, struct span key);
/* Why no task of a handler starts: paused, unavailable, quarantined, unserved.  False: no such reason is known. */
bool whereabouts_handler_waits(const struct whereabouts *w, const char *handler, struct buffer *why);

#endif
