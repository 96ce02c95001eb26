#include "store/sqlite/records/room_row.h"

#include <errno.h>

bool room_read_row(struct query *q, struct sqlite_room *ret_room)
{
        struct sqlite_room room = { .id = column_number(q, 0),
                .last = column_number(q, 1),
                .entries = column_number(q, 2),
                .bytes = column_number(q, 3),
                .entries_max = column_number(q, 4),
                .bytes_max = column_number(q, 5),
                .age_ms = column_number(q, 6) };
        *ret_room = room;
        return room.last <= TASK_NUMBER_MAX - STORE_CALL_TASKS && room.entries <= room.last &&
               room.bytes <= TASK_NUMBER_MAX && room.entries_max && room.entries_max <= STORE_ROOM_ENTRIES_MAX &&
               room.bytes_max && room.bytes_max <= STORE_ROOM_BYTES_MAX && room.age_ms &&
               room.age_ms <= TASK_NUMBER_MAX / 2;
}

bool room_get(struct sqlite_store *s, struct store_request *request, struct span name, struct sqlite_room *ret_room)
{
        bool is_good = true;
        *ret_room = (struct sqlite_room){ 0 };
        struct query q = query(&s->db, STATEMENT_ROOM_GET);
        bind_number(&q, shard_of_key(name, s->store.shards));
        bind_span(&q, name);
        if (query_row(&q))
                is_good = room_read_row(&q, ret_room);
        query_end(&q);
        if (!is_good)
                operation_refuse(request, -EPROTO,
                        "%s: what is recorded of room %.*s is out of range; fsck --repair counts it anew",
                        store_op_name(request->op), (int)name.size, name.data);
        return is_good;
}

bool room_add(struct sqlite_store *s, struct store_request *request, struct span name, struct sqlite_room *room)
{
        uint32_t shard = shard_of_key(name, s->store.shards);
        struct query q = query(&s->db, STATEMENT_ROOM_COUNT);
        bind_number(&q, shard);
        uint64_t rooms = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        if (rooms >= STORE_ROOMS_MAX) {
                room_refuse_more(request, shard);
                return false;
        }
        q = query(&s->db, STATEMENT_ROOM_ADD);
        bind_number(&q, shard);
        bind_span(&q, name);
        bind_number(&q, room->entries_max);
        bind_number(&q, room->bytes_max);
        bind_number(&q, room->age_ms);
        room->id = query_row(&q) ? column_number(&q, 0) : 0;
        (void)query_run(&q);
        return true;
}

void room_save(struct sqlite_store *s, const struct sqlite_room *room)
{
        struct query q = query(&s->db, STATEMENT_ROOM_SET);
        bind_number(&q, room->id);
        bind_number(&q, room->last);
        bind_number(&q, room->entries);
        bind_number(&q, room->bytes);
        bind_number(&q, room->entries_max);
        bind_number(&q, room->bytes_max);
        bind_number(&q, room->age_ms);
        (void)query_run(&q);
}

/* Whether the room's oldest entry has to be removed. */
static bool must_go(
        struct sqlite_store *s, const struct sqlite_room *room, uint64_t number, uint64_t at_ms, uint64_t through)
{
        if (number <= through)
                return true;
        if (room->entries <= 1)
                return at_ms + room->age_ms <= s->now_ms;
        return room->entries > room->entries_max || room->bytes > room->bytes_max || at_ms + room->age_ms <= s->now_ms;
}

bool room_trim(struct sqlite_store *s, struct sqlite_room *room, uint64_t through, uint32_t max)
{
        uint64_t gone = 0; /* the highest number that is removed */
        uint32_t removed = 0;
        bool has_more = false;
        struct query q = query(&s->db, STATEMENT_ROOM_ENTRY_OLD);
        bind_number(&q, room->id);
        bind_number(&q, (uint64_t)max + 1);
        while (room->entries && query_row(&q)) {
                uint64_t number = column_number(&q, 0);
                uint64_t size = column_number(&q, 2);
                if (!must_go(s, room, number, column_number(&q, 1), through))
                        break;
                has_more = removed++ == max;
                if (has_more)
                        break;
                gone = number;
                room->entries--;
                room->bytes -= size < room->bytes ? size : room->bytes;
        }
        query_end(&q);
        if (!gone)
                return has_more;
        q = query(&s->db, STATEMENT_ROOM_ENTRY_REMOVE);
        bind_number(&q, room->id);
        bind_number(&q, gone);
        (void)query_run(&q);
        return has_more;
}
