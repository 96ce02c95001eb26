/* redis_read.h: what Redis says about itself, as figures.  Without I/O; what a server sends may be anything. */
#ifndef QUIVER_CLI_DOCTOR_REDIS_READ_H
#define QUIVER_CLI_DOCTOR_REDIS_READ_H

#include "cli/doctor/figures.h"

/* All numbers unknown. */
void redis_read_init(struct doctor_redis *to);
/* The text of INFO. */
void redis_read_info(struct doctor_redis *to, const char *info);
/* One setting of CONFIG GET. */
void redis_read_setting(struct doctor_redis *to, const char *name, const char *value);
/* The text of CLUSTER INFO. */
void redis_read_cluster(struct doctor_deployment *to, const char *info);
/* One field of SENTINEL MASTER. */
void redis_read_master(struct doctor_deployment *to, const char *name, const char *value);
void redis_read_free(struct doctor_redis *to);

#endif
