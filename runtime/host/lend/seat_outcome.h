/* seat_outcome.h: how a task ended on a borrowed seat, as bytes on its way to the owner of its shard.
 *
 * A worker outside says one of five outcomes, in JSON (worker/report.h).  A host knows more: it saw its runner crash,
 * it interrupted the task itself, its new version of the handler is to blame.  So it sends the runner's answer as the
 * ring has it, with what the host adds.  The owner judges it as an answer of its own runners.
 *
 * It comes from a control list that anybody may have written: all of it is checked.  No I/O. */
#ifndef QUIVER_HOST_LEND_SEAT_OUTCOME_H
#define QUIVER_HOST_LEND_SEAT_OUTCOME_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"
#include "ring/pack.h"
#include "worker/fence.h"

/* Borrowed: from the caller, or from the bytes that were read. */
struct seat_outcome {
        struct work_fence fence; /* without seq: the control list has that */
        enum outcome outcome;
        bool is_suspect; /* the cause of a crash is not known */
        bool is_excused; /* the borrower's new version of the handler is to blame */
        bool is_refused; /* its answer cannot be sent: it has to run at its owner */
        bool has_reply;
        uint64_t ran_ms;
        const char *error;       /* ≤ NOTE_TEXT_MAX; with where it ran (note.h) */
        struct ring_reply reply; /* has_reply: the handler's answer; its times are not used, clocks differ */
        bool has_checkpoint;
        struct span checkpoint; /* ≤ NOTE_CHECKPOINT_MAX */
};

void seat_outcome_put(struct buffer *to, const struct seat_outcome *outcome);
/* 0, or -EBADMSG: it is no such outcome; the text names what is wrong. */
int seat_outcome_parse(struct span bytes, struct seat_outcome *ret, struct error *error);

#endif
