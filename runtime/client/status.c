/* status.c: counts and desired state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "client/admin.h"
#include "client/call.h"
#include "client/sized_struct.h"

CALL_START(count)
CALL_START(desired_get)
CALL_START(desired_set)
CALL_START(app_get)
CALL_START(app_set)

int client_count(struct qv_client *client, uint32_t first_shard, uint32_t shards, struct store_counts *ret_counts,
        struct error *error)
{
        struct client_call call = { .start = start_count };
        call.count.first_shard = first_shard;
        call.count.shards = shards;
        call.count.counts = ret_counts;
        return client_call(client, &call, error);
}

int qv_client_count(struct qv_client *client, uint32_t shard, struct qv_client_counts *counts)
{
        struct error *error = client_error_start();
        struct store_counts sum = { 0 };
        uint32_t all = client_store_info(client)->shards;
        uint32_t shards = shard == QV_CLIENT_ALL_SHARDS ? all : 1;
        if (shards == 1 && shard != QV_CLIENT_ALL_SHARDS && shard >= all)
                return error_set(error, -EINVAL, "shard %u: the store has 0 to %u", shard, all - 1);
        struct store_counts *each = memory_zero(shards, sizeof(*each));
        int r = client_count(client, shard == QV_CLIENT_ALL_SHARDS ? 0 : shard, shards, each, error);
        for (uint32_t i = 0; i < shards; i++)
                store_counts_add(&sum, &each[i]);
        free(each);
        if (r < 0)
                return r;
        struct qv_client_counts said = {
                .size = sizeof(said),
                .shards = shards,
                .queued = store_counts_queued(&sum),
                .delayed = sum.delayed,
                .in_flight = sum.in_flight,
                .parked = store_counts_parked(&sum),
                .dead = sum.dead,
                .results = sum.results,
                .submitted = sum.submitted,
                .done = sum.done,
                .dropped = sum.dropped,
                .merged = sum.merged,
                .oldest_ms = sum.oldest_ms,
        };
        if (SIZED_FILL(counts, &said) < 0)
                return error_set(error, -EINVAL, "counts.size: start from QV_CLIENT_COUNTS_INIT");
        return 0;
}

/* --- desired state ------------------------------------------------------------------------------------------------ */

int qv_client_set_desired(struct qv_client *client, const char *name, const char *value)
{
        struct error *error = client_error_start();
        struct client_call call = { .start = start_desired_set };
        call.desired_set.item.name = (struct span){ name, strlen(name) };
        call.desired_set.has_value = value != NULL;
        if (value)
                call.desired_set.item.value = (struct span){ value, strlen(value) };
        return client_call(client, &call, error);
}

struct desired_each {
        void (*each)(void *self, const struct store_desired *item);
        void *self;
};

static void take_desired(struct client_call *call)
{
        const struct desired_each *to = call->self;
        for (uint32_t i = 0; i < call->desired_get.items_count; i++)
                to->each(to->self, &call->desired_get.items[i]);
}

int client_desired(struct qv_client *client, void (*each)(void *self, const struct store_desired *item), void *self,
        uint64_t *ret_version, struct error *error)
{
        struct desired_each to = { each, self };
        struct client_call call = { .start = start_desired_get, .take = take_desired, .self = &to };
        int r = client_call(client, &call, error);
        if (r == 0 && ret_version)
                *ret_version = call.desired_get.version;
        return r;
}

struct wanted_name {
        struct span name;
        bool is_there;
        char *value;
};

static void take_if_wanted(void *self, const struct store_desired *item)
{
        struct wanted_name *wanted = self;
        if (!span_is(item->name, wanted->name))
                return;
        wanted->is_there = true;
        wanted->value = text_copy_part(item->value.size ? item->value.data : "", item->value.size);
}

int qv_client_get_desired(struct qv_client *client, const char *name, char **ret_value)
{
        struct error *error = client_error_start();
        struct wanted_name wanted = { .name = { name, strlen(name) } };
        int r = client_desired(client, take_if_wanted, &wanted, NULL, error);
        if (r < 0)
                return r;
        if (!wanted.is_there)
                return error_set(error, -ENOENT, "%s is not set", name);
        *ret_value = wanted.value;
        return 0;
}

/* --- the app's record --------------------------------------------------------------------------------------------- */

static void take_app(struct client_call *call)
{
        struct span coordination = call->app_get.coordination;
        *(char **)call->self = text_copy_part(coordination.size ? coordination.data : "", coordination.size);
}

int client_app(struct qv_client *client, struct store_app *ret_app, char **ret_coordination, struct error *error)
{
        struct client_call call = { .start = start_app_get, .take = take_app, .self = ret_coordination };
        int r = client_call(client, &call, error);
        if (r == 0)
                *ret_app = call.app_get.app;
        return r;
}

int client_app_set(struct qv_client *client, struct store_app_set *set, struct error *error)
{
        struct client_call call = { .start = start_app_set };
        call.app_set = *set;
        return client_call(client, &call, error);
}
