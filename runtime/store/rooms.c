/* Starts the operations of rooms.h: checks the request, then hands it to the driver. */
#include "store/rooms.h"

#include <errno.h>
#include <inttypes.h>

#include "store/request.h"

static void check_name(struct store_request *request, struct span name)
{
        struct error error;
        if (task_key_check(name, &error))
                request_refuse(request, "a room's name has 1 to 255 bytes and no control characters");
}

void store_room_set(struct store *store, struct store_room_set *set)
{
        struct store_request *request = &set->request;
        request_begin(store, request, OP_ROOM_SET);
        check_name(request, set->name);
        set->entries_max = set->entries_max ? set->entries_max : STORE_ROOM_ENTRIES;
        set->bytes_max = set->bytes_max ? set->bytes_max : STORE_ROOM_BYTES;
        set->age_ms = set->age_ms ? set->age_ms : STORE_ROOM_AGE_MS;
        if (set->entries_max > STORE_ROOM_ENTRIES_MAX || set->bytes_max > STORE_ROOM_BYTES_MAX ||
                set->age_ms > TASK_NUMBER_MAX / 2)
                request_refuse(request, "a room keeps at most 10 000 000 entries and 64 GiB");
        request_start(request);
}

static bool is_source(struct span name)
{
        bool is_fit = name.size <= STORE_ROOM_SOURCE_SIZE;
        for (size_t i = 0; i < name.size && is_fit; i++)
                is_fit = name.data[i] > ' ' && name.data[i] <= '~';
        return is_fit;
}

static void check_entries(struct store_request *request, const struct store_room_append *append)
{
        size_t bytes = 0;
        for (uint32_t i = 0; i < append->entries_count && !request->status; i++) {
                size_t size = append->entries[i].size;
                bytes += size;
                if (size > request->store->payload_max)
                        request->status = error_set(&request->error, -EMSGSIZE,
                                "room append: entry %" PRIu32 " has %zu bytes, at most %" PRIu64 " are allowed", i + 1,
                                size, request->store->payload_max);
                else if (append->at_ms && append->at_ms[i] > TASK_NUMBER_MAX)
                        request_refuse(request, "a time is out of range");
                else if (i && bytes > STORE_CALL_BYTES)
                        request->status = error_set(&request->error, -EMSGSIZE,
                                "room append: more than %u bytes in one request", STORE_CALL_BYTES);
        }
}

void store_room_append(struct store *store, struct store_room_append *append)
{
        struct store_request *request = &append->request;
        request_begin(store, request, OP_ROOM_APPEND);
        append->number = 0;
        append->is_repeat = false;
        check_name(request, append->name);
        if ((!append->entries_count && !append->begin) || append->entries_count > STORE_CALL_TASKS)
                request_refuse(request, "an append has 1 to 256 entries");
        if (append->begin > STORE_ROOM_BEGIN_MAX)
                request_refuse(request, "no entry has such a number");
        if (!is_source(append->source) || append->source_number > TASK_NUMBER_MAX ||
                !append->source.size != !append->source_number)
                request_refuse(request, "a source has a name of 1 to 64 letters, and a number");
        if (!request->status)
                check_entries(request, append);
        request_start(request);
}

static void check_page(uint32_t *page)
{
        if (!*page || *page > STORE_CALL_TASKS)
                *page = STORE_CALL_TASKS;
}

void store_room_read(struct store *store, struct store_room_read *read)
{
        request_begin(store, &read->request, OP_ROOM_READ);
        check_name(&read->request, read->name);
        check_page(&read->entries_max);
        if (read->from > TASK_NUMBER_MAX || read->follow_ms > TASK_NUMBER_MAX / 2)
                request_refuse(&read->request, "no entry has such a number");
        read->is_there = read->has_more = read->is_gap = false;
        read->first = 1;
        read->last = 0;
        read->entries_count = 0;
        request_start(&read->request);
}

void store_room_truncate(struct store *store, struct store_room_truncate *truncate)
{
        request_begin(store, &truncate->request, OP_ROOM_TRUNCATE);
        check_name(&truncate->request, truncate->name);
        if (truncate->through > TASK_NUMBER_MAX)
                request_refuse(&truncate->request, "no entry has such a number");
        truncate->has_more = false;
        request_start(&truncate->request);
}

void store_room_delete(struct store *store, struct store_room_delete *delete_room)
{
        request_begin(store, &delete_room->request, OP_ROOM_DELETE);
        check_name(&delete_room->request, delete_room->name);
        delete_room->has_more = false;
        request_start(&delete_room->request);
}

void store_room_list(struct store *store, struct store_room_list *list)
{
        request_begin(store, &list->request, OP_ROOM_LIST);
        request_check_shard(&list->request, list->shard);
        check_page(&list->page_rooms);
        list->rooms_count = 0;
        list->is_end = false;
        request_start(&list->request);
}

void room_refuse_missing(struct store_request *request, struct span name)
{
        request->status = error_set(&request->error, -ENOENT, "%s: there is no room %.*s", store_op_name(request->op),
                (int)name.size, name.data);
}

void room_refuse_more(struct store_request *request, uint32_t shard)
{
        request->status =
                error_set(&request->error, -E2BIG, "%s: shard %" PRIu32 " has %u rooms, which is the most; delete some",
                        store_op_name(request->op), shard, STORE_ROOMS_MAX);
}

void room_refuse_begin(struct store_room_append *append)
{
        append->request.status = error_set(&append->request.error, -ESTALE,
                "room append: the next entry of room %.*s does not get the number %" PRIu64, (int)append->name.size,
                append->name.data, append->begin);
}

bool room_is_gap(uint64_t from, uint64_t first, uint64_t last)
{
        return from && (from < first || from > last + 1);
}
