/* rooms.h: rooms: named logs of messages in the store, in order, that any number of readers replay and follow.
 *
 * A room stands in the shard that its name would have as a key: shard_of_key().  Nobody owns it: any process appends
 * and reads, without a lease.  Its entries are numbered from 1, without gaps; a number is never given again, also after
 * the entries before it are gone.  (A failover of Redis that loses the last entries loses their numbers with them:
 * these are then given again.)
 *
 * What is kept is bounded by count, bytes and age: the oldest go, a few more than come with each append, set and
 * truncate.  A reader that asks for one that is gone is told, and where the room begins now. */
#ifndef QUIVER_STORE_ROOMS_H
#define QUIVER_STORE_ROOMS_H

#include "store/store.h"

#define STORE_ROOMS_MAX        1024u /* in one shard */
#define STORE_ROOM_ENTRIES     10000u
#define STORE_ROOM_ENTRIES_MAX 10000000u /* what entries_max may be at most */
#define STORE_ROOM_BYTES       (64u * 1024u * 1024u)
#define STORE_ROOM_BYTES_MAX   (UINT64_C(1) << 36)
#define STORE_ROOM_AGE_MS      (7u * 86400000u)
#define STORE_ROOM_SOURCES_MAX                                                                                         \
        16u /* that a room remembers; one more makes it forget the one that was silent longest                         \
             */
#define STORE_ROOM_BEGIN_MAX (TASK_NUMBER_MAX - 2u * STORE_CALL_TASKS) /* what `begin` may be at most */
#define STORE_ROOM_PORTION   1024u /* entries that one truncate or delete removes at most */

struct store_room {
        struct span name; /* 1 to 255 bytes, no control characters */
        uint64_t first;   /* the first number that is there; last + 1: the room is empty */
        uint64_t last;    /* the last number given; 0: none yet */
        uint64_t bytes;   /* of all entries */
        uint64_t entries_max;
        uint64_t bytes_max; /* the newest entry stays, however long it is */
        uint64_t age_ms;
};

/* Makes a room, or changes what it keeps; 0: the default (STORE_ROOM_ENTRIES, …).  -E2BIG: the shard has as many rooms
 * as it may.  SQLite: 1 row + what is removed.  Redis: one script. */
struct store_room_set {
        struct store_request request;
        struct span name;
        uint64_t entries_max;
        uint64_t bytes_max;
        uint64_t age_ms;
};
void store_room_set(struct store *store, struct store_room_set *set);

/* Appends entries, all or none, and rings who follows.  A room that is not there is made.  -EMSGSIZE: an entry is
 * longer than max_payload, or all together are longer than STORE_CALL_BYTES and more than one.  -E2BIG as above.
 *
 * With a source an append is safe to repeat: the room keeps the highest number of each source and takes only higher
 * ones. A repeat changes nothing; of the last append of a source it returns the same number, of an earlier one 0.
 *
 * What another store had keeps its numbers and times (`begin`, `at_ms`): a room that has given no number yet gives that
 * one first.  -ESTALE: the next number of the room is another one, or an append without entries is to begin a room that
 * has given a number; nothing was changed.
 * SQLite: n rows + 1, and up to 2n + 16 that are removed.  Redis: one script, the same. */
struct store_room_append {
        struct store_request request;
        struct span name;
        const struct span *entries;
        uint32_t entries_count; /* 1 to STORE_CALL_TASKS; with `begin` also 0: it only begins the room */
        struct span source;     /* 1 to STORE_ROOM_SOURCE_SIZE printable letters; empty: none */
        uint64_t source_number; /* with a source: at least 1, growing */
        uint64_t begin;         /* the number that the first of them has to get; 0: whichever is next */
        const uint64_t *at_ms;  /* when each was appended first; a time to come counts as now.  NULL: now */

        uint64_t number; /* of the first of them */
        bool is_repeat;
};
#define STORE_ROOM_SOURCE_SIZE 64u
void store_room_append(struct store *store, struct store_room_append *append);

struct store_room_entry {
        uint64_t number;
        uint64_t at_ms; /* store time */
        struct span bytes;
};

/* Reads entries from a number on, in order.  A room that is not there reads as an empty one that has given no number.
 * With follow_ms an append to a room of this shard rings (store_bell.room) within that time, at least the first one.
 * SQLite: page rows, + 1 written if it follows.  Redis: one script. */
struct store_room_read {
        struct store_request request;
        struct span name;
        uint64_t from;        /* 0: from the first that is there */
        uint32_t entries_max; /* cut to STORE_CALL_TASKS; 0: that.  About STORE_CALL_BYTES at most, but always one */
        uint64_t follow_ms;

        bool is_there;
        uint64_t first; /* as in store_room */
        uint64_t last;
        struct store_room_entry *entries;
        uint32_t entries_count;
        bool has_more;
        bool is_gap; /* the one that was asked for is gone: the page begins at `first`.  Or it has not been given, and
                        neither has the one before it: the room was deleted, or lost its last ones */
};
void store_room_read(struct store *store, struct store_room_read *read);

/* Removes entries up to a number, and what is beyond the room's limits; 0: only that.  At most STORE_ROOM_PORTION at
 * once: has_more.  -ENOENT: no such room.  SQLite: the rows removed + 1.  Redis: one script. */
struct store_room_truncate {
        struct store_request request;
        struct span name;
        uint64_t through;

        uint64_t first; /* as in store_room */
        bool has_more;
};
void store_room_truncate(struct store *store, struct store_room_truncate *truncate);

/* Removes a room with all that is in it, its numbers and its sources.  has_more: some of it is left; go on.  -ENOENT:
 * no such room.  SQLite: STORE_ROOM_PORTION rows at most.  Redis: one script, at once. */
struct store_room_delete {
        struct store_request request;
        struct span name;

        bool has_more;
};
void store_room_delete(struct store *store, struct store_room_delete *delete_room);

/* Rooms of one shard, by name.  SQLite: page rows.  Redis: one script that sorts the names. */
struct store_room_list {
        struct store_request request;
        uint32_t shard;
        struct span after;   /* the last name of the page before; empty: from the first */
        uint32_t page_rooms; /* cut to STORE_CALL_TASKS; 0: that */

        struct store_room *rooms;
        uint32_t rooms_count;
        bool is_end;
};
void store_room_list(struct store *store, struct store_room_list *list);

#endif
