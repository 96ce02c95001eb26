/* host_start.c: how a host starts; the list of steps is at the end.
 *
 * cli/run.c has hardened the process before it read the configuration.  The loop exists already, so a step may wait for
 * an answer.  If a step fails, or a signal arrives during the start, host_close() closes what was opened so far. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "config/connect.h"
#include "host/host_private.h"
#include "id/machine.h"

#define GATHER_MS 10
#define SEATS_MAX 128 /* one advance must hold all their starts and leave room for outcomes */

/* A step returns 0, -errno with the message in h->error, or WAITS: then host_start_go_on() will continue the list. */
#define WAITS 1

/* --- settings --- */

/* The most tasks that this host runs at once.  A dead host of the app is assumed to have had as many. */
static uint32_t count_seats(const struct config *config)
{
        uint64_t seats = 0;
        for (size_t i = 0; i < config->handlers_count; i++) {
                const struct handler_config *handler = &config->handlers[i];
                seats += (uint64_t)handler->processes * handler->threads * handler->batch.max;
        }
        return (uint32_t)min_u64(seats, SEATS_MAX);
}

void host_warn_of_root(struct host *h)
{
        const struct config *config = h->config;
        struct buffer names = { 0 };
        for (size_t i = 0; i < config->handlers_count && geteuid() == 0 && !h->is_root_told; i++)
                if (!config->handlers[i].limits.user && !handler_is_remote(&config->handlers[i]))
                        buffer_printf(&names, "%s%s", names.size ? "," : "", config->handlers[i].name);
        h->is_root_told |= names.size > 0;
        if (names.size)
                log_event(LEVEL_WARN, "runs-as-root", "handlers=%s text=%s", buffer_text(&names),
                        LOG_QUOTE("their plugins run as root; set limits.user of each to a user of its own, or start "
                                  "the host as another user"));
        buffer_free(&names);
}

void host_apply_config(struct host *h)
{
        const struct config *c = h->config;
        h->membership.weight = c->host.weight;
        membership_even_load(&h->membership, c->coordination.evens_load);
        h->limits = (struct shard_limits){ .ttl_ms = c->lease.ttl_ms,
                .drain_ms = c->lease.drain_ms,
                .gather_ms = GATHER_MS,
                .can_merge = h->limits.can_merge,
                .ring_costs = h->limits.ring_costs,
                .window_tasks = c->window.tasks,
                .window_bytes = c->window.bytes,
                .seats = count_seats(c) };
        h->handlers.seat_ttl_ms = c->lease.ttl_ms;
        limits_io_define(&h->fleet_limits, c, clock_wall_ms());
        if (h->has_guard)
                guard_client_ttl(&h->guard, c->lease.ttl_ms);
        for (uint32_t i = 0; i < h->shards.count; i++) {
                struct shard *s = &h->shards.list[i].shard;
                s->lease.ttl_ms = c->lease.ttl_ms;
                window_set_per_key(&s->window, c->window.per_key);
                shard_stir(s);
        }
}

int host_apply_traces(struct host *h, struct error *error)
{
        const struct traces_config *c = &h->config->traces;
        const struct traces_settings settings = { .url = c->url,
                .ratio = c->ratio,
                .interval_ms = c->interval_ms,
                .queue_max = c->queue,
                .headers = &c->headers,
                .headers_file = c->headers_file,
                .tls = tls_files_of(&c->tls) };
        return traces_configure(&h->traces, &settings, error);
}

/* --- steps, in their order --- */

