#include "host/shard/done_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

void done_tasks_init(struct done_tasks *done, uint32_t keep, uint64_t now_ms)
{
        *done = (struct done_tasks){
                .list = keep ? memory_zero(keep, sizeof(*done->list)) : NULL, .keep = keep, .since_ms = (int64_t)now_ms
        };
}

void done_tasks_free(struct done_tasks *done)
{
        free(done->list);
        *done = (struct done_tasks){ 0 };
}

struct done_task *done_tasks_add(struct done_tasks *done)
{
        if (!done->keep)
                return NULL;
        struct done_task *task = &done->list[done->next];
        if (done->count == done->keep)
                done->since_ms = task->at_ms;
        else
                done->count++;
        done->next = done->next + 1 == done->keep ? 0 : done->next + 1;
        done->added++;
        return task;
}

void done_task_name(struct done_task *task, struct span id, struct span handler)
{
        task->id_size = (uint8_t)min_u64(id.size, TASK_ID_MAX);
        task->handler_size = (uint8_t)min_u64(handler.size, TASK_HANDLER_MAX);
        memcpy(task->id, id.data, task->id_size);
        memcpy(task->handler, handler.data, task->handler_size);
}

void done_task_set_worker(struct done_task *task, struct span worker, bool is_seat)
{
        task->is_seat = is_seat;
        task->worker_size = (uint8_t)min_u64(worker.size, WORKER_NAME_MAX);
        if (task->worker_size)
                memcpy(task->worker, worker.data, task->worker_size);
}

const struct done_task *done_tasks_get(const struct done_tasks *done, uint32_t back)
{
        if (back >= done->count)
                return NULL;
        uint32_t place = done->next + done->keep - 1 - back;
        return &done->list[place >= done->keep ? place - done->keep : place];
}

const struct done_task *done_tasks_find(const struct done_tasks *done, struct span id)
{
        const struct done_task *task;
        for (uint32_t back = 0; (task = done_tasks_get(done, back)); back++)
                if (span_is(id, (struct span){ task->id, task->id_size }))
                        return task;
        return NULL;
}
