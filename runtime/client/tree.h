/* tree.h: a handle's session with the coordination: opened when a call first needs it, shared by all calls. */
#ifndef QUIVER_CLIENT_TREE_H
#define QUIVER_CLIENT_TREE_H

#include "coord/coord.h"

struct qv_client;

/* Receives the tree's events. */
struct client_listener {
        struct coord_events events;
        struct client_listener *prev, *next;
};

struct client_tree {
        struct coord_options options; /* copies; app is NULL if there is no configuration */
        struct coord *coord;          /* NULL: not opened yet */
        uint64_t session;             /* 0: none is alive */
        struct coord_events events;   /* passed to the tree */
        struct client_listener *listeners;
};

/* Sets the configuration's coordination.  Called once, by the opener of the handle. */
void client_tree_set(struct qv_client *client, const struct coord_options *options);
/* Opens the tree unless it is open.  Any thread except the client's.  -ENOTSUP: the handle was opened without a
 * configuration. */
int client_tree_ensure(struct qv_client *client, struct error *error);
/* Ends the session, and with it everything that depends on it.  Any thread except the client's. */
void client_tree_close(struct qv_client *client);

/* On the client's thread: the listener gets all events from now on, beginning with the current session. */
void client_tree_listen(struct qv_client *client, struct client_listener *listener);
/* On the client's thread, not from one of its events: the listener gets no more events. */
void client_tree_unlisten(struct qv_client *client, struct client_listener *listener);

/* Part of the handle (client.c). */
struct client_tree *client_tree(struct qv_client *client);

#endif
