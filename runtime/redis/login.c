#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "redis/redis_private.h"

/* --- commands --- */

static void say(struct conn *conn, enum login_step step, const char *const *words)
{
        int count = 0;
        while (words[count])
                count++;
        assert(conn->steps_count < LOGIN_STEPS_MAX);
        redis_socket_put_count(&conn->socket, count);
        for (int i = 0; i < count; i++)
                redis_socket_put_word(&conn->socket, words[i], strlen(words[i]));
        conn->steps[conn->steps_count++] = step;
}

#define SAY(conn, step, ...) say(conn, step, WORDS(__VA_ARGS__))

static void say_auth(struct conn *conn, const char *user, const char *password)
{
        if (password && user)
                SAY(conn, LOGIN_AUTH, "AUTH", user, password);
        else if (password)
                SAY(conn, LOGIN_AUTH, "AUTH", password);
}

static void say_scripts(struct conn *conn, const struct redis_options *o)
{
        for (uint32_t i = 0; i < o->scripts_count; i++) {
                const char *const argv[] = { "SCRIPT", "LOAD", o->scripts[i]->text };
                const size_t sizes[] = { 6, 4, o->scripts[i]->size };
                redis_socket_put(&conn->socket, 3, argv, sizes);
        }
        if (o->scripts_count)
                conn->steps[conn->steps_count++] = LOGIN_SCRIPT;
}

void login_start(struct conn *conn)
{
        const struct redis_options *o = &conn->redis->options;
        char database[16];
        conn->steps_count = 0;
        (void)snprintf(database, sizeof(database), "%u", conn->redis->url.database);
        /* The buffer is wiped after the login; if it were reallocated, a copy of the password would stay behind. */
        (void)buffer_reserve(&conn->socket.out, 4096);
        if (conn->kind == CONN_SENTINEL || conn->kind == CONN_WATCH) {
                say_auth(conn, o->sentinel_user, o->sentinel_password);
                if (conn->kind == CONN_WATCH)
                        SAY(conn, LOGIN_SUBSCRIBE, "SUBSCRIBE", "+switch-master");
                else
                        SAY(conn, LOGIN_PING, "PING");
                return;
        }
        say_auth(conn, o->user, o->password);
        SAY(conn, LOGIN_HELLO, "HELLO");
        if (o->name)
                SAY(conn, LOGIN_SETNAME, "CLIENT", "SETNAME", o->name);
        if (conn->redis->url.database && (conn->kind == CONN_MAIN || conn->kind == CONN_ALONE))
                SAY(conn, LOGIN_SELECT, "SELECT", database);
        if (conn->kind == CONN_MAIN) {
                if (o->wants_facts)
                        SAY(conn, LOGIN_INFO, "INFO");
                /* A configured user rarely has this right, and the server's ACL log records each refusal. */
                if (o->wants_facts && !o->user && !conn->redis->is_config_refused)
                        SAY(conn, LOGIN_CONFIG, "CONFIG", "GET", "appendonly", "appendfsync", "save");
                say_scripts(conn, o);
        }
        if (conn->kind == CONN_BELL)
                SAY(conn, LOGIN_SUBSCRIBE, "SUBSCRIBE", "__redis__:invalidate");
}

/* --- replies --- */

static int refuse(struct conn *conn, int status, const char *what)
{
        char text[ADDRESS_TEXT_MAX];
        return error_set(&conn->socket.error, status, "%s: %s", address_format(&conn->socket.address, text), what);
}

/* The login needs this command.  `otherwise` is the status for errors other than a missing right. */
static int refuse_login(struct conn *conn, const char *command, const char *said, int otherwise)
{
        const struct redis_options *o = &conn->redis->options;
        bool is_sentinel = conn->kind == CONN_SENTINEL || conn->kind == CONN_WATCH;
        const char *user = is_sentinel ? o->sentinel_user : o->user;
        char what[512];
        if (!denial_is(said))
                return refuse(conn, otherwise, said);
        (void)snprintf(what, sizeof(what),
                "the Redis user \"%s\" lacks the right to %s; \"quiver check --acl\" prints the rights of each role; "
                "Redis "
                "says: %.200s",
                user ? user : "default", command, said);
        return refuse(conn, -EACCES, what);
}

