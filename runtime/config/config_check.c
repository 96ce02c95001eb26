/* config_check.c: defaults that depend on other settings, and checks that involve several settings. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/log.h"
#include "base/numbers.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "config/names.h"
#include "config/read.h"

static struct config_place handler_place(const struct handler_config *h)
{
        return (struct config_place){ h->file, h->line };
}

static char *machine_name(void)
{
        char name[65] = "";
        (void)gethostname(name, sizeof(name) - 1);
        return text_copy(name_check_host(name, NULL) ? "localhost" : name);
}

static bool has_secret(const struct secret_config *secret)
{
        return secret->file || secret->environment;
}

static void finish_coordination(struct config_tree *t, struct config *config)
{
        struct coordination_config *c = &config->coordination;
        bool is_redis = url_is_redis(&config->store.url);
        if (c->url.kind == URL_NONE && config->store.url.kind != URL_NONE) {
                char *text = is_redis ? text_copy("redis") : text_printf("local:%s", config->state);
                (void)url_parse(text, URL_FOR_COORDINATION, "/", &c->url, NULL);
                free(text);
        }
        if (c->url.kind == URL_STORE_REDIS && config->store.url.kind == URL_SQLITE)
                problems_error(t->problems, tree_place_of(t, "coordination.url"),
                        "coordination.url = \"redis\" is the Redis of the store, but store.url is %s",
                        config->store.url.text);
        if (c->user && !has_secret(&c->password))
                problems_error(t->problems, tree_place_of(t, "coordination.user"),
                        "coordination.user needs password_file or password_env beside it");
}

/* Reads the password now, so that a wrong path is not discovered at the first reconnect. */
static void check_secret(struct config_tree *t, const char *group, const struct secret_config *secret)
{
        char password[SECRET_MAX];
        char path[64];
        struct error error;
        struct stat st;
        struct file_trust trust = { .verdict = FILE_TRUST_SOUND };
        bool is_host = problems_is_host(t->problems);
        (void)snprintf(path, sizeof(path), "%s.password_%s", group, secret->file ? "file" : "env");
        struct config_place place = tree_place_of(t, path);
        if (secret->file && secret->environment) {
                problems_error(t->problems, place, "%s has password_file and password_env; keep one", group);
                return;
        }
        int r = config_secret(secret, password, is_host ? &trust : NULL, &error);
        explicit_bzero(password, sizeof(password));
        if (r == -ENOENT && !secret->file && !secret->environment)
                return;
        if (!r && trust.verdict != FILE_TRUST_SOUND) {
                char prefix[PATH_MAX + 80];
                (void)snprintf(prefix, sizeof(prefix), "%s: %s: ", path, secret->file);
                problems_judge(t->problems, place, prefix, &trust);
        } else if (r && secret->file)
                problems_error(t->problems, place, "%s: %s", path, error.text);
        else if (r) /* a warning: `quiver check` may run without the host's environment */
                problems_warn(t->problems, place, "%s: %s", path, error.text);
        else if (secret->file && !stat(secret->file, &st) && (st.st_mode & (S_IRWXG | S_IRWXO)))
                problems_warn(t->problems, place, "%s: %s is open to others (mode %03o); chmod 600 %s", path,
                        secret->file, (unsigned int)(st.st_mode & 0777), secret->file);
}

static void check_etcd(struct config_tree *t, const struct coordination_config *c)
{
        bool is_etcd = c->url.kind == URL_ETCD || c->url.kind == URL_ETCD_TLS;
        if (is_etcd && c->session_ms % 1000)
                problems_error(t->problems, tree_place_of(t, "coordination.session"),
                        "coordination.session: etcd counts whole seconds; write \"%ds\"",
                        (int)(c->session_ms / 1000 + 1));
}

