/* done.h: what became of a done task: when, on which host, in which attempt and generation, and how long it ran.
 *
 * The store keeps nothing of a done task.  Each host remembers the last ones that it did and writes them to the store
 * (host/report/done_document.h); a search looks for an id in all of these documents.  A document is input: malformed
 * parts are ignored. */
#ifndef QUIVER_VIEW_DONE_H
#define QUIVER_VIEW_DONE_H

#include <jansson.h>

#include "store/admin.h"

/* Initialise with done_search_init(). */
struct done_search {
        struct span id;  /* borrowed */
        uint64_t now_ms; /* wall clock */
        json_t *found;   /* NULL: not found yet.  `id`, `state` ("done"), `host`, `handler`, `generation`, `hash`,
                          * `pid`, `attempt`, `at_ms`, `ago_ms`, `ran_ms` and, if there was one, `result_bytes` */
        json_t *hosts;   /* per host: `name`, `since_ms` and `until_ms` (wall clock), `kept` */
};

void done_search_init(struct done_search *search, struct span id, uint64_t now_ms);
void done_search_free(struct done_search *search);

/* Searches a host's document from the store, or one that the host has just made; `found` gets the latest task of that
 * id. */
void done_search_add(struct done_search *search, const struct store_status *document);
void done_search_add_now(struct done_search *search, const json_t *document);

void done_as_text(struct buffer *to, const json_t *found);
/* Why a task that is not in the store was not found either: how far back the hosts remember.  A sentence without its
 * full stop. */
void done_search_missing(struct buffer *to, const struct done_search *search);

#endif