/* Gives each part its pointers to the others.  Opens nothing yet. */
static int connect_parts(struct host *h)
{
        notify_open(&h->notify);
        state_locks_init(&h->locks);
        pools_init(&h->pools, &h->loop);
        h->pools.host.strays = &h->strays;
        h->pools.host.cgroups = &h->cgroups;
        h->membership.name = h->config->host.name;
        h->membership.events = &host_membership_events;
        h->membership.self = h;
        membership_init(&h->membership, &h->loop);
        h->handlers.dispatch = &h->dispatch;
        h->handlers.pools = &h->pools;
        h->handlers.leases = &h->leases;
        h->handlers.copies = h->copies;
        h->handlers.host = h->config->host.name;
        h->handlers.traces = &h->traces;
        h->handlers.events = &host_handlers_events;
        h->handlers.self = h;
        h->handlers.can_call = SERVICES_PROVIDED;
        h->lend.handlers = &h->handlers;
        h->lend.nonce = h->membership.nonce;
        h->lend.host = h->config->host.name;
        h->services.host = h->config->host.name;
        h->membership.others = services_tree_events;
        h->membership.others.self = &h->services;
        h->reload = (struct reload){ .loop = &h->loop,
                .config = h->config,
                .handlers = &h->handlers,
                .events = &host_reload_events,
                .self = h };
        h->status_doc.view = (struct host_status_view){ .membership = &h->membership,
                .shards = &h->shards,
                .handlers = &h->handlers,
                .order = &h->reload_order,
                .schedules = &h->file_schedules,
                .server = &h->http };
        h->status_doc.done = (struct done_report){
                .host = h->config->host.name, .age_ms = h->config->store.done.age_ms, .done = &h->done
        };
        done_tasks_init(&h->done, h->config->store.done.keep, clock_boot_ms());
        host_status_init(&h->status_doc, &h->loop);
        h->backlog.membership = &h->membership;
        h->backlog.shards = &h->shards;
        backlog_init(&h->backlog, &h->loop);
        h->file_schedules.host = h->config->host.name;
        file_schedules_init(&h->file_schedules, &h->loop);
        h->traces.app = h->config->app;
        h->traces.host = h->config->host.name;
        h->traces.instance = h->instance;
        traces_open(&h->traces, &h->loop);
        host_apply_config(h);
        return 0;
}

static int read_secrets(struct host *h)
{
        return config_secrets_read(h->config, true, &h->secrets, &h->error);
}

static int open_traces(struct host *h)
{
        membership_nonce_text(&h->membership, h->instance);
        return host_apply_traces(h, &h->error);
}

static int make_state_folder(struct host *h)
{
        if (mkdir(h->config->state, 0700) == 0 || errno == EEXIST)
                return 0;
        return error_set(&h->error, -errno, "state folder %s: %s; %s", h->config->state, strerror(errno),
                errno == ENOENT ? "make the folder above it, or change the setting state"
                                : "start the host as a user that may make it, or change the setting state");
}

static int open_plugin_copies(struct host *h)
{
        h->copies_fd = plugin_copies_open(h->config->state, h->copies, &h->error);
        return h->copies_fd < 0 ? h->copies_fd : 0;
}

/* Decides whether NAME.last describes a killed host whose leases and session this host has to end. */
static void look_back(struct host *h)
{
        const char *why = h->locks.why_not;
        struct error error = { "" };
        int r = last_run_read(h->locks.folder_fd, h->config->host.name, &h->last, &error);
        if (r == -ENOENT)
                return;
        if (r < 0)
                why = error.text;
        else if (!why)
                why = last_run_objection(&h->last, &h->run);
        if (!why) {
                h->predecessor.run = &h->last;
                return;
        }
        log_event(LEVEL_WARN, "predecessor", "file=%s/%s.last text=%s hint=%s", h->config->state, h->config->host.name,
                LOG_QUOTE(why), LOG_QUOTE("what a killed host held ends by itself, within lease.ttl"));
}

static int lock_state(struct host *h)
{
        const struct config *c = h->config;
        struct last_run *run = &h->run;
        int r = state_locks_open(&h->locks, c->state, c->host.name, &h->error);
        if (r < 0)
                return r;
        h->pools.host.alive_fd = h->locks.alive_fd;
        last_run_read_boot_id(run->boot_id);
        memcpy(run->alive_id, h->locks.alive_id, sizeof(run->alive_id));
        memcpy(run->nonce, h->membership.nonce, sizeof(run->nonce));
        (void)snprintf(run->app, sizeof(run->app), "%s", c->app);
        (void)snprintf(run->store, sizeof(run->store), "%s", c->store.url.text);
        (void)snprintf(run->coordination, sizeof(run->coordination), "%s", c->coordination.url.text);
        look_back(h);
        return 0;
}

static int draw_nonce(struct host *h)
{
        uint8_t *nonce = h->membership.nonce;
        if (getrandom(nonce, STORE_NONCE_SIZE, 0) != STORE_NONCE_SIZE)
                return error_set(&h->error, -EIO, "cannot get random numbers from the system");
        memcpy(&h->handlers.random, nonce, sizeof(h->handlers.random));
        return 0;
}

