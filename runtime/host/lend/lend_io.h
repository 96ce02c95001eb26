/* lend_io.h: how a host lends tasks to seats of other hosts, and runs other hosts' tasks on its own seats.
 *
 *         owner      a task without a key has waited for a seat  → writes the `wanting` record (lender.h)
 *         borrower   a seat is free, and it read the record      → ASK (borrower.h)
 *         owner      makes a poll of the ASK, like a worker's (host/remote), which takes a task at once or not at all;
 *                    the task's start is recorded                → HAND, or NONE
 *         borrower   asks the store about the recorded start, and offers the task to its handler's pool beside its own
 *                    tasks (borrow_io.c); the task ends          → the outcome goes to the shard's control list
 *         owner      judges and commits the outcome (host/remote)
 *
 * A worker that polls for a remote handler counts as a free seat of its host: a task that comes for it is handed to the
 * worker, which from then on reports for itself.  Tasks with a key go to no other host's seat. */
#ifndef QUIVER_HOST_LEND_LEND_IO_H
#define QUIVER_HOST_LEND_LEND_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "host/handler/handlers.h"
#include "host/lend/borrower.h"
#include "host/lend/lend_message.h"
#include "ring/leases.h"
#include "store/mail.h"
#include "store/reports.h"

#define LEND_LEASES 256u /* borrowed tasks that a host runs at once, at most */

struct lend;

/* A task of another host that is here. */
struct borrowed {
        struct pool_task pool_task; /* must be first: a pool hands this back when the task ends */
        struct borrowed_time time;
        struct lend *lend;
        struct borrowed *prev, *next;
        uint32_t slot;   /* of its handler */
        uint32_t lease;  /* its slot in the lease page that runners read */
        bool is_in_pool; /* a pool has it */
        uint64_t offered_ms;
        struct lend_message message; /* borrows from `bytes` */
        char *bytes;
        char handler[TASK_HANDLER_MAX + 1];
        char start[NOTE_HOLDER_MAX + 1]; /* how the holder text of the recorded start begins */
        struct buffer headers;           /* packed as a runner gets them */
        struct buffer checkpoint;        /* the latest checkpoint made here */
        bool has_saved;                  /* the owner does not have that checkpoint yet */
        struct buffer outcome;           /* valid in TELLING */
        struct buffer data;              /* of the report that is being sent */
        struct store_report report;
};

/* Zero-initialise; the caller sets the first part. */
struct lend {
        struct store *store; /* NULL: not open */
        struct handlers *handlers;
        struct leases *leases; /* LEND_LEASES slots from lease_first on belong to borrowed tasks */
        uint32_t lease_first;
        const uint8_t *nonce; /* our nonce */
        const char *host;     /* our host's name */
        bool has_others;      /* the app has other members */

        struct borrower borrower;
        struct borrower_starts *starts; /* per shard: the starts that have come */
        struct borrowed *list;
        uint32_t list_count;
        uint8_t is_lease_used[LEND_LEASES];
        uint64_t paced_ms; /* no `wanting` record is written before this time */
        struct store_wanting_set set;
        uint32_t set_slot;
        bool is_setting;
        struct store_wanting_list wanting;
        struct store_mail_take take;
        bool is_taking, must_take;
        uint64_t dealt; /* number of the last message that was handled */
};

/* Reads the host's mailbox once when it joins, so that the store rings for later messages. */
void lend_open(struct lend *l, uint64_t now_ms);
/* The mailbox rang; the `wanting` records rang. */
void lend_mail_rang(struct lend *l);
void lend_wanting_rang(struct lend *l);
/* Rings may have been lost: reads mailbox and records again. */
void lend_look(struct lend *l);
/* The store answers again: repeats calls that failed. */
void lend_store_answers(struct lend *l);

/* Called in each turn of the loop, after the pools were fed. */
void lend_turn(struct lend *l, uint64_t now_ms);
uint64_t lend_due_ms(const struct lend *l, uint64_t now_ms);

/* A person cancelled a task of ours that runs on another host's seat. */
void lend_stop_seat(struct lend *l, const struct lent *lent);
/* A borrowed task has ended here, or made a checkpoint. */
void lend_settled(struct lend *l, struct pool_task *task, struct generation *generation, const struct settled *settled);
void lend_saved(struct pool_task *task, const void *checkpoint, size_t size);

/* Whether no borrowed task is left here. */
bool lend_is_quiet(const struct lend *l);
/* Call after the loop has ended. */
void lend_free(struct lend *l);

/* --- between lend_io.c and borrow_io.c --- */

void lend_post(struct lend *l, const uint8_t to[STORE_NONCE_SIZE], const struct lend_message *message);
/* A message with the fields that all of ours share. */
struct lend_message lend_message_of(const struct lend *l, enum lend_kind kind);
/* Takes a task that its owner sent; copies `bytes`, which the message points into. */
void borrow_take(struct lend *l, const struct lend_message *message, struct span bytes, uint64_t now_ms);
/* The owner wants the task stopped. */
void borrow_stop(struct lend *l, const struct lend_message *message, uint64_t now_ms);
/* Does what is due for the borrowed tasks. */
void borrow_turn(struct lend *l, uint64_t now_ms);
uint64_t borrow_due_ms(const struct lend *l);
/* How many borrowed tasks of the handler are here without a seat. */
uint32_t borrow_count_coming(const struct lend *l, uint32_t slot);
void borrow_free(struct lend *l);

#endif
