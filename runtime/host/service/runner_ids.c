#include "host/service/runner_ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"

/* A seat gives up after five seconds (runner/services.c), so it is answered before that. */
#define ANSWER_MS 4000u

struct id_call {
        struct id_ask ask;
        struct pool_call *call;
};

static void on_ids(struct id_ask *ask)
{
        struct id_call *one = container_of(ask, struct id_call, ask);
        int status = ask->status;
        if (status && status != -ECANCELED && status != -ETIMEDOUT)
                log_event(LEVEL_WARN, "next-id", "text=%s", LOG_QUOTE(ask->error.text));
        /* A block that nobody waits for any more is lost, which does no harm. */
        (void)pool_call_answer(one->call, status, ask->block.first, RING_IDS(ask->block.count, ask->block.step));
        free(one);
}

void runner_ids_take(struct runner_ids *ids, struct pool_call *call)
{
        struct id_call *one;
        if (!ids->is_open || !call->number) {
                (void)pool_call_answer(call, ids->is_open ? -EINVAL : -ENOTSUP, 0, 0);
                return;
        }
        one = memory_zero(1, sizeof(*one));
        one->call = call;
        one->ask = (struct id_ask){ .done = on_ids,
                .want = (uint32_t)min_u64(call->number, RING_IDS_MAX),
                .deadline_ms = clock_boot_ms() + ANSWER_MS };
        id_source_ask(&ids->source, &one->ask);
}

void runner_ids_open(struct runner_ids *ids, struct coord *coord, const struct runner_ids_options *options,
        const char *nonce, uint64_t session)
{
        char machine[65] = "";
        char says[SLOT_SAYS_MAX];
        if (gethostname(machine, sizeof(machine) - 1) < 0)
                machine[0] = 0;
        (void)snprintf(says, sizeof(says), "machine=%s pid=%d since_ms=%" PRIu64 " host=%.64s", machine, (int)getpid(),
                clock_wall_ms(), options->host);
        id_source_open(&ids->source, coord,
                &(struct id_source_options){ .layout = options->layout,
                        .nonce = nonce,
                        .fixed = options->fixed,
                        .horizon_ms = options->horizon_ms,
                        .says = says },
                session);
        ids->is_open = true;
}

void runner_ids_free(struct runner_ids *ids)
{
        if (ids->is_open)
                id_source_free(&ids->source);
        ids->is_open = false;
}