static void on_stray_ended(void *self)
{
        cgroups_sweep(self);
}

/* Makes sure that processes started by runners end with them: by control groups where the host may create them, and by
 * adopting orphans (as a subreaper). */
static int own_processes(struct host *h)
{
        int use = h->config->host.cgroup;
        char nonce[NONCE_TEXT_SIZE];
        char controllers[64];
        membership_nonce_text(&h->membership, nonce);
        h->strays.ended = on_stray_ended;
        h->strays.self = &h->cgroups;
        strays_open(&h->strays, &h->loop, h->membership.nonce, sizeof(h->membership.nonce));
        if (use == CGROUP_USE_OFF)
                return 0;
        int r = cgroups_open(&h->cgroups, h->config->host.name, nonce, use == CGROUP_USE_REQUIRE);
        if (r < 0 && use == CGROUP_USE_REQUIRE)
                return error_set(&h->error, r, "host.cgroup = \"require\": %s", h->cgroups.why.text);
        if (r < 0)
                log_event(LEVEL_INFO, "cgroup", "group=none text=%s", LOG_QUOTE(h->cgroups.why.text));
        else
                log_event(LEVEL_INFO, "cgroup", "group=%s controllers=%s text=%s", LOG_QUOTE(h->cgroups.made),
                        LOG_QUOTE(cgroup_controllers_text(h->cgroups.controllers, controllers, sizeof(controllers))),
                        LOG_QUOTE(h->cgroups.why.text));
        return 0;
}

static int open_coordination(struct host *h)
{
        struct coord_options options = coord_options_of(h->config, &h->secrets);
        membership_open(&h->membership, &h->loop, &options);
        return WAITS;
}

static void on_store_open(struct store_request *request)
{
        struct host *h = container_of(request, struct host, open.request);
        host_start_go_on(h, request->status, request->error.text);
}

static int open_store(struct host *h)
{
        struct store_options *options = &h->open.options;
        struct coord_info coordination;
        coord_info(h->membership.coord, &coordination);
        h->bell = host_bell;
        h->bell.self = h;
        h->open.request.done = on_store_open;
        *options = store_options_of(h->config, &h->secrets);
        options->coordination = coordination.url;
        options->max_members = h->config->coordination.members_max;
        options->may_create = true;
        options->is_host = true;
        options->bell = &h->bell;
        memcpy(options->nonce, h->membership.nonce, sizeof(options->nonce));
        store_open(&h->loop, &h->open);
        return WAITS;
}

static void on_predecessor_ended(void *self)
{
        host_start_go_on(self, 0, "");
}

static int end_predecessor(struct host *h)
{
        struct predecessor *p = &h->predecessor;
        if (!p->run)
                return 0;
        p->store = h->open.store;
        p->loop = &h->loop;
        p->coord = coord_options_of(h->config, &h->secrets);
        p->ttl_ms = h->config->lease.ttl_ms;
        p->done = on_predecessor_ended;
        p->self = h;
        predecessor_end(p);
        return WAITS;
}

void host_write_run(struct host *h, const char *token)
{
        struct error error = { "" };
        (void)snprintf(h->run.session, sizeof(h->run.session), "%s", token);
        if (last_run_write(h->locks.folder_fd, h->config->host.name, &h->run, &error) < 0)
                log_event(LEVEL_WARN, "predecessor", "file=%s/%s.last text=%s hint=%s", h->config->state,
                        h->config->host.name, LOG_QUOTE(error.text),
                        LOG_QUOTE("if this host is killed with its guard, its shards wait for the end of its leases"));
}

static int look_for_copies(struct host *h)
{
        struct coord_info info;
        coord_info(h->membership.coord, &info);
        if (strcmp(info.driver, "local") != 0)
                return 0;
        h->copied = (struct copied){ .store = h->open.store,
                .coord = h->membership.coord,
                .loop = &h->loop,
                .folder = h->config->coordination.url.path,
                .ttl_ms = h->config->lease.ttl_ms,
                .done = host_start_go_on,
                .self = h };
        copied_look(&h->copied);
        return WAITS;
}

