/* lend_io.h: how a host lends tasks to seats of other hosts, and runs theirs on its own.
 *
 *         owner: a task without a key has waited for a seat   → the `wanting` record (lender.h)
 *         borrower: a seat is free, the record was read       → ASK (borrower.h)
 *         owner: ASK                                          → a poll as a worker's (host/remote), which takes a task
 * at once or not at all; its start is recorded → HAND, or NONE borrower: HAND                                      →
 * asks the store about the recorded start, and offers the task to the handler's pool, beside its own (borrow_io.c) the
 * task ends there                                 → its outcome goes to the shard's control list; the owner judges and
 * commits it (host/remote)
 *
 * A worker that polls for a remote handler is a free seat of its host in the same way: what comes for it is handed on,
 * and from then on the worker speaks for itself.  Keyed tasks go to no other host's seat. */
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

#define LEND_LEASES 256u /* tasks of others that a host runs at once, at most */

struct lend;

/* A task of another host that is here. */
struct borrowed {
        struct pool_task pool_task; /* first: what a pool settles is this */
        struct borrowed_time time;
        struct lend *lend;
        struct borrowed *prev, *next;
        uint32_t slot;   /* of its handler */
        uint32_t lease;  /* its place in the page that runners see */
        bool is_in_pool; /* a pool has it */
        uint64_t offered_ms;
        struct lend_message message; /* borrows from `bytes` */
        char *bytes;
        char handler[TASK_HANDLER_MAX + 1];
        char start[NOTE_HOLDER_MAX + 1]; /* what the holder of the recorded start begins with */
        struct buffer headers;           /* as a runner gets them */
        struct buffer checkpoint;        /* the latest that it made here */
        bool has_saved;                  /* and the owner has not heard of it */
        struct buffer outcome;           /* TELLING */
        struct buffer data;              /* of the report under way */
        struct store_report report;
};

/* Zeroed; the first part is set by the caller. */
struct lend {
        struct store *store; /* NULL: not open */
        struct handlers *handlers;
        struct leases *leases; /* from lease_first on, LEND_LEASES are borrowed tasks' */
        uint32_t lease_first;
        const uint8_t *nonce; /* which host we are */
        const char *host;     /* its name */
        bool has_others;      /* the app has other members */

        struct borrower borrower;
        struct borrower_starts *starts; /* that have come, of each shard */
        struct borrowed *list;
        uint32_t list_count;
        uint8_t is_lease_used[LEND_LEASES];
        uint64_t paced_ms; /* no `wanting` record is written before this */
        struct store_wanting_set set;
        uint32_t set_slot;
        bool is_setting;
        struct store_wanting_list wanting;
        struct store_mail_take take;
        bool is_taking, must_take;
        uint64_t dealt; /* the number of the last message that was dealt with */
};

/* The host joins: looks into its mailbox once, so that it is rung. */
void lend_open(struct lend *l, uint64_t now_ms);
/* The store rang. */
void lend_mail_rang(struct lend *l);
void lend_wanting_rang(struct lend *l);
/* Rings may have been lost. */
void lend_look(struct lend *l);
/* It answers, which it may not have done before: what failed is asked again. */
void lend_store_answers(struct lend *l);

/* In a turn of the loop, after the pools were fed. */
void lend_turn(struct lend *l, uint64_t now_ms);
uint64_t lend_due_ms(const struct lend *l, uint64_t now_ms);

/* A person cancelled a task of ours that runs on another host's seat. */
void lend_stop_seat(struct lend *l, const struct lent *lent);
/* A task of another host has ended here, or made a checkpoint. */
void lend_settled(struct lend *l, struct pool_task *task, struct generation *generation, const struct settled *settled);
void lend_saved(struct pool_task *task, const void *checkpoint, size_t size);

/* Nothing of another host is here any more. */
bool lend_is_quiet(const struct lend *l);
/* After the loop. */
void lend_free(struct lend *l);

/* --- between lend_io.c and borrow_io.c --- */

void lend_post(struct lend *l, const uint8_t to[STORE_NONCE_SIZE], const struct lend_message *message);
/* A message that starts with what every one of ours has. */
struct lend_message lend_message_of(const struct lend *l, enum lend_kind kind);
/* A task came from its owner; what it borrows from is copied. */
void borrow_take(struct lend *l, const struct lend_message *message, struct span bytes, uint64_t now_ms);
/* Its owner wants it stopped. */
void borrow_stop(struct lend *l, const struct lend_message *message, uint64_t now_ms);
/* What is due of those that are here. */
void borrow_turn(struct lend *l, uint64_t now_ms);
uint64_t borrow_due_ms(const struct lend *l);
/* Those of the handler that are here and have no seat yet. */
uint32_t borrow_count_coming(const struct lend *l, uint32_t slot);
void borrow_free(struct lend *l);

#endif
