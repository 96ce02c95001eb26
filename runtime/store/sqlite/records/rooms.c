/* Rooms: named logs that any process appends to and reads. */
#include <errno.h>

#include "base/numbers.h"
#include "store/sqlite/records/room_row.h"

/* Extra entries that an append may remove, so that a room whose limits were lowered shrinks. */
#define TRIM_MORE 16u

static const struct sqlite_room usual = {
        .entries_max = STORE_ROOM_ENTRIES, .bytes_max = STORE_ROOM_BYTES, .age_ms = STORE_ROOM_AGE_MS
};

void sqlite_room_set(struct sqlite_store *s, struct store_request *request)
{
        const struct store_room_set *set = (const struct store_room_set *)request;
        struct sqlite_room room;
        if (!room_get(s, request, set->name, &room))
                return;
        room.entries_max = set->entries_max;
        room.bytes_max = set->bytes_max;
        room.age_ms = set->age_ms;
        if (!room.id && !room_add(s, request, set->name, &room))
                return;
        (void)room_trim(s, &room, 0, STORE_ROOM_PORTION);
        room_save(s, &room);
}

/* --- appending --- */

/* True if the source has appended with this number or a higher one. */
static bool is_repeat(struct sqlite_store *s, const struct sqlite_room *room, struct store_room_append *append)
{
        struct query q = query(&s->db, STATEMENT_ROOM_SOURCE_GET);
        bind_number(&q, room->id);
        bind_text(&q, append->source);
        uint64_t highest = query_row(&q) ? column_number(&q, 0) : 0;
        if (highest == append->source_number)
                append->number = min_u64(column_number(&q, 1), room->last);
        query_end(&q);
        append->is_repeat = append->source_number <= highest;
        return append->is_repeat;
}

static void source_set(struct sqlite_store *s, const struct sqlite_room *room, const struct store_room_append *append)
{
        struct query q = query(&s->db, STATEMENT_ROOM_SOURCE_SET);
        bind_number(&q, room->id);
        bind_text(&q, append->source);
        bind_number(&q, append->source_number);
        bind_number(&q, append->number);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        q = query(&s->db, STATEMENT_ROOM_SOURCE_TRIM);
        bind_number(&q, room->id);
        bind_text(&q, append->source);
        bind_number(&q, STORE_ROOM_SOURCES_MAX - 1);
        (void)query_run(&q);
}

static void entry_put(struct sqlite_store *s, struct sqlite_room *room, struct span bytes, uint64_t at_ms)
{
        struct query q = query(&s->db, STATEMENT_ROOM_ENTRY_PUT);
        bind_number(&q, room->id);
        bind_number(&q, ++room->last);
        bind_number(&q, min_u64(at_ms, s->now_ms));
        bind_span(&q, bytes);
        (void)query_run(&q);
        room->entries++;
        room->bytes += bytes.size;
}

static void ring_followers(struct sqlite_store *s, uint32_t shard)
{
        struct query q = query(&s->db, STATEMENT_ROOM_FOLLOWERS);
        bind_number(&q, shard);
        bind_number(&q, s->now_ms);
        while (query_row(&q)) {
                struct span nonce = column_span(&q, 0);
                if (nonce.size == STORE_NONCE_SIZE)
                        doorbells_add(&s->bells, (const uint8_t *)nonce.data, BELL_ROOM + shard);
        }
        query_end(&q);
}

void sqlite_room_append(struct sqlite_store *s, struct store_request *request)
{
        struct store_room_append *append = (struct store_room_append *)request;
        struct sqlite_room room;
        append->number = 0;
        append->is_repeat = false;
        if (!room_get(s, request, append->name, &room))
                return;
        if (!room.id) {
                room = usual;
                if (!room_add(s, request, append->name, &room))
                        return;
        }
        if (append->source.size && is_repeat(s, &room, append))
                return;
        bool is_unused = !room.last;
        if (append->begin && is_unused)
                room.last = append->begin - 1;
        if (append->begin && (append->begin != room.last + 1 || (!append->entries_count && !is_unused))) {
                room_refuse_begin(append);
                return;
        }
        append->number = room.last + 1;
        for (uint32_t i = 0; i < append->entries_count; i++)
                entry_put(s, &room, append->entries[i], append->at_ms ? append->at_ms[i] : s->now_ms);
        if (append->source.size)
                source_set(s, &room, append);
        (void)room_trim(s, &room, 0, 2 * append->entries_count + TRIM_MORE);
        room_save(s, &room);
        ring_followers(s, shard_of_key(append->name, s->store.shards));
}

/* --- reading --- */