/* The leases of the previous host of this name are released or will expire, so NAME.last may now describe this run. */
static int begin_run(struct host *h)
{
        char token[COORD_TOKEN_MAX] = "";
        state_locks_share(&h->locks);
        coord_token(h->membership.coord, token);
        h->has_run = true;
        host_write_run(h, token);
        explicit_bzero(token, sizeof(token));
        explicit_bzero(&h->last, sizeof(h->last));
        return 0;
}

/* The max_members that the app has recorded applies to all hosts; a file without the setting does not disagree. */
static void limit_members(struct host *h, uint32_t recorded)
{
        uint32_t ours = h->config->coordination.members_max;
        h->membership.members_max = recorded;
        if (ours && ours != recorded)
                log_event(LEVEL_WARN, "max-members", "file=%" PRIu32 " app=%" PRIu32 " text=%s", ours, recorded,
                        LOG_QUOTE(
                                "coordination.max_members of this host's file is not what the app has recorded, which "
                                "is used; to change it for all hosts: quiver app set max_members=N"));
}

static int make_shards(struct host *h)
{
        struct store_info info;
        h->store = h->open.store;
        store_info(h->store, &info);
        log_event(LEVEL_INFO, "store", "driver=%s app=%s shards=%" PRIu32 " durability=%s", info.driver, info.app,
                info.shards, LOG_QUOTE(info.durability));
        limit_members(h, info.record->max_members);
        h->handlers.has_later = store_app_has(info.record, "later");
        h->status_doc.survey.created_ms = h->survey.created_ms = info.record->created_ms;
        h->limits.can_merge = store_app_has(info.record, "merge");
        h->limits.ring_costs = info.ring_costs;
        h->shards = (struct shards){ .store = h->store,
                .done = &h->done,
                .dispatch = &h->dispatch,
                .leases = &h->leases,
                .assignment = &h->membership.assignment,
                .nonce = h->membership.nonce,
                .host = h->config->host.name,
                .limits = &h->limits,
                .events = &host_shards_events,
                .self = h };
        dispatch_init(&h->dispatch, info.shards);
        h->dispatch.routes.limits = &h->fleet_limits.limits;
        h->fleet_limits.store = h->store;
        h->fleet_limits.nonce = h->membership.nonce;
        shards_init(&h->shards, info.calls_max, info.calls_group, h->config->window.per_key);
        h->lend.leases = &h->leases;
        h->lend.lease_first = info.shards;
        /* The guard releases only the first info.shards entries: the others are for borrowed tasks, which have no lease
         * in the store. */
        int r = leases_create(&h->leases, info.shards + LEND_LEASES);
        return r < 0 ? error_set(&h->error, r, "cannot make the shared memory for leases: %s", strerror(-r)) : 0;
}

static int start_guard(struct host *h)
{
        const struct config *c = h->config;
        struct guard_start start = {
                .ttl_ms = c->lease.ttl_ms,
                .leases = h->shards.count,
                .app = c->app,
                .cgroup = h->cgroups.runners,
                .store_url = c->store.url.text,
                .store_user = c->store.user,
                .store_password = h->secrets.store,
                .store_sentinel_user = c->store.sentinel.user,
                .store_sentinel_password = h->secrets.store_sentinel,
                .coord_url = c->coordination.url.text,
                .coord_user = c->coordination.user,
                .coord_password = h->secrets.coordination,
                .coord_sentinel_user = c->coordination.sentinel.user,
                .coord_sentinel_password = h->secrets.coordination_sentinel,
                .store_tls = tls_files_of(&c->store.tls),
                .coord_tls = tls_files_of(&c->coordination.tls),
        };
        memcpy(start.nonce, h->membership.nonce, sizeof(start.nonce));
        int r = guard_client_open(&h->guard, &h->loop, &h->leases, h->locks.alive_fd, &start, &h->error);
        h->has_guard = r == 0;
        return r;
}

/* A plugin that fails to load disables only its own handler: tasks of the other handlers go on. */
static int open_handlers(struct host *h)
{
        for (size_t i = 0; i < h->config->handlers_count; i++) {
                const struct handler_config *settings = &h->config->handlers[i];
                struct error error = { "" };
                int r = handlers_open(&h->handlers, h->config, settings, &error);
                if (r < 0 && h->is_strict)
                        return error_set(&h->error, r, "%s", error.text);
                if (r == 0)
                        continue;
                handlers_refuse(&h->handlers, settings->name, error.text);
                struct history_entry *entry = history_add(&h->handlers.history, settings->name);
                (void)snprintf(entry->by, sizeof(entry->by), "start");
                history_set(&h->handlers.history, entry, "refused", error.text);
                log_event(LEVEL_ERROR, "refused", "handler=%s generation=0 text=%s hint=%s", settings->name,
                        LOG_QUOTE(error.text),
                        LOG_QUOTE("its tasks wait, and everything else goes on; repair the plugin, and reload"));
        }
        return 0;
}

