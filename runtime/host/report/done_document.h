/* done_document.h: the last tasks that a host has done, as a document in the store: so that any host and any command
 * can say what became of them, also after the host has stopped or was started again.
 *
 *         {"name":"host-a","since_ms":61000,"kept":1000,"is_last":false,"kinds":[["mail",3,"9f0c1a2b"]],
 *          "tasks":[["9kq2v7d3c0a8x1m5r4t6-12",0,2,4711,12000,40,12],…]}
 *
 * A kind is a handler, the generation that did the task, and the beginning of its plugin file's hash.  A task, the
 * latest first, is its id, its kind, the attempt that was done, the runner's pid, how long ago that was, how long it
 * ran, and the size of its result (null: none).  Times are ages when the document was written, so that no clocks are
 * compared.  All that was done less than `since_ms` ago is in it; `kept` is how many the host remembers.  The last one,
 * which a host writes when it stops, says so: one that was killed has done more than it wrote down.
 *
 * There is one per host's name and not one per process: it takes the place of its predecessor's, with what that said.
 * It is written when something was done, the less often the longer it is (DONE_BYTES_PER_MS), and expires when its
 * latest task is too old to be remembered. */
#ifndef QUIVER_HOST_REPORT_DONE_DOCUMENT_H
#define QUIVER_HOST_REPORT_DONE_DOCUMENT_H

#include <jansson.h>

#include "host/shard/done_tasks.h"
#include "store/admin.h"

#define DONE_BYTES_PER_MS 8u

/* --- done_document.c --- */

/* The document, at most `max` bytes of it, of what is not older than `age_ms`; `is_last`: the host stops.  The
 * caller's.
 */
char *done_document_make(
        const struct done_tasks *done, const char *host, uint64_t age_ms, bool is_last, uint64_t now_ms, size_t max);
/* The same with the one task of that id, or none.  The caller's. */
json_t *done_document_of(
        const struct done_tasks *done, const char *host, uint64_t age_ms, uint64_t now_ms, struct span id);
/* What a predecessor's document says comes before what is there.  A document may say anything: what is not as expected
 * counts as nothing. */
void done_document_read(struct done_tasks *done, struct span document, uint64_t document_age_ms, uint64_t now_ms);

/* --- done_document_io.c --- */

struct done_report {
        /* set by the caller */
        const char *host;
        uint64_t age_ms; /* older ones are forgotten */
        struct done_tasks *done;

        uint8_t place[STORE_NONCE_SIZE]; /* under which the document stands: made of the host's name */
        struct store_status_list list;
        struct store_status_put put;
        char *document;     /* of the current or latest request */
        uint64_t put_added; /* done->added of that one */
        uint64_t put_ms, pace_ms;
        bool is_reading, has_read; /* the predecessor's */
        bool is_putting;
        bool has_flushed; /* the last one was sent */
};

/* Reads the predecessor's document, or writes ours if there is news and its time has come; `rarer` multiplies that
 * time.  Returns when to look again; UINT64_MAX: at the next news. */
uint64_t done_report_look(struct done_report *r, struct store *store, uint32_t rarer, uint64_t now_ms);
/* Leaving: writes what is not written, if the store takes it.  True once nothing is under way; ask again after the next
 * turn of the loop. */
bool done_report_flush(struct done_report *r, struct store *store, uint64_t now_ms);
void done_report_free(struct done_report *r);

#endif
