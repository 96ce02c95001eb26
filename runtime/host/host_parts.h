/* host_parts.h: a host's state, shared by host.c (the loop), host_start.c (start and end), handler.c and rollout_io.c
 * (handlers and their pools), membership.c, reload.c, and status.c and control_verbs.c (what it says about itself).
 * Nobody else includes it. */
#ifndef QUIVER_HOST_HOST_PARTS_H
#define QUIVER_HOST_HOST_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "config/shared.h"
#include "host/control.h"
#include "host/guard_client.h"
#include "host/handler/dispatch.h"
#include "host/handler/handler.h"
#include "host/handler/plugin_copies.h"
#include "host/handler/reload.h"
#include "host/membership/membership.h"
#include "host/notify.h"
#include "host/shard/shard_io.h"
#include "host/status.h"
#include "ring/leases.h"
#include "store/admin.h"
#include "store/store.h"

struct host;

struct host {
        const struct config *config;
        struct shared_config *shared; /* holds `config`; NULL: it is the one that the host was started with */
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
        struct dispatch dispatch;
        struct shards shards;
        struct handler **handlers; /* by slot */
        uint32_t handlers_count;
        struct pools pools; /* of their generations */
        char copies[PLUGIN_COPIES_PATH_MAX];
        int copies_fd; /* holds its lock */
        struct reload reload;
        struct notify notify;
        bool is_told_busy;    /* the service manager knows of a reload under way */
        bool is_root_told;    /* the log says which plugins run as root */
        bool was_busy;        /* since memory was last given back */
        uint64_t renew_at_ms; /* when all leases are renewed next */

        struct store_desired_get desired;
        uint64_t desired_version;
        bool is_asking; /* for the desired state */

        struct control *control; /* NULL: there is none */
        struct host_status status_doc;

        uv_prepare_t prepare; /* before the loop sleeps: pump() */
        uv_check_t check;     /* after it woke: the runners' answers */
        uv_timer_t timer;
        uv_signal_t terminate, interrupt, hang_up;
        uint64_t timer_ms;

        struct config_secrets secrets;

        bool is_stopping, is_closing;
        uint64_t cut_ms;     /* while stopping: what still runs then is interrupted */
        uint64_t give_up_ms; /* while stopping: from then on the store is not waited for any more */
        bool has_given_up;
        uint64_t random;
        int status;
        struct error error;
};

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
