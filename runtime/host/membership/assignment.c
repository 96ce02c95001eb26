/* assignment.c: the memory of an assignment, lookups in it, and the names of reasons. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/membership/assign.h"

void assignment_init(struct assignment *a, uint32_t shards_count, uint32_t owners_count, uint32_t givers_count)
{
        *a = (struct assignment){
                .shards_count = shards_count, .owners_count = owners_count, .givers_count = givers_count
        };
        a->slots = memory_zero(shards_count, sizeof(a->slots[0]));
        a->owners = memory_zero(owners_count, sizeof(a->owners[0]));
        a->givers = memory_zero(givers_count, sizeof(a->givers[0]));
        for (uint32_t shard = 0; shard < shards_count; shard++)
                a->slots[shard].owner = ASSIGN_NOBODY;
}

void assignment_free(struct assignment *a)
{
        if (!a)
                return;
        free(a->slots);
        free(a->owners);
        free(a->givers);
        *a = (struct assignment){ 0 };
}

const struct assign_owner *assignment_owner(const struct assignment *a, uint32_t shard)
{
        uint16_t owner = a->slots[shard].owner;
        return owner == ASSIGN_NOBODY ? NULL : &a->owners[owner];
}

/* Searches an array that is sorted by nonce and whose elements begin with it. */
static bool has_nonce(const void *items, uint32_t count, size_t size, const uint8_t nonce[STORE_NONCE_SIZE])
{
        uint32_t low = 0, high = count;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = memcmp((const uint8_t *)items + middle * size, nonce, STORE_NONCE_SIZE);
                if (!order)
                        return true;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return false;
}

bool assignment_lists(const struct assignment *a, const uint8_t nonce[STORE_NONCE_SIZE])
{
        _Static_assert(
                !offsetof(struct assign_owner, nonce) && !offsetof(struct assign_giver, nonce), "begins with it");
        return has_nonce(a->owners, a->owners_count, sizeof(a->owners[0]), nonce) ||
               has_nonce(a->givers, a->givers_count, sizeof(a->givers[0]), nonce);
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
        static const char *const names[ASSIGN_REASONS] = { "join", "leave", "crash", "rebalance", "drain", "load",
                "restart" };
        return (unsigned)reason < ASSIGN_REASONS ? names[reason] : "unknown";
}
