/* rights.h: the users that the servers of an app may have, each with the rights of its role. */
#ifndef QUIVER_CLIENT_RIGHTS_H
#define QUIVER_CLIENT_RIGHTS_H

#include <stddef.h>

#include "base/error.h"
#include "config/config.h"

struct server_user {
        const char *server; /* "store", "coordination", or "sentinel" of one of them */
        const char *role;
        const char *about; /* what the user is for */
        char *name;        /* proposed */
        char *rules;       /* the words after "ACL SETUSER NAME" */
};

struct server_users {
        struct server_user *items;
        size_t count;
};

/* -ENOTSUP: neither the store nor the coordination has a server with such users. */
int server_users_make(const struct config *config, struct server_users *ret_users, struct error *error);
void server_users_free(struct server_users *users);

#endif
