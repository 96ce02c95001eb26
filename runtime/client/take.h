/* take.h: client.h's functions for workers, with a state folder instead of a handle: for commands, which need no store
 * for it. */
#ifndef QUIVER_CLIENT_TAKE_H
#define QUIVER_CLIENT_TAKE_H

#include <jansson.h>
#include <quiver/client.h>

#include "base/error.h"

/* As qv_client_take(); *ret_object, which the caller owns, is the task in the host's form. */
int take_work(const char *state, const struct qv_client_take *take, struct qv_client_work **ret_work,
        json_t **ret_object, struct error *error);
int keep_work(const char *state, const struct qv_client_work *work, const struct qv_client_heartbeat *heartbeat,
        uint64_t timeout_ms, struct qv_client_kept *ret_kept, struct error *error);
int finish_work(const char *state, const struct qv_client_work *work, const struct qv_client_finish *finish,
        struct error *error);

#define KEEP_TIMEOUT_MS UINT64_C(10000)

#endif