static void follow(struct sqlite_store *s, const struct store_room_read *read)
{
        uint32_t shard = shard_of_key(read->name, s->store.shards);
        struct query q = query(&s->db, STATEMENT_ROOM_FOLLOWER_SWEEP);
        bind_number(&q, shard);
        bind_number(&q, s->now_ms);
        (void)query_run(&q);
        q = query(&s->db, STATEMENT_ROOM_FOLLOW);
        bind_number(&q, shard);
        bind_span(&q, (struct span){ (const char *)s->nonce, STORE_NONCE_SIZE });
        bind_number(&q, s->now_ms + read->follow_ms);
        (void)query_run(&q);
}

static void read_entries(struct sqlite_store *s, const struct sqlite_room *room, struct store_room_read *read)
{
        struct arena_chunk **arena = request_arena(&read->request);
        uint64_t bytes = 0;
        read->entries = arena_take(arena, read->entries_max * sizeof(*read->entries));
        struct query q = query(&s->db, STATEMENT_ROOM_ENTRY_PAGE);
        bind_number(&q, room->id);
        bind_number(&q, read->from > read->first ? read->from : read->first);
        bind_number(&q, (uint64_t)read->entries_max + 1);
        while (query_row(&q)) {
                struct span entry = column_span(&q, 2);
                read->has_more = read->entries_count &&
                                 (read->entries_count == read->entries_max || bytes + entry.size > STORE_CALL_BYTES);
                if (read->has_more)
                        break;
                bytes += entry.size;
                read->entries[read->entries_count++] =
                        (struct store_room_entry){ .number = min_u64(column_number(&q, 0), TASK_NUMBER_MAX),
                                .at_ms = min_u64(column_number(&q, 1), TASK_NUMBER_MAX),
                                .bytes = arena_copy(arena, entry) };
        }
        query_end(&q);
}

void sqlite_room_read(struct sqlite_store *s, struct store_request *request)
{
        struct store_room_read *read = (struct store_room_read *)request;
        struct sqlite_room room;
        read->is_there = read->has_more = false;
        read->entries_count = 0;
        if (read->follow_ms)
                follow(s, read);
        if (!room_get(s, request, read->name, &room))
                return;
        read->is_there = room.id != 0;
        read->first = room_first(&room);
        read->last = room.last;
        read->is_gap = room_is_gap(read->from, read->first, read->last);
        if (read->is_there)
                read_entries(s, &room, read);
}

/* --- removing --- */

void sqlite_room_truncate(struct sqlite_store *s, struct store_request *request)
{
        struct store_room_truncate *truncate = (struct store_room_truncate *)request;
        struct sqlite_room room;
        if (!room_get(s, request, truncate->name, &room))
                return;
        if (!room.id) {
                room_refuse_missing(request, truncate->name);
                return;
        }
        truncate->has_more = room_trim(s, &room, truncate->through, STORE_ROOM_PORTION);
        truncate->first = room_first(&room);
        room_save(s, &room);
}

static void remove_by_room(struct sqlite_store *s, enum statement statement, uint64_t id)
{
        struct query q = query(&s->db, statement);
        bind_number(&q, id);
        (void)query_run(&q);
}

void sqlite_room_delete(struct sqlite_store *s, struct store_request *request)
{
        struct store_room_delete *delete_room = (struct store_room_delete *)request;
        struct sqlite_room room;
        if (!room_get(s, request, delete_room->name, &room))
                return;
        if (!room.id) {
                room_refuse_missing(request, delete_room->name);
                return;
        }
        delete_room->has_more = room_trim(s, &room, room.last, STORE_ROOM_PORTION);
        if (delete_room->has_more) {
                room_save(s, &room);
                return;
        }
        remove_by_room(s, STATEMENT_ROOM_SOURCE_REMOVE, room.id);
        remove_by_room(s, STATEMENT_ROOM_REMOVE, room.id);
}

void sqlite_room_list(struct sqlite_store *s, struct store_request *request)
{
        struct store_room_list *list = (struct store_room_list *)request;
        struct arena_chunk **arena = request_arena(request);
        uint32_t seen = 0;
        list->rooms = arena_take(arena, list->page_rooms * sizeof(*list->rooms));
        list->rooms_count = 0;
        struct query q = query(&s->db, STATEMENT_ROOM_PAGE);
        bind_number(&q, list->shard);
        bind_span(&q, list->after);
        bind_number(&q, (uint64_t)list->page_rooms + 1);
        while (query_row(&q) && seen++ < list->page_rooms) {
                struct sqlite_room room;
                /* A room with numbers out of range is shown as empty; fsck names it. */
                if (!room_read_row(&q, &room))
                        room = usual;
                list->rooms[list->rooms_count++] = (struct store_room){ .name = arena_copy(arena, column_span(&q, 7)),
                        .first = room_first(&room),
                        .last = room.last,
                        .bytes = room.bytes,
                        .entries_max = room.entries_max,
                        .bytes_max = room.bytes_max,
                        .age_ms = room.age_ms };
        }
        list->is_end = seen <= list->page_rooms;
        query_end(&q);
}
