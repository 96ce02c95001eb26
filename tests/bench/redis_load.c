/* Loads a Redis, bare or with a Quiver host behind it, and says how many seconds that took.  bench.py calls it.
 *
 *         redis_load SOCKET bare APP TASKS KEYS SHARDS            the bare limit: see consume()
 *         redis_load SOCKET echo COUNT                            what one RPUSH to one BLPOP takes, COUNT times, in ms
 *         redis_load SOCKET push APP TASKS KEYS SHARDS [AVOID]    pipelines of RPUSH, as fast as it takes them
 *         redis_load SOCKET through APP TASKS KEYS SHARDS         the same, until the host has done them all
 *         redis_load SOCKET drain APP TASKS SHARDS                until a host, new to the app, has done them
 *         redis_load SOCKET singles APP COUNT SHARDS              one task at a time, its time as payload
 *
 * Payloads are of 100 bytes.  Keys are uniform, and none is in the shard of the key AVOID; if there is but one it is
 * `hot`.  The producer is the same with and without a host. */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "task/envelope.h"
#include "task/id.h"

#define PAYLOAD    100
#define PIPELINE   100u
#define GAP_US     2000 /* between two tasks to an idle host */
#define PATIENCE_S 600

static const char *socket_path;

struct load {
        const char *app;
        unsigned tasks;
        unsigned keys;
        unsigned shards;
        const char *avoid;
};

static void die(const char *what, const char *why)
{
        (void)fprintf(stderr, "redis_load: %s: %s\n", what, why);
        exit(1);
}

static double seconds_since(uint64_t start_ns)
{
        return (double)(clock_boot_ns() - start_ns) / (double)NS_PER_S;
}

static redisContext *connect_redis(void)
{
        redisContext *c = redisConnectUnix(socket_path);
        if (!c || c->err)
                die(socket_path, c ? c->errstr : "out of memory");
        return c;
}

