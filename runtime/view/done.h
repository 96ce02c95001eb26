/* done.h: what became of a task that is done: when, on which host, in which attempt and generation, for how long.
 *
 * The store keeps nothing of a done task.  Each host remembers the last ones that it did and writes them down
 * (host/report/done_document.h); one looks for an id in all of these documents.  A document may say anything: what is
 * not as expected counts as nothing. */
#ifndef QUIVER_VIEW_DONE_H
#define QUIVER_VIEW_DONE_H

#include <jansson.h>

#include "store/admin.h"

/* Started by done_search_init(). */
struct done_search {
        struct span id;  /* borrowed */
        uint64_t now_ms; /* wall clock */
        json_t *found;   /* NULL: not yet.  `id`, `state` ("done"), `host`, `handler`, `generation`, `hash`, `pid`,
                            `attempt`,   `at_ms`, `ago_ms`, `ran_ms` and, if there was one, `result_bytes` */
        json_t *hosts;   /* of each that said something: `name`, `since_ms` and `until_ms` (wall clock), `kept` */
};

void done_search_init(struct done_search *search, struct span id, uint64_t now_ms);
void done_search_free(struct done_search *search);

/* A document, and one that says so of itself now; then the latest of that id is in `found`. */
void done_search_add(struct done_search *search, const struct store_status *document);
void done_search_add_now(struct done_search *search, const json_t *document);

void done_as_text(struct buffer *to, const json_t *found);
/* Why a task that is not in the store was not found here, either: how far back hosts remember.  A sentence without its
 * end. */
void done_search_missing(struct buffer *to, const struct done_search *search);

#endif
