/* host_http.c: the settings of a host's HTTP server, and the calls through which it asks the host. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "host/host_private.h"
#include "host/report/metrics.h"

static const struct config *on_config(void *self)
{
        const struct host *h = self;
        return h->config;
}

static void on_health(void *self, struct http_health *ret_health)
{
        const struct host *h = self;
        struct store_info info = { 0 };
        if (h->store)
                store_info(h->store, &info);
        *ret_health = (struct http_health){
                .endangers = info.endangers,
                .is_member = membership_is_in(&h->membership),
                .sees_store = !h->membership.has_lost_store,
                .is_draining = h->phase != HOST_RUNNING || h->membership.is_drained,
                .refused = handlers_count_refused(&h->handlers),
        };
}

static json_t *on_done(void *self, struct span id)
{
        const struct host *h = self;
        return done_document_of(&h->done, h->config->host.name, h->status_doc.done.age_ms, clock_boot_ms(), id);
}

static struct coord *on_coord(void *self)
{
        const struct host *h = self;
        return h->membership.closed ? NULL : h->membership.coord;
}

/* An HTTP client that waits for a reload. */
struct http_reload {
        struct reload_caller caller;
        void (*done)(struct http_exchange *x, json_t *reply, const char *refused);
        struct http_exchange *x;
};

static void on_reloaded(struct reload_caller *caller, json_t *reply)
{
        struct http_reload waiting = *container_of(caller, struct http_reload, caller);
        free(container_of(caller, struct http_reload, caller));
        waiting.done(waiting.x, reply, NULL);
}

static void on_refused(struct reload_caller *caller, const char *text)
{
        struct http_reload waiting = *container_of(caller, struct http_reload, caller);
        free(container_of(caller, struct http_reload, caller));
        waiting.done(waiting.x, NULL, text);
}

static void on_reload(void *self, const char *by, bool is_dry,
        void (*done)(struct http_exchange *x, json_t *reply, const char *refused), struct http_exchange *x)
{
        struct host *h = self;
        struct http_reload *waiting = memory_zero(1, sizeof(*waiting));
        *waiting =
                (struct http_reload){ .caller = { .reply = on_reloaded, .refuse = on_refused }, .done = done, .x = x };
        reload_ask(&h->reload, by, &waiting->caller, is_dry, false);
}

static void on_want_metrics(void *self, struct waiter *waiter)
{
        struct host *h = self;
        backlog_want(&h->backlog, waiter);
}

static void on_put_metrics(void *self, struct metrics *to)
{
        struct host *h = self;
        struct host_metrics from = {
                .membership = &h->membership,
                .shards = &h->shards,
                .handlers = &h->handlers,
                .backlog = &h->backlog,
                .reload = &h->reload,
                .traces = &h->traces,
                .loop_busy = &h->times.busy,
                .loop_idle_ns = h->times.idle_ns,
                .started_ms = h->status_doc.started_ms,
        };
        host_metrics_put(&from, &h->survey, to);
}

/* --- workers --- */

static void on_take(void *self, struct work_poll *poll)
{
        struct host *h = self;
        remotes_take(&h->handlers, poll, clock_boot_ms());
}

static void on_leave(void *self, struct work_poll *poll)
{
        struct host *h = self;
        remotes_leave(&h->handlers, poll);
}

static bool on_say(void *self, struct work_saying *saying)
{
        struct host *h = self;
        return remotes_say(&h->handlers, &h->shards, saying, clock_boot_ms());
}

static uint64_t on_ttl_ms(void *self, const char *handler)
{
        const struct host *h = self;
        const struct handler *found = handlers_find(&h->handlers, handler);
        const struct generation *current = found ? handler_current(found) : NULL;
        return current && handler_is_remote(current->settings) ? current->settings->remote.ttl_ms : 0;
}

/* --- opening --- */

/* The caller frees both paths. */
static struct http_options options_of(const struct host *h, char **ret_socket, char **ret_token_file)
{
        const struct config *c = h->config;
        *ret_socket = text_printf("%s/%s.http", c->state, c->host.name);
        *ret_token_file = text_printf("%s/http.token", c->state);
        return (struct http_options){
                .socket = *ret_socket,
                .token_file = *ret_token_file,
                .tokens_file = c->http.tokens_file,
                .listen = c->http.listen,
                .listen_fd = h->notify.listen_fd,
                .hosts = &c->http.hosts,
                .connections_max = c->http.connections,
                .has_open_metrics = c->http.has_open_metrics,
                .is_strict_ready = c->http.ready == HTTP_READY_STRICT,
        };
}

int host_open_http(struct host *h)
{
        char *socket;
        char *token_file;
        struct http_options options = options_of(h, &socket, &token_file);
        h->work = (struct work_services){
                .take = on_take, .leave = on_leave, .say = on_say, .ttl_ms = on_ttl_ms, .self = h
        };
        struct http_services services = { .store = h->store,
                .config = on_config,
                .health = on_health,
                .done = on_done,
                .coord = on_coord,
                .reload = on_reload,
                .want_metrics = on_want_metrics,
                .put_metrics = on_put_metrics,
                .work = &h->work,
                .self = h };
        int r = http_open(&h->loop, &options, &services, &h->http, &h->error);
        free(socket);
        free(token_file);
        if (r == 0)
                h->status_doc.view.http = http_address(h->http);
        return r;
}

void host_apply_http(struct host *h)
{
        char *socket;
        char *token_file;
        struct error error = { { 0 } };
        struct http_options options = options_of(h, &socket, &token_file);
        if (h->http && http_reconfigure(h->http, &options, &error) < 0)
                log_event(LEVEL_ERROR, "http-tokens", "text=%s", LOG_QUOTE(error.text));
        free(socket);
        free(token_file);
}
