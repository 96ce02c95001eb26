/* runner.h: what all seats of a runner share.  Written before the threads are started, only read afterwards. */
#ifndef QUIVER_RUNNER_RUNNER_H
#define QUIVER_RUNNER_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <quiver/plugin.h>

#include "ring/leases.h"
#include "ring/message.h"
#include "ring/runner_side.h"
#include "runner/logger.h"
#include "runner/settings.h"

/* Ids from the host that no seat has taken yet. */
struct runner_id_block {
        uint64_t next;
        uint64_t step;
        uint32_t left;
        uint64_t since_ms; /* clock_boot_ms() */
};

struct runner {
        struct runner_start start;
        struct qv_plugin plugin; /* a copy of the plugin's table; fields that the plugin does not know are zero */
        struct ring_runner ring;
        struct leases leases;
        struct logger logger;
        struct settings settings;
        _Atomic bool is_thread_told;      /* the log says that a service was called on a wrong thread */
        _Atomic uint32_t services_missed; /* one bit per enum ring_service whose absence was already logged */

        pthread_mutex_t ids_lock; /* never held during a call to the host */
        struct runner_id_block ids;
};

/* `quiver runner PARENT-PID`: started by a host, with the descriptors of ring/message.h.  Returns only if a person
 * started it. */
int cmd_runner(int argc, char **argv);

#endif
