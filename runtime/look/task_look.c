#include "look/task_look.h"

#include <stdio.h>

#include "base/memory.h"
#include "view/task.h"

static bool task_look_next(struct look *base)
{
        struct task_look *look = container_of(base, struct task_look, look);
        uint32_t shard = 0;
        (void)task_id_check(look->id, &shard, NULL);
        switch (look->step) {
        case TASK_WHEREABOUTS:
                if (whereabouts_look_next(&look->where, base))
                        return true;
                look->step = TASK_FIND;
                return look_ask_find(base, look->id, (struct store_cursor){ 0 });
        case TASK_FIND:
                /* Searches a slice at a time, so that other requests get their turn. */
                if (!base->find.task && !base->find.is_end)
                        return look_ask_find(base, look->id, base->find.cursor);
                if (!base->find.task) {
                        struct span into = base->find.merged_into;
                        (void)snprintf(look->merged_into, sizeof(look->merged_into), "%.*s", (int)into.size,
                                into.size ? into.data : "");
                        look->merged_ms = base->find.merged_ms;
                        break;
                }
                keep_task(&look->found, base->find.task);
                look->step = TASK_COUNT;
                return look_ask_count(base, shard, 1, &look->shard);
        case TASK_COUNT:
                if (!look->found.task.key.size)
                        break;
                look->step = TASK_KEY;
                return look_ask_keys(base, shard, look->found.task.key, (struct store_cursor){ 0 }, 1);
        case TASK_KEY:
                if (base->keys.keys_count)
                        keep_key(&look->key, &base->keys.keys[0]);
                break;
        case TASK_END:
                break;
        }
        look->step = TASK_END;
        return false;
}

void task_look_init(struct task_look *look, struct span id)
{
        look->look.next = task_look_next;
        look->id = id;
}

void task_look_free(struct task_look *look)
{
        arena_free(look->found.arena);
        arena_free(look->key.arena);
        whereabouts_look_free(&look->where);
}

json_t *task_look_where(const struct task_look *look)
{
        struct whereabouts_place place = { .shard = &look->shard, .key = look->key.is_there ? &look->key.key : NULL };
        return whereabouts_of(&look->where.w, &look->found.task, &place);
}

json_t *task_look_as_json(const struct task_look *look)
{
        json_t *o = listed_as_json(&look->found.task);
        json_t *where = task_look_where(look);
        (void)json_object_update(o, where);
        json_decref(where);
        return o;
}
