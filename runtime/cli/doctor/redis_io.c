/* redis_io.c: asks the servers of a Redis deployment about themselves, by the connections that hosts use. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/doctor/probes.h"
#include "cli/doctor/redis_read.h"
#include "cli/doctor/redis_rights_io.h"
#include "config/connect.h"
#include "redis/redis.h"

#define PINGS     5
#define WORDS_MAX 8

/* One master, and a text that leads to it: of a Cluster, with a hash tag in one of its slots. */
struct redis_target {
        char address[272];
        char route[32];
};

struct redis_probe {
        struct redis_asker asker;
        struct doctor_deployment *to;
        struct redis_target *targets;
        size_t targets_count;
};

/* --- one question after the other --- */

static void on_done(struct redis_command *command)
{
        struct redis_asker *a = container_of(command, struct redis_asker, command);
        a->is_answered = true;
        if (command->status == 0 && a->take)
                a->take(a->self, command->reply);
}

int redis_ask_argv(struct redis_asker *a, int argc, const char *const *words, redis_take_fn *take, void *self)
{
        size_t *sizes = memory_zero((size_t)argc, sizeof(*sizes));
        /* A server that was silent once is asked nothing more. */
        int r = a->failed;
        for (int i = 0; i < argc; i++)
                sizes[i] = strlen(words[i]);
        if (!r) {
                a->command = (struct redis_command){ .done = on_done,
                        .route = span_of_text(a->route),
                        .argv = (const char **)words,
                        .argv_size = sizes,
                        .argc = argc,
                        .deadline_ms = PROBE_MS };
                a->take = take;
                a->self = self;
                a->is_answered = false;
                redis_send(a->redis, &a->command);
                while (!a->is_answered)
                        (void)uv_run(&a->loop, UV_RUN_ONCE);
                r = a->command.status;
                if (r == -ETIMEDOUT || r == -ECONNRESET || r == -ECONNREFUSED || r == -EHOSTUNREACH)
                        a->failed = r;
        }
        free(sizes);
        return r;
}

#define ASK(a, take, self, ...)                                                                                        \
        redis_ask_argv(a, (int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)),                             \
                (const char *[]){ __VA_ARGS__ }, take, self)

static const char *text_of(const redisReply *reply)
{
        bool is_text = reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
        return is_text ? reply->str : "";
}

/* --- one server --- */

static void take_info(void *self, const redisReply *reply)
{
        redis_read_info(self, text_of(reply));
}

static void take_settings(void *self, const redisReply *reply)
{
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2)
                redis_read_setting(self, text_of(reply->element[i]), text_of(reply->element[i + 1]));
}

static void take_number(void *self, const redisReply *reply)
{
        if (reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0)
                *(uint64_t *)self = (uint64_t)reply->integer;
}

static void take_time(void *self, const redisReply *reply)
{
        uint64_t *ms = self;
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
                *ms = strtoull(text_of(reply->element[0]), NULL, 10) * 1000 +
                      strtoull(text_of(reply->element[1]), NULL, 10) / 1000;
}

static void note_untold(struct doctor_redis *server, int r, const char *what)
{
        if (r < 0)
                strings_add(&server->untold, what);
}

static int by_size(const void *a, const void *b)
{
        const uint64_t *x = a, *y = b;
        return *x < *y ? -1 : *x > *y;
}

/* How long an answer takes, and what its clock says: asked in the middle of the quickest one. */
static void measure(struct redis_asker *a, struct doctor_redis *server)
{
        uint64_t took[PINGS];
        uint64_t quickest_ns = UNKNOWN;
        int r = 0;
        for (int i = 0; i < PINGS; i++) {
                uint64_t before_ns = clock_boot_ns();
                uint64_t before_ms = clock_wall_ms();
                uint64_t theirs_ms = 0;
                r = ASK(a, take_time, &theirs_ms, "TIME");
                if (r < 0)
                        break;
                took[i] = clock_boot_ns() - before_ns;
                if (took[i] >= quickest_ns || !theirs_ms)
                        continue;
                quickest_ns = took[i];
                server->doubt_ms = took[i] / 2 / NS_PER_MS + 1;
                server->ahead_ms = (int64_t)theirs_ms - (int64_t)(before_ms + took[i] / 2 / NS_PER_MS);
        }
        note_untold(server, r, "TIME");
        if (r < 0)
                return;
        qsort(took, PINGS, sizeof(took[0]), by_size);
        server->round_trip_ns = took[PINGS / 2];
}

