#include "client/room_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/rooms.h"

struct qv_client_room_page *room_page_make(const struct store_room_read *read)
{
        size_t bytes = 0;
        for (uint32_t i = 0; i < read->entries_count; i++)
                bytes += read->entries[i].bytes.size + 1;
        struct qv_client_room_page *page =
                memory_zero(1, sizeof(*page) + read->entries_count * sizeof(struct qv_client_room_entry) + bytes);
        struct qv_client_room_entry *entries = (struct qv_client_room_entry *)(page + 1);
        char *at = (char *)(entries + read->entries_count);
        *page = (struct qv_client_room_page){ .size = sizeof(*page),
                .is_gap = read->is_gap,
                .has_more = read->has_more,
                .first = read->first,
                .last = read->last,
                .entries = entries,
                .entries_count = read->entries_count };
        for (uint32_t i = 0; i < read->entries_count; i++) {
                struct span from = read->entries[i].bytes;
                if (from.size)
                        memcpy(at, from.data, from.size);
                entries[i] = (struct qv_client_room_entry){ .number = read->entries[i].number,
                        .at_ms = read->entries[i].at_ms,
                        .data = at,
                        .data_size = from.size };
                at += from.size + 1;
        }
        return page;
}

void qv_client_room_page_free(struct qv_client_room_page *page)
{
        free(page);
}

static void keep_last(void *self, const struct store_room_read *read)
{
        *(uint64_t *)self = read->last;
}

int client_room_last(struct qv_client *client, const char *room, uint64_t *ret_last, struct error *error)
{
        /* Reading behind the largest number returns only the head of the room. */
        return client_room_read(client, span_of_text(room), STORE_ROOM_BEGIN_MAX, keep_last, ret_last, error);
}

/* --- client.h ----------------------------------------------------------------------------------------------------- */

int qv_client_room_append(
        struct qv_client *client, const char *room, const void *data, size_t size, uint64_t *ret_number)
{
        struct error *error = client_error_start();
        struct span entry = { data, size };
        struct store_room_append append = { .entries = &entry, .entries_count = 1 };
        if (!room || (size && !data))
                return error_set(error, -EINVAL, "%s: is NULL", room ? "data" : "room");
        append.name = span_of_text(room);
        int r = client_room_append(client, &append, error);
        if (r == 0 && ret_number)
                *ret_number = append.number;
        return r;
}

static void keep_page(void *self, const struct store_room_read *read)
{
        *(struct qv_client_room_page **)self = room_page_make(read);
}

int qv_client_room_read(
        struct qv_client *client, const char *room, uint64_t from, struct qv_client_room_page **ret_page)
{
        struct error *error = client_error_start();
        if (!room || !ret_page)
                return error_set(error, -EINVAL, "%s: is NULL", room ? "ret_page" : "room");
        return client_room_read(client, span_of_text(room), from, keep_page, ret_page, error);
}

int qv_client_room_truncate(struct qv_client *client, const char *room, uint64_t through)
{
        struct error *error = client_error_start();
        if (!room)
                return error_set(error, -EINVAL, "room: is NULL");
        return client_room_truncate(client, span_of_text(room), through, NULL, error);
}
