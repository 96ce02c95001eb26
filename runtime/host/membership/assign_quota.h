/* assign_quota.h: who takes part in an assignment, and how many shards each should have.  Used by assign.c alone. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGN_QUOTA_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGN_QUOTA_H

#include "host/membership/assign.h"

enum quota_role {
        QUOTA_TAKES, /* up to its quota; gives what is above it */
        QUOTA_KEEPS, /* does not see the store */
        QUOTA_GIVES, /* draining, standing by, or without weight */
};

/* One member's. */
struct member_quota {
        const struct assign_member *member;
        enum quota_role role;
        bool is_listed; /* among the previous assignment's owners */
        bool is_giver;  /* among the members that shards are taken from */
        uint32_t have;  /* shards that it owns, kept up to date as they are moved */
        uint32_t had;   /* the same in the previous assignment */
        uint32_t quota;
        uint32_t weight; /* the one that counts: 1 for all if nobody has any */
        uint64_t remainder;
};

struct quotas {
        struct member_quota *items; /* by nonce, each once */
        uint32_t count;
        uint32_t *by_owner;  /* the previous assignment's owners → item, or QUOTA_NONE */
        bool has_lost_giver; /* one of its givers is no member any more */
};

#define QUOTA_NONE UINT32_MAX

/* -ENOMEM.  `previous` may be NULL. */
int quotas_init(struct quotas *quotas, const struct assignment *previous, const struct assign_input *input);
void quotas_free(struct quotas *quotas);

/* Whoever is furthest below its quota; NULL: nobody is below. */
struct member_quota *quotas_neediest(const struct quotas *quotas);

#endif