static void ask_server(struct redis_probe *p, const struct redis_target *target, bool has_login)
{
        struct redis_asker *a = &p->asker;
        p->to->servers = array_grow(p->to->servers, p->to->servers_count, sizeof(*p->to->servers));
        struct doctor_redis *server = &p->to->servers[p->to->servers_count++];
        redis_read_init(server);
        (void)snprintf(server->server, sizeof(server->server), "%s", target->address);
        server->is_loopback = probe_is_here(target->address);
        server->has_login = has_login;
        (void)snprintf(a->route, sizeof(a->route), "%s", target->route);
        measure(a, server);
        note_untold(server, ASK(a, take_info, server, "INFO"), "INFO");
        int r = 0;
        static const char *const names[] = { "appendonly", "appendfsync", "save", "bind", "protected-mode", "timeout",
                "slowlog-log-slower-than", "min-replicas-to-write" };
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && r == 0; i++)
                r = ASK(a, take_settings, server, "CONFIG", "GET", names[i]);
        note_untold(server, r, "CONFIG GET");
        note_untold(server, ASK(a, take_number, &server->slow_commands, "SLOWLOG", "LEN"), "SLOWLOG LEN");
}

/* --- a Cluster's masters --- */

/* A text whose hash tag is in the slots from `first` to `last`. */
static void find_route(char route[32], long long first, long long last)
{
        for (unsigned i = 0; i < 1u << 22; i++) {
                (void)snprintf(route, 32, "{doctor-%u}", i);
                uint16_t slot = redis_slot(route, strlen(route));
                if (slot >= first && slot <= last)
                        return;
        }
}

/* Of each range: first slot, last slot, master, replicas. */
static void take_slots(void *self, const redisReply *reply)
{
        struct redis_probe *p = self;
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
                const redisReply *range = reply->element[i];
                if (range->type != REDIS_REPLY_ARRAY || range->elements < 3 ||
                        range->element[2]->type != REDIS_REPLY_ARRAY || range->element[2]->elements < 2)
                        continue;
                const redisReply *master = range->element[2];
                char address[272];
                (void)snprintf(address, sizeof(address), "%.250s:%lld", text_of(master->element[0]),
                        master->element[1]->integer);
                size_t k = 0;
                while (k < p->targets_count && strcmp(p->targets[k].address, address) != 0)
                        k++;
                if (k < p->targets_count)
                        continue;
                p->targets = array_grow(p->targets, p->targets_count, sizeof(*p->targets));
                struct redis_target *target = &p->targets[p->targets_count++];
                (void)snprintf(target->address, sizeof(target->address), "%s", address);
                find_route(target->route, range->element[0]->integer, range->element[1]->integer);
                p->to->masters_alone += range->elements == 3;
        }
}

static void take_cluster(void *self, const redisReply *reply)
{
        redis_read_cluster(self, text_of(reply));
}

/* Which servers there are. */
static void find_targets(struct redis_probe *p, bool is_cluster)
{
        if (is_cluster) {
                (void)ASK(&p->asker, take_slots, p, "CLUSTER", "SLOTS");
                (void)ASK(&p->asker, take_cluster, p->to, "CLUSTER", "INFO");
        }
        if (p->targets_count)
                return;
        struct redis_facts facts;
        redis_facts(p->asker.redis, &facts);
        p->targets = array_grow(p->targets, 0, sizeof(*p->targets));
        p->targets_count = 1;
        (void)snprintf(p->targets[0].address, sizeof(p->targets[0].address), "%s", facts.server);
}

/* --- Sentinels --- */

static void ask_sentinel(struct doctor_deployment *to, const struct url *url, size_t i, const struct redis_options *o)
{
        static const struct timeval limit = { .tv_sec = 1 };
        struct error error = { "" };
        int fd = probe_connect(url->hosts[i].name, url->hosts[i].port, 1000, &error);
        redisContext *c = fd < 0 ? NULL : redisConnectFd(fd);
        if (!c) {
                (void)snprintf(to->sentinel_error, sizeof(to->sentinel_error), "%.255s", error.text);
                return;
        }
        /* From here on with a time limit instead. */
        if (redisSetTimeout(c, limit) == REDIS_OK)
                c->flags |= REDIS_BLOCK;
        redis_ask_block(fd);
        if (o->sentinel_password) {
                redisReply *login = o->sentinel_user
                                            ? redisCommand(c, "AUTH %s %s", o->sentinel_user, o->sentinel_password)
                                            : redisCommand(c, "AUTH %s", o->sentinel_password);
                freeReplyObject(login);
        }
        redisReply *reply = c->err ? NULL : redisCommand(c, "SENTINEL MASTER %s", url->master);
        bool has_told = reply && reply->type == REDIS_REPLY_ARRAY;
        for (size_t k = 0; has_told && k + 1 < reply->elements; k += 2)
                redis_read_master(to, text_of(reply->element[k]), text_of(reply->element[k + 1]));
        to->sentinels_answered += has_told || (reply && strstr(reply->str ? reply->str : "", "NOPERM"));
        if (!has_told)
                (void)snprintf(to->sentinel_error, sizeof(to->sentinel_error), "%.100s:%u: %.100s", url->hosts[i].name,
                        url->hosts[i].port, reply && reply->type == REDIS_REPLY_ERROR ? reply->str : c->errstr);
        if (reply)
                freeReplyObject(reply);
        redisFree(c);
}