static void check_sentinel(
        struct config_tree *t, const char *group, const struct url *url, const struct sentinel_config *sentinel)
{
        char path[64];
        (void)snprintf(path, sizeof(path), "%s.sentinel", group);
        check_secret(t, path, &sentinel->password);
        if (!sentinel->user && !has_secret(&sentinel->password))
                return;
        if (url->kind != URL_REDIS_SENTINEL)
                problems_error(t->problems, tree_place_of(t, path),
                        "%s: %s.url names no Sentinels; it would be redis+sentinel://H1,H2,H3/MASTER", path, group);
        else if (!has_secret(&sentinel->password))
                problems_error(t->problems, tree_place_of(t, path),
                        "%s.user needs password_file or password_env beside it", path);
}

static void check_handler_times(struct config_tree *t, const struct handler_config *h)
{
        char a[UNITS_TEXT_MAX];
        char b[UNITS_TEXT_MAX];
        if (h->retry.backoff_ms > h->retry.max_ms)
                problems_error(t->problems, handler_place(h), "handlers.%s.retry: backoff %s is longer than max %s",
                        h->name, units_format_ms(a, h->retry.backoff_ms), units_format_ms(b, h->retry.max_ms));
        if (h->timeout_ms && h->stall_ms > h->timeout_ms)
                problems_error(t->problems, handler_place(h), "handlers.%s: stall %s is longer than timeout %s",
                        h->name, units_format_ms(a, h->stall_ms), units_format_ms(b, h->timeout_ms));
        if (h->limits.cpu_ms % 1000)
                problems_error(t->problems, handler_place(h), "handlers.%s.limits.cpu: whole seconds only", h->name);
        if (h->limits.descriptors && h->limits.descriptors < 16)
                problems_error(t->problems, handler_place(h),
                        "handlers.%s.limits.descriptors: %u are too few for a runner to start; 16 or more, or 0",
                        h->name, h->limits.descriptors);
}

uint32_t handler_per_key(const struct handler_config *handler)
{
        return handler->batch.same_key ? 2 * handler->batch.max : 0;
}

/* With ordered batches, the window must hold the next batch while one runs. */
static void check_batch(struct config_tree *t, const struct config *config, const struct handler_config *h)
{
        if (!h->batch.same_key)
                return;
        if (handler_is_remote(h))
                problems_error(t->problems, handler_place(h),
                        "handlers.%s.batch.same_key: a remote handler's workers get one task at a time", h->name);
        else if (h->batch.max < 2)
                problems_error(t->problems, handler_place(h),
                        "handlers.%s.batch.same_key needs a batch.max of 2 or more: a batch of one is one task",
                        h->name);
        else if (handler_per_key(h) > config->window.tasks)
                problems_error(t->problems, handler_place(h),
                        "handlers.%s.batch.same_key claims up to 2 x batch.max = %u tasks of a key, but window.tasks "
                        "is "
                        "%u; raise that, or lower batch.max",
                        h->name, handler_per_key(h), config->window.tasks);
        else if (handler_per_key(h) > config->window.per_key)
                problems_warn(t->problems, handler_place(h),
                        "handlers.%s.batch.same_key raises window.per_key from %u to 2 x batch.max = %u for its own "
                        "tasks; set window.per_key to that if all handlers may have as many",
                        h->name, config->window.per_key, handler_per_key(h));
        if (h->batch.same_key && h->limited_by.count)
                problems_warn(t->problems, handler_place(h),
                        "handlers.%s.batch.same_key: its tasks are under a limit, and such tasks start one at a time "
                        "for each key",
                        h->name);
}

static void check_tasks(struct config_tree *t, const struct config *config, size_t index)
{
        const struct handler_config *h = &config->handlers[index];
        for (size_t i = 0; i < h->tasks.count; i++)
                for (size_t k = 0; k < index; k++) {
                        const struct handler_config *other = &config->handlers[k];
                        if (strings_has(&other->tasks, h->tasks.items[i]))
                                problems_error(t->problems, handler_place(h),
                                        "tasks named \"%s\" are served by handler %s (%s:%u) already; one handler per "
                                        "task "
                                        "name",
                                        h->tasks.items[i], other->name, other->file, other->line);
                }
}

