/* pool_checkpoints.c: passes on the checkpoints of running tasks, at most once a second.
 *
 * Until a checkpoint is in the store, the death of the host loses it, so the host does not wait for the end of the
 * task. A handler may make thousands of checkpoints a second; the latest of each second is enough. */
#include "base/clock.h"
#include "host/pool/pool_io.h"

#define PACE_MS 1000

static void look_at(struct pool_io *io, struct process *p)
{
        uint8_t bytes[QV_CHECKPOINT_MAX];
        struct ring_view view;
        for (uint32_t cursor = 0; ring_host_each(&p->ring, &cursor, &view);) {
                struct pool_task *task = view.owner;
                uint32_t version;
                if (!view.is_started)
                        continue;
                int size = ring_host_checkpoint(&p->ring, view.seat, view.ticket, bytes, &version);
                if (size < 0 || version == task->saved_version)
                        continue;
                task->saved_version = version;
                io->events->saved(io->owner, task, bytes, (size_t)size);
        }
}

uint64_t pool_io_pass_on_saves(struct pool_io *io, uint64_t now_ms)
{
        if (!io->has_saves || !io->events->saved)
                return UINT64_MAX;
        if (now_ms < io->saves_ms)
                return io->saves_ms;
        io->has_saves = false;
        io->saves_ms = now_ms + PACE_MS;
        for (uint32_t i = 0; i < io->pool.runners_count; i++) {
                const struct pool_runner *runner = &io->pool.runners[i];
                struct process *p = runner->process;
                if (!p || !p->has_saves || runner->why == BLAME_SCRIBBLE)
                        continue;
                p->has_saves = false;
                look_at(io, p);
        }
        return UINT64_MAX;
}
