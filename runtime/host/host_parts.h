/* host_parts.h: a host's state, shared by host.c (the loop), host_start.c (start and end), shard_io.c (shards and the
 * store) and handler.c (handlers and their pools), status.c and control_verbs.c (what
 * it says about itself).  Nobody else includes it. */
#ifndef QUIVER_HOST_HOST_PARTS_H
#define QUIVER_HOST_HOST_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "config/shared.h"
#include "host/control.h"
#include "host/guard_client.h"
#include "host/handler/generation.h"
#include "host/handler/outage.h"
#include "host/handler/plugin_copies.h"
#include "host/handler/plugin_copy.h"
#include "host/handler/reload.h"
#include "host/membership/membership.h"
#include "host/notify.h"
#include "host/pool/pool_io.h"
#include "host/shard/call_schedule.h"
#include "host/shard/shard.h"
#include "host/status.h"
#include "ring/leases.h"
#include "store/admin.h"
#include "store/store.h"

struct host;

#define URGENT_TASKS_MAX 4u

/* A shard and the one request it may have under way.  Handing over what waits in its outbox is no part of the shard's
 * protocol: it may be repeated at any time, and goes on beside it. */
struct shard_io {
        struct host *host;
        struct shard shard;
        struct store_forward forward;
        bool is_forwarding;
        bool is_urgent; /* its next tasks start before others': handler_feed() */
        struct shard_io *urgent_prev, *urgent_next;
        union {
                struct store_request request;
                struct store_acquire acquire;
                struct store_in_flight page;
                struct store_advance advance;
                struct store_release release;
        };
};

/* Events of a rollout that arose while an earlier one's actions were performed. */
struct rollout_queue {
        struct rollout_event *events;
        size_t count, room;
        bool is_stepping;
};

/* A handler and the generations that run it.  Its slot is what windows call its pool; it stays as long as one of them
 * is alive, so also a while after the handler was removed. */
struct handler {
        struct host *host;
        uint32_t slot;
        char name[NAME_HANDLER_MAX + 1];
        struct rollout rollout; /* of generations */
        struct rollout_queue rollout_queue;
        uint32_t next_shard;             /* whose turn it is to feed it */
        bool was_urgent;                 /* the last it was fed came before its turn */
        bool is_paused;                  /* a person wants it to start nothing */
        const struct generation *routed; /* what the windows were sorted for, */
        uint64_t routes;                 /* and the hash of the task names that it serves; 0: none */
        struct outcome_counts counts;
        struct outage outage;
};

/* Task names that no handler here serves: each is told of once, until the next reload. */
#define UNSERVED_MAX 32

struct host {
        const struct config *config;
        struct shared_config *shared; /* … is in it; NULL: the one that the host was started with */
        uv_loop_t loop;
        struct store *store;
        struct store_open open;
        struct store_bell bell;
        uint8_t nonce[STORE_NONCE_SIZE];
        struct leases leases;
        struct membership membership;
        struct guard_client guard;
        bool has_guard;
        struct shard_limits limits;
        struct shard_io *shards;
        uint32_t shards_count;
        struct call_schedule schedule; /* of the shards in them */
        struct shard_io *urgent;       /* in order */
        struct handler **handlers;     /* by slot */
        uint32_t handlers_count;
        char copies[PLUGIN_COPIES_PATH_MAX];
        int copies_fd; /* holds its lock */
        struct reload reload;
        struct notify notify;
        bool is_told_busy; /* the service manager knows of a reload under way */
        bool is_root_told; /* the log says which plugins run as root */
        bool was_busy;     /* since memory was last given back */
        char unserved[UNSERVED_MAX][NAME_HANDLER_MAX + 1];
        uint32_t unserved_count;

        struct store_renew renew;
        struct store_renewal *renewals;
        uint64_t renew_sent_ms;
        uint64_t renew_at_ms;
        bool is_renewing;

        struct store_desired_get desired;
        uint64_t desired_version;
        bool is_asking; /* for the desired state */

