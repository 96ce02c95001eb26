/* The doorbell: Redis reports the next foreign write to a key that we have read (CLIENT TRACKING).  It does not report
 * our own writes, so those ring here directly.  Where Redis does not ring at all, we poll. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/numbers.h"
#include "store/redis/redis_store.h"

#define POLL_MS       500 /* polling interval without a bell, and for replies, whose ring can be lost */
#define POLL_FIRST_MS 10  /* first polling interval for a reply without a bell */

void bell_own_write(struct redis_store *s, uint32_t shard)
{
        if (s->shards[shard].is_watched && s->bell.shard)
                s->bell.shard(s->bell.self, shard);
}

void bell_own_desired(struct redis_store *s)
{
        if (s->bell.desired)
                s->bell.desired(s->bell.self);
}

void bell_own_mail(struct redis_store *s, const uint8_t nonce[STORE_NONCE_SIZE])
{
        if (s->bell.mail && !memcmp(nonce, s->nonce, STORE_NONCE_SIZE))
                s->bell.mail(s->bell.self);
}

void bell_own_wanting(struct redis_store *s)
{
        if (s->bell.wanting)
                s->bell.wanting(s->bell.self);
}

void bell_own_room(struct redis_store *s, uint32_t shard)
{
        if (s->bell.room)
                s->bell.room(s->bell.self, shard);
}

static bool key_is(const char *key, size_t size, const char *other)
{
        return span_is((struct span){ key, size }, (struct span){ other, strlen(other) });
}

/* quiver:{APP:SHARD}:NAME */
static bool key_parse(const struct redis_store *s, struct span key, uint32_t *ret_shard, struct span *ret_name)
{
        char prefix[96];
        int size = snprintf(prefix, sizeof(prefix), "quiver:{%s:", s->store.app);
        if (key.size <= (size_t)size || memcmp(key.data, prefix, (size_t)size) != 0)
                return false;
        uint32_t shard = 0;
        size_t at = (size_t)size;
        for (; at < key.size && key.data[at] >= '0' && key.data[at] <= '9' && shard < s->store.shards; at++)
                shard = shard * 10 + (uint32_t)(key.data[at] - '0');
        if (shard >= s->store.shards || key.size - at < 2 || memcmp(key.data + at, "}:", 2) != 0)
                return false;
        *ret_shard = shard;
        *ret_name = (struct span){ key.data + at + 2, key.size - at - 2 };
        return true;
}

static void on_rang(void *self, const char *key, size_t size)
{
        struct redis_store *s = self;
        struct span name;
        uint32_t shard;
        if (s->open || s->is_closing)
                return;
        if (key_is(key, size, s->app_key))
                bell_own_desired(s);
        else if (key_is(key, size, s->mail_key))
                bell_own_mail(s, s->nonce);
        else if (key_is(key, size, s->wanting_key))
                bell_own_wanting(s);
        else if (!key_parse(s, (struct span){ key, size }, &shard, &name))
                return;
        else if (name.size > 6 && !memcmp(name.data, "reply:", 6))
                replies_look(s);
        else if (name.size > 5 && !memcmp(name.data, "room:", 5))
                bell_own_room(s, shard);
        else if (s->bell.shard)
                /* Even if not watched: the answer that makes the shard watched may not be read yet. */
                s->bell.shard(s->bell.self, shard);
}

static void on_look(void *self)
{
        struct redis_store *s = self;
        struct redis_facts facts;
        if (s->open || s->is_closing)
                return;
        redis_facts(s->redis, &facts);
        s->poll_ms = facts.has_tracking || !s->has_bell ? 0 : POLL_MS;
        s->no_scripts.text[0] = 0; /* the new connection may have another user or other rights */
        replies_look(s);
        record_check(s);
        if (s->bell.look)
                s->bell.look(s->bell.self);
        bell_set_timer(s);
}

static void on_state(void *self, bool is_up, const char *text)
{
        const struct redis_store *s = self;
        if (s->is_host && !s->is_closing)
                log_event(is_up ? LEVEL_INFO : LEVEL_WARN, is_up ? "redis" : "redis-lost", "why=%s", LOG_QUOTE(text));
}

/* --- requests that need no server --- */

/* An async and not a timer, so that a caller who runs the loop once is not left waiting after done(). */
static void on_soon(uv_async_t *async)
{
        struct redis_store *s = async->data;
        struct store_request *list = s->deferred;
        s->deferred = NULL;
        s->deferred_tail = &s->deferred;
        uv_unref((uv_handle_t *)async);
        while (list && !s->is_closing) {
                struct store_request *request = list;
                list = list->next;
                request_finish(request, request->status);
        }
        /* done() has closed the store: closing cancels the rest. */
        if (list)
                s->deferred = list;
}

void op_defer(struct redis_store *s, struct store_request *request)
{
        request->next = NULL;
        *s->deferred_tail = request;
        s->deferred_tail = &request->next;
        uv_ref((uv_handle_t *)&s->soon);
        (void)uv_async_send(&s->soon);
}

void bell_init(struct redis_store *s, const struct store_options *options)
{
        if (options->bell)
                s->bell = *options->bell;
        s->events = (struct redis_events){ .rang = on_rang, .look = on_look, .state = on_state, .self = s };
        s->deferred_tail = &s->deferred;
        (void)uv_timer_init(s->loop, &s->timer);
        (void)uv_async_init(s->loop, &s->soon, on_soon);
        (void)uv_idle_init(s->loop, &s->unsent);
        uv_unref((uv_handle_t *)&s->soon);
        s->timer.data = s->soon.data = s->unsent.data = s;
        s->handles = 3;
}

void bell_want(struct redis_store *s)
{
        s->has_bell = true;
        redis_want_bell(s->redis);
}

/* --- the timer --- */

static void on_timer(uv_timer_t *timer)
{
        struct redis_store *s = timer->data;
        replies_look(s);
        if (s->poll_ms && s->bell.look)
                s->bell.look(s->bell.self);
        if (!s->is_closing)
                bell_set_timer(s);
}

void bell_set_timer(struct redis_store *s)
{
        uint64_t in_ms = s->poll_ms && s->bell.look ? s->poll_ms : UINT64_MAX;
        for (struct store_request *request = s->waiting; request; request = request->next) {
                const struct store_reply *reply = (const struct store_reply *)request;
                uint64_t left = reply->deadline_ms > uv_now(s->loop) ? reply->deadline_ms - uv_now(s->loop) : 0;
                uint64_t waited = reply->wait_ms > left ? reply->wait_ms - left : 0;
                /* Without a bell a recent request is polled often, because its reply may come soon. */
                uint64_t again = s->poll_ms ? min_u64(waited / 4 + POLL_FIRST_MS, POLL_MS) : POLL_MS;
                in_ms = min_u64(min_u64(left, again), in_ms);
        }
        /* Listening alone must not keep the loop alive. */
        if (s->waiting)
                uv_ref((uv_handle_t *)&s->timer);
        else
                uv_unref((uv_handle_t *)&s->timer);
        if (in_ms == UINT64_MAX)
                (void)uv_timer_stop(&s->timer);
        else
                (void)uv_timer_start(&s->timer, on_timer, in_ms, 0);
}
