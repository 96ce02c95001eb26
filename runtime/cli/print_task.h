/* print_task.h: the former name of view/task.h, for dead.c. */
#ifndef QUIVER_CLI_PRINT_TASK_H
#define QUIVER_CLI_PRINT_TASK_H

#include "view/task.h"

#endif
