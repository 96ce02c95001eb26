/* done_document.h: the latest tasks that a host has done, as a document in the store, so that any host and any command
 * can say what became of them, also after the host has stopped or was started again.
 *
 *         {"name":"host-a","since_ms":61000,"kept":1000,"is_last":false,"kinds":[["mail",3,"9f0c1a2b"]],
 *          "tasks":[["9kq2v7d3c0a8x1m5r4t6-12",0,2,4711,12000,40,12],…]}
 *
 * A kind is a handler, the generation that did the task, and the beginning of its plugin file's hash.  A task, the
 * latest first, is its id, its kind, the attempt that was done, the runner's pid, how long ago it ended, how long it
 * ran, and the size of its result (null: none).  Times are ages at the time of writing, so that no clocks are compared.
 * Every task done less than `since_ms` ago is in the document; `kept` is how many the host remembers.  `is_last` marks
 * the document of a host that stopped; a killed host has done more than it wrote.
 *
 * There is one document per host name, not per process: a host continues the document of its predecessor.  It is
 * written after tasks were done, less often the longer it is (DONE_BYTES_PER_MS), and expires when its latest task is
 * too old to be remembered. */
#ifndef QUIVER_HOST_REPORT_DONE_DOCUMENT_H
#define QUIVER_HOST_REPORT_DONE_DOCUMENT_H

#include <jansson.h>

#include "host/shard/done_tasks.h"
#include "store/admin.h"

#define DONE_BYTES_PER_MS 8u

/* --- done_document.c --- */

/* The document, at most `max` bytes, of tasks not older than `age_ms`; `is_last`: the host stops.  The caller frees
 * it. */
char *done_document_make(
        const struct done_tasks *done, const char *host, uint64_t age_ms, bool is_last, uint64_t now_ms, size_t max);
/* A document with the one task of that id, or none.  The caller owns it. */
json_t *done_document_of(
        const struct done_tasks *done, const char *host, uint64_t age_ms, uint64_t now_ms, struct span id);
/* Adds the tasks of a predecessor's document before ours.  The document is input: what is malformed is ignored. */
void done_document_read(struct done_tasks *done, struct span document, uint64_t document_age_ms, uint64_t now_ms);

/* --- done_document_io.c --- */

struct done_report {
        /* set by the caller */
        const char *host;
        uint64_t age_ms; /* older tasks are forgotten */
        struct done_tasks *done;

        uint8_t place[STORE_NONCE_SIZE]; /* under which the document is stored; derived from the host's name */
        struct store_status_list list;
        struct store_status_put put;
        char *document;     /* of the current or latest request */
        uint64_t put_added; /* done->added when that document was made */
        uint64_t put_ms, pace_ms;
        bool is_reading, has_read; /* the predecessor's document */
        bool is_putting;
        bool has_flushed; /* the last document was sent */
};

/* Reads the predecessor's document, or writes ours if there is news and it is due; `rarer` multiplies the interval.
 * Returns when to call again; UINT64_MAX: at the next news. */
uint64_t done_report_look(struct done_report *r, struct store *store, uint32_t rarer, uint64_t now_ms);
/* The host stops: writes what is not written yet, if the store takes it.  True once nothing is under way; call it again
 * after the next turn of the loop. */
bool done_report_flush(struct done_report *r, struct store *store, uint64_t now_ms);
void done_report_free(struct done_report *r);

#endif
