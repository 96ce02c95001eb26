/* replica.h: the tree, kept true by reading the log; and changes, made by appending to it.
 *
 * A change is appended, then the log is read up to it: what it met on the way decides what it did.  Blocking calls; one
 * thread. */
#ifndef QUIVER_COORD_LOCAL_REPLICA_H
#define QUIVER_COORD_LOCAL_REPLICA_H

#include "coord/local/log.h"
#include "coord/local/tree.h"

struct replica {
        int dir_fd; /* borrowed */
        struct log log;
        struct local_tree tree;
        uint64_t writer;      /* random; marks the records that are ours */
        uint64_t call;        /* number of our last record */
        bool is_own_seen;     /* our last record has been read back, and own_status is its outcome */
        int own_status;       /* the outcome of our last record */
        uint64_t own_session; /* the number of the session, if the record opened one */
        struct tree_change *own_change;
        bool is_sealed;
        bool has_changed;  /* something was read since this was last cleared */
        bool has_appended; /* something was written since this was last cleared */
};

/* Finds the log, or makes the first one, and reads it.  -EPROTO: it is not one. */
int replica_open(struct replica *replica, int dir_fd, struct error *error);
void replica_close(struct replica *replica);

/* Reads what others have appended. */
int replica_catch_up(struct replica *replica, struct error *error);

/* The three below append, and return what became of it.  A failure to write is told apart by *ret_failure. */
int replica_change(struct replica *replica, struct tree_change *change, int *ret_failure, struct error *error);
/* Returns its number through ret_id. */
int replica_session_open(
        struct replica *replica, const struct tree_session *session, uint64_t *ret_id, struct error *error);
int replica_session_end(struct replica *replica, uint64_t id, struct error *error);

/* Writes a new log if this one has grown too long. */
int replica_tidy(struct replica *replica, struct error *error);

#endif
