/* The format of a task in a row: packed if it was submitted or loaded here, text if another program wrote it.
 * Malformed tasks are kept byte by byte, with a zero byte in front in case they look like packed ones. */
#include <errno.h>
#include <string.h>

#include "store/sqlite/sqlite.h"
#include "task/packed.h"

#define VERBATIM '\0'

struct span row_bytes(struct span stored)
{
        if (!stored.size || stored.data[0] != VERBATIM)
                return stored;
        return (struct span){ stored.data + 1, stored.size - 1 };
}

static struct span verbatim(struct span bytes, struct arena_chunk **arena)
{
        if (!packed_is(bytes) && bytes.data[0] != VERBATIM)
                return bytes;
        char *to = arena_room(arena, bytes.size + 1);
        to[0] = VERBATIM;
        memcpy(to + 1, bytes.data, bytes.size);
        return (struct span){ to, bytes.size + 1 };
}

struct span row_from(struct sqlite_store *s, uint32_t shard, struct span bytes, struct arena_chunk **arena)
{
        struct store_task task = { 0 };
        struct envelope e;
        /* Pack only valid tasks: malformed ones are kept as they came. */
        if (envelope_parse(bytes.data, bytes.size, &e, NULL))
                return verbatim(bytes, arena);
        task.envelope = e;
        if (store_task_place(&s->store, shard, arena, &task, NULL))
                return verbatim(bytes, arena);
        struct buffer packed = { 0 };
        packed_put_head(&packed, &e, shard);
        buffer_put(&packed, e.payload.data, e.payload.size);
        struct span kept = arena_copy(arena, (struct span){ (const char *)packed.data, packed.size });
        buffer_free(&packed);
        return kept;
}

int row_read(struct sqlite_store *s, uint32_t shard, uint64_t seq, struct span stored, struct arena_chunk **arena,
        struct store_task *ret_task, struct error *error)
{
        if (!packed_is(stored))
                return store_task_read(&s->store, shard, seq, row_bytes(stored), arena, ret_task, error);
        struct store_task task = { .seq = seq };
        char *id = arena_room(arena, TASK_ID_MADE_ROOM);
        int r = packed_parse(stored, shard, id, &task.envelope, error);
        if (!r)
                r = store_task_place(&s->store, shard, arena, &task, error);
        if (!r)
                *ret_task = task;
        return r;
}
