/* session_end.h: ending the session of a host that is gone, for drivers that ask a server to: a visitor's tree is
 * opened for that question and closed with its answer. */
#ifndef QUIVER_COORD_SESSION_END_H
#define QUIVER_COORD_SESSION_END_H

#include "coord/driver.h"

/* Drivers embed it first, and add what the token says. */
struct session_end {
        struct coord_open open; /* a visitor's; first */
        struct coord_end_session *end;
        size_t size; /* of the driver's struct */
        /* The tree is open: asks the server, and calls session_end_close() in the end. */
        void (*ask)(struct session_end *ending);
        int status;
        struct error error;
};

/* A zeroed struct of `size` bytes for the driver to open a tree with.  Its request's status is the one of `end`. */
void *session_end_new(struct coord_end_session *end, size_t size, void (*ask)(struct session_end *ending));
/* The token is not one of this driver's, says `why`: the opening only finishes. */
void session_end_refuse(struct session_end *ending, const char *why);
/* Closes the tree; then frees the struct and finishes the request with this status. */
void session_end_close(struct session_end *ending, int status, const char *text);

#endif
