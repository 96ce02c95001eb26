/* ids.h: unique ids for programs and commands. */
#ifndef QUIVER_CLIENT_IDS_H
#define QUIVER_CLIENT_IDS_H

#include <pthread.h>
#include <uv.h>

#include "client/tree.h"
#include "coord/id_source.h"

struct qv_client;

struct client_ids {
        pthread_mutex_t opening; /* held while the slot is first taken */
        _Atomic bool is_open;
        _Atomic bool is_topping_up; /* the client's thread was told to move the horizon */

        /* Set before the first id. */
        struct id_layout layout;
        bool has_layout;
        uint32_t fixed;
        uint64_t horizon_ms; /* 0: the default */

        /* Used by the client's thread only, except the generator. */
        struct id_source source;
        struct client_listener listener;
        uv_timer_t timer;
};

/* Call before the first id: another layout than the app's (NULL: the app's), a fixed slot (SLOT_ANY: any), and how far
 * ahead ids are reserved. */
void client_ids_set(struct qv_client *client, const struct id_layout *layout, uint32_t fixed, uint64_t horizon_ms);
/* The layout of the ids. */
const struct id_layout *client_ids_layout(struct qv_client *client);
/* Takes 1 to `want` ids; sleeps if it must wait, without a lock.  Any thread except the client's. */
int client_ids_take(struct qv_client *client, uint32_t want, struct id_block *ret_block, struct error *error);
/* Gives the slot back before the tree is closed.  Any thread except the client's. */
void client_ids_close(struct qv_client *client);
void client_ids_free(struct qv_client *client);

/* Part of the handle (client.c). */
struct client_ids *client_ids(struct qv_client *client);

#endif
