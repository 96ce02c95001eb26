/* Loads a Redis, bare or with a Quiver host behind it, and says how many seconds that took.  bench.py calls it.
 *
 *         redis_load SOCKET WHAT [OPTIONS]
 *
 *         bare     the bare limit: payloads alone, in one list; see consume()
 *         spread   the same with what Quiver's producer sends: envelopes, a list for each shard
 *         echo     what one RPUSH to one BLPOP takes, each in ms
 *         push     pipelines of RPUSH, by default as fast as it takes them
 *         through  the same, until the host has done them all
 *         drain    until a host that is started now has done what `push` sent
 *
 * The options are those of load/load.h. */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/load.h"
#include "task/envelope.h"
#include "task/id.h"

#define HEADER_SIZE 512u
#define NAME_SIZE   128u
#define BARE_TASKS  256u       /* that one script takes, at most */
#define BARE_BYTES  (1u << 20) /* of payload that one script takes, at most */
#define BARE_LIST   "bare:list"
#define BARE_LEASE  "bare:lease"
#define GROUP       64u /* counters read in one pipeline */
#define PATIENCE_S  60  /* without any progress */

static const char *socket_path;

static redisContext *connect_redis(void)
{
        redisContext *c = redisConnectUnix(socket_path);
        if (!c || c->err)
                load_die(socket_path, c ? c->errstr : "out of memory");
        return c;
}

