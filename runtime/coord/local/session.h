/* session.h: which processes live.
 *
 * Each process locks a file of its own; the kernel drops the lock when the process ends, however it ends.  The process
 * writes its heartbeat into the file, so that one which is stopped or hangs is found, too.  Nobody waits for a lock.
 * To notice an end at once, the others also wait for the process (a pidfd), but the lock decides. */
#ifndef QUIVER_COORD_LOCAL_SESSION_H
#define QUIVER_COORD_LOCAL_SESSION_H

#include "coord/local/folder.h"

/* --- our own ----------------------------------------------------------------------------------------------------- */

struct own_session {
        struct tree_session tree; /* id 0: none */
        int fd;                   /* the locked file */
};

/* Makes the file, with a new nonce, and locks it.  CLOEXEC, because in an exec'd child the lock would outlive us. */
int own_session_hold(struct own_session *own, const struct folder *folder, uint64_t session_ms, uint64_t now_ms,
        struct error *error);
void own_session_beat(struct own_session *own, uint64_t now_ms);
/* Unlocks the file and removes the session's files. */
void own_session_drop(struct own_session *own, const struct folder *folder);

/* --- sessions of other processes --------------------------------------------------------------------------------- */

struct peer {
        uint64_t id;
        uint8_t nonce[TREE_NONCE_SIZE];
        int fd;              /* its file; -1: not open */
        int pidfd;           /* -1: none */
        uint64_t beat;       /* the heartbeat as last read from the file */
        uint64_t counted_ms; /* when `beat` last changed: the session's timeout counts from here */
        uint64_t session_ms;
        struct peer *next;
};

struct peers {
        int epoll_fd; /* borrowed; gets the pidfds */
        struct peer *first;
        uint64_t due_ms; /* when the next session will be overdue; UINT64_MAX: none */
};

/* Looks at every session of the tree except `own_id`.  Returns the number of one that is dead or overdue, 0 if there is
 * none; call it again after that session was ended. */
uint64_t peers_look(struct peers *peers, const struct folder *folder, const struct local_tree *tree, uint64_t own_id,
        uint64_t now_ms);
void peers_free(struct peers *peers);

#endif
