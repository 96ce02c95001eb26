/* export.h: which spans are sent when: in batches, one request at a time, again after a while, or never.
 *
 * Spans wait in batches of TRACE_BATCH_MAX at most; one is sent when it is full, or `interval_ms` after its first
 * span. Beyond `queue_max` spans new ones are dropped and counted: a receiver that is slow or gone costs a host this
 * much memory and nothing else.  A request that the receiver may take later is repeated, with growing pauses or when it
 * says; one that it refuses is not.  Plain data, no I/O, no clock. */
#ifndef QUIVER_TRACE_EXPORT_H
#define QUIVER_TRACE_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

#define TRACE_BATCH_MAX    512u
#define TRACE_BATCH_BYTES  (512u * 1024u) /* a batch that has as many gets no more */
#define TRACE_PAUSE_MS     UINT64_C(1000) /* before the first repetition; it doubles */
#define TRACE_PAUSE_MAX_MS UINT64_C(30000)
#define TRACE_AFTER_MAX_MS UINT64_C(300000) /* of what a receiver says with Retry-After */
#define TRACE_GIVE_UP_MS   UINT64_C(300000) /* a batch is repeated for so long */
#define TRACE_STOP_MS      UINT64_C(3000)   /* a host that stops waits for so long */

struct trace_batch {
        struct trace_batch *next;
        struct buffer spans; /* divided by commas */
        uint32_t count;
        uint64_t first_ms; /* when its first span came */
};

struct trace_counts {
        uint64_t exported;  /* spans that the receiver took */
        uint64_t dropped;   /* that found no room */
        uint64_t failed;    /* that the receiver refused, or did not take in time */
        uint64_t malformed; /* headers of tasks that are no traceparent */
};

/* What is to be told a person, each once until it changes. */
enum trace_news { TRACE_NEWS_NONE, TRACE_NEWS_DROPPING, TRACE_NEWS_FAILING, TRACE_NEWS_WELL };

struct trace_export {
        uint64_t interval_ms;
        uint32_t queue_max;
        struct trace_batch *first, *last; /* the first is sent */
        uint32_t waiting;                 /* spans in all of them */
        bool is_sending;                  /* the first is on its way */
        uint32_t failures;                /* of requests, one after the other */
        uint64_t again_ms;                /* not before */
        uint64_t stop_ms;                 /* 0: the host does not stop; else nothing is waited for after this */
        bool is_dropping, is_failing;     /* is told */
        struct trace_counts counts;
        uint64_t random;
};

void trace_export_init(struct trace_export *e, uint64_t interval_ms, uint32_t queue_max, uint64_t random);
void trace_export_free(struct trace_export *e);

/* Whether there is room for one more; if not, it counts as dropped. */
bool trace_export_has_room(struct trace_export *e);
/* Where to append the next span, after a comma if one is needed; trace_export_added() follows. */
struct buffer *trace_export_begin(struct trace_export *e, uint64_t now_ms);
void trace_export_added(struct trace_export *e);

/* The batch that is to be sent now; NULL: none.  An answer follows. */
const struct trace_batch *trace_export_next(struct trace_export *e, uint64_t now_ms);
/* When that may be another one; UINT64_MAX: never. */
uint64_t trace_export_due_ms(const struct trace_export *e);
/* What became of the request: `status` 0 and what the receiver says, or -errno. */
struct trace_answer {
        int status;
        long http_code;
        uint64_t retry_after_ms; /* 0: it does not say */
        uint64_t rejected;       /* spans of it that were not taken */
};
enum trace_news trace_export_answered(struct trace_export *e, const struct trace_answer *answer, uint64_t now_ms);
/* Of drops, when there is something to tell. */
enum trace_news trace_export_news(struct trace_export *e);

/* The host stops: what waits is sent at once.  True: nothing is left to be done, or the time for it is over. */
bool trace_export_stop(struct trace_export *e, uint64_t now_ms);
/* Nothing more is sent: what waits is dropped. */
void trace_export_drop(struct trace_export *e);

#endif
