#include "client/schedules.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"

CALL_START(schedule_list)
CALL_START(schedule_set)

static struct span copy(struct span text)
{
        char *bytes = memory_zero(1, text.size + 1);
        if (text.size)
                memcpy(bytes, text.data, text.size);
        return (struct span){ bytes, text.size };
}

/* Called on the client's thread. */
static void take(struct client_call *call)
{
        struct kept_schedules *kept = call->self;
        const struct store_schedule_list *list = &call->schedule_list;
        kept->unreadable += list->unreadable;
        for (uint32_t i = 0; i < list->schedules_count; i++) {
                kept->list = array_grow(kept->list, kept->count, sizeof(*kept->list));
                struct kept_schedule *one = &kept->list[kept->count++];
                *one = (struct kept_schedule){ .stored = list->schedules[i], .shard = list->shard };
                one->stored.name = copy(list->schedules[i].name);
                one->stored.definition = copy(list->schedules[i].definition);
        }
}

void kept_schedules_free(struct kept_schedules *kept)
{
        for (uint32_t i = 0; i < kept->count; i++) {
                free((char *)kept->list[i].stored.name.data);
                free((char *)kept->list[i].stored.definition.data);
        }
        free(kept->list);
        *kept = (struct kept_schedules){ 0 };
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct kept_schedule *)a)->stored.name.data,
                ((const struct kept_schedule *)b)->stored.name.data);
}

int client_schedules(
        struct qv_client *client, uint32_t shards, const char *name, struct kept_schedules *ret, struct error *error)
{
        struct kept_schedules kept = { 0 };
        for (uint32_t shard = 0; shard < shards; shard++) {
                struct client_call call = { .start = start_schedule_list, .take = take, .self = &kept };
                call.schedule_list.shard = shard;
                call.schedule_list.name = span_of_text(name ? name : "");
                int r = client_call(client, &call, error);
                if (r < 0) {
                        kept_schedules_free(&kept);
                        return r;
                }
        }
        if (kept.count)
                qsort(kept.list, kept.count, sizeof(*kept.list), by_name);
        *ret = kept;
        return 0;
}

int client_schedule_set(struct qv_client *client, struct store_schedule_set *set, struct error *error)
{
        struct client_call call = { .start = start_schedule_set };
        call.schedule_set = *set;
        int r = client_call(client, &call, error);
        set->change = call.schedule_set.change;
        return r;
}
