/* mail.h: how the processes of an app reach one host through the store: mailboxes, and who wants help.
 *
 * An owner and a host with a free seat hand a task and its outcome to each other through their mailboxes; which owners
 * have more than they can seat is in the `wanting` records. */
#ifndef QUIVER_STORE_MAIL_H
#define QUIVER_STORE_MAIL_H

#include "store/store.h"

/* --- mailboxes ------------------------------------------------------------------------------------------------------
 *
 * A mailbox is named by its reader's nonce and is there while it has messages.  Any process may post; only the host of
 * that nonce takes, with one take under way at a time.  Nobody has to open or to close it: one whose reader is gone is
 * removed keep_ms after the last post, with all that is in it.
 *
 * A lost answer loses no message and doubles none.  Messages are numbered.  A take names the last number that its
 * reader has dealt with: the store removes up to that one and returns those behind it, so that a take which is repeated
 * with the same `after` returns the same again.  A post without an answer may or may not have arrived: whoever repeats
 * it may be read twice. */

#define STORE_MAIL_MESSAGES    1024u                       /* in one mailbox */
#define STORE_MAIL_BYTES       (8u * 1024u * 1024u)        /* in one mailbox */
#define STORE_MAIL_MESSAGE_MAX (STORE_CALL_BYTES + 65536u) /* one message: a task with a payload of 1 MiB */
#define STORE_MAIL_KEEP_MS     60000u

/* Appends a message to a mailbox and rings its reader.  -EDQUOT: the mailbox is full, by number or by bytes. -EMSGSIZE:
 * longer than STORE_MAIL_MESSAGE_MAX.
 * SQLite: 2 rows, and one mailbox whose time is over is removed.  Redis: one script; 2 keys with the nonce's hash tag.
 */
struct store_post {
        struct store_request request;
        uint8_t nonce[STORE_NONCE_SIZE]; /* the reader's */
        struct span bytes;               /* at least one */
        uint64_t keep_ms;                /* 0: STORE_MAIL_KEEP_MS */

        uint64_t number;
};
void store_post(struct store *store, struct store_post *post);

struct store_message {
        uint64_t number;
        struct span bytes;
};

/* Removes what was dealt with and reads what is next, in order.  Also what makes the reader be rung (store_bell.mail):
 * take once after opening, after `look`, and again while has_more.
 * SQLite: the rows that are removed and returned, + 1.  Redis: one script. */
struct store_mail_take {
        struct store_request request;
        uint8_t nonce[STORE_NONCE_SIZE]; /* one's own */
        uint64_t after;                  /* the last number dealt with; 0: none */
        uint32_t messages_max; /* cut to STORE_CALL_TASKS; 0: that.  About STORE_CALL_BYTES at most, but always one */

        struct store_message *messages;
        uint32_t messages_count;
        bool has_more;
};
void store_mail_take(struct store *store, struct store_mail_take *take);

/* --- wanting --------------------------------------------------------------------------------------------------------
 *
 * One record per handler and host: this host has tasks without a key of this handler that wait, and no seat for them.
 * Written when that begins and when it ends.  A hint: what is forgotten or outdated costs a question in vain. */

#define STORE_WANTING_MAX 4096u /* records in one app */

/* Says how many such tasks wait (0: none any more) and rings who listed the records if some do.  A record that is not
 * said again within keep_ms is forgotten.  -E2BIG: there are STORE_WANTING_MAX.
 * SQLite: 1 row, and up to 16 whose time is over.  Redis: one script, the same. */
struct store_wanting_set {
        struct store_request request;
        uint8_t nonce[STORE_NONCE_SIZE];
        struct span handler;
        uint64_t tasks;
        uint64_t keep_ms; /* at least 1 */
};
void store_wanting_set(struct store *store, struct store_wanting_set *set);

struct store_wanting {
        struct span handler;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t tasks;
        uint64_t since_ms; /* store time: when it began */
};

/* All of them, by handler and nonce; also what makes the caller be rung at the next one (store_bell.wanting).
 * SQLite: all rows.  Redis: one script. */
struct store_wanting_list {
        struct store_request request;
        struct span handler; /* only this one's; empty: all */

        struct store_wanting *items;
        uint32_t items_count;
};
void store_wanting_list(struct store *store, struct store_wanting_list *list);

#endif