/* Refuses variables that no handler can have: runners remove QUIVER_*, and a host wipes those that hold a password. */
static void check_environment(struct config_tree *t, const struct config *config, const struct handler_config *h)
{
        const struct secret_config *secrets[] = { &config->store.password, &config->store.sentinel.password,
                &config->coordination.password, &config->coordination.sentinel.password };
        for (size_t i = 0; i < h->environment.count; i++)
                if (!strncmp(h->environment.items[i], "QUIVER_", 7))
                        problems_error(t->problems, handler_place(h),
                                "handlers.%s.environment: %s: names that begin with QUIVER_ are reserved", h->name,
                                h->environment.items[i]);
        for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
                if (secrets[i]->environment && strings_has(&h->environment, secrets[i]->environment))
                        problems_error(t->problems, handler_place(h),
                                "handlers.%s.environment: %s holds a password of Quiver's own, which no handler may "
                                "have; remove it",
                                h->name, secrets[i]->environment);
}

bool handler_is_remote(const struct handler_config *handler)
{
        return handler->plugin && !strcmp(handler->plugin, PLUGIN_REMOTE);
}

static void check_limited_by(struct config_tree *t, const struct config *config, const struct handler_config *h)
{
        if (h->limited_by.count > LIMITS_OF_HANDLER)
                problems_error(t->problems, handler_place(h), "handlers.%s.limited_by: %zu limits, at most %u", h->name,
                        h->limited_by.count, LIMITS_OF_HANDLER);
        for (size_t i = 0; i < h->limited_by.count; i++) {
                const char *name = h->limited_by.items[i];
                if (!config_limit(config, name))
                        problems_error(t->problems, handler_place(h),
                                "handlers.%s.limited_by: no \"%s\" in limits; add limits = { %s = { … }; } to the file",
                                h->name, name, name);
        }
}

static void finish_handler(struct config_tree *t, struct config *config, size_t index)
{
        struct handler_config *h = &config->handlers[index];
        if (handler_is_remote(h))
                h->plugin_path = text_copy(h->plugin);
        else if (h->plugin)
                h->plugin_path = file_resolve(config->plugins, h->plugin);
        if (handler_is_remote(h) && h->settings.count)
                problems_error(t->problems, handler_place(h),
                        "handlers.%s.config: a remote handler has no plugin that would read it; give its workers their "
                        "settings yourself",
                        h->name);
        if (!h->tasks.count)
                strings_add(&h->tasks, h->name);
        if (!h->payload_max_bytes)
                h->payload_max_bytes = config->store.payload_max_bytes;
        if (h->payload_max_bytes > config->store.payload_max_bytes)
                problems_error(t->problems, handler_place(h),
                        "handlers.%s.max_payload is larger than store.max_payload, so it has no effect", h->name);
        check_handler_times(t, h);
        check_tasks(t, config, index);
        check_environment(t, config, h);
        check_limited_by(t, config, h);
        check_batch(t, config, h);
}

/* Sets a burst that is not set, and refuses a burst that the rate could not use: a start may lag behind its grant, and
 * what is granted within that time counts as part of the burst. */
static void finish_rate(struct config_tree *t, struct limit_config *l)
{
        struct config_place place = { l->named.file, l->named.line };
        uint64_t in_lag = ((uint64_t)l->rate * LIMIT_LAG_MIN_MS + l->per_ms - 1) / l->per_ms;
        char per[UNITS_TEXT_MAX];
        if (!l->burst)
                l->burst = (uint32_t)min_u64(
                        1 + ((uint64_t)l->rate * 10 * LIMIT_LAG_MIN_MS + l->per_ms - 1) / l->per_ms, LIMIT_CONFIG_MAX);
        if (l->burst < 1 + in_lag && (uint64_t)l->rate * LIMIT_LAG_MIN_MS * 10 > l->per_ms)
                problems_error(t->problems, place,
                        "limits.%s.burst: %u is too small for a rate of %u per %s, which could not be used; at least "
                        "%llu",
                        l->named.name, l->burst, l->rate, units_format_ms(per, l->per_ms),
                        1 + (unsigned long long)in_lag);
}

