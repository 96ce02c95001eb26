/* handlers.h: the handlers of a host, by slot, and what they share.
 *
 * A slot is the number by which windows know a handler's pool.  A handler keeps its slot while one of its generations
 * is alive, which may be some time after it was removed, and while it is refused; then another handler may get the
 * slot. */
#ifndef QUIVER_HOST_HANDLER_HANDLERS_H
#define QUIVER_HOST_HANDLER_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/handler/dispatch.h"
#include "host/handler/handler.h"
#include "host/handler/reload_history.h"
#include "host/membership/member_doc.h"
#include "host/pool/pool_io.h"
#include "host/remote/remote.h"
#include "ring/leases.h"
#include "store/admin.h"

/* What the handlers tell their host. */
struct handlers_events {
        /* A runner was started and has no task yet; a runner has ended and was reaped. */
        void (*spawned)(void *self, pid_t pid);
        void (*reaped)(void *self, pid_t pid);
        /* Another generation of a handler serves now, or none does. */
        void (*changed)(void *self);
        /* A seat of `handler` calls a service while it runs the task `task_id` ("": none). */
        void (*call)(void *self, struct pool_call *call, const char *handler, const char *task_id);
        /* A seat of runner `pid` has answered the task `ticket`. */
        void (*answered)(void *self, pid_t pid, uint64_t ticket);
        /* A person cancelled a task that runs on another host's seat. */
        void (*stop_seat)(void *self, const struct lent *lent);
        /* A borrowed task has ended here; a borrowed task has made a checkpoint. */
        void (*borrowed_settled)(
                void *self, struct pool_task *task, struct generation *generation, const struct settled *settled);
        void (*borrowed_saved)(void *self, struct pool_task *task, const void *checkpoint, size_t size);
};

struct traces;

struct handlers {
        struct handler **list; /* by slot */
        uint32_t count;
        struct history history; /* of the handlers' generations */
        uint64_t random;        /* for the jitter of retries */
        bool has_later;         /* the app has the feature that lets LATER be counted */
        uint64_t wall_ahead_ms; /* how far the wall clock is ahead of boot time, as of this turn of the loop */
        struct remotes remotes; /* tasks that workers or seats of other hosts run */
        bool is_leaving; /* the host stops: windows are not routed again, and the end of a generation is not reported */

        /* Set by the caller. */
        struct dispatch *dispatch;
        struct pools *pools;         /* the pools of all generations */
        const struct leases *leases; /* the lease page that runners check before a start */
        uint64_t seat_ttl_ms;        /* how long a recorded start on another host's seat is valid until renewed */
        uint32_t can_call;           /* services that runners may call: one bit per enum ring_service */
        const char *copies;          /* folder of the private copies of plugins */
        const char *host;            /* the host's name, for the history of tasks; NULL: not said there */
        struct traces *traces;       /* NULL: none are recorded */
        const struct handlers_events *events;
        void *self; /* passed to `events` */
};

/* Opens a handler of the configuration that the host starts with: copies its plugin and opens its pool.  0, or -errno
 * with the text set. */
int handlers_open(
        struct handlers *all, const struct config *config, const struct handler_config *settings, struct error *error);
/* Remembers why no generation of the handler could be made.  A reload may repair that. */
void handlers_refuse(struct handlers *all, const char *name, const char *why);
/* How many are refused. */
uint32_t handlers_count_refused(const struct handlers *all);
/* The handler of that name; NULL: none. */
struct handler *handlers_find(const struct handlers *all, const char *name);
/* The handler of that name; made if there is none. */
struct handler *handlers_ensure(struct handlers *all, const char *name);

/* Moves tasks from the shards' windows to the pools, while they have room. */
void handlers_feed(struct handlers *all, uint64_t now_ms);
/* Does what is due. */
void handlers_tick(struct handlers *all, uint64_t now_ms);
uint64_t handlers_due_ms(const struct handlers *all);

/* Carries out the desired state as just read: pauses and resumes handlers. */
void handlers_desired(struct handlers *all, const struct store_desired *items, size_t count);
/* Adds the handlers to the document of our member node. */
void handlers_describe(const struct handlers *all, struct member_doc *doc);

/* The host stops: ends every generation.  True once no process is left; call it again until then. */
bool handlers_stop(struct handlers *all);
/* Ends every generation at once: running tasks are interrupted. */
void handlers_cut(struct handlers *all);
/* Call after the loop has ended.  Accepts a zeroed struct. */
void handlers_free(struct handlers *all);

#endif
