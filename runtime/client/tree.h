/* tree.h: a handle's session with the coordination: opened when the first call needs it, one for all of them. */
#ifndef QUIVER_CLIENT_TREE_H
#define QUIVER_CLIENT_TREE_H

#include "coord/coord.h"

struct qv_client;

/* Somebody who hears what the tree tells. */
struct client_listener {
        struct coord_events events;
        struct client_listener *prev, *next;
};

struct client_tree {
        struct coord_options options; /* copies; app is NULL if there is no configuration */
        struct coord *coord;          /* NULL: not opened yet */
        uint64_t session;             /* 0: none is alive */
        struct coord_events events;   /* ours, for the tree */
        struct client_listener *listeners;
};

/* Which coordination the configuration names.  Once, by who opens the handle. */
void client_tree_set(struct qv_client *client, const struct coord_options *options);
/* Opens it unless it is open.  Any thread but the client's.  -ENOTSUP: the handle was opened without a configuration.
 */
int client_tree_ensure(struct qv_client *client, struct error *error);
/* Ends the session; what hung on it is gone then.  Any thread but the client's. */
void client_tree_close(struct qv_client *client);

/* On the client's thread: from now on it hears everything, beginning with the session that there is. */
void client_tree_listen(struct qv_client *client, struct client_listener *listener);
/* On the client's thread, not from one of its events: it hears no more. */
void client_tree_unlisten(struct qv_client *client, struct client_listener *listener);

/* Of the handle (client.c). */
struct client_tree *client_tree(struct qv_client *client);

#endif
