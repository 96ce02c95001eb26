/* Opens and closes the store: the connection, the app's record, and what a crash of this Redis may lose. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "store/redis/redis_store.h"

/* Advances under way at once: enough to keep a server busy while answers travel and the next calls are made, and few
 * enough that other shards gather meanwhile.  With many shards each call carries little, so more of them go together.
 * In a Cluster each server gets only a part of them. */
#define CALLS_FEW         16u
#define CALLS_MANY        32u
#define CALLS_PART        32u /* one call per this many shards */
#define CLUSTER_CALLS_MAX 32u
/* Redis writes no answer before it has executed all commands that it has read, a quarter of a millisecond for sixteen
 * calls: a group is this part of calls_max. */
#define CALLS_GROUP_PART 2u

/* --- closing --- */

static void free_store(struct redis_store *s)
{
        for (uint32_t i = 0; s->shards && i < s->store.shards; i++) {
                view_forget(&s->shards[i], VIEW_EMPTY);
                free(s->shards[i].keys);
        }
        free(s->shards);
        free(s->store.app);
        free(s->store.coordination);
        free(s->store.durability);
        free(s->app_key);
        free(s->mail_key);
        free(s->wanting_key);
        free(s->url);
        free(s);
}

static void on_handle_closed(uv_handle_t *handle)
{
        struct redis_store *s = handle->data;
        if (--s->handles)
                return;
        struct store_open *open = s->open;
        void (*closed)(void *self) = s->closed;
        void *self = s->closed_self;
        requests_cancel(s->deferred);
        requests_cancel(s->waiting);
        many_cancel(s);
        free_store(s);
        if (open)
                request_finish(&open->request, open->request.status);
        else if (closed)
                closed(self);
}

static void on_redis_closed(void *self)
{
        struct redis_store *s = self;
        uv_close((uv_handle_t *)&s->timer, on_handle_closed);
        uv_close((uv_handle_t *)&s->soon, on_handle_closed);
        uv_close((uv_handle_t *)&s->unsent, on_handle_closed);
}

static void shut(struct redis_store *s)
{
        s->is_closing = true;
        (void)uv_timer_stop(&s->timer);
        if (s->redis)
                redis_close(s->redis, on_redis_closed, s);
        else
                on_redis_closed(s);
}

static void close_store(struct store *store, void (*closed)(void *self), void *self)
{
        struct redis_store *s = (struct redis_store *)store;
        s->closed = closed;
        s->closed_self = self;
        shut(s);
}

/* --- what was found --- */

static void describe_persistence(const struct redis_facts *f, struct buffer *to)
{
        bool is_appending = !strcmp(f->appendonly, "yes");
        if (is_appending && !strcmp(f->appendfsync, "always"))
                buffer_printf(to, "appendfsync always: a crash of this Redis loses nothing");
        else if (is_appending && !strcmp(f->appendfsync, "everysec"))
                buffer_printf(to, "appendfsync everysec: a crash of this Redis may lose up to 2 seconds");
        else if (is_appending)
                buffer_printf(to,
                        "appendonly with appendfsync %s: a crash of this Redis may lose what the system had "
                        "not written yet",
                        f->appendfsync[0] ? f->appendfsync : "unknown");
        else if (!strcmp(f->appendonly, "no") && f->save[0] && strcmp(f->save, "unknown") != 0)
                buffer_printf(to,
                        "appendonly no: a crash of this Redis loses everything since its last snapshot (save %s)",
                        f->save);
        else if (!strcmp(f->appendonly, "no"))
                buffer_printf(to, "appendonly no: a crash of this Redis loses everything");
        else
                buffer_printf(to, "this Redis does not say whether it keeps anything over a crash");
}

/* Text for the start-up line: what a crash may lose. */
static char *describe(const struct redis_facts *f)
{
        struct buffer text = { 0 };
        describe_persistence(f, &text);
        if (f->replicas)
                buffer_printf(&text, "; %" PRIu32 " replica%s, asynchronous: a failover may lose the last moments",
                        f->replicas, f->replicas == 1 ? "" : "s");
        if (!strncmp(f->maxmemory_policy, "volatile", 8))
                buffer_printf(
                        &text, "; maxmemory-policy %s: replies and unique marks may go early", f->maxmemory_policy);
        char *copy = text_copy(buffer_text(&text));
        buffer_free(&text);
        return copy;
}

static int facts_check(struct redis_store *s, struct error *error)
{
        struct redis_facts facts;
        redis_facts(s->redis, &facts);
        if (s->redis_open.options.wants_facts)
                s->store.durability = describe(&facts);
        else
                s->store.durability = text_copy("not asked for as a user of its own; the log of a host says it "
                                                "(event=store)");
        s->poll_ms = facts.has_tracking || !s->has_bell ? 0 : 500;
        if (!strncmp(facts.maxmemory_policy, "allkeys", 7))
                return error_set(error, -EINVAL,
                        "%s: its maxmemory-policy is %s, so it throws tasks away when memory is short; set it to "
                        "noeviction",
                        s->url, facts.maxmemory_policy);
        return 0;
}

