/* report.h: what a worker reports about its task: a heartbeat or an outcome, as JSON.
 *
 *         {"fence": "12.345.67", "progress": [3, 10], "checkpoint": "row 3000"}
 *         {"fence": "12.345.67", "outcome": "done", "result": "…", "follow_ups": [{"handler": "mail", "payload": "…"}]}
 *         {"fence": "12.345.67", "outcome": "retry", "error": "connection refused", "retry_after": "30s"}
 *
 * Bytes that are not UTF-8 are in base64 under NAME_base64; a result or payload that is not a text is the JSON itself.
 * A report comes from outside, or from a control list that anybody may have written: every member is checked, and
 * unknown ones are refused by name.  No I/O. */
#ifndef QUIVER_WORKER_REPORT_H
#define QUIVER_WORKER_REPORT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"
#include "ring/pack.h"
#include "worker/fence.h"

enum report_kind { REPORT_HEARTBEAT, REPORT_OUTCOME };

/* Free with report_free(). */
struct work_report {
        enum report_kind kind;
        struct work_fence fence;
        bool has_progress;
        uint64_t progress_done, progress_total;
        bool has_checkpoint;
        struct buffer checkpoint; /* ≤ NOTE_CHECKPOINT_MAX */

        enum outcome outcome; /* REPORT_OUTCOME: DONE, RETRY, LATER, REJECT or UNAVAILABLE */
        struct buffer error;  /* for the history */
        bool has_retry_after;
        uint64_t retry_after_ms;
        bool has_result;
        struct buffer result;
        struct buffer follow_ups; /* packed as in ring_reply */
        uint32_t follow_ups_count;
};

/* 0, or -EINVAL with a text that names the member; then *ret is empty. */
int report_parse(struct span json, enum report_kind kind, struct work_report *ret, struct error *error);
void report_free(struct work_report *report);

#endif