static redisReply *answer(redisContext *c)
{
        redisReply *reply = NULL;
        if (redisGetReply(c, (void **)&reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
                load_die("Redis", reply ? reply->str : c->errstr);
        return reply;
}

static void skip_answers(redisContext *c, unsigned count)
{
        while (count--)
                freeReplyObject(answer(c));
}

/* --- producers ---------------------------------------------------------------------------------------------------- */

/* What is sent for one task of a load; `room` has HEADER_SIZE bytes more than a payload. */
typedef void put_fn(redisContext *c, const struct load *load, unsigned number, char *room);

static void put_payload(redisContext *c, const struct load *load, unsigned number, char *room)
{
        const char *argv[] = { "RPUSH", BARE_LIST, load_payload(load, number) };
        const size_t sizes[] = { 5, strlen(BARE_LIST), load->payload_bytes };
        (void)room;
        (void)redisAppendCommandArgv(c, 3, argv, sizes);
}

/* The name of a shard's list, made once: printf for each task would be measured as Quiver's (load.c). */
static const char *shard_list(const struct load *load, uint32_t shard)
{
        static char names[SHARDS_MAX][NAME_SIZE];
        if (!*names[shard])
                (void)snprintf(names[shard], NAME_SIZE, "quiver:{%s:%u}:normal", load->app, shard);
        return names[shard];
}

static char *put_text(char *to, const char *text, size_t size)
{
        memcpy(to, text, size);
        return to + size;
}

static void put_task(redisContext *c, const struct load *load, unsigned number, char *envelope)
{
        static const char before_key[] = "qv1\nkey:", before_id[] = "\nhandler:noop\nid:", end[] = "\n\n";
        char key[LOAD_KEY_SIZE];
        char id[TASK_ID_MAX + 1];
        uint32_t shard;
        unsigned key_size = load_key(load, number, key, &shard);
        const char *list = shard_list(load, shard);
        (void)task_id_make(id, shard);
        char *at = put_text(envelope, before_key, sizeof(before_key) - 1);
        at = put_text(at, key, key_size);
        at = put_text(at, before_id, sizeof(before_id) - 1);
        at = put_text(at, id, strlen(id));
        at = put_text(at, end, sizeof(end) - 1);
        at = put_text(at, load_payload(load, number), load->payload_bytes);
        const char *argv[] = { "RPUSH", list, envelope };
        const size_t sizes[] = { 5, strlen(list), (size_t)(at - envelope) };
        (void)redisAppendCommandArgv(c, 3, argv, sizes);
}

struct producer {
        const struct load *load;
        put_fn *put;
};

static void *push(void *self)
{
        const struct producer *producer = self;
        const struct load *load = producer->load;
        redisContext *c = connect_redis();
        char *envelope = malloc(HEADER_SIZE + load->payload_bytes);
        uint64_t start_ns = clock_boot_ns();
        if (!envelope)
                load_die("envelope", "out of memory");
        for (unsigned sent = 0, batch; sent < load->tasks && (batch = load_due(load, sent, start_ns));) {
                for (unsigned i = 0; i < batch; i++)
                        producer->put(c, load, sent++, envelope);
                skip_answers(c, batch);
        }
        free(envelope);
        redisFree(c);
        return NULL;
}

static double push_alone(struct load *load)
{
        struct producer producer = { load, put_task };
        uint64_t start_ns = clock_boot_ns();
        (void)push(&producer);
        return load_seconds_since(start_ns);
}

/* --- bare --------------------------------------------------------------------------------------------------------- */

static const char bare_script[] =
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('FENCED') end "
        "local t = redis.call('LRANGE', KEYS[2], 0, ARGV[2]) "
        "if #t > 0 then redis.call('LTRIM', KEYS[2], #t, -1) end return t";

/* The lists that a load goes to: one, or one for each shard. */
static void lease_name(const struct load *load, unsigned list, bool is_spread, char name[NAME_SIZE])
{
        if (is_spread)
                (void)snprintf(name, NAME_SIZE, "quiver:{%s:%u}:lease", load->app, list);
        else
                (void)snprintf(name, NAME_SIZE, BARE_LEASE);
}

static void list_name(const struct load *load, unsigned list, bool is_spread, char name[NAME_SIZE])
{
        if (is_spread)
                (void)snprintf(name, NAME_SIZE, "quiver:{%s:%u}:normal", load->app, list);
        else
                (void)snprintf(name, NAME_SIZE, BARE_LIST);
}

static unsigned ask_all_lists(redisContext *c, const struct load *load, bool is_spread, const char *sha)
{
        unsigned got = 0, lists = is_spread ? load->shards : 1;
        unsigned most = load->payload_bytes > BARE_BYTES / BARE_TASKS ? BARE_BYTES / load->payload_bytes : BARE_TASKS;
        for (unsigned list = 0; list < lists; list++) {
                char lease[NAME_SIZE], name[NAME_SIZE];
                lease_name(load, list, is_spread, lease);
                list_name(load, list, is_spread, name);
                (void)redisAppendCommand(c, "EVALSHA %s 2 %s %s me %u", sha, lease, name, most ? most - 1 : 0);
        }
        for (unsigned list = 0; list < lists; list++) {
                redisReply *reply = answer(c);
                got += (unsigned)reply->elements;
                freeReplyObject(reply);
        }
        return got;
}

/* One consumer whose script checks a lease and takes up to 256 tasks (or 1 MiB) off a list.  It keeps no order per key,
 * survives no crash and runs nothing: there is not less to do. */
static void consume(redisContext *c, const struct load *load, bool is_spread)
{
        char sha[41];
        unsigned lists = is_spread ? load->shards : 1;
        redisReply *loaded = redisCommand(c, "SCRIPT LOAD %s", bare_script);
        (void)snprintf(sha, sizeof(sha), "%s", loaded->str);
        freeReplyObject(loaded);
        for (unsigned list = 0; list < lists; list++) {
                char lease[NAME_SIZE];
                lease_name(load, list, is_spread, lease);
                freeReplyObject(redisCommand(c, "SET %s me", lease));
        }
        for (unsigned got = 0, last = 0; got < load->tasks; got += last) {
                /* Asking for what is not there yet would only be in the producer's way. */
                if (got && last < lists * 16)
                        (void)usleep(2000);
                last = ask_all_lists(c, load, is_spread, sha);
        }
}

static double consumed(struct load *load, bool is_spread)
{
        struct producer producer = { load, is_spread ? put_task : put_payload };
        redisContext *c = connect_redis();
        pthread_t thread;
        uint64_t start_ns = clock_boot_ns();
        (void)pthread_create(&thread, NULL, push, &producer);
        consume(c, load, is_spread);
        double seconds = load_seconds_since(start_ns);
        (void)pthread_join(thread, NULL);
        redisFree(c);
        return seconds;
}

static double bare(struct load *load)
{
        return consumed(load, false);
}

static double spread(struct load *load)
{
        return consumed(load, true);
}

/* A consumer that waits in BLPOP. */
static void *echo_consumer(void *self)
{
        unsigned count = ((const struct load *)self)->tasks;
        redisContext *c = connect_redis();
        while (count--) {
                redisReply *reply = redisCommand(c, "BLPOP bare:echo 0");
                if (!reply || reply->elements != 2)
                        load_die("BLPOP", c->errstr);
                (void)printf("%.6f\n",
                        (double)(clock_boot_ns() - strtoull(reply->element[1]->str, NULL, 10)) / (double)NS_PER_MS);
                freeReplyObject(reply);
        }
        redisFree(c);
        return NULL;
}

static void echo(struct load *load)
{
        redisContext *c = connect_redis();
        pthread_t thread;
        uint64_t start_ns = clock_boot_ns();
        (void)pthread_create(&thread, NULL, echo_consumer, load);
        for (unsigned sent = 0; sent < load->tasks; sent++) {
                (void)load_due(load, sent, start_ns);
                freeReplyObject(redisCommand(c, "RPUSH bare:echo %llu", (unsigned long long)clock_boot_ns()));
        }
        (void)pthread_join(thread, NULL);
        redisFree(c);
}

/* --- with a host -------------------------------------------------------------------------------------------------- */

/* What has been done in each shard, and what has to be. */
struct counters {
        unsigned long long done[SHARDS_MAX];
        unsigned long long goal[SHARDS_MAX];
};

static void read_done(redisContext *c, const struct load *load, struct counters *counters, unsigned from, unsigned to)
{
        for (unsigned shard = from; shard < to; shard++)
                (void)redisAppendCommand(c, "HGET quiver:{%s:%u}:shard done", load->app, shard);
        for (unsigned shard = from; shard < to; shard++) {
                redisReply *reply = answer(c);
                counters->done[shard] = reply->str ? strtoull(reply->str, NULL, 10) : 0;
                freeReplyObject(reply);
        }
}

/* After what is done now, the whole load. */
static void set_goals(redisContext *c, const struct load *load, struct counters *counters)
{
        read_done(c, load, counters, 0, load->shards);
        memcpy(counters->goal, counters->done, sizeof(counters->goal));
        for (unsigned i = 0; i < load->tasks; i++) {
                char key[LOAD_KEY_SIZE];
                uint32_t shard;
                (void)load_key(load, i, key, &shard);
                counters->goal[shard]++;
        }
}

/* Looks at a few shards at a time, and never again at one that is done: looking costs Redis something, too. */
static void wait_done(redisContext *c, const struct load *load, struct counters *counters)
{
        uint64_t start_ns = clock_boot_ns();
        uint64_t progress_ns = start_ns;
        for (unsigned next = 0; next < load->shards;) {
                unsigned end = next + GROUP < load->shards ? next + GROUP : load->shards;
                unsigned long long before = counters->done[next];
                unsigned first = next;
                read_done(c, load, counters, next, end);
                while (next < end && counters->done[next] >= counters->goal[next])
                        next++;
                if (next > first || counters->done[first] != before)
                        progress_ns = clock_boot_ns();
                if (load_seconds_since(progress_ns) > PATIENCE_S)
                        load_die("the host", "has done nothing for a minute");
                /* Rarely enough to cost nothing, often enough to be a hundredth off at most. */
                if (next < end)
                        (void)usleep(2000 + (useconds_t)(load_seconds_since(start_ns) * 10000));
        }
}

static double through(struct load *load)
{
        static struct counters counters;
        struct producer producer = { load, put_task };
        redisContext *c = connect_redis();
        pthread_t thread;
        set_goals(c, load, &counters);
        uint64_t start_ns = clock_boot_ns();
        (void)pthread_create(&thread, NULL, push, &producer);
        wait_done(c, load, &counters);
        double seconds = load_seconds_since(start_ns);
        (void)pthread_join(thread, NULL);
        redisFree(c);
        return seconds;
}

static unsigned long long sum_done(redisContext *c, const struct load *load, struct counters *counters)
{
        unsigned long long sum = 0;
        read_done(c, load, counters, 0, load->shards);
        for (unsigned shard = 0; shard < load->shards; shard++)
                sum += counters->done[shard];
        return sum;
}

/* Seconds that all would have taken, counted from the first one done: a host's start is not part of it.  Says `ready`
 * when the host may start. */
static double drain(struct load *load)
{
        static struct counters counters;
        redisContext *c = connect_redis();
        unsigned long long before = sum_done(c, load, &counters);
        unsigned long long first;
        set_goals(c, load, &counters);
        (void)puts("ready");
        (void)fflush(stdout);
        uint64_t wait_ns = clock_boot_ns();
        while ((first = sum_done(c, load, &counters) - before) == 0) {
                if (load_seconds_since(wait_ns) > PATIENCE_S)
                        load_die("the host", "has not begun after a minute");
                (void)usleep(500);
        }
        uint64_t start_ns = clock_boot_ns();
        if (first >= load->tasks)
                load_die("drain", "was over before one could look");
        wait_done(c, load, &counters);
        double seconds = load_seconds_since(start_ns) * load->tasks / (double)(load->tasks - first);
        redisFree(c);
        return seconds;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                double (*run)(struct load *load);
        } commands[] = { { "bare", bare }, { "spread", spread }, { "push", push_alone }, { "through", through },
                { "drain", drain } };
        struct load load = {
                .app = "bench", .tasks = 1, .keys = 10000, .shards = 64, .payload_bytes = 100, .step = 100
        };
        if (argc < 3)
                load_die("usage", "redis_load SOCKET bare|spread|echo|push|through|drain [OPTIONS]: see its source");
        socket_path = argv[1];
        load_options(argc - 2, argv + 2, &load);
        if (!strcmp(argv[2], "echo")) {
                echo(&load);
                return 0;
        }
        for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
                if (strcmp(argv[2], commands[i].name) == 0) {
                        (void)printf("%.6f\n", commands[i].run(&load));
                        return 0;
                }
        }
        load_die(argv[2], "is no command of redis_load");
}
