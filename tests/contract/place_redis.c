/* The contract suite's Redis places: databases of one real server, whose clock only the test moves (tests/preload). */
#include "clock_file.h"
#include "harness.h"
#include "servers.h"

#define DATABASES 16

struct place {
        unsigned database;
        char url[128];
};

static struct redis_server server;
static uint64_t *wall_ms;
static unsigned next;

static void stop_server(void)
{
        server_free(&server);
}

static void start_server(void)
{
        if (server.pid)
                return;
        wall_ms = clock_file_open();
        *wall_ms = CLOCK_START_MS;
        server_start(&server, (char *)NULL);
        clock_file_close();
        (void)atexit(stop_server);
}

static void *create(void)
{
        struct place *p = calloc(1, sizeof(*p));
        assert_non_null(p);
        start_server();
        p->database = next++ % DATABASES;
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
