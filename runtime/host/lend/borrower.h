/* borrower.h: a host with free seats: which owner it asks for a task, and how long it may run a borrowed task.
 *
 * Whom to ask.  The `wanting` records of other hosts are read once, and again when they ring; nothing is read while no
 * seat is free.  A seat that has been free for a moment is offered to the owner that wants most.  An owner that has no
 * more tasks, or does not answer, is not asked again before the next ring.
 *
 *         a seat is free, the records are not read yet        → LIST
 *         a seat has been free for a moment, and an owner
 *         wants that handler                                  → ASK
 *         NONE, or no answer for ASK_MS                       → the next owner, or wait for a ring
 *
 * A borrowed task.  Its owner records the start at the store before it sends the task.  Only the store knows how long
 * that start is valid, because the message may have been under way for long.  So the borrower asks the store first:
 *
 *         CONFIRMING   asks the store whether the recorded start is this one, and how long it is valid
 *         HELD         a seat has the task or is about to get it; heartbeats at a third of the time; the borrower's own
 *                      deadline is before the recorded end, and after it the task is stopped
 *         TELLING      the task has ended: the outcome is sent to the shard's control list until it is taken or
 *                      refused, or the recorded start has ended
 *         OVER         forgotten
 *
 * What happens at each loss:
 *
 *         the borrower is killed, paused or cut off   the recorded start expires, the owner counts an interruption and
 *                                                     runs the task itself; a borrower that wakes up past its deadline
 *                                                     stops the task, and its outcome is refused
 *         the owner is killed, or the shard moves     the new owner finds the recorded start and waits, as the old one
 *                                                     did, for heartbeats and the outcome in the control list, or for
 *                                                     the end of the recorded time
 *         a message is lost                           ASK, NONE: the borrower goes on after ASK_MS; HAND, DECLINE: the
 *                                                     recorded start expires; STOP: heartbeats give no more time
 *         a message or an outcome comes twice or late the store refuses an outcome of any start but the recorded one;
 *                                                     the borrower ignores a start that it has already seen, because
 *                                                     its record stays until the owner has committed the outcome
 *
 * Plain data, no I/O, no clock. */
#ifndef QUIVER_HOST_LEND_BORROWER_H
#define QUIVER_HOST_LEND_BORROWER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "worker/fence.h"

/* --- choosing an owner to ask --- */

#define BORROWER_IDLE_MS  UINT64_C(10)   /* a seat is offered after it has been free for this long */
#define BORROWER_ASK_MS   UINT64_C(2000) /* an ASK without an answer is given up after this */
#define BORROWER_LIST_MS  UINT64_C(100)  /* between two readings of the records */
#define BORROWER_ASKS_MAX 16u            /* ASKs under way at once */
#define BORROWER_WANTS    64u            /* owners that are remembered; further ones are found at the next reading */

struct borrower_want {
        uint32_t slot; /* of our handler */
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t tasks;
        bool is_tried; /* the owner answered that it has no more */
};

struct borrower_ask {
        uint32_t slot;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint32_t seats; /* seats that were offered and have no task yet */
        uint64_t until_ms;
};

/* Zero-initialise, and set is_stale: the records were not read yet. */
struct borrower {
        bool is_stale; /* the records may have changed since they were read */
        bool is_listing;
        uint64_t listed_ms; /* when a reading last began */
        struct borrower_want wants[BORROWER_WANTS];
        uint32_t wants_count;
        struct borrower_ask asks[BORROWER_ASKS_MAX];
        uint32_t asks_count;
};

enum borrower_step { BORROWER_NOTHING, BORROWER_LIST, BORROWER_ASK };

/* A handler with free seats. */
struct borrower_seats {
        uint32_t slot;
        uint32_t free;
        uint64_t since_ms; /* when the first of these seats became free */
};

/* The `wanting` records rang. */
void borrower_rang(struct borrower *b);
/* A reading begins; a record says what another host wants of one of our handlers; the reading is complete or has
 * failed. */
void borrower_listing(struct borrower *b, uint64_t now_ms);
void borrower_found(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE], uint64_t tasks);
void borrower_listed(struct borrower *b, bool is_done);

/* What to do next; call it until it returns NOTHING.  A returned ASK counts as sent. */
enum borrower_step borrower_next(struct borrower *b, const struct borrower_seats *seats, uint32_t seats_count,
        uint64_t now_ms, struct borrower_ask *ret_ask);
/* The owner has no more tasks of that handler, or the message did not reach it. */
void borrower_none(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE]);
/* A task came from that owner. */
void borrower_got(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE]);
/* The slot belongs to another handler now. */
void borrower_forget(struct borrower *b, uint32_t slot);
/* When borrower_next() is due without an event; UINT64_MAX: never. */
uint64_t borrower_due_ms(const struct borrower *b, const struct borrower_seats *seats, uint32_t seats_count);

/* --- a borrowed task --- */

enum borrowed_state { BORROWED_CONFIRMING, BORROWED_HELD, BORROWED_TELLING, BORROWED_OVER };

#define BORROWED_RETRY_MS UINT64_C(100) /* before a failed call to the store is repeated */
#define BORROWER_STARTS   256u          /* the latest starts per shard that are told apart */

struct borrowed_time {
        enum borrowed_state state;
        uint64_t ttl_ms;      /* time that a heartbeat gives */
        uint64_t came_ms;     /* when the message was read */
        uint64_t until_ms;    /* our own deadline; 0: the store has not confirmed the start yet */
        uint64_t call_ms;     /* when the next call to the store is due */
        bool is_calling;      /* a call is under way */
        uint64_t sent_ms;     /* when that call was sent */
        bool is_told_to_stop; /* the deadline has passed, or a person cancelled the task */
        bool has_ended;       /* HELD: no seat has the task any more; TELLING follows */
};

/* The starts of one shard that have come here.  Zero-initialised: none. */
struct borrower_starts {
        uint64_t epoch, start;                 /* the latest start */
        uint8_t has_come[BORROWER_STARTS / 8]; /* bitmap, by start number modulo BORROWER_STARTS */
};

/* Whether the start comes for the first time; notes it.  A start too far behind the latest counts as a repetition: its
 * owner waits until the recorded time is over. */
bool borrower_is_new(struct borrower_starts *starts, const struct work_fence *fence);

enum borrowed_step {
        BORROWED_WAIT,
        BORROWED_ASK,  /* CONFIRMING, HELD: a heartbeat is due */
        BORROWED_STOP, /* HELD: its deadline has passed */
        BORROWED_TELL, /* TELLING: report the outcome */
        BORROWED_DROP, /* drop the task: its recorded start has ended */
};

void borrowed_begin(struct borrowed_time *t, uint64_t ttl_ms, uint64_t now_ms);
/* What to do now.  A returned call counts as sent, a returned stop as done. */
enum borrowed_step borrowed_next(struct borrowed_time *t, uint64_t now_ms);
/* The store answered a heartbeat: the recorded start is valid for `left_ms` from when the heartbeat was sent. */
void borrowed_confirmed(struct borrowed_time *t, uint64_t left_ms);
/* The store did not answer. */
void borrowed_failed(struct borrowed_time *t, uint64_t now_ms);
/* The store has another recorded start or none; or it took the outcome. */
void borrowed_refused(struct borrowed_time *t);
/* Whether a seat may start the task now: it is HELD and before its deadline. */
bool borrowed_may_start(const struct borrowed_time *t, uint64_t now_ms);
/* No seat has the task any more, and there is an outcome. */
void borrowed_ended(struct borrowed_time *t, uint64_t now_ms);
uint64_t borrowed_due_ms(const struct borrowed_time *t);

#endif
