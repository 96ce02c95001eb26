/* seat_outcome.h: the outcome of a task on a borrowed seat, as bytes on its way to the owner of its shard.
 *
 * A worker reports one of five outcomes, in JSON (worker/report.h).  A host knows more: its runner may have crashed, it
 * may have interrupted the task, its new version of the handler may be to blame.  So it sends the runner's answer in
 * the ring's form, with its own findings.  The owner judges it like an answer of its own runners.
 *
 * The bytes come from a control list that anybody may have written: everything is checked.  No I/O. */
#ifndef QUIVER_HOST_LEND_SEAT_OUTCOME_H
#define QUIVER_HOST_LEND_SEAT_OUTCOME_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"
#include "ring/pack.h"
#include "worker/fence.h"

/* Pointers are borrowed from the caller, or from the bytes that were parsed. */
struct seat_outcome {
        struct work_fence fence; /* seq is unset: the control list has it */
        enum outcome outcome;
        bool is_suspect; /* the cause of a crash is unknown */
        bool is_excused; /* the borrower's new version of the handler is to blame */
        bool is_refused; /* the answer is too large to send: the task must run at its owner */
        bool has_reply;
        uint64_t ran_ms;
        const char *error;       /* ≤ NOTE_TEXT_MAX; includes where the task ran (note.h) */
        struct ring_reply reply; /* valid if has_reply; its times are ignored, because clocks differ */
        bool has_checkpoint;
        struct span checkpoint; /* ≤ NOTE_CHECKPOINT_MAX */
};

void seat_outcome_put(struct buffer *to, const struct seat_outcome *outcome);
/* 0, or -EBADMSG: not a valid outcome; the text names what is wrong. */
int seat_outcome_parse(struct span bytes, struct seat_outcome *ret, struct error *error);

#endif
