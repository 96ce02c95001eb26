/* host_parts.h: a host's state, shared by host.c (the loop), host_open.c (start and end), berth.c (shards and the
 * store) and station.c (handlers and their crews).  Nobody else includes it. */
#ifndef QUIVER_HOST_HOST_PARTS_H
#define QUIVER_HOST_HOST_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "config/config.h"
#include "host/crew.h"
#include "host/shard.h"
#include "host/stage.h"
#include "ring/leases.h"
#include "store/admin.h"
#include "store/store.h"

struct host;

/* A shard and the one request it may have under way. */
struct berth {
        struct host *host;
        struct shard shard;
        union {
                struct store_request request;
                struct store_acquire acquire;
                struct store_in_flight page;
                struct store_advance advance;
                struct store_release release;
        };
};

/* A handler and the crew that runs it. */
struct station {
        struct host *host;
        const struct handler_config *handler;
        struct staged staged;
        struct crew crew;
        uint32_t next_berth; /* whose turn it is to feed it */
        bool is_open, is_stopped;
        bool is_paused; /* a person wants it to start nothing */
};

struct host {
        const struct config *config;
        uv_loop_t loop;
        struct store *store;
        struct store_open open;
        struct store_bell bell;
        uint8_t nonce[STORE_NONCE_SIZE];
        struct leases leases;
        struct shard_limits limits;
        struct berth *berths;
        uint32_t berths_count;
        struct station *stations;
        uint32_t stations_count;
        char staging[4096];

        struct store_renew renew;
        struct store_renewal *renewals;
        uint64_t renew_sent_ms;
        uint64_t renew_at_ms;
        bool is_renewing;

        struct store_desired_get desired;
        uint64_t desired_version;
        bool is_asking; /* for the desired state */

        uv_prepare_t prepare;
        uv_timer_t timer;
        uv_signal_t terminate, interrupt;
        uint64_t timer_ms;

        bool is_stopping;
        uint64_t cut_ms; /* while stopping: what still runs then is interrupted */
        uint64_t random;
        int status;
        struct error error;
};

/* --- berth.c --- */

/* Makes the call that the shard wants; the reply comes back to it. */
void berth_call(struct berth *berth, enum shard_call call, uint64_t now_ms);
/* Renews every lease that is held. */
void host_renew(struct host *h, uint64_t now_ms);

/* --- station.c --- */

/* The handler's private copy and its crew.  0, or -errno with the text set. */
int station_open(struct host *h, struct station *st, const struct handler_config *handler, struct error *error);
/* Tasks from the shards' windows to the crew, while it has room. */
void station_feed(struct station *st, uint64_t now_ms);
/* Reads the desired state again and does what it says. */
void host_ask_desired(struct host *h);
/* A pool_of_fn (shard.h): the station that serves such tasks; `arg` is the berth. */
uint32_t berth_pool_of(void *arg, struct span handler);

/* --- host_open.c --- */

void host_open_store(struct host *h);
int host_open_folders(struct host *h, struct error *error);
void host_free(struct host *h);

/* --- host.c --- */

/* Stopping: goes as far as it can now. */
void host_finish(struct host *h);
/* As store_close() wants it: `self` is the host. */
void host_close_handles(void *self);

#endif
