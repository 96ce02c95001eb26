#include "cli/admin/fsck_ids.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"

#define NAMED_MAX 3u

/* An id by its hash; which task has it by its number in the store. */
struct seen_id {
        uint64_t hash;
        uint64_t number;
        bool is_dead; /* numbered apart from the rest, as are delayed ones */
        bool is_delayed;
};

struct seen_ids {
        struct seen_id *ids;
        size_t count;
        size_t room;

        /* in a second look: */
        const struct seen_id *twice; /* what is there twice, by hash */
        size_t twice_count;
        struct buffer *report;
        unsigned named;
};

static struct seen_id id_of(const struct store_listed *task)
{
        /* FNV-1a, 64 bits. */
        uint64_t hash = UINT64_C(14695981039346656037);
        for (size_t i = 0; i < task->id.size; i++)
                hash = (hash ^ (unsigned char)task->id.data[i]) * UINT64_C(1099511628211);
        return (struct seen_id){ .hash = hash,
                .number = task->number,
                .is_dead = task->state == STATE_DEAD,
                .is_delayed = task->state == STATE_DELAYED };
}

static int by_hash(const void *left, const void *right)
{
        const struct seen_id *a = left;
        const struct seen_id *b = right;
        return (a->hash > b->hash) - (a->hash < b->hash);
}

/* Shown twice since it moved on between two looks: the same task. */
static bool is_same_task(const struct seen_id *a, const struct seen_id *b)
{
        return a->number == b->number && a->is_dead == b->is_dead && a->is_delayed == b->is_delayed;
}

static void see(void *self, const struct store_listed *task)
{
        struct seen_ids *seen = self;
        if (!task->id.size)
                return;
        if (seen->count == seen->room) {
                seen->room = seen->room ? 2 * seen->room : 1024;
                seen->ids = memory_resize(seen->ids, seen->room * sizeof(*seen->ids));
        }
        seen->ids[seen->count++] = id_of(task);
}

static void name(void *self, const struct store_listed *task)
{
        struct seen_ids *seen = self;
        struct seen_id id = id_of(task);
        if (seen->named == NAMED_MAX || !task->id.size ||
                !bsearch(&id, seen->twice, seen->twice_count, sizeof(*seen->twice), by_hash))
                return;
        seen->named++;
        buffer_printf(seen->report, " %.*s", (int)task->id.size, task->id.data);
}

/* Against the way a task goes: one that moves on meanwhile is missed rather than seen twice. */
static int look(struct cli_store *s, uint32_t shard, void (*each)(void *self, const struct store_listed *task),
        struct seen_ids *seen, struct error *error)
{
        static const enum store_state order[] = { STATE_DEAD, STATE_PARKED, STATE_IN_FLIGHT, STATE_QUEUED,
                STATE_DELAYED };
        for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
                int r = client_list(s->client, shard, order[i], (struct span){ 0 }, UINT32_MAX, each, seen, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Keeps of each id that is there more than once its first; returns how many others there are. */
static uint64_t keep_twice(struct seen_ids *seen)
{
        uint64_t others = 0;
        size_t kept = 0;
        if (seen->count)
                qsort(seen->ids, seen->count, sizeof(*seen->ids), by_hash);
        for (size_t i = 0, next; i < seen->count; i = next) {
                uint64_t same = 0;
                for (next = i + 1; next < seen->count && !by_hash(&seen->ids[i], &seen->ids[next]); next++)
                        same += !is_same_task(&seen->ids[i], &seen->ids[next]);
                if (same)
                        seen->ids[kept++] = seen->ids[i];
                others += same;
        }
        seen->twice = seen->ids;
        seen->twice_count = kept;
        return others;
}

int fsck_equal_ids(struct cli_store *s, uint32_t shard, struct buffer *report, uint64_t *ret_count, struct error *error)
{
        struct seen_ids seen = { .report = report };
        int r = look(s, shard, see, &seen, error);
        uint64_t others = r < 0 ? 0 : keep_twice(&seen);
        if (others) {
                buffer_printf(report, "shard %" PRIu32 ": %" PRIu64 " task%s the id of another one:", shard, others,
                        others == 1 ? " has" : "s have");
                r = look(s, shard, name, &seen, error);
                buffer_printf(report, " …\n");
        }
        free(seen.ids);
        if (r < 0)
                return r;
        *ret_count = others;
        return 0;
}
