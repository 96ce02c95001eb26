/* lend_message.h: what two hosts say to each other through their mailboxes, as bytes.
 *
 *         borrower → owner   ASK      I have so many free seats for that handler (or: a worker that polls for it)
 *         owner → borrower   NONE     I have nothing more for you
 *         owner → borrower   HAND     a task; its start at you is recorded
 *         owner → borrower   STOP     a person cancelled it
 *         borrower → owner   DECLINE  I did not start it, and will not
 *
 * What a borrower says of a task that it runs (heartbeats, the outcome) goes to the control list of the task's shard
 * instead (store/reports.h): whoever owns the shard by then finds it there, and the store refuses it if it is not about
 * the recorded start.
 *
 * Anybody who can write to the store can write to a mailbox: every number, length and text is checked, and what is
 * wrong is refused as a whole.  Numbers are in the machine's byte order; a mark at the beginning shows another one.
 * No I/O. */
#ifndef QUIVER_HOST_LEND_LEND_MESSAGE_H
#define QUIVER_HOST_LEND_LEND_MESSAGE_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/span.h"
#include "config/names.h"
#include "store/mail.h"
#include "task/envelope.h"
#include "worker/fence.h"

#define LEND_SEATS_MAX 64u                /* that one ASK offers */
#define LEND_TTL_MAX   UINT64_C(86400000) /* of a start on a borrowed seat, in milliseconds */

enum lend_kind { LEND_ASK = 1, LEND_NONE, LEND_HAND, LEND_STOP, LEND_DECLINE, LEND_KINDS };

/* Texts and spans are borrowed: from the caller, or from the bytes that were read. */
struct lend_message {
        enum lend_kind kind;
        uint8_t from[STORE_NONCE_SIZE]; /* whose mailbox an answer goes to */
        const char *host;               /* the sender's name, good by worker_name_check() */

        const char *handler; /* ASK, NONE: a handler of the configuration; tasks may have other names */
        uint32_t seats;      /* ASK: 1 to LEND_SEATS_MAX */
        const char *worker;  /* ASK: who polls for a remote handler; "": these are seats of a host */

        uint32_t shard; /* HAND, STOP, DECLINE: of the task */
        struct work_fence fence;
        const char *id;

        bool is_worker; /* HAND: for a worker that polls there, and no seat */
        uint64_t ttl_ms;
        uint64_t timeout_ms; /* 0: none */
        uint32_t attempt, attempts_max, crashes;
        enum lane lane;
        struct envelope task; /* id, key, handler, headers, payload, submitted_ms */
        struct span checkpoint;
};

void lend_message_put(struct buffer *to, const struct lend_message *message);
/* 0, or -EBADMSG: it is no such message; the text names what is wrong. */
int lend_message_parse(struct span bytes, struct lend_message *ret, struct error *error);

#endif