static void finish_limit(struct config_tree *t, struct limit_config *l)
{
        struct config_place place = { l->named.file, l->named.line };
        struct stat st;
        l->version = 1;
        if (stat(l->named.file, &st) == 0 && st.st_mtim.tv_sec > 0)
                l->version = (uint64_t)st.st_mtim.tv_sec * 1000 + (uint64_t)st.st_mtim.tv_nsec / 1000000;
        if (!l->rate == !l->concurrency)
                problems_error(t->problems, place, "limits.%s: give it either a rate or a concurrency", l->named.name);
        else if (!l->rate && l->burst)
                problems_error(t->problems, place, "limits.%s.burst: only a rate has one", l->named.name);
        if (l->rate)
                finish_rate(t, l);
}

static void check_locks(struct config_tree *t, const struct locks_config *locks)
{
        if (locks->ttl_ms && locks->ttl_ms < 1000)
                problems_error(t->problems, tree_place_of(t, "locks"), "locks: ttl is at least 1s, or 0");
        if (locks->backoff_ms > locks->backoff_max_ms)
                problems_error(t->problems, tree_place_of(t, "locks"), "locks: backoff is more than backoff_max");
}

static void finish_ids(struct config_tree *t, struct ids_config *ids)
{
        struct error error;
        if (ids->layout == IDS_RECORDED) {
                if (ids->time_bits || ids->slot_bits || ids->sequence_bits || ids->epoch)
                        problems_error(t->problems, tree_place_of(t, "ids"),
                                "ids: bits and epoch belong to a layout; say layout = \"snowflake\" or \"sonyflake\"");
                return;
        }
        ids->asked = id_layout_standard(ids->layout == IDS_SNOWFLAKE ? ID_SNOWFLAKE : ID_SONYFLAKE);
        if (ids->time_bits)
                ids->asked.time_bits = (uint8_t)ids->time_bits;
        if (ids->slot_bits)
                ids->asked.slot_bits = (uint8_t)ids->slot_bits;
        if (ids->sequence_bits)
                ids->asked.sequence_bits = (uint8_t)ids->sequence_bits;
        if (ids->epoch)
                (void)timestamp_parse(ids->epoch, false, 0, &ids->asked.epoch_ms, NULL);
        ids->has_layout = true;
        if (id_layout_check(&ids->asked, &error) < 0)
                problems_error(t->problems, tree_place_of(t, "ids"), "ids: %s", error.text);
}

static void check_log(struct config_tree *t, const struct log_config *log)
{
        if (log->format == FORMAT_JOURNAL && log->file)
                problems_error(t->problems, tree_place_of(t, "log.file"),
                        "log.file and log.format = \"journal\" exclude each other: the journal keeps its own files");
}

void config_finish(struct config_tree *t, struct config *config)
{
        if (!config->host.name)
                config->host.name = machine_name();
        finish_coordination(t, config);
        finish_ids(t, &config->ids);
        check_locks(t, &config->locks);
        check_secret(t, "store", &config->store.password);
        check_secret(t, "coordination", &config->coordination.password);
        check_sentinel(t, "store", &config->store.url, &config->store.sentinel);
        config_check_tls(t, "store", &config->store.url, &config->store.tls);
        config_check_tls(t, "coordination", &config->coordination.url, &config->coordination.tls);
        check_etcd(t, &config->coordination);
        check_sentinel(t, "coordination", &config->coordination.url, &config->coordination.sentinel);
        if (config->store.url.kind == URL_SQLITE && (config->store.user || has_secret(&config->store.password)))
                problems_error(t->problems, tree_place_of(t, "store"), "store: an SQLite file has no user or password");
        if (config->window.per_key > config->window.tasks)
                problems_error(t->problems, tree_place_of(t, "window"), "window: per_key %u is more than tasks %u",
                        config->window.per_key, config->window.tasks);
        for (size_t i = 0; i < config->fleet_limits_count; i++)
                finish_limit(t, &config->fleet_limits[i]);
        problems_begin_handlers(t->problems);
        for (size_t i = 0; i < config->handlers_count; i++)
                finish_handler(t, config, i);
        problems_end_handlers(t->problems);
        config_check_schedules(t, config);
        check_log(t, &config->log);
}
