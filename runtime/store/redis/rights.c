/* The rights of each role on a Redis: keys, commands, and the commands of the scripts that it runs.
 *
 * Redis checks a script's commands against the rights of the user who runs it.  So only these rights confine a user,
 * who may also use them without the script: README.md says what that means for each role. */
#include "redis/rights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/url.h"
#include "store/redis/redis_store.h"
#include "store/redis/scripts.h"
#include "store/rights.h"

#define COMMANDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const char *const texts[SCRIPTS_COUNT] = {
#define TEXT_ROW(name) [SCRIPT_##name] = SCRIPT_TEXT(name),
        SCRIPTS(TEXT_ROW)
};

/* Scripts that only hosts run: leases, claimed tasks, messages between hosts. */
static const bool is_of_hosts[SCRIPTS_COUNT] = {
        [SCRIPT_acquire] = true,
        [SCRIPT_advance] = true,
        [SCRIPT_advance_many] = true,
        [SCRIPT_aside] = true,
        [SCRIPT_fires] = true,
        [SCRIPT_forget] = true,
        [SCRIPT_in_flight] = true,
        [SCRIPT_limit_take] = true,
        [SCRIPT_mail_take] = true,
        [SCRIPT_names] = true,
        [SCRIPT_outbox] = true,
        [SCRIPT_post] = true,
        [SCRIPT_release] = true,
        [SCRIPT_renew] = true,
        [SCRIPT_report] = true,
        [SCRIPT_status_put] = true,
        [SCRIPT_take] = true,
        [SCRIPT_wake] = true,
        [SCRIPT_wanting_list] = true,
        [SCRIPT_wanting_set] = true,
};

static void add_keys(struct rights *to, const char *app, const char *end)
{
        char pattern[128];
        (void)snprintf(pattern, sizeof(pattern), "~quiver:{%s%s", app, end);
        rights_add(&to->keys, pattern);
}

/* Hosts and operators may access all keys of the app.  No app's name has a colon or a brace. */
static void add_app(const struct store_options *o, struct rights *to)
{
        add_keys(to, o->app, "}:*");
        add_keys(to, o->app, ":*");
        rights_add_commands(to, COMMANDS("eval", "evalsha", "get", "hdel", "hget", "hgetall", "hmget", "llen", "lrange",
                                        "rpush", "wait"));
}

static void add_host(const struct store_options *o, struct rights *to)
{
        add_app(o, to);
        for (unsigned i = 0; i < SCRIPTS_COUNT; i++)
                rights_add_script(to, texts[i]);
        rights_add(&to->channels, "&__redis__:invalidate");
        rights_add_commands(to, COMMANDS("client|caching", "client|tracking", "info", "script|load", "subscribe"));
}

static void add_operator(const struct store_options *o, struct rights *to)
{
        add_app(o, to);
        for (unsigned i = 0; i < SCRIPTS_COUNT; i++)
                if (!is_of_hosts[i])
                        rights_add_script(to, texts[i]);
}

/* --- producers --- */

/* Adds a selector: these commands on these keys of every shard.  Shard numbers get one pattern per count of digits, so
 * that no other kind of key matches. */
static void add_shards(struct rights *to, const struct store_options *o, const char *commands, const char *access,
        const char *const *names)
{
        struct buffer text = { 0 };
        uint32_t last = o->shards ? o->shards - 1 : SHARDS_MAX - 1;
        buffer_printf(&text, "(%s", commands);
        for (; *names; names++) {
                char digits[64] = "";
                for (uint32_t rest = last;; rest /= 10) {
                        (void)snprintf(digits + strlen(digits), sizeof(digits) - strlen(digits), "[0-9]");
                        buffer_printf(&text, " %s~quiver:{%s:%s}:%s", access, o->app, digits, *names);
                        if (rest < 10)
                                break;
                }
        }
        buffer_printf(&text, ")");
        rights_add(&to->selectors, buffer_text(&text));
        buffer_free(&text);
}

static void add_producer(const struct store_options *o, struct rights *to)
{
        char app[160];
        (void)snprintf(app, sizeof(app), "(+hget +hmget %%R~quiver:{%s}:app)", o->app);
        rights_add(&to->selectors, app);
        add_shards(to, o, "+rpush +llen", "", COMMANDS("high", "normal", "low"));
        add_shards(to, o, "+get", "%R", COMMANDS("reply:*"));
}

/* Exactly what submit.lua does, except its repair of a count that somebody has reset. */
static void add_producer_plus(const struct store_options *o, struct rights *to)
{
        add_producer(o, to);
        add_shards(to, o, "+evalsha", "", COMMANDS("shard", "high", "normal", "low", "delayed", "control", "never"));
        add_shards(to, o, "+type", "%R",
                COMMANDS("shard", "high", "normal", "low", "delayed", "later", "parked", "notes", "idempotent",
                        "idempotentends", "unique:*"));
        add_shards(to, o, "+exists", "%R", COMMANDS("flight"));
        add_shards(to, o, "+hget +hmget +hexists +hincrby", "", COMMANDS("shard"));
        add_shards(to, o, "+hlen", "%R", COMMANDS("parked"));
        add_shards(to, o, "+zcard +zadd", "", COMMANDS("delayed"));
        add_shards(to, o, "+hsetnx", "", COMMANDS("later"));
        add_shards(to, o, "+set", "", COMMANDS("unique:*"));
        add_shards(to, o, "+hget +hset +hdel +hlen", "", COMMANDS("idempotent"));
        add_shards(to, o, "+zadd +zrem +zrangebyscore", "", COMMANDS("idempotentends"));
        add_shards(to, o, "+hset +hdel +pexpire", "", COMMANDS("wait.*"));
        rights_add_commands(to, COMMANDS("time", "wait"));
}

bool redis_rights(const struct store_options *options, enum store_role role, struct rights *to)
{
        static void (*const add[STORE_ROLES])(const struct store_options *o, struct rights *to) = {
                [STORE_HOST] = add_host,
                [STORE_OPERATOR] = add_operator,
                [STORE_PRODUCER] = add_producer,
                [STORE_PRODUCER_PLUS] = add_producer_plus,
        };
        struct url url = { 0 };
        struct error error;
        bool is_read = url_parse(options->url, URL_FOR_STORE, "/", &url, &error) == 0;
        bool has_some = is_read && (role != STORE_SENTINEL || url.kind == URL_REDIS_SENTINEL);
        if (has_some && role == STORE_SENTINEL) {
                rights_add_sentinel(to);
        } else if (has_some) {
                add[role](options, to);
                rights_add_connection(to, &url);
        }
        url_free(&url);
        return has_some;
}
