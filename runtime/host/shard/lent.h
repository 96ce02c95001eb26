/* lent.h: a task that a worker, or a seat of another host, runs, as the owner of its shard knows it.
 *
 * A lent task stays its owner's: claimed, in flight, its key busy.  Before the worker gets the task, the store records
 * its start with the worker's name and an expiry time; heartbeats extend that time.  Both go to the store with the
 * shard's next advance, like checkpoints.  A new owner finds the record and *adopts* the task: it waits for the same
 * worker's outcome, or for the expiry.
 *
 * This file is the shard's part; host/remote/ decides what becomes of lent tasks. */
#ifndef QUIVER_HOST_SHARD_LENT_H
#define QUIVER_HOST_SHARD_LENT_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "worker/fence.h"

#define SHARD_STARTS_MAX 64u /* starts that one advance records, at most */

struct claimed;
struct shard;
struct store_task;
struct work_poll;
struct work_saying;

struct lent {
        struct claimed *claimed; /* NULL: the task has left the window */
        struct shard *shard;
        struct work_fence fence;
        char worker[WORKER_NAME_MAX + 1]; /* the worker's name; with is_seat the host's name */
        bool is_seat;                     /* a seat of another host, identified by `nonce`, runs it */
        uint8_t nonce[STORE_NONCE_SIZE];

        /* Used by the shard. */
        uint64_t for_ms; /* how long the start is valid, counted from when the store records it */
        bool is_to_tell; /* in the shard's list starts_waiting */
        bool is_telling; /* the advance under way records the start */
        struct lent *tell_next;
        uint64_t telling_ms;  /* when that advance was sent */
        uint64_t told_for_ms; /* for_ms of the last start that the store confirmed */
        uint64_t sent_ms;     /* when that start was sent: the worker's time counts from here */
        uint64_t told_ms;     /* when the store confirmed it: silence counts from here; 0: not confirmed yet */
        bool is_durable;      /* claimed is NULL because the outcome is durable, not because the shard was lost */

        /* Used by host/remote/. */
        UT_hash_handle hh; /* all lent tasks of this host, by `place` */
        uint64_t place[2]; /* shard and seq */
        struct lent *prev,
                *next; /* list of watched or of unwatched lent tasks; before host/remote/ takes it: s->adopted */
        bool is_watched;
        uint32_t slot; /* the handler's slot */
        uint64_t started_ms;
        bool is_handed;    /* as far as we know, a worker has the task */
        bool is_adopted;   /* a previous owner handed it out */
        bool is_cancelled; /* a person has cancelled it */
        bool is_ended;     /* it has an outcome that is on its way to the store */
        uint64_t progress_done, progress_total;
        struct work_poll *poll;      /* the poll that gets it once the start is recorded; NULL: none */
        struct work_saying *sayings; /* worker requests about it that wait for an answer */
};

/* Beginning of a note's event for a worker that stayed silent until its time was over. */
#define WORKER_SILENT "its worker fell silent"
/* Beginning of a note's event for a borrowed seat that fell silent or could not send its outcome: the task then runs at
 * its owner. */
#define SEAT_FAILED "its borrowed seat"

/* Lends a task that shard_next() has handed out: has its start recorded with the worker, fence and time in `lent`.  The
 * shard keeps a reference to `lent` until claimed is NULL and is_to_tell and is_telling are false. */
void shard_lend(struct shard *s, struct claimed *c, struct lent *lent);
/* Has the start recorded again, valid for `for_ms` from then on. */
void shard_extend(struct shard *s, struct lent *lent, uint64_t for_ms);
/* The worker's outcome arrives after its time was over, but the task has not been started again: lends it once more, so
 * that the outcome can be recorded. */
void shard_adopt_silent(struct shard *s, struct claimed *c, struct lent *lent, uint64_t now_ms);
/* The tasks adopted since the last call of this function; a list linked by `next` that the caller owns. */
struct lent *shard_take_adopted(struct shard *s);

/* --- for the shard's own files --- */

/* Adopts a task whose note records a start at a worker, if its handler is here.  False: there is no such record. */
bool shard_adopt(struct shard *s, struct claimed *c, const struct store_task *task, uint64_t now_ms);
/* Moves starts_waiting into the advance that is being filled in. */
void lents_tell(struct shard *s);
/* That advance was answered: its starts are durable. */
void lents_told(struct shard *s, uint64_t now_ms);
/* The task has ended: takes its start off the list, unless it is in a call already. */
void lent_stop(struct shard *s, struct lent *lent);
/* window.c: the task is no longer lent: it has left the window, or will start again. */
void lent_detach(struct claimed *c, bool is_durable);
/* We no longer own the shard: forgets the starts that were to be recorded. */
void lents_drop(struct shard *s);

#endif
