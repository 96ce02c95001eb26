/* bell.h: the doorbell between processes that share a file.
 *
 * Each listener has a datagram socket FILE-bell/NONCE.  A message is a list of 32-bit words: shard numbers, or one of
 * the constants below.  Messages are hints: sent after COMMIT, never waited for, lost without harm. */
#ifndef QUIVER_STORE_SQLITE_BELL_H
#define QUIVER_STORE_SQLITE_BELL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "store/store.h"

#define BELL_DESIRED UINT32_MAX       /* the desired state has changed */
#define BELL_REPLY   (UINT32_MAX - 1) /* a reply was stored */
#define BELL_MAIL    (UINT32_MAX - 2) /* a message is in the listener's mailbox */
#define BELL_WANTING (UINT32_MAX - 3) /* some host wants to borrow seats */
#define BELL_ROOM    0x40000000u      /* plus a shard's number: a room of the shard has a new entry */

/* --- ringing: the writer's thread --- */

struct doorbell {
        uint8_t nonce[STORE_NONCE_SIZE];
        uint32_t word;
};

struct doorbells {
        int dir_fd;  /* the folder, O_PATH */
        int send_fd; /* an unbound socket */
        struct doorbell *entries;
        uint32_t count;
        uint32_t room;
        bool has_desired; /* ring everybody */
        bool has_wanting; /* ring everybody */
};

/* Creates the folder if necessary. */
int doorbells_open(struct doorbells *bells, const char *folder, struct error *error);
void doorbells_close(struct doorbells *bells);
void doorbells_add(struct doorbells *bells, const uint8_t nonce[STORE_NONCE_SIZE], uint32_t word);
void ring_clear(struct doorbells *bells);
void doorbells_send(struct doorbells *bells);

/* --- listening: the loop --- */

struct bell {
        uv_poll_t poll;
        int fd; /* -1: not listening */
        int dir_fd;
        char name[2 * STORE_NONCE_SIZE + 1];
        unsigned queue_max; /* messages that the kernel queues; further senders get an error */
        unsigned heard;     /* messages since the queue was last empty */
        struct store_bell listener;
        void (*reply)(void *self);
        void *reply_self;
};

/* Binds and listens.  0, or -errno with the text set. */
int bell_open(struct bell *bell, uv_loop_t *loop, int dir_fd, const uint8_t nonce[STORE_NONCE_SIZE],
        const struct store_bell *listener, struct error *error);
/* Stops listening; the owner then closes the poll handle. */
void bell_close(struct bell *bell);

#endif
