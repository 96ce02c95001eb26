/* The contract suite's Redis places: databases of one real server, whose clock only the test moves (tests/preload).
 * Whoever opens a store there does it as a user who has the rights of a host, as quiver check --acl prints them, and no
 * others. */
#include "clock_file.h"
#include "harness.h"
#include "proxy.h"
#include "servers.h"
#include "store/rights.h"

#define DATABASES 16
/* Between two pieces of what is sent: enough for the server to see to somebody else. */
#define SPLIT_PAUSE_US 50

struct place {
        unsigned database;
        char url[128];
};

static struct redis_server server;
static struct proxy *splitter; /* NULL: none was needed yet */
static bool is_split;
static uint64_t *wall_ms;
static unsigned next;

static void stop_server(void)
{
        server_free(&server);
}

/* The apps of the suite, each with its user. */
static const char *const apps[] = { "test", "other" };
#define APPS (sizeof(apps) / sizeof(apps[0]))
static char users[APPS][32];

static void add_users(void)
{
        for (size_t i = 0; i < APPS; i++) {
                struct rights rights = { 0 };
                /* A database other than 0: the user chooses one. */
                const struct store_options for_host = { .url = "redis://127.0.0.1/1", .app = apps[i] };
                assert_true(store_rights(&for_host, STORE_HOST, &rights));
                (void)snprintf(users[i], sizeof(users[i]), "%s-host", apps[i]);
                server_add_user(&server, users[i], &rights);
                rights_free(&rights);
        }
}

static void start_server(void)
{
        if (server.pid)
                return;
        wall_ms = clock_file_open();
        *wall_ms = CLOCK_START_MS;
        server_start(&server, (char *)NULL);
        clock_file_close();
        add_users();
        (void)atexit(stop_server);
}

static void stop_splitter(void)
{
        proxy_stop(splitter);
}

void redis_place_split(unsigned bytes)
{
        start_server();
        if (!splitter) {
                splitter = proxy_start(server.port);
                (void)atexit(stop_splitter);
        }
        proxy_split(splitter, bytes);
        proxy_pause(splitter, bytes ? SPLIT_PAUSE_US : 0);
        is_split = bytes > 0;
}

static void *create(void)
{
        struct place *p = calloc(1, sizeof(*p));
        assert_non_null(p);
        start_server();
        p->database = next++ % DATABASES;
        if (is_split)
                (void)snprintf(p->url, sizeof(p->url), "redis://127.0.0.1:%u/%u", proxy_port(splitter), p->database);
        else
                (void)snprintf(p->url, sizeof(p->url), "%s?db=%u", server.unix_url, p->database);
        server_ok(&server, "EVAL %s 0 %u", "redis.call('SELECT', ARGV[1]) redis.call('FLUSHDB')", p->database);
        return p;
}

static void destroy(void *self)
{
        free(self);
        *wall_ms = CLOCK_START_MS;
}

static void options(void *self, struct store_options *to)
{
        to->url = ((struct place *)self)->url;
        for (size_t i = 0; i < APPS && !to->user; i++)
                if (!strcmp(to->app, apps[i])) {
                        to->user = users[i];
                        to->password = "secret";
                }
}

static void step_clock(void *self, int64_t ms)
{
        (void)self;
        (void)__atomic_add_fetch(wall_ms, (uint64_t)ms, __ATOMIC_ACQ_REL);
}

static void push(void *self, uint32_t shard, enum lane lane, struct span bytes)
{
        const char *script = "redis.call('SELECT', ARGV[1]) redis.call('RPUSH', ARGV[2], ARGV[3])";
        char key[64];
        (void)snprintf(key, sizeof(key), "quiver:{test:%u}:%s", shard, lane_name(lane));
        server_ok(&server, "EVAL %s 0 %u %s %b", script, ((struct place *)self)->database, key, bytes.data, bytes.size);
}

static void record(void *self, const char *name, const char *value)
{
        server_ok(&server, "EVAL %s 0 %u %s %s",
                "redis.call('SELECT', ARGV[1]) redis.call('HSET', 'quiver:{test}:app', ARGV[2], ARGV[3])",
                ((struct place *)self)->database, name, value);
}

struct span redis_place_do(struct world *w, const char *command)
{
        const struct place *p = w->place;
        redisReply *reply = server_do(&server, "EVAL %s 0 %u %s",
                "redis.call('SELECT', ARGV[1]) local words = {} for word in string.gmatch(ARGV[2], '%S+') do "
                "words[#words + 1] = string.gsub(string.gsub(word, '~', ' '), '|', '\\n') end "
                "return tostring(redis.call(unpack(words)) or '')",
                p->database, command);
        assert_non_null(reply);
        assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
        struct span text = F(w, "%s", reply->str);
        freeReplyObject(reply);
        return text;
}

void redis_place_add_user(const char *name, enum store_role role)
{
        const struct store_options options = { .url = "redis://127.0.0.1/1", .app = "test", .shards = 4 };
        struct rights rights = { 0 };
        assert_true(store_rights(&options, role, &rights));
        server_add_user(&server, name, &rights);
        rights_free(&rights);
}

bool redis_place_denies(const char *user, const char *command)
{
        char words[512];
        (void)snprintf(words, sizeof(words), "ACL DRYRUN %s %s", user, command);
        redisReply *reply = server_do_text(&server, words);
        assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
        bool is_denied = strcmp(reply->str, "OK") != 0;
        freeReplyObject(reply);
        return is_denied;
}

void redis_place_set_policy(const char *policy)
{
        server_ok(&server, "CONFIG SET maxmemory-policy %s", policy);
}

unsigned long redis_place_scripts_run(void)
{
        static const char name[] = "cmdstat_evalsha:calls=";
        redisReply *reply = server_do(&server, "INFO commandstats");
        const char *at = strstr(reply->str, name);
        unsigned long count = at ? strtoul(at + strlen(name), NULL, 10) : 0;
        freeReplyObject(reply);
        return count;
}

unsigned redis_place_denials(void)
{
        redisReply *log = server_do(&server, "ACL LOG");
        unsigned count = (unsigned)log->elements;
        freeReplyObject(log);
        server_ok(&server, "ACL LOG RESET");
        return count;
}

void redis_place_forget_scripts(void)
{
        server_ok(&server, "SCRIPT FLUSH");
}

const struct contract_driver redis_contract = {
        .name = "redis",
        .create = create,
        .destroy = destroy,
        .options = options,
        .step_clock = step_clock,
        .push = push,
        .record = record,
        .has_many_apps = true,
};
