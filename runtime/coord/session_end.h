/* session_end.h: ends the session of a host that is gone, for drivers that ask a server: opens a visitor's tree, asks,
 * and closes the tree. */
#ifndef QUIVER_COORD_SESSION_END_H
#define QUIVER_COORD_SESSION_END_H

#include "coord/driver.h"

/* Drivers embed it as their first member, and add what the token contains. */
struct session_end {
        struct coord_open open; /* of the visitor's tree; must be first */
        struct coord_end_session *end;
        size_t size; /* of the driver's struct */
        /* The tree is open: asks the server, and calls session_end_close() in the end. */
        void (*ask)(struct session_end *ending);
        int status;
        struct error error;
};

/* A zeroed struct of `size` bytes with which the driver opens a tree.  Its request has the status of `end`. */
void *session_end_new(struct coord_end_session *end, size_t size, void (*ask)(struct session_end *ending));
/* The token is not valid for this driver: the open is only finished with the error `why`. */
void session_end_refuse(struct session_end *ending, const char *why);
/* Closes the tree; then frees the struct and finishes the request with this status. */
void session_end_close(struct session_end *ending, int status, const char *text);

#endif
