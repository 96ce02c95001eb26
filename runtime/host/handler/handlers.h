/* handlers.h: the handlers of a host, by slot, and what they share.
 *
 * A slot is what windows call a handler's pool.  It stays a handler's as long as one of its generations is alive, so
 * also a while after the handler was removed, or as long as it is refused; then another handler may get it. */
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

/* What the handlers need their host for. */
struct handlers_events {
        /* A runner was started, and has no task yet; it is gone and reaped. */
        void (*spawned)(void *self, pid_t pid);
        void (*reaped)(void *self, pid_t pid);
        /* Another generation of some handler serves now, or none. */
        void (*changed)(void *self);
        /* A seat of that handler calls a service while it runs the task `task_id` ("": none). */
        void (*call)(void *self, struct pool_call *call, const char *handler, const char *task_id);
        /* A seat has answered that task of that runner. */
        void (*answered)(void *self, pid_t pid, uint64_t ticket);
        /* A person cancelled a task that runs on another host's seat. */
        void (*stop_seat)(void *self, const struct lent *lent);
        /* A task of another host that runs here has ended so; it has made that checkpoint. */
        void (*borrowed_settled)(
                void *self, struct pool_task *task, struct generation *generation, const struct settled *settled);
        void (*borrowed_saved)(void *self, struct pool_task *task, const void *checkpoint, size_t size);
};

struct traces;

struct handlers {
        struct handler **list; /* by slot */
        uint32_t count;
        struct history history; /* of their generations */
        uint64_t random;        /* for the jitter of retries */
        bool has_later;         /* the app has the feature: LATER can be counted */
        uint64_t wall_ahead_ms; /* how far the wall clock is ahead of boot time, as of this turn of the loop */
        struct remotes remotes; /* tasks that workers outside, or seats of other hosts, have */
        bool is_leaving; /* The host stops: windows are not sorted anew, and the end of a generation is no news. */

        /* Set by the caller. */
        struct dispatch *dispatch;
        struct pools *pools;         /* of their generations */
        const struct leases *leases; /* what runners may start */
        uint64_t seat_ttl_ms;        /* how long the start of a task on another host's seat lasts at a time */
        uint32_t can_call;           /* services that runners may call: one bit per enum ring_service */
        const char *copies;          /* folder of the private copies of plugins */
        const char *host;            /* the host's name, for the history of tasks; NULL: not said there */
        struct traces *traces;       /* NULL: none are recorded */
        const struct handlers_events *events;
        void *self; /* theirs */
};

/* A handler of the configuration that the host starts with: its private copy of the plugin and its pool.  0, or -errno
 * with the text set. */
int handlers_open(
        struct handlers *all, const struct config *config, const struct handler_config *settings, struct error *error);
/* Nothing can serve that handler of the configuration until a reload mends it: remembers why. */
void handlers_refuse(struct handlers *all, const char *name, const char *why);
/* How many are refused. */
uint32_t handlers_count_refused(const struct handlers *all);
/* The handler of that name; NULL: none. */
struct handler *handlers_find(const struct handlers *all, const char *name);
/* The handler of that name, a new one if there is none. */
struct handler *handlers_ensure(struct handlers *all, const char *name);

/* Tasks from the shards' windows to the pools, while they have room. */
void handlers_feed(struct handlers *all, uint64_t now_ms);
/* What fell due. */
void handlers_tick(struct handlers *all, uint64_t now_ms);
uint64_t handlers_due_ms(const struct handlers *all);

/* What people want, as the store has it now: pauses and resumes handlers. */
void handlers_desired(struct handlers *all, const struct store_desired *items, size_t count);
/* Adds to what the host's node in the tree says. */
void handlers_describe(const struct handlers *all, struct member_doc *doc);

/* Leaving: ends every generation.  True once no process is left; ask again. */
bool handlers_stop(struct handlers *all);
/* Ends every generation at once: what runs is interrupted. */
void handlers_cut(struct handlers *all);
/* After the loop.  Accepts what was never used, but zeroed. */
void handlers_free(struct handlers *all);

#endif