/* An error of an optional command is ignored, unless it means that no command would work. */
static int check_error(struct conn *conn, const redisReply *reply)
{
        int status = 0;
        if (reply->type != REDIS_REPLY_ERROR)
                return 0;
        enum reply_kind verdict = error_reply_judge(reply, &status);
        if (verdict == REPLY_LATER)
                return refuse(conn, -EBUSY, reply->str);
        if (verdict == REPLY_READONLY)
                return refuse(conn, -EROFS, reply->str);
        /* NOPERM is not among them: ACLs may forbid single commands. */
        if (!strncmp(reply->str, "NOAUTH", 6) || !strncmp(reply->str, "WRONGPASS", 9))
                return refuse(conn, -EACCES, reply->str);
        return 0;
}

static void copy_text(char *to, size_t size, const char *from)
{
        (void)snprintf(to, size, "%s", from);
}
#define COPY(to, from) copy_text(to, sizeof(to), from)

static int check_version(struct conn *conn)
{
        const char *version = conn->facts.version;
        char what[128];
        if (!version[0] || strtoul(version, NULL, 10) >= 7)
                return 0;
        (void)snprintf(what, sizeof(what), "Redis %s is too old; 7.0 or newer is needed", version);
        return refuse(conn, -ENOTSUP, what);
}

static int check_role(struct conn *conn)
{
        const char *role = conn->facts.role;
        if (conn->kind == CONN_ASK_ANY || !role[0] || !strcmp(role, "master"))
                return 0;
        return refuse(conn, -EROFS, "is a replica, not the master");
}

/* Refuses a server whose mode differs from the URL's: its commands would fail one by one later. */
static int check_mode(struct conn *conn)
{
        const char *mode = conn->facts.mode;
        if (!strcmp(mode, "sentinel"))
                return refuse(conn, -EINVAL, "is a Sentinel; write redis+sentinel://HOST:PORT,…/MASTER");
        if (!strcmp(mode, "cluster") && !conn->redis->cluster)
                return refuse(conn, -EINVAL, "is part of a Cluster; write redis+cluster://HOST:PORT,…");
        return 0;
}

/* Reads the reply to HELLO, names and values in turn: version, role, client id. */
static int take_hello(struct conn *conn, const redisReply *reply)
{
        if (reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "ERR unknown command", 19))
                return refuse(conn, -ENOTSUP, "does not know HELLO: Redis 7.0 or newer is needed");
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
                const redisReply *name = reply->element[i], *value = reply->element[i + 1];
                if (name->type != REDIS_REPLY_STRING)
                        continue;
                if (!strcmp(name->str, "id") && value->type == REDIS_REPLY_INTEGER)
                        conn->client_id = (uint64_t)value->integer;
                if (value->type != REDIS_REPLY_STRING)
                        continue;
                if (!strcmp(name->str, "version"))
                        COPY(conn->facts.version, value->str);
                else if (!strcmp(name->str, "role"))
                        COPY(conn->facts.role, value->str);
                else if (!strcmp(name->str, "mode"))
                        COPY(conn->facts.mode, value->str);
        }
        if (reply->type != REDIS_REPLY_ERROR && !conn->facts.version[0])
                return refuse(conn, -EPROTO, "does not answer HELLO as Redis does");
        int r = check_version(conn);
        if (!r)
                r = check_mode(conn);
        return r ? r : check_role(conn);
}

/* Copies the value of the line "NAME:VALUE\r\n"; false if there is none. */
static bool info_get(const redisReply *info, const char *name, char *to, size_t size)
{
        size_t name_size = strlen(name);
        for (const char *line = info->str; line && *line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, name, name_size) != 0 || line[name_size] != ':')
                        continue;
                const char *value = line + name_size + 1;
                (void)snprintf(to, size, "%.*s", (int)strcspn(value, "\r\n"), value);
                return true;
        }
        return false;
}
#define INFO_GET(info, name, to) info_get(info, name, to, sizeof(to))