        struct control *control; /* NULL: there is none */
        struct host_status status_doc;

        uv_prepare_t prepare;
        uv_timer_t timer;
        uv_signal_t terminate, interrupt, hang_up;
        uint64_t timer_ms;

        struct config_secrets secrets;

        bool is_stopping, is_closing;
        uint64_t cut_ms;     /* while stopping: what still runs then is interrupted */
        uint64_t give_up_ms; /* … and then the store is not waited for any more */
        bool has_given_up;
        uint64_t random;
        int status;
        struct error error;
};

/* --- shard_io.c --- */

/* Makes the call that the shard wants; the reply comes back to it. */
void shard_io_call(struct shard_io *io, enum shard_call call, uint64_t now_ms);
/* Renews every lease that is held. */
void host_renew(struct host *h, uint64_t now_ms);

/* --- handler.c --- */

/* The generation that serves; NULL: none. */
static inline struct generation *handler_current(const struct handler *handler)
{
        return (struct generation *)handler->rollout.current;
}
extern const struct pool_io_events handler_pool_events;
/* Tasks from the shards' windows to the io, while it has room. */
void handler_feed(struct handler *handler, uint64_t now_ms);
/* Reads the desired state again and does what it says. */
void host_ask_desired(struct host *h);
/* What the host's node in the tree says about the handler. */
void handler_describe(const struct handler *handler, struct member_doc *doc);
/* A pool_of_fn (shard.h): the handler that serves such tasks; `arg` is the shard_io. */
uint32_t shard_io_pool_of(void *arg, struct span handler);

/* --- rollout_io.c --- */

/* A handler of the configuration that the host starts with: its private copy and its io.  0, or -errno with the text
 * set. */
int handler_open(struct host *h, const struct handler_config *settings, struct error *error);
/* The handler of that name; NULL: none. */
struct handler *handler_find(const struct host *h, const char *name);
/* … or a new one. */
struct handler *handler_ensure(struct host *h, const char *name);
/* Something happened to one of its generations. */
void handler_rollout_event(struct handler *handler, enum rollout_event_kind kind, struct generation *generation);
void handler_task_ended(struct handler *handler, struct generation *generation, enum outcome outcome);
/* What serves has changed: sorts the windows anew if other tasks come here now. */
void handler_route(struct handler *handler);
/* How its generations succeed each other, as `target` was configured. */
void handler_set_policy(struct handler *handler, const struct generation *target);
/* What fell due. */
void handlers_tick(struct host *h, uint64_t now_ms);
uint64_t handlers_due_ms(const struct host *h);
/* Leaving: ends every generation.  True once no process is left; ask again. */
bool handlers_stop(struct host *h);
/* … at once. */
void handlers_cut(struct host *h);
/* After the loop. */
void handlers_free(struct host *h);

/* --- control_verbs.c --- */

/* The control socket.  Without one the host goes on, and says so. */
void host_open_control(struct host *h);

/* --- host_start.c --- */

/* Once the coordination tree is open. */
void host_open_store(struct host *h);
int host_open_folders(struct host *h, struct error *error);
/* Nothing runs any more: dismisses the guard, closes the store, and ends the loop. */
void host_close(struct host *h);
void host_free(struct host *h);
/* Tasks that run at once, at most.  Another host of this app is taken to have as many. */
uint32_t host_count_seats(const struct config *config);
/* Says once which handlers' plugins run as root: a mistake of theirs is then root's. */
void host_warn_of_root(struct host *h);
void host_nonce_text(const struct host *h, char ret_text[2 * STORE_NONCE_SIZE + 1]);

/* --- host_stop.c --- */

/* All is cut short: how long the store is still waited for. */
void host_set_patience(struct host *h);
/* That long has passed: says what remains untold, and does not wait for it. */
void host_give_up(struct host *h);

/* --- host.c --- */

/* Stopping: goes as far as it can now. */
void host_finish(struct host *h);
/* As store_close() wants it: `self` is the host. */
void host_close_handles(void *self);

#endif
