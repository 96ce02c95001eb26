/* Whether the server takes writes.  A server that is full or lacks replicas refuses submits; reads go on, and on a full
 * one also commands that free memory.  Asked with every open, count and renewal, so that status and log show it. */
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

static void takes_writes(struct redis_call *call, const redisReply *reply)
{
        struct store *store = &call->op->s->store;
        (void)reply;
        if (store->refuses[0] && call->op->s->is_host)
                log_event(LEVEL_INFO, "store-writable", "app=%s text=\"Redis takes submits again\"", store->app);
        store->refuses[0] = 0;
}

static void takes_no_writes(struct redis_call *call)
{
        struct redis_store *s = call->op->s;
        int status = call->command.status;
        if (status != -ENOSPC && status != -EIO)
                return; /* no answer, or another problem, which is reported elsewhere */
        bool is_new = !s->store.refuses[0];
        refusal_describe(s, &call->command, s->store.refuses, sizeof(s->store.refuses));
        if (is_new && s->is_host)
                log_event(LEVEL_ERROR, "store-refuses", "app=%s text=%s", s->store.app, LOG_QUOTE(s->store.refuses));
}

/* --- whether it evicts tasks --- */

/* The policy may be changed while hosts run: a Redis that evicts drops tasks silently. */
static void policy_answer(struct redis_call *call, const redisReply *reply)
{
        struct store *store = &call->op->s->store;
        struct span text = reply_span(reply);
        const char *policy = text.size ? strstr(text.data, "\nmaxmemory_policy:allkeys") : NULL;
        bool was_so = store->endangers[0];
        if (policy)
                policy += strlen("\nmaxmemory_policy:");
        store->endangers[0] = 0;
        if (policy)
                (void)snprintf(store->endangers, sizeof(store->endangers),
                        "the maxmemory-policy of Redis is %.*s, so it throws tasks away when memory is short; set it "
                        "to "
                        "noeviction",
                        (int)(strcspn(policy, "\r\n") < 32 ? strcspn(policy, "\r\n") : 32), policy);
        if (policy && !was_so)
                log_event(LEVEL_ERROR, "store-evicts", "app=%s text=%s", store->app, LOG_QUOTE(store->endangers));
        else if (!policy && was_so)
                log_event(LEVEL_INFO, "store-keeps", "app=%s text=\"Redis throws nothing away any more\"", store->app);
}

static void policy_failed(struct redis_call *call)
{
        call->op->s->has_no_info |= call->command.status == -EPERM;
}

static void policy_ask(struct redis_op *op)
{
        struct redis_call *call = call_new(op, "INFO", 1);
        call_put(call, SPAN_TEXT("memory"));
        call->answer = policy_answer;
        call->failed = policy_failed;
        call_send_to(call, span_of_text(op->s->app_key));
}

void writable_ask(struct redis_op *op)
{
        if (op->s->is_host && !op->s->has_no_info)
                policy_ask(op);
        struct redis_call *call = call_script_keys(op, SCRIPT_writable, 1, 0);
        call_put(call, (struct span){ op->s->app_key, strlen(op->s->app_key) });
        call->answer = takes_writes;
        call->failed = takes_no_writes;
        call_send(call);
}
