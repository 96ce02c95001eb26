#include "client/rooms.h"

#include <stdlib.h>

#include "base/strings.h"

CALL_START(room_list)
CALL_START(room_read)
CALL_START(room_append)
CALL_START(room_set)
CALL_START(room_truncate)
CALL_START(room_delete)

void kept_rooms_free(struct kept_rooms *kept)
{
        for (uint32_t i = 0; i < kept->count; i++)
                free((char *)(uintptr_t)kept->list[i].name.data);
        free(kept->list);
        *kept = (struct kept_rooms){ 0 };
}

/* Called on the client's thread. */
static void take_rooms(struct client_call *call)
{
        struct kept_rooms *kept = call->self;
        const struct store_room_list *list = &call->room_list;
        for (uint32_t i = 0; i < list->rooms_count; i++) {
                struct span name = list->rooms[i].name;
                kept->list = array_grow(kept->list, kept->count, sizeof(*kept->list));
                kept->list[kept->count] = list->rooms[i];
                kept->list[kept->count++].name = (struct span){ text_copy_part(name.data, name.size), name.size };
        }
}

int client_rooms(struct qv_client *client, uint32_t shard, struct kept_rooms *ret, struct error *error)
{
        struct kept_rooms kept = { 0 };
        bool is_end = false;
        while (!is_end) {
                struct client_call call = { .start = start_room_list, .take = take_rooms, .self = &kept };
                uint32_t before = kept.count;
                call.room_list.shard = shard;
                call.room_list.after = before ? kept.list[before - 1].name : (struct span){ 0 };
                int r = client_call(client, &call, error);
                if (r < 0) {
                        kept_rooms_free(&kept);
                        return r;
                }
                is_end = call.room_list.is_end || kept.count == before;
        }
        *ret = kept;
        return 0;
}

struct reading_room {
        void (*page)(void *self, const struct store_room_read *read);
        void *self;
};

static void take_page(struct client_call *call)
{
        const struct reading_room *reading = call->self;
        reading->page(reading->self, &call->room_read);
}

int client_room_read(struct qv_client *client, struct span name, uint64_t from,
        void (*page)(void *self, const struct store_room_read *read), void *self, struct error *error)
{
        struct reading_room reading = { page, self };
        struct client_call call = { .start = start_room_read, .take = take_page, .self = &reading };
        call.room_read.name = name;
        call.room_read.from = from;
        return client_call(client, &call, error);
}

int client_room_append(struct qv_client *client, struct store_room_append *append, struct error *error)
{
        struct client_call call = { .start = start_room_append };
        call.room_append = *append;
        int r = client_call(client, &call, error);
        append->number = call.room_append.number;
        append->is_repeat = call.room_append.is_repeat;
        return r;
}

int client_room_set(struct qv_client *client, struct store_room_set *set, struct error *error)
{
        struct client_call call = { .start = start_room_set };
        call.room_set = *set;
        return client_call(client, &call, error);
}

int client_room_truncate(
        struct qv_client *client, struct span name, uint64_t through, uint64_t *ret_first, struct error *error)
{
        bool has_more = true;
        while (has_more) {
                struct client_call call = { .start = start_room_truncate };
                call.room_truncate.name = name;
                call.room_truncate.through = through;
                int r = client_call(client, &call, error);
                if (r < 0)
                        return r;
                has_more = call.room_truncate.has_more;
                if (ret_first)
                        *ret_first = call.room_truncate.first;
        }
        return 0;
}

int client_room_delete(struct qv_client *client, struct span name, struct error *error)
{
        bool has_more = true;
        while (has_more) {
                struct client_call call = { .start = start_room_delete };
                call.room_delete.name = name;
                int r = client_call(client, &call, error);
                if (r < 0)
                        return r;
                has_more = call.room_delete.has_more;
        }
        return 0;
}
