/* bell.h: the doorbell between processes that share a file.
 *
 * Each one that listens has a datagram socket FILE-bell/NONCE.  A message is a list of 32-bit words: shard numbers, or
 * one of those below.  It is a hint: sent after COMMIT, never waited for, lost without harm. */
#ifndef QUIVER_STORE_SQLITE_BELL_H
#define QUIVER_STORE_SQLITE_BELL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "store/store.h"

#define BELL_DESIRED UINT32_MAX       /* the desired state has changed */
#define BELL_REPLY   (UINT32_MAX - 1) /* someone's reply is there */
#define BELL_MAIL    (UINT32_MAX - 2) /* a message is in the listener's mailbox */
#define BELL_WANTING (UINT32_MAX - 3) /* some host wants help */
#define BELL_ROOM    0x40000000u      /* and a shard's number: a room of it has a new entry */

/* --- ringing: the writer's thread -------------------------------------------------------------------------------- */

struct doorbell {
        uint8_t nonce[STORE_NONCE_SIZE];
        uint32_t word;
};

struct doorbells {
        int dir_fd;  /* of the folder, O_PATH */
        int send_fd; /* a socket without a name */
        struct doorbell *entries;
        uint32_t count;
        uint32_t room;
        bool has_desired; /* ring everybody */
        bool has_wanting; /* the same */
};

/* Makes the folder if it is not there. */
int doorbells_open(struct doorbells *bells, const char *folder, struct error *error);
void doorbells_close(struct doorbells *bells);
void doorbells_add(struct doorbells *bells, const uint8_t nonce[STORE_NONCE_SIZE], uint32_t word);
void ring_clear(struct doorbells *bells);
void doorbells_send(struct doorbells *bells);

/* --- listening: the loop ----------------------------------------------------------------------------------------- */

struct bell {
        uv_poll_t poll;
        int fd; /* -1: not listening */
        int dir_fd;
        char name[2 * STORE_NONCE_SIZE + 1];
        unsigned queue_max; /* messages that the kernel keeps; more are refused to the sender */
        unsigned heard;     /* messages since the queue was last empty */
        struct store_bell listener;
        void (*reply)(void *self);
        void *reply_self;
};

/* Binds and listens.  -errno with the text. */
int bell_open(struct bell *bell, uv_loop_t *loop, int dir_fd, const uint8_t nonce[STORE_NONCE_SIZE],
        const struct store_bell *listener, struct error *error);
/* Stops; the poll handle is then to be closed by the owner. */
void bell_close(struct bell *bell);

#endif