static int take_info(struct conn *conn, const redisReply *reply)
{
        struct redis_facts *facts = &conn->facts;
        char number[32] = "";
        COPY(facts->maxmemory_policy, "unknown");
        COPY(facts->appendonly, "unknown");
        COPY(facts->appendfsync, "unknown");
        COPY(facts->save, "unknown");
        if (reply->type != REDIS_REPLY_STRING)
                return 0;
        (void)INFO_GET(reply, "redis_version", facts->version);
        (void)INFO_GET(reply, "redis_mode", facts->mode);
        if (INFO_GET(reply, "role", facts->role) && !strcmp(facts->role, "slave"))
                COPY(facts->role, "replica");
        (void)INFO_GET(reply, "master_replid", facts->replid);
        (void)INFO_GET(reply, "maxmemory_policy", facts->maxmemory_policy);
        if (INFO_GET(reply, "maxmemory", number))
                facts->maxmemory = strtoull(number, NULL, 10);
        if (INFO_GET(reply, "connected_slaves", number))
                facts->replicas = (uint32_t)strtoul(number, NULL, 10);
        if (INFO_GET(reply, "aof_enabled", number))
                COPY(facts->appendonly, number[0] == '1' ? "yes" : "no");
        int r = check_version(conn);
        if (!r && INFO_GET(reply, "loading", number) && number[0] == '1')
                r = refuse(conn, -EBUSY, "is loading its data");
        return r ? r : check_role(conn);
}

static void take_config(struct conn *conn, const redisReply *reply)
{
        struct redis_facts *facts = &conn->facts;
        if (reply->type == REDIS_REPLY_ERROR)
                conn->redis->is_config_refused = true;
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
                const redisReply *name = reply->element[i], *value = reply->element[i + 1];
                if (name->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING)
                        continue;
                if (!strcmp(name->str, "appendonly"))
                        COPY(facts->appendonly, value->str);
                else if (!strcmp(name->str, "appendfsync"))
                        COPY(facts->appendfsync, value->str);
                else if (!strcmp(name->str, "save"))
                        COPY(facts->save, value->str);
        }
}

/* If the server does not allow loading, the first call of each script sends its text with EVAL. */
static int take_script(struct conn *conn, const redisReply *reply)
{
        const struct redis_options *o = &conn->redis->options;
        const struct redis_script *script = o->scripts[conn->scripts_loaded++];
        if (reply->type == REDIS_REPLY_ERROR && !denial_is(reply->str)) {
                char what[256];
                (void)snprintf(what, sizeof(what), "script %s: %s", script->name, reply->str);
                return refuse(conn, -EPROTO, what);
        }
        return 0;
}

int login_reply(struct conn *conn, const redisReply *reply)
{
        enum login_step step = conn->steps[conn->step];
        bool is_error = reply->type == REDIS_REPLY_ERROR;
        int r = check_error(conn, reply);
        if (r)
                return r;
        switch (step) {
        case LOGIN_AUTH:
                if (is_error)
                        r = refuse(conn, -EACCES, reply->str);
                break;
        case LOGIN_HELLO:
                r = take_hello(conn, reply);
                break;
        case LOGIN_SETNAME:
                break; /* ignored: the name is only shown in CLIENT LIST */
        case LOGIN_SELECT:
                if (is_error)
                        r = refuse_login(conn, "SELECT", reply->str, -EINVAL);
                break;
        case LOGIN_INFO:
                r = take_info(conn, reply);
                break;
        case LOGIN_CONFIG:
                take_config(conn, reply);
                break;
        case LOGIN_SCRIPT:
                r = take_script(conn, reply);
                if (conn->scripts_loaded < conn->redis->options.scripts_count)
                        return r;
                break;
        case LOGIN_SUBSCRIBE:
                if (is_error)
                        r = refuse(conn, -EPERM, reply->str);
                break;
        case LOGIN_PING:
                if (is_error)
                        r = refuse_login(conn, "PING", reply->str, -EACCES);
                break;
        }
        conn->step++;
        return r;
}
