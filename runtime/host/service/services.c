#include "host/service/services.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"

/* The text about the holder in a lock's node, for people. */
static void say_who(const struct services *s, const struct pool_call *call, const char *handler, const char *task_id,
        char ret_who[QUEUE_SAYS_MAX])
{
        char machine[65] = "";
        if (gethostname(machine, sizeof(machine) - 1) < 0)
                machine[0] = 0;
        (void)snprintf(ret_who, QUEUE_SAYS_MAX,
                "machine=%s pid=%d since_ms=%" PRIu64 " host=%.64s handler=%.64s task=%.64s\n", machine, (int)call->pid,
                clock_wall_ms(), s->host, handler, task_id);
}

void services_call(struct services *s, struct pool_call *call, const char *handler, const char *task_id)
{
        char who[QUEUE_SAYS_MAX];
        uint64_t now_ms = clock_boot_ms();
        switch (call->service) {
        case SERVICE_TRYLOCK:
                say_who(s, call, handler, task_id, who);
                task_locks_try(&s->locks, call, who, now_ms);
                break;
        case SERVICE_UNLOCK:
                task_locks_unlock(&s->locks, call, now_ms);
                break;
        case SERVICE_NEXT_ID:
                runner_ids_take(&s->ids, call);
                break;
        case SERVICE_ROOM_APPEND:
                room_appends_start(s->store, call);
                break;
        case RING_SERVICES:
                (void)pool_call_answer(call, -ENOTSUP, 0, 0);
                break;
        }
}

void services_task_ended(struct services *s, pid_t pid, uint64_t ticket)
{
        task_locks_task_ended(&s->locks, pid, ticket);
}

void services_runner_gone(struct services *s, pid_t pid)
{
        task_locks_runner_gone(&s->locks, pid);
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct services *s = self;
        task_locks_session(&s->locks, state, session);
        if (s->ids.is_open)
                id_source_session(&s->ids.source, state, session);
}

static void on_changed(void *self, const char *path)
{
        struct services *s = self;
        task_locks_changed(&s->locks, path);
}

static void on_look(void *self)
{
        struct services *s = self;
        task_locks_look(&s->locks);
        if (s->ids.is_open)
                id_source_look(&s->ids.source);
}

const struct coord_events services_tree_events = { .session = on_session, .changed = on_changed, .look = on_look };

uint64_t services_due_ms(const struct services *s)
{
        uint64_t locks_ms = s->locks.coord ? s->locks.due_ms : UINT64_MAX;
        return min_u64(locks_ms, s->ids.is_open ? s->ids.source.due_ms : UINT64_MAX);
}

void services_tick(struct services *s, uint64_t now_ms)
{
        if (s->locks.coord && now_ms >= s->locks.due_ms)
                task_locks_tick(&s->locks, now_ms);
        if (s->ids.is_open)
                id_source_tick(&s->ids.source, now_ms);
}

void services_open(struct services *s, struct coord *coord, struct store *store, const struct runner_ids_options *ids,
        const char *nonce, uint64_t session)
{
        s->store = store;
        runner_ids_open(&s->ids, coord, ids, nonce, session);
        task_locks_open(&s->locks, coord, nonce, session);
}

void services_release(struct services *s, void (*released)(void *self), void *self)
{
        s->store = NULL;
        if (s->ids.is_open)
                id_source_release(&s->ids.source, released, self);
        else
                released(self);
}

void services_free(struct services *s)
{
        runner_ids_free(&s->ids);
        task_locks_free(&s->locks);
}