/* --- opening --- */

static void recorded(struct redis_op *op)
{
        struct redis_store *s = op->s;
        struct store_open *open = s->open;
        if (open->request.status) {
                shut(s); /* done() is called once everything is closed */
                return;
        }
        s->store.calls_max = s->is_cluster
                                     ? CLUSTER_CALLS_MAX
                                     : (uint32_t)min_u64(CALLS_MANY, max_u64(CALLS_FEW, s->store.shards / CALLS_PART));
        s->store.calls_group = s->is_cluster ? 0 : s->store.calls_max / CALLS_GROUP_PART;
        s->open = NULL;
        open->store = &s->store;
        bell_set_timer(s);
        request_finish(&open->request, 0);
}

static void on_opened(struct redis_open *redis_open, int status)
{
        struct redis_store *s = container_of(redis_open, struct redis_store, redis_open);
        struct store_open *open = s->open;
        if (status) {
                open->request.status =
                        error_set(&open->request.error, status, "%s: %s", s->url, redis_open->error.text);
                shut(s);
                return;
        }
        s->redis = redis_open->redis;
        open->request.status = facts_check(s, &open->request.error);
        if (open->request.status) {
                shut(s);
                return;
        }
        struct redis_op *op = op_begin(s, &open->request);
        op->after = recorded;
        if (s->is_host)
                writable_ask(op);
        record_open(op);
}

static void name_waiter(struct redis_store *s)
{
        uint64_t number = 0;
        /* The time will do without random numbers: the name only has to differ from others. */
        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                number = clock_boot_ns();
        (void)snprintf(s->wait_name, sizeof(s->wait_name), "%016" PRIx64, number);
}

static void open_store(uv_loop_t *loop, struct store_open *open)
{
        const struct store_options *options = &open->options;
        struct redis_store *s = memory_zero(1, sizeof(*s));
        char nonce[2 * STORE_NONCE_SIZE + 1];
        s->store.driver = &redis_driver;
        store_set_limits(&s->store, options);
        s->loop = loop;
        s->open = open;
        s->is_host = options->is_host;
        s->wait_replicas = options->wait_replicas;
        if (s->wait_replicas)
                name_waiter(s);
        s->is_cluster = !strncmp(options->url, "redis+cluster:", 14) || !strncmp(options->url, "rediss+cluster:", 15);
        s->store.ring_costs = true; /* the server remembers every key that was read until it has rung */
        s->url = text_copy(options->url);
        s->store.app = text_copy(options->app ? options->app : "");
        s->app_key = text_printf("quiver:{%s}:app", s->store.app);
        s->wanting_key = text_printf("quiver:{%s}:wantingset", s->store.app);
        memcpy(s->nonce, options->nonce, STORE_NONCE_SIZE);
        nonce_text(s->nonce, nonce);
        s->mail_key = text_printf("quiver:{%s:%s}:mail", s->store.app, nonce);
        bell_init(s, options);
        if (open->request.status) {
                shut(s);
                return;
        }
        scripts_init(&s->scripts);
        /* A user who only submits may have no other rights, so others request the bell when they need it. */
        const struct store_bell *bell = options->bell;
        s->has_bell = bell && (bell->shard || bell->desired || bell->mail || bell->wanting);
        s->redis_open = (struct redis_open){ .opened = on_opened,
                .options = { .url = s->url,
                        .user = options->user,
                        .password = options->password,
                        .sentinel_user = options->sentinel_user,
                        .sentinel_password = options->sentinel_password,
                        .tls = options->tls,
                        .name = "quiver",
                        .scripts = s->scripts.pointers,
                        .scripts_count = s->is_host ? SCRIPTS_COUNT : 0,
                        .wants_facts = s->is_host || !options->user,
                        .wants_bell = s->has_bell,
                        .events = &s->events } };
        redis_open(loop, &s->redis_open);
}

/* --- operations --- */

#define OPERATION(number, function, text, kind) [OP_##number] = redis_##function,
static redis_operation *const operations[OPS] = { STORE_OPERATIONS(OPERATION) };

static void start(struct store *store, struct store_request *request)
{
        struct redis_store *s = (struct redis_store *)store;
        if (request->status)
                op_defer(s, request);
        else
                operations[request->op](s, request);
}

static void flush(struct store *store)
{
        struct redis_store *s = (struct redis_store *)store;
        many_flush(s);
        redis_flush(s->redis);
}

const struct store_driver redis_driver = {
        .scheme = "redis",
        .open = open_store,
        .start = start,
        .flush = flush,
        .close = close_store,
        .rights = redis_rights,
};
