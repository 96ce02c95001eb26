/* print_task.h: a task out of a store, for people and for programs. */
#ifndef QUIVER_CLI_PRINT_TASK_H
#define QUIVER_CLI_PRINT_TASK_H

#include <jansson.h>

#include "store/admin.h"

/* All that is known of it. */
json_t *listed_as_json(const struct store_listed *task);
void listed_as_text(const struct store_listed *task);

/* The envelope's fields alone. */
void envelope_as_json(json_t *object, const struct envelope *envelope);
void envelope_as_text(const struct envelope *envelope);

#endif
