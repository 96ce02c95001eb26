/* work_environment.h: the variables that a worker's command gets, named as the exec plugin names them. */
#ifndef QUIVER_CLI_TAKE_WORK_ENVIRONMENT_H
#define QUIVER_CLI_TAKE_WORK_ENVIRONMENT_H

#include <quiver/client.h>

#include "base/strings.h"

/* Those of this process and those of the task, with a NULL behind the last; freed with strings_free(). */
void work_environment(const struct qv_client_work *work, struct strings *ret_env);

#endif
