/* redis_rights_io.h: which rights of a role the user of a Redis lacks. */
#ifndef QUIVER_CLI_DOCTOR_REDIS_RIGHTS_IO_H
#define QUIVER_CLI_DOCTOR_REDIS_RIGHTS_IO_H

#include <uv.h>

#include "cli/doctor/figures.h"
#include "config/config.h"
#include "redis/redis.h"

typedef void redis_take_fn(void *self, const redisReply *reply);

/* A deployment that is asked one question after the other. */
struct redis_asker {
        uv_loop_t loop;
        struct redis_open open;
        struct redis *redis;
        struct redis_command command;
        char route[32]; /* to the server that is asked */
        bool is_answered;
        int failed; /* it does not answer any more */
        redis_take_fn *take;
        void *self;
};

/* Waits for the answer, PROBE_MS at most.  0, or the status of the command. */
int redis_ask_argv(struct redis_asker *a, int argc, const char *const *words, redis_take_fn *take, void *self);

void redis_rights_ask(struct redis_asker *a, const struct config *config, const struct config_secrets *secrets,
        struct doctor_deployment *to);

/* Makes the socket block again, for an exchange with time limits of its own. */
void redis_ask_block(int fd);

#endif
