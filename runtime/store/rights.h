/* rights.h: the users that a store's server may know, and what each needs to do what it is for, and nothing else. */
#ifndef QUIVER_STORE_RIGHTS_H
#define QUIVER_STORE_RIGHTS_H

#include <stdbool.h>

#include "base/rights.h"

struct store_options;

enum store_role {
        STORE_HOST,          /* quiver run, with its guard */
        STORE_OPERATOR,      /* every command, also while no host runs */
        STORE_PRODUCER,      /* appends tasks and reads their outcomes */
        STORE_PRODUCER_PLUS, /* that with a delay, a time, unique, an idempotency name, wait_replicas */
        STORE_SENTINEL,      /* on the Sentinels themselves: who is the master */
        STORE_ROLES
};

/* Adds the rights of a role, from url, app and shards of the options.  False: the store has no such users. */
bool store_rights(const struct store_options *options, enum store_role role, struct rights *to);

#endif
