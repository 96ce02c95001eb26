/* lent.h: a task that a worker outside, or a seat of another host, runs, as the owner of its shard knows it.
 *
 * The task stays its owner's: claimed, in flight, its key busy.  Its start is recorded at the store with the worker's
 * name and a time, before the worker gets it; heartbeats make that time later.  The store is told of both with the
 * shard's next call, as of checkpoints.  A new owner finds the record and lends the task in its turn ("adopts" it): it
 * waits for the same worker's outcome, or for the end of the time.
 *
 * Here is what the shard does about it; what becomes of such tasks is decided in host/remote/. */
#ifndef QUIVER_HOST_SHARD_LENT_H
#define QUIVER_HOST_SHARD_LENT_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "worker/fence.h"

#define SHARD_STARTS_MAX 64u /* recorded with one call */

struct claimed;
struct shard;
struct store_task;
struct work_poll;
struct work_saying;

struct lent {
        struct claimed *claimed; /* NULL: it is in the window no more */
        struct shard *shard;
        struct work_fence fence;
        char worker[WORKER_NAME_MAX + 1]; /* its name; is_seat: the name of the host */
        bool is_seat;                     /* a seat of another host has it, which its nonce names */
        uint8_t nonce[STORE_NONCE_SIZE];

        /* The shard's. */
        uint64_t for_ms; /* how long the start is to last, from when the store hears of it */
        bool is_to_tell; /* in the shard's list of those that the store has to hear of */
        bool is_telling; /* the call under way says so */
        struct lent *tell_next;
        uint64_t telling_ms;  /* when that call was sent */
        uint64_t told_for_ms; /* as for_ms, of the latest that the store has confirmed */
        uint64_t sent_ms;     /* when that was sent: the worker counts from here */
        uint64_t told_ms;     /* when it was confirmed: silence is counted from here.  0: it has not been yet */
        bool is_durable;      /* claimed is NULL: since its outcome is, and not since the shard was lost */

        /* host/remote's. */
        UT_hash_handle hh;        /* among all of this host, by `place` */
        uint64_t place[2];        /* shard and seq */
        struct lent *prev, *next; /* among those that are watched, or not; just adopted: among the shard's */
        bool is_watched;
        uint32_t slot; /* of its handler */
        uint64_t started_ms;
        bool is_handed;    /* a worker has it, as far as we know */
        bool is_adopted;   /* another owner handed it out */
        bool is_cancelled; /* a person wants it to stop */
        bool is_ended;     /* it has an outcome, which is being told */
        uint64_t progress_done, progress_total;
        struct work_poll *poll;      /* whom it goes to once its start is recorded; NULL: nobody waits for it */
        struct work_saying *sayings; /* who wait for an answer about it */
};

/* How the events of a note begin that say that a worker was silent to the end of its time. */
#define WORKER_SILENT "its worker fell silent"
/* The same of a borrowed seat, or that its outcome could not be sent: the task then runs at its owner. */
#define SEAT_FAILED "its borrowed seat"

/* A task that shard_next() has handed out goes to a worker or a seat: its start, of which `lent` names worker, fence
 * and time, is to be recorded.  The shard keeps a reference until claimed is NULL and is_to_tell and is_telling are
 * false. */
void shard_lend(struct shard *s, struct claimed *c, struct lent *lent);
/* It is to last for so long from now. */
void shard_extend(struct shard *s, struct lent *lent, uint64_t for_ms);
/* It waits, and nobody has started it since its worker fell silent; now that worker's outcome is here: it is lent once
 * more, for as long as it takes to end it. */
void shard_adopt_silent(struct shard *s, struct claimed *c, struct lent *lent, uint64_t now_ms);
/* What an owner before us lent, and what has been found since the last call; a list by `next`, the caller's. */
struct lent *shard_take_adopted(struct shard *s);

/* --- for the shard's own files --- */

/* A task came from the store with the record of a start at a worker: takes it up as lent, if its handler is here.
 * False: it has no such record. */
bool shard_adopt(struct shard *s, struct claimed *c, const struct store_task *task, uint64_t now_ms);
/* Puts what waits into the call that is being filled in. */
void lents_tell(struct shard *s);
/* That call was answered. */
void lents_told(struct shard *s, uint64_t now_ms);
/* Its task has ended: there is nothing more to record of its start. */
void lent_stop(struct shard *s, struct lent *lent);
/* window.c: the task is lent no more: it has left the window, or is to start again. */
void lent_detach(struct claimed *c, bool is_durable);
/* The shard is not ours any more. */
void lents_drop(struct shard *s);

#endif
