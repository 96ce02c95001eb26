/* borrower.h: a host with free seats: which owner it asks for a task, and how long it may run what it got.
 *
 * Whom to ask.  The `wanting` records of other hosts are read once, and again when they ring; nothing is read while no
 * seat is free.  A seat that has been free for a moment is offered to the owner that wants most.  One that has nothing
 * more, or does not answer, is not asked again before the next ring.
 *
 *         a seat is free, the records are not known     → LIST
 *         a seat has been free for a moment, and somebody wants that handler  → ASK
 *         NONE, or no answer for ASK_MS                  → the next owner, or wait for a ring
 *
 * A borrowed task.  Its start is recorded at the store before it comes here; how long that lasts, the store alone
 * knows, for the message may have been on its way for long.  So it is asked first:
 *
 *         CONFIRMING   asks the store whether the recorded start is this one, and how long it lasts
 *         HELD         a seat has it, or is about to; heartbeats at a third of the time; its own deadline is before the
 *                      recorded end, and past that it is stopped
 *         TELLING      it has ended: the outcome goes to the shard's control list, again and again until it is taken,
 *                      refused, or nobody can be waiting for it any more
 *         OVER         forgotten
 *
 * What happens at each loss:
 *
 *         the borrower is killed, paused or cut off   the recorded time ends, the owner counts an interruption and runs
 *                                                     the task itself; a borrower that wakes up past its deadline stops
 *                                                     what it has, and its outcome is refused
 *         the owner is killed, or the shard moves     the new owner finds the recorded start and waits in its turn: for
 *                                                     heartbeats and the outcome in the control list, or for the end
 *         a message is lost                           ASK, NONE: after ASK_MS it is as if nobody had answered; HAND: as
 *                                                     a silent borrower; STOP: heartbeats give no more time; DECLINE:
 *                                                     as a silent borrower
 *         a message or an outcome comes twice, or late  the store refuses what is not about the recorded start; a start
 *                                                     that has come is not taken again, for its record is there until
 *                                                     its owner has told the store how it ended
 *
 * Plain data, no I/O, no clock. */
#ifndef QUIVER_HOST_LEND_BORROWER_H
#define QUIVER_HOST_LEND_BORROWER_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "worker/fence.h"

/* --- whom to ask --- */

#define BORROWER_IDLE_MS  UINT64_C(10)   /* a seat has been free for so long: it is offered */
#define BORROWER_ASK_MS   UINT64_C(2000) /* no answer for so long: none comes */
#define BORROWER_LIST_MS  UINT64_C(100)  /* between two looks at the records */
#define BORROWER_ASKS_MAX 16u            /* without an answer, at once */
#define BORROWER_WANTS    64u            /* owners that are remembered; the others are found at the next look */

struct borrower_want {
        uint32_t slot; /* of the handler, here */
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t tasks;
        bool is_tried; /* it had nothing more */
};

struct borrower_ask {
        uint32_t slot;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint32_t seats; /* that were offered and have got nothing yet */
        uint64_t until_ms;
};

/* Zeroed, but for is_stale: the records are not known yet. */
struct borrower {
        bool is_stale; /* the records may have changed since they were read */
        bool is_listing;
        uint64_t listed_ms; /* when they were last asked for */
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
        uint64_t since_ms; /* when the first of them became free */
};

/* The records rang. */
void borrower_rang(struct borrower *b);
/* They are being read; they were: what another host wants of a handler that is here; all of them were. */
void borrower_listing(struct borrower *b, uint64_t now_ms);
void borrower_found(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE], uint64_t tasks);
void borrower_listed(struct borrower *b, bool is_done);

/* What to do next; to be asked again until it is NOTHING.  An ASK is counted as made. */
enum borrower_step borrower_next(struct borrower *b, const struct borrower_seats *seats, uint32_t seats_count,
        uint64_t now_ms, struct borrower_ask *ret_ask);
/* The owner has nothing more of that handler; or the message did not reach it. */
void borrower_none(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE]);
/* A task came from it. */
void borrower_got(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE]);
/* The handler of that slot is another one now. */
void borrower_forget(struct borrower *b, uint32_t slot);
/* When something is to be done without any event; UINT64_MAX. */
uint64_t borrower_due_ms(const struct borrower *b, const struct borrower_seats *seats, uint32_t seats_count);

/* --- a borrowed task --- */

enum borrowed_state { BORROWED_CONFIRMING, BORROWED_HELD, BORROWED_TELLING, BORROWED_OVER };

#define BORROWED_RETRY_MS UINT64_C(100) /* a call to the store failed: again after this */
#define BORROWER_STARTS   256u          /* of a shard, so many of the latest are told apart */

struct borrowed_time {
        enum borrowed_state state;
        uint64_t ttl_ms;      /* what a heartbeat gives */
        uint64_t came_ms;     /* when the message was read */
        uint64_t until_ms;    /* our own deadline; 0: not known yet */
        uint64_t call_ms;     /* the next call to the store is due then */
        bool is_calling;      /* one is under way */
        uint64_t sent_ms;     /* when that was sent */
        bool is_told_to_stop; /* its deadline has passed, or a person cancelled it */
        bool has_ended;       /* HELD: no seat has it any more; TELLING follows */
};

/* Which starts of one shard have come here; zeroed is none. */
struct borrower_starts {
        uint64_t epoch, start;                 /* the latest */
        uint8_t has_come[BORROWER_STARTS / 8]; /* of the BORROWER_STARTS up to that one, by their number modulo that */
};

/* The start comes for the first time, and is noted.  One that is so far behind the latest that nobody knows counts as
 * one that has come: its owner takes its seat to be silent. */
bool borrower_is_new(struct borrower_starts *starts, const struct work_fence *fence);

enum borrowed_step {
        BORROWED_WAIT,
        BORROWED_ASK,  /* CONFIRMING, HELD: a heartbeat is due */
        BORROWED_STOP, /* HELD: its deadline has passed */
        BORROWED_TELL, /* TELLING: the outcome is to be reported */
        BORROWED_DROP, /* nobody waits for it any more */
};

void borrowed_begin(struct borrowed_time *t, uint64_t ttl_ms, uint64_t now_ms);
/* What to do now; a call is counted as made, a stop as done. */
enum borrowed_step borrowed_next(struct borrowed_time *t, uint64_t now_ms);
/* The store answered a heartbeat: the recorded start lasts for so long from when it was sent. */
void borrowed_confirmed(struct borrowed_time *t, uint64_t left_ms);
/* It did not answer. */
void borrowed_failed(struct borrowed_time *t, uint64_t now_ms);
/* The recorded start is another one, or none; or the outcome was taken. */
void borrowed_refused(struct borrowed_time *t);
/* A seat may start it now: it is HELD, and not past its deadline. */
bool borrowed_may_start(const struct borrowed_time *t, uint64_t now_ms);
/* No seat has it any more, and there is an outcome. */
void borrowed_ended(struct borrowed_time *t, uint64_t now_ms);
uint64_t borrowed_due_ms(const struct borrowed_time *t);

#endif
