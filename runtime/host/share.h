/* share.h: who takes part in an assignment, and how many shards each should have.  Used by assign.c alone. */
#ifndef QUIVER_HOST_SHARE_H
#define QUIVER_HOST_SHARE_H

#include "host/membership/assign.h"

enum share_role {
        SHARE_TAKES, /* up to its quota; gives what is above it */
        SHARE_KEEPS, /* does not see the store */
        SHARE_GIVES, /* draining, standing by, or without weight */
};

/* One member's. */
struct share {
        const struct assign_member *member;
        enum share_role role;
        bool is_listed; /* among the previous assignment's owners */
        bool is_giver;  /* … or its givers */
        uint32_t have;  /* shards that it owns, kept up to date as they are moved */
        uint32_t had;   /* the same in the previous assignment */
        uint32_t quota;
        uint32_t weight; /* the one that counts: 1 for all if nobody has any */
        uint64_t remainder;
};

struct shares {
        struct share *items; /* by nonce, each once */
        uint32_t count;
        uint32_t *by_owner;  /* the previous assignment's owners → item, or SHARE_NONE */
        bool has_lost_giver; /* one of its givers is no member any more */
};

#define SHARE_NONE UINT32_MAX

/* -ENOMEM.  `previous` may be NULL. */
int shares_init(struct shares *shares, const struct assignment *previous, const struct assign_input *input);
void shares_free(struct shares *shares);

/* Whoever is furthest below its quota; NULL: nobody is below. */
struct share *shares_neediest(const struct shares *shares);

#endif
