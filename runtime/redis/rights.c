#include "redis/rights.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/url.h"

/* All commands that our scripts may call.  None of them touches keys that it was not given, and none is dangerous.  A
 * script that needs another command needs a new entry here. */
static const char *const known[] = { "DEL", "EXISTS", "GET", "HDEL", "HEXISTS", "HGET", "HGETALL", "HINCRBY", "HKEYS",
        "HLEN", "HMGET", "HSCAN", "HSET", "HSETNX", "HSTRLEN", "HVALS", "LINDEX", "LLEN", "LMOVE", "LRANGE", "LREM",
        "LSET", "LTRIM", "MEMORY|USAGE", "PEXPIRE", "PEXPIREAT", "RPUSH", "SADD", "SCARD", "SET", "SISMEMBER",
        "SMEMBERS", "SRANDMEMBER", "SREM", "TIME", "TYPE", "UNLINK", "XADD", "XINFO|STREAM", "XLEN", "XRANGE",
        "XREVRANGE", "XTRIM", "ZADD", "ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE", "ZRANK",
        "ZREM", "ZREVRANGE", "ZSCAN", "ZSCORE" };

static void add(struct rights *to, const char *name)
{
        char rule[64];
        size_t size = (size_t)snprintf(rule, sizeof(rule), "+%s", name);
        for (size_t i = 0; i < size && i < sizeof(rule); i++)
                rule[i] = (char)tolower((unsigned char)rule[i]);
        rights_add(&to->commands, rule);
}

void rights_add_commands(struct rights *to, const char *const *names)
{
        for (; *names; names++)
                add(to, *names);
}

void rights_add_connection(struct rights *to, const struct url *url)
{
        add(to, "client|setname");
        add(to, "ping");
        if (url->database)
                add(to, "select");
        if (url->kind == URL_REDIS_CLUSTER) {
                add(to, "cluster|slots");
                add(to, "asking");
        }
}

void rights_add_sentinel(struct rights *to)
{
        rights_add(&to->channels, "&+switch-master");
        add(to, "ping");
        add(to, "sentinel|get-master-addr-by-name");
        add(to, "subscribe");
}

/* Whether the known name is the first argument of a call: ('NAME' or, of a command with parts, ('NAME', 'PART'. */
static bool is_called(const char *at, const char *name)
{
        char quoted[64];
        const char *part = strchr(name, '|');
        if (part)
                (void)snprintf(quoted, sizeof(quoted), "('%.*s', '%s'", (int)(part - name), name, part + 1);
        else
                (void)snprintf(quoted, sizeof(quoted), "('%s'", name);
        return !strncmp(at, quoted, strlen(quoted));
}

void rights_add_script(struct rights *to, const char *text)
{
        for (const char *at = strstr(text, "('"); at; at = strstr(at + 1, "('"))
                for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                        if (is_called(at, known[i]))
                                add(to, known[i]);
}
