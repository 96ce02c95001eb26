/* lend_message.h: the messages that two hosts exchange through their mailboxes, as bytes.
 *
 *         borrower → owner   ASK      I have so many free seats for that handler (or: a worker that polls for it)
 *         owner → borrower   NONE     I have no more tasks for you
 *         owner → borrower   HAND     a task; its start on your seat is recorded
 *         owner → borrower   STOP     a person cancelled the task
 *         borrower → owner   DECLINE  I did not start the task, and will not
 *
 * A borrower sends heartbeats and the outcome of a task to the control list of the task's shard instead
 * (store/reports.h): whoever owns the shard by then finds them there, and the store refuses those of any start but the
 * recorded one.
 *
 * Anybody who can write to the store can write to a mailbox: every number, length and text is checked, and a message
 * with an error is refused as a whole.  Numbers are in the machine's byte order; a mark at the beginning shows another
 * one.  No I/O. */
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

#define LEND_SEATS_MAX 64u                /* seats that one ASK may offer */
#define LEND_TTL_MAX   UINT64_C(86400000) /* of a start on a borrowed seat, in milliseconds */

enum lend_kind { LEND_ASK = 1, LEND_NONE, LEND_HAND, LEND_STOP, LEND_DECLINE, LEND_KINDS };

/* Texts and spans are borrowed: from the caller, or from the bytes that were read. */
struct lend_message {
        enum lend_kind kind;
        uint8_t from[STORE_NONCE_SIZE]; /* whose mailbox an answer goes to */
        const char *host;               /* the sender's name, good by worker_name_check() */

        const char *handler; /* ASK, NONE: a handler of the configuration; tasks may have other names */
        uint32_t seats;      /* ASK: 1 to LEND_SEATS_MAX */
        const char *worker;  /* ASK: the worker that polls for a remote handler; "": the seats are a host's */

        uint32_t shard; /* HAND, STOP, DECLINE: of the task */
        struct work_fence fence;
        const char *id;

        bool is_worker; /* HAND: for a worker that polls there, not for a seat */
        uint64_t ttl_ms;
        uint64_t timeout_ms; /* 0: none */
        uint32_t attempt, attempts_max, crashes;
        enum lane lane;
        struct envelope task; /* id, key, handler, headers, payload, submitted_ms */
        struct span checkpoint;
};

void lend_message_put(struct buffer *to, const struct lend_message *message);
/* 0, or -EBADMSG: not a valid message; the text names what is wrong. */
int lend_message_parse(struct span bytes, struct lend_message *ret, struct error *error);

#endif
