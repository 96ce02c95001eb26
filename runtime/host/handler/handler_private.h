/* handler_private.h: what handler.c (feeds the pools) and handler_settle.c (settles tasks) need of each other. */
#ifndef QUIVER_HOST_HANDLER_HANDLER_PRIVATE_H
#define QUIVER_HOST_HANDLER_HANDLER_PRIVATE_H

#include "host/handler/handler.h"

/* The callback of pool_io_events; `owner` is the generation whose pool had the task. */
void handler_on_settled(void *owner, struct pool_task *task, const struct settled *settled);

#endif
