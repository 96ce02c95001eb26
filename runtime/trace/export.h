/* export.h: decides which spans are sent when: in batches, one request at a time, repeated after a while, or never.
 *
 * Spans wait in batches of at most TRACE_BATCH_MAX; a batch is sent when it is full, or `interval_ms` after its first
 * span.  Beyond `queue_max` spans new ones are dropped and counted: a receiver that is slow or gone costs a host only
 * this much memory.  A request that the receiver may accept later is repeated, with growing pauses or when the receiver
 * says; a refused one is not.  Plain data, no I/O, no clock. */
#ifndef QUIVER_TRACE_EXPORT_H
#define QUIVER_TRACE_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

#define TRACE_BATCH_MAX    512u
#define TRACE_BATCH_BYTES  (512u * 1024u) /* a batch of this size gets no more spans */
#define TRACE_PAUSE_MS     UINT64_C(1000) /* before the first repetition; it doubles */
#define TRACE_PAUSE_MAX_MS UINT64_C(30000)
#define TRACE_AFTER_MAX_MS UINT64_C(300000) /* limit on a receiver's Retry-After */
#define TRACE_GIVE_UP_MS   UINT64_C(300000) /* how long a batch is repeated */
#define TRACE_STOP_MS      UINT64_C(3000)   /* how long a host that stops waits */

struct trace_batch {
        struct trace_batch *next;
        struct buffer spans; /* separated by commas */
        uint32_t count;
        uint64_t first_ms; /* when its first span was added */
};

struct trace_counts {
        uint64_t exported;  /* spans that the receiver took */
        uint64_t dropped;   /* spans without room in the queue */
        uint64_t failed;    /* spans that the receiver refused or did not take in time */
        uint64_t malformed; /* task headers that are not a valid traceparent */
};

/* What to log, each once until it changes. */
enum trace_news { TRACE_NEWS_NONE, TRACE_NEWS_DROPPING, TRACE_NEWS_FAILING, TRACE_NEWS_WELL };

struct trace_export {
        uint64_t interval_ms;
        uint32_t queue_max;
        struct trace_batch *first, *last; /* the first one is sent */
        uint32_t waiting;                 /* spans in all batches */
        bool is_sending;                  /* the first batch is being sent */
        uint32_t failures;                /* consecutive failed requests */
        uint64_t again_ms;                /* no request before this time */
        uint64_t stop_ms;                 /* nothing is waited for after this; 0: the host does not stop */
        bool is_dropping, is_failing;     /* was logged */
        struct trace_counts counts;
        uint64_t random;
};

void trace_export_init(struct trace_export *e, uint64_t interval_ms, uint32_t queue_max, uint64_t random);
void trace_export_free(struct trace_export *e);

/* Whether there is room for one more span; if not, it is counted as dropped. */
bool trace_export_has_room(struct trace_export *e);
/* Where to append the next span, after a comma if one is needed; call trace_export_added() afterwards. */
struct buffer *trace_export_begin(struct trace_export *e, uint64_t now_ms);
void trace_export_added(struct trace_export *e);

/* The batch to send now; NULL: none.  Its answer must follow. */
const struct trace_batch *trace_export_next(struct trace_export *e, uint64_t now_ms);
/* When trace_export_next() may return a batch; UINT64_MAX: never. */
uint64_t trace_export_due_ms(const struct trace_export *e);
/* The result of a request: `status` 0 and the receiver's answer, or -errno. */
struct trace_answer {
        int status;
        long http_code;
        uint64_t retry_after_ms; /* 0: not given */
        uint64_t rejected;       /* spans that were not accepted */
};
enum trace_news trace_export_answered(struct trace_export *e, const struct trace_answer *answer, uint64_t now_ms);
/* News about drops, if there is any. */
enum trace_news trace_export_news(struct trace_export *e);

/* The host stops: everything is sent at once.  True: nothing is left to send, or the time is over. */
bool trace_export_stop(struct trace_export *e, uint64_t now_ms);
/* Nothing more is sent: drops all spans. */
void trace_export_drop(struct trace_export *e);

#endif
