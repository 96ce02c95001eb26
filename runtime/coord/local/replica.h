/* replica.h: a copy of the tree that follows the log; changes are made by appending to the log.
 *
 * A change is appended, then the log is read up to it: the records before it decide its outcome.  Blocking calls; one
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
        bool is_own_seen;     /* our last record was read back, and own_status is its outcome */
        int own_status;       /* the outcome of our last record */
        uint64_t own_session; /* the number of the session that the record opened */
        struct tree_change *own_change;
        bool is_sealed;
        bool has_changed;  /* a record was read since this was last cleared */
        bool has_appended; /* a record was appended since this was last cleared */
};

/* Finds the log, or makes the first one, and reads it.  -EPROTO: it is not a log. */
int replica_open(struct replica *replica, int dir_fd, struct error *error);
void replica_close(struct replica *replica);

/* Reads what other processes have appended. */
int replica_catch_up(struct replica *replica, struct error *error);

/* These three append a record and return its outcome. *ret_failure is set if the write itself failed. */
int replica_change(struct replica *replica, struct tree_change *change, int *ret_failure, struct error *error);
/* ret_id gets the session's number. */
int replica_session_open(
        struct replica *replica, const struct tree_session *session, uint64_t *ret_id, struct error *error);
int replica_session_end(struct replica *replica, uint64_t id, struct error *error);

/* Writes a new log if this one has grown too long. */
int replica_tidy(struct replica *replica, struct error *error);

#endif
