/* assign_quota.h: which members take part in an assignment, and how many shards each should have.  Used by assign.c
 * only. */
#ifndef QUIVER_HOST_MEMBERSHIP_ASSIGN_QUOTA_H
#define QUIVER_HOST_MEMBERSHIP_ASSIGN_QUOTA_H

#include "host/membership/assign.h"

enum quota_role {
        QUOTA_TAKES, /* takes shards up to its quota, and gives those above it */
        QUOTA_KEEPS, /* keeps what it has, because it does not see the store */
        QUOTA_GIVES, /* gives all: it drains, stands by or has no weight */
};

/* The quota of one member. */
struct member_quota {
        const struct assign_member *member;
        enum quota_role role;
        bool is_listed; /* it is among the previous assignment's owners */
        bool is_giver;  /* it is among the previous assignment's givers */
        uint32_t have;  /* shards that it owns, updated with each move */
        uint32_t had;   /* shards that it owned in the previous assignment */
        uint32_t quota;
        uint32_t weight; /* the effective weight: 1 for all if no member that can take shards has one */
        uint64_t remainder;
};

struct quotas {
        struct member_quota *items; /* sorted by nonce, unique */
        uint32_t count;
        uint32_t *by_owner;  /* index of a previous owner → index of its item, or QUOTA_NONE */
        bool has_lost_giver; /* a giver of the previous assignment is no member any more */
};

#define QUOTA_NONE UINT32_MAX

/* `previous` may be NULL. */
void quotas_init(struct quotas *quotas, const struct assignment *previous, const struct assign_input *input);
void quotas_free(struct quotas *quotas);

/* The member that is furthest below its quota; NULL if none is below. */
struct member_quota *quotas_neediest(const struct quotas *quotas);

#endif