static void ask_sentinels(struct doctor_deployment *to, const struct url *url, const struct redis_options *o)
{
        to->sentinels = url->hosts_count;
        to->quorum = UNKNOWN;
        if (url->is_tls) {
                (void)snprintf(
                        to->sentinel_error, sizeof(to->sentinel_error), "they speak TLS; redis-cli --tls asks them");
                return;
        }
        for (size_t i = 0; i < url->hosts_count; i++)
                ask_sentinel(to, url, i, o);
}

/* --- a deployment --- */

static void on_opened(struct redis_open *open, int status)
{
        struct redis_asker *a = container_of(open, struct redis_asker, open);
        a->is_answered = true;
        a->failed = status;
}

static void on_closed(void *self)
{
        *(bool *)self = true;
}

static void look_at(const struct url *url, const struct redis_options *options, const struct config *config,
        const struct config_secrets *secrets, struct doctor_deployment *to)
{
        struct redis_probe p = { .to = to };
        struct redis_asker *a = &p.asker;
        bool is_closed = false;
        (void)uv_loop_init(&a->loop);
        a->open = (struct redis_open){ .opened = on_opened, .options = *options };
        redis_open(&a->loop, &a->open);
        while (!a->is_answered)
                (void)uv_run(&a->loop, UV_RUN_ONCE);
        to->status = a->failed;
        to->error = a->open.error;
        a->redis = a->open.redis;
        if (to->status == 0) {
                find_targets(&p, url->kind == URL_REDIS_CLUSTER);
                for (size_t i = 0; i < p.targets_count; i++)
                        ask_server(&p, &p.targets[i], options->password && *options->password);
                a->route[0] = 0;
                redis_rights_ask(a, config, secrets, to);
        }
        if (a->redis)
                redis_close(a->redis, on_closed, &is_closed);
        while (a->redis && !is_closed)
                (void)uv_run(&a->loop, UV_RUN_ONCE);
        (void)uv_run(&a->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&a->loop);
        free(p.targets);
}

static const char *or_null(const char *text)
{
        return text && *text ? text : NULL;
}

void probe_redis(const struct config *config, const struct config_secrets *secrets, struct doctor_figures *to)
{
        const struct store_config *store = &config->store;
        const struct coordination_config *tree = &config->coordination;
        if (url_is_redis(&store->url)) {
                const struct redis_options options = { .url = store->url.text,
                        .tls = tls_files_of(&store->tls),
                        .user = store->user,
                        .password = or_null(secrets->store),
                        .sentinel_user = store->sentinel.user,
                        .sentinel_password = or_null(secrets->store_sentinel),
                        .name = "quiver doctor",
                        .deadline_ms = PROBE_MS };
                to->store = (struct doctor_deployment){ .of = "store", .url = store->url.text, .user = store->user };
                look_at(&store->url, &options, config, secrets, &to->store);
                if (store->url.kind == URL_REDIS_SENTINEL)
                        ask_sentinels(&to->store, &store->url, &options);
        }
        if (url_is_redis(&tree->url)) {
                const struct redis_options options = { .url = tree->url.text,
                        .tls = tls_files_of(&tree->tls),
                        .user = tree->user,
                        .password = or_null(secrets->coordination),
                        .sentinel_user = tree->sentinel.user,
                        .sentinel_password = or_null(secrets->coordination_sentinel),
                        .name = "quiver doctor",
                        .deadline_ms = PROBE_MS };
                to->tree =
                        (struct doctor_deployment){ .of = "coordination", .url = tree->url.text, .user = tree->user };
                look_at(&tree->url, &options, config, secrets, &to->tree);
                if (tree->url.kind == URL_REDIS_SENTINEL)
                        ask_sentinels(&to->tree, &tree->url, &options);
        }
}