static redisReply *answer(redisContext *c)
{
        redisReply *reply = NULL;
        if (redisGetReply(c, (void **)&reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
                die("Redis", reply ? reply->str : c->errstr);
        return reply;
}

static void skip_answers(redisContext *c, unsigned count)
{
        while (count--)
                freeReplyObject(answer(c));
}

/* --- producers ---------------------------------------------------------------------------------------------------- */

/* Returns the key's shard. */
static uint32_t choose_key(const struct load *load, unsigned number, char ret_key[16], int *ret_size)
{
        uint32_t avoided = load->avoid ? shard_of_key((struct span){ load->avoid, strlen(load->avoid) }, load->shards)
                                       : UINT32_MAX;
        uint32_t shard;
        do {
                *ret_size = load->keys == 1 ? snprintf(ret_key, 16, "hot")
                                            : snprintf(ret_key, 16, "key-%u",
                                                      (unsigned)(number++ * UINT64_C(7919) % load->keys));
                shard = shard_of_key((struct span){ ret_key, (size_t)*ret_size }, load->shards);
        } while (shard == avoided);
        return shard;
}

static void push_task(redisContext *c, const struct load *load, unsigned number)
{
        char key[16];
        char list[128];
        char id[TASK_ID_MAX + 1];
        char envelope[512];
        int key_size = 0;
        uint32_t shard = choose_key(load, number, key, &key_size);
        int list_size = snprintf(list, sizeof(list), "quiver:{%s:%u}:normal", load->app, shard);
        (void)task_id_make(id, shard);
        int size = snprintf(
                envelope, sizeof(envelope), "qv1\nkey:%s\nhandler:noop\nid:%s\n\n%0*u", key, id, PAYLOAD, number);
        const char *argv[] = { "RPUSH", list, envelope };
        const size_t sizes[] = { 5, (size_t)list_size, (size_t)size };
        (void)redisAppendCommandArgv(c, 3, argv, sizes);
}

static void *push(void *self)
{
        const struct load *load = self;
        redisContext *c = connect_redis();
        for (unsigned i = 0; i < load->tasks;) {
                unsigned batch = load->tasks - i < PIPELINE ? load->tasks - i : PIPELINE;
                for (unsigned n = 0; n < batch; n++)
                        push_task(c, load, i++);
                skip_answers(c, batch);
        }
        redisFree(c);
        return NULL;
}

static double push_alone(struct load *load)
{
        uint64_t start_ns = clock_boot_ns();
        (void)push(load);
        return seconds_since(start_ns);
}

/* --- bare --------------------------------------------------------------------------------------------------------- */

static const char bare_script[] =
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('FENCED') end "
        "local t = redis.call('LRANGE', KEYS[2], 0, 255) "
        "if #t > 0 then redis.call('LTRIM', KEYS[2], #t, -1) end return t";

static unsigned ask_all_lists(redisContext *c, const struct load *load, const char *sha)
{
        unsigned got = 0;
        for (unsigned shard = 0; shard < load->shards; shard++)
                (void)redisAppendCommand(c, "EVALSHA %s 2 quiver:{%s:%u}:lease quiver:{%s:%u}:normal me", sha,
                        load->app, shard, load->app, shard);
        for (unsigned shard = 0; shard < load->shards; shard++) {
                redisReply *reply = answer(c);
                got += (unsigned)reply->elements;
                freeReplyObject(reply);
        }
        return got;
}

/* One consumer whose script checks a lease and takes up to 256 tasks off a list.  It keeps no order per key, survives
 * no crash and runs nothing: there is not less to do. */
static void consume(redisContext *c, const struct load *load)
{
        char sha[41];
        redisReply *loaded = redisCommand(c, "SCRIPT LOAD %s", bare_script);
        (void)snprintf(sha, sizeof(sha), "%s", loaded->str);
        freeReplyObject(loaded);
        for (unsigned shard = 0; shard < load->shards; shard++)
                freeReplyObject(redisCommand(c, "SET quiver:{%s:%u}:lease me", load->app, shard));
        for (unsigned got = 0, last = 0; got < load->tasks; got += last) {
                /* Asking for what is not there yet would only be in the producer's way. */
                if (got && last < load->shards * 16)
                        (void)usleep(2000);
                last = ask_all_lists(c, load, sha);
        }
}

static double bare(struct load *load)
{
        redisContext *c = connect_redis();
        pthread_t thread;
        uint64_t start_ns = clock_boot_ns();
        (void)pthread_create(&thread, NULL, push, load);
        consume(c, load);
        double seconds = seconds_since(start_ns);
        (void)pthread_join(thread, NULL);
        redisFree(c);
        return seconds;
}

/* A consumer that waits in BLPOP. */
static void *echo_consumer(void *self)
{
        unsigned count = *(unsigned *)self;
        redisContext *c = connect_redis();
        while (count--) {
                redisReply *reply = redisCommand(c, "BLPOP bare:echo 0");
                if (!reply || reply->elements != 2)
                        die("BLPOP", c->errstr);
                (void)printf("%.6f\n",
                        (double)(clock_boot_ns() - strtoull(reply->element[1]->str, NULL, 10)) / (double)NS_PER_MS);
                freeReplyObject(reply);
        }
        redisFree(c);
        return NULL;
}

static void echo(unsigned count)
{
        redisContext *c = connect_redis();
        pthread_t thread;
        unsigned expected = count;
        (void)pthread_create(&thread, NULL, echo_consumer, &expected);
        while (count--) {
                (void)usleep(GAP_US);
                freeReplyObject(redisCommand(c, "RPUSH bare:echo %llu", (unsigned long long)clock_boot_ns()));
        }
        (void)pthread_join(thread, NULL);
        redisFree(c);
}

/* --- with a host -------------------------------------------------------------------------------------------------- */

static unsigned long long count_done(redisContext *c, const struct load *load)
{
        unsigned long long sum = 0;
        for (unsigned shard = 0; shard < load->shards; shard++)
                (void)redisAppendCommand(c, "HGET quiver:{%s:%u}:shard done", load->app, shard);
        for (unsigned shard = 0; shard < load->shards; shard++) {
                redisReply *reply = answer(c);
                sum += reply->str ? strtoull(reply->str, NULL, 10) : 0;
                freeReplyObject(reply);
        }
        return sum;
}

static void wait_done(redisContext *c, const struct load *load, unsigned long long count)
{
        uint64_t start_ns = clock_boot_ns();
        while (count_done(c, load) < count) {
                double waited_s = seconds_since(start_ns);
                if (waited_s > PATIENCE_S)
                        die("the host", "is stuck or gone");
                /* Rarely enough to cost nothing, often enough to be a hundredth off at most. */
                (void)usleep(2000 + (useconds_t)(waited_s * 10000));
        }
}

static double through(struct load *load)
{
        redisContext *c = connect_redis();
        pthread_t thread;
        unsigned long long before = count_done(c, load);
        uint64_t start_ns = clock_boot_ns();
        (void)pthread_create(&thread, NULL, push, load);
        wait_done(c, load, before + load->tasks);
        double seconds = seconds_since(start_ns);
        (void)pthread_join(thread, NULL);
        redisFree(c);
        return seconds;
}

/* Seconds that all would have taken, counted from the first one done: a host's start is not part of it. */
static double drain(const struct load *load)
{
        redisContext *c = connect_redis();
        unsigned long long first = 0;
        while (!(first = count_done(c, load)))
                (void)usleep(1000);
        uint64_t start_ns = clock_boot_ns();
        wait_done(c, load, load->tasks);
        double seconds = seconds_since(start_ns) * load->tasks / (double)(load->tasks - first);
        redisFree(c);
        return seconds;
}

static double singles(const struct load *load)
{
        redisContext *c = connect_redis();
        uint64_t start_ns = clock_boot_ns();
        for (unsigned i = 0; i < load->tasks; i++) {
                struct timespec now;
                char id[TASK_ID_MAX + 1];
                char envelope[256];
                unsigned shard = i % load->shards;
                (void)usleep(GAP_US);
                (void)task_id_make(id, shard);
                (void)clock_gettime(CLOCK_MONOTONIC, &now);
                int size = snprintf(envelope, sizeof(envelope), "qv1\nkey:\nhandler:noop\nid:%s\n\n%lld", id,
                        (long long)now.tv_sec * 1000000000 + now.tv_nsec);
                freeReplyObject(
                        redisCommand(c, "RPUSH quiver:{%s:%u}:normal %b", load->app, shard, envelope, (size_t)size));
        }
        redisFree(c);
        return seconds_since(start_ns);
}

static unsigned number(int argc, char **argv, int place)
{
        unsigned value = argc > place ? (unsigned)strtoul(argv[place], NULL, 10) : 0;
        if (!value)
                die("usage", "redis_load SOCKET bare|echo|push|through|drain|singles …: see its source");
        return value;
}

int main(int argc, char **argv)
{
        const char *what = argc > 2 ? argv[2] : "";
        bool has_keys = !strcmp(what, "bare") || !strcmp(what, "push") || !strcmp(what, "through");
        socket_path = argc > 1 ? argv[1] : "";
        if (!strcmp(what, "echo")) {
                echo(number(argc, argv, 3));
                return 0;
        }
        struct load load = { .app = argc > 3 ? argv[3] : "", .tasks = number(argc, argv, 4) };
        load.keys = has_keys ? number(argc, argv, 5) : 1;
        load.shards = number(argc, argv, has_keys ? 6 : 5);
        load.avoid = has_keys && argc > 7 ? argv[7] : NULL;
        double seconds = !strcmp(what, "bare")      ? bare(&load)
                         : !strcmp(what, "push")    ? push_alone(&load)
                         : !strcmp(what, "through") ? through(&load)
                         : !strcmp(what, "drain")   ? drain(&load)
                         : !strcmp(what, "singles") ? singles(&load)
                                                    : (die(what, "is no command of redis_load"), 0);
        (void)printf("%.6f\n", seconds);
        return 0;
}
