/* Whether the server takes writes.  One that is full or lacks replicas refuses submits; what reads goes on, and on a
 * full one also what frees memory.  Asked with every open, count and renewal, so that status and the log say so. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "store/redis/redis_store.h"

void refusal_describe(const struct redis_store *s, const struct redis_command *command, char *text, size_t size)
{
        const char *said = command->error.text;
        struct redis_facts facts;
        char limit[32] = "";
        redis_facts(s->redis, &facts);
        if (facts.maxmemory)
                (void)snprintf(limit, sizeof(limit), " %" PRIu64, facts.maxmemory);
        if (command->status == -ENOSPC)
                (void)snprintf(text, size,
                        "Redis is full (maxmemory%s): submits are refused, hosts go on; raise maxmemory", limit);
        else if (strstr(said, "NOREPLICAS"))
                (void)snprintf(text, size,
                        "Redis has too few replicas (NOREPLICAS, min-replicas-to-write): it takes no writes, so "
                        "submits are "
                        "refused and hosts wait; bring replicas back, or lower min-replicas-to-write");
        else
                (void)snprintf(text, size, "%s", said);
}

static void takes_writes(struct call *call, const redisReply *reply)
{
        struct store *store = &call->op->s->store;
        (void)reply;
        if (store->refuses[0] && call->op->s->is_host)
                log_event(LEVEL_INFO, "store-writable", "app=%s text=\"Redis takes submits again\"", store->app);
        store->refuses[0] = 0;
}

static void takes_no_writes(struct call *call)
{
        struct redis_store *s = call->op->s;
        int status = call->command.status;
        if (status != -ENOSPC && status != -EIO)
                return; /* it did not answer, or something else is wrong: others say so */
        bool is_new = !s->store.refuses[0];
        refusal_describe(s, &call->command, s->store.refuses, sizeof(s->store.refuses));
        if (is_new && s->is_host)
                log_event(LEVEL_ERROR, "store-refuses", "app=%s text=%s", s->store.app, LOG_QUOTE(s->store.refuses));
}

void writable_ask(struct op *op)
{
        struct call *call = call_script_keys(op, SCRIPT_writable, 1, 0);
        call_put(call, (struct span){ op->s->app_key, strlen(op->s->app_key) });
        call->answer = takes_writes;
        call->failed = takes_no_writes;
        call_send(call);
}
