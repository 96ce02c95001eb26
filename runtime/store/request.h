/* request.h: what every operation does before the driver sees it, and after. */
#ifndef QUIVER_STORE_REQUEST_H
#define QUIVER_STORE_REQUEST_H

#include "store/driver.h"

void request_begin(struct store *store, struct store_request *request, enum store_op op);
/* Hands it to the driver, which also finishes it if it was refused. */
void request_start(struct store_request *request);
/* It was called wrongly: -EINVAL, unless something else was wrong before. */
void request_refuse(struct store_request *request, const char *what);
/* Its shard is there, and its numbers have a range. */
void request_check_lease(struct store_request *request, const struct store_lease *lease);
/* The app must have that feature switched on: -ENOTSUP, with what to do. */
void request_check_feature(struct store_request *request, const char *feature);
void request_check_shard(struct store_request *request, uint32_t shard);

/* Checks the envelope of a task that has an id and a key, and says where it goes and what its bytes are. */
int submission_prepare(struct store_request *request, const struct envelope *envelope,
        struct store_prepared *ret_prepared, struct error *error);

#endif