static int open_services(struct host *h, const char *nonce)
{
        const struct ids_config *ids = &h->config->ids;
        struct store_info info;
        store_info(h->store, &info);
        struct runner_ids_options options = { .layout = &info.record->ids,
                .fixed = SLOT_ANY,
                .horizon_ms = ids->horizon_ms,
                .host = h->config->host.name };
        if (ids->machine) {
                int r = id_machine(ids->machine, options.layout, &options.fixed, &h->error);
                if (r < 0)
                        return r;
        }
        services_open(&h->services, h->membership.coord, h->store, &options, nonce, h->membership.session);
        return 0;
}

static int join(struct host *h)
{
        int r;
        h->renew_at_ms = clock_boot_ms() + h->limits.ttl_ms / 3;
        clock_watch_open(&h->clock_watch, &h->loop);
        char nonce[NONCE_TEXT_SIZE];
        membership_nonce_text(&h->membership, nonce);
        r = open_services(h, nonce);
        if (r < 0)
                return r;
        membership_start(&h->membership, h->shards.count);
        host_ask_desired(h);
        h->lend.store = h->store;
        lend_open(&h->lend, clock_boot_ms());
        h->file_schedules.store = h->store;
        file_schedules_take(&h->file_schedules, h->config);
        h->hour.host = h->config->host.name;
        h->hour.shards = &h->shards;
        h->hour.handlers = &h->handlers;
        h->hour.backlog = &h->backlog;
        hour_report_start(&h->hour, &h->loop);
        return 0;
}

static int say_ready(struct host *h)
{
        char nonce[NONCE_TEXT_SIZE];
        h->phase = HOST_RUNNING;
        membership_nonce_text(&h->membership, nonce);
        log_event(LEVEL_INFO, "running", "host=%s handlers=%" PRIu32 " pid=%d nonce=%s", h->config->host.name,
                h->handlers.count, (int)getpid(), nonce);
        host_warn_of_root(h);
        notify_say(&h->notify, "READY=1\nSTATUS=%s", "Running");
        reload_begin(&h->reload);
        return 0;
}

/* --- the list --- */

static int (*const steps[])(struct host *h) = {
        connect_parts,
        read_secrets,
        make_state_folder,
        open_plugin_copies, /* copies go into the state folder */
        draw_nonce,         /* our identity for the control socket, the tree, the store and the guard */
        open_traces,        /* spans carry the nonce */
        lock_state,         /* from here no other host of this name uses the state folder */
        host_catch_signals, /* before this a signal simply ends the process: nothing is visible to others yet */
        host_open_control,  /* its socket is in the state folder; a host without it works all the same */
        own_processes,      /* before the first child process is started */
        open_coordination,  /* waits */
        open_store,         /* waits; records in the store which coordination its hosts use */
        end_predecessor,    /* waits, if the previous host of this name was killed together with its guard */
        look_for_copies,    /* waits; detects a copied folder of the local coordination */
        begin_run,          /* before the first lease, and before the first process that may outlive us */
        make_shards,        /* as many as the app has, and the lease page that runners read */
        start_guard,        /* before the first runner; needs the lease page */
        open_handlers,      /* copies each handler's plugin and makes a pool without processes */
        join,               /* after the handlers, which our node names; from here on shards are assigned to us */
        host_open_http,     /* last: it answers for a host that runs */
        say_ready,
};

void host_start(struct host *h)
{
        int r = 0;
        while (r == 0 && h->steps < sizeof(steps) / sizeof(steps[0]))
                r = steps[h->steps++](h);
        if (r >= 0)
                return;
        h->status = r;
        host_close(h);
}

void host_start_go_on(void *self, int status, const char *text)
{
        struct host *h = self;
        if (status < 0)
                h->status = error_set(&h->error, status, "%s", text);
        if (status < 0 || h->phase != HOST_STARTING)
                host_close(h);
        else
                host_start(h);
}
