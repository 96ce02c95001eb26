/* The assignment as a thing: its memory and its words. */
#include <errno.h>
#include <stdlib.h>

#include "host/assign.h"

int assignment_init(struct assignment *a, uint32_t shards_count, uint32_t owners_count)
{
        *a = (struct assignment){ .shards_count = shards_count, .owners_count = owners_count };
        a->slots = calloc(shards_count + 1, sizeof(a->slots[0]));
        a->owners = calloc(owners_count + 1, sizeof(a->owners[0]));
        if (!a->slots || !a->owners) {
                assignment_free(a);
                return -ENOMEM;
        }
        for (uint32_t shard = 0; shard < shards_count; shard++)
                a->slots[shard].owner = ASSIGN_NOBODY;
        return 0;
}

void assignment_free(struct assignment *a)
{
        if (!a)
                return;
        free(a->slots);
        free(a->owners);
        *a = (struct assignment){ 0 };
}

const struct assign_owner *assignment_owner(const struct assignment *a, uint32_t shard)
{
        uint16_t owner = a->slots[shard].owner;
        return owner == ASSIGN_NOBODY ? NULL : &a->owners[owner];
}

void assign_plan_free(struct assign_plan *plan)
{
        if (!plan)
                return;
        assignment_free(&plan->next);
        free(plan->moves);
        *plan = (struct assign_plan){ 0 };
}

const char *assign_reason_name(enum assign_reason reason)
{
        static const char *const names[ASSIGN_REASONS] = { "join", "leave", "crash", "rebalance", "drain" };
        return (unsigned)reason < ASSIGN_REASONS ? names[reason] : "unknown";
}
