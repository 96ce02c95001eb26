/* room.c: rooms in memory: what plugins append, for tests to look at. */
#include <errno.h>

#include "internal.h"

int32_t qv_mock_room_put(struct qv_mock *mock, const char *room, const void *data, size_t size, uint64_t *ret_number)
{
        struct qv_mock *shared = mock->first;
        uint64_t number = 1;
        (void)pthread_mutex_lock(&shared->shared_lock);
        struct room_entry **at = &shared->rooms;
        for (; *at; at = &(*at)->next)
                number += !strcmp((*at)->room, room);
        *at = qv_mock_keep(&shared->shared_kept, sizeof(**at));
        **at = (struct room_entry){ .room = qv_mock_keep_bytes(&shared->shared_kept, room, strlen(room) + 1),
                .data = qv_mock_keep_bytes(&shared->shared_kept, data, size),
                .size = size,
                .number = number };
        (void)pthread_mutex_unlock(&shared->shared_lock);
        *ret_number = number;
        return 0;
}

const void *qv_mock_room(struct qv_mock *mock, const char *room, uint64_t number, size_t *ret_size)
{
        struct qv_mock *shared = mock->first;
        const void *found = NULL;
        (void)pthread_mutex_lock(&shared->shared_lock);
        for (const struct room_entry *one = shared->rooms; one && !found; one = one->next)
                if (one->number == number && !strcmp(one->room, room)) {
                        found = one->data ? one->data : "";
                        if (ret_size)
                                *ret_size = one->size;
                }
        (void)pthread_mutex_unlock(&shared->shared_lock);
        return found;
}
