/* config.h: runtime.cfg as checked plain structs.
 *
 * A configuration is a value: load it, hand it around as const, free it; nothing here is global, and two can be
 * compared. What is in it was checked: units converted, paths absolute, names valid, defaults filled in.  The settings
 * themselves (name, type, default, range, meaning) stand in table.c and nowhere else; `quiver check --reference` prints
 * them. */
#ifndef QUIVER_CONFIG_CONFIG_H
#define QUIVER_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/file_trust.h"
#include "base/setting_list.h"
#include "base/strings.h"
#include "base/url.h"
#include "config/problems.h"

/* Where a password is; the configuration itself never holds one. */
struct secret_config {
        char *file; /* at most one of the two is set */
        char *environment;
};

/* What the Sentinels themselves ask for; the servers that they watch have a user and password of their own. */
struct sentinel_config {
        char *user; /* NULL: none */
        struct secret_config password;
};

enum synchronous { SYNCHRONOUS_FULL, SYNCHRONOUS_NORMAL };

struct results_config {
        uint32_t count_max; /* per shard; 0: keep none */
        uint64_t age_max_ms;
        uint64_t lease_ms;
        uint64_t reply_ttl_ms;
};

struct store_config {
        struct url url;
        char *user; /* NULL: none */
        struct secret_config password;
        struct sentinel_config sentinel;
        int synchronous; /* enum synchronous; sqlite */
        uint32_t wait_replicas;
        uint64_t payload_max_bytes;
        uint32_t backlog_max; /* tasks per shard; 0: no limit */
        struct results_config results;
};

struct coordination_config {
        struct url url;
        uint64_t session_ms;
        char *user;
        struct secret_config password;
        struct sentinel_config sentinel;
        uint32_t members_max; /* 0: no limit */
};

struct lease_config {
        uint64_t ttl_ms;
        uint64_t drain_ms;
};

struct window_config {
        uint32_t tasks; /* per shard */
        uint64_t bytes;
        uint32_t per_key;
};

struct host_config {
        char *name;
        uint32_t weight;
};

struct http_config {
        char *listen; /* "ADDRESS:PORT"; NULL: no HTTP */
};

struct log_config {
        int level;     /* enum log_level */
        uint32_t rate; /* lines per second and runner */
};

struct retry_config {
        uint32_t attempts;
        uint64_t backoff_ms;
        double factor;
        uint64_t max_ms;
        double jitter;
};

struct batch_config {
        uint32_t max; /* 1: no batches */
        uint64_t wait_ms;
};

/* 0 or NULL: no limit. */
struct limits_config {
        char *user;
        uint64_t memory_bytes;
        uint64_t cpu_ms;
        uint32_t descriptors;
        uint32_t processes;
        struct strings read; /* both empty: the file system is not confined */
        struct strings write;
};

enum world_writable { WORLD_WRITABLE_REFUSE, WORLD_WRITABLE_ALLOW };

/* How new versions of handlers are taken up. */
struct reload_config {
        uint64_t probation_ms; /* 0: none */
        uint32_t tasks;
        uint32_t crashes;
        uint32_t failures;    /* 0: only at the end of the probation */
        uint32_t generations; /* of one handler, that have processes */
        int world_writable;   /* enum world_writable */
};

enum on_exhausted { ON_EXHAUSTED_DEAD, ON_EXHAUSTED_HOLD };

struct handler_config {
        char *name;
        char *file; /* where it is defined, for messages */
        uint32_t line;

        char *plugin;         /* as written: "echo.so" */
        char *plugin_path;    /* absolute */
        struct strings tasks; /* the task names it serves */

        uint32_t processes;
        uint32_t threads;
        uint64_t timeout_ms; /* 0: none */
        uint64_t grace_ms;
        uint64_t stall_ms; /* 0: none */
        uint64_t init_timeout_ms;

        struct retry_config retry;
        uint32_t crashes;
        int on_exhausted; /* enum on_exhausted */
        struct batch_config batch;

        uint32_t max_tasks;       /* 0: a runner is never recycled */
        uint64_t idle_timeout_ms; /* 0: runners stay */
        struct limits_config limits;
        uint64_t payload_max_bytes;
        uint64_t result_max_bytes;

        struct strings environment;   /* variables that runners get besides the usual ones */
        struct setting_list settings; /* for the plugin */
};

struct config {
        char *path; /* the file, as it was named */

        char *app;
        uint32_t shards;
        char *state;   /* folder */
        char *plugins; /* folder */
        struct store_config store;
        struct coordination_config coordination;
        struct lease_config lease;
        struct window_config window;
        struct host_config host;
        struct http_config http;
        struct log_config log;
        struct reload_config reload;
        struct handler_config *handlers; /* in the order of the file */
        size_t handlers_count;
};

/* Which file: `given` (from -c) if not NULL, else $QUIVER_CONFIG, ./etc/runtime.cfg, /etc/quiver/runtime.cfg, the first
 * of the latter two that exists.  *ret_path is the caller's to free, *ret_how says why that one ("-c",
 * "$QUIVER_CONFIG", "found in the working directory" …).  0, or -ENOENT with a text that names every place. */
int config_find(const char *given, char **ret_path, const char **ret_how, struct error *error);

/* Reads and checks the whole file.  0: *ret_config is to be freed with config_free().  A negative errno: it is
 * untouched. Either way everything found is added to `problems`: after 0 there can only be warnings. */
int config_load(const char *path, struct config *ret_config, struct problems *problems);

/* The same from memory, as if it stood in the file `path`. */
int config_parse(const char *path, const char *text, size_t size, struct config *ret_config, struct problems *problems);

void config_free(struct config *config);

/* The handler of that name, or NULL. */
const struct handler_config *config_handler(const struct config *config, const char *name);
/* The handler that serves tasks of that name, or NULL. */
const struct handler_config *config_serving(const struct config *config, const char *task);

/* The settings of one plugin out of `path`, which is either a whole runtime.cfg (it has `handlers`), or just settings:
 * the inside of a handler's `config = { … }`.
 *
 * From a whole runtime.cfg it takes the handler named `which`, or else the only handler whose plugin has the same file
 * name as `which` ("./build/echo.so" finds plugin = "echo.so").  Nothing else in that file is checked.
 * 0 with *ret_settings for setting_list_free(); -ENOENT if no handler fits, -EEXIST if several do, others; the text has
 * file and line, and says what there is. */
int config_load_settings(const char *path, const char *which, struct setting_list *ret_settings, struct error *error);

#define SECRET_MAX 1024

/* Reads the password, without the newline at the end of a file; fills *ret_trust if it comes from one, unless NULL.  0;
 * -ENOENT if neither is set (no text); others with the text set.  Wipe it with explicit_bzero() after use. */
int config_secret(const struct secret_config *secret, char ret_password[SECRET_MAX], struct file_trust *ret_trust,
        struct error *error);

/* Every password there is; "" where there is none. */
struct config_secrets {
        char store[SECRET_MAX], store_sentinel[SECRET_MAX];
        char coordination[SECRET_MAX], coordination_sentinel[SECRET_MAX];
};

/* Reads them all.  `forget`, for a host: refuses a file that others could have written, and wipes the variables, so
 * that neither whoever is started from here on nor /proc/PID/environ has them.  0, or -errno with the text set.  Wipe
 * it with explicit_bzero() after use, failed or not. */
int config_secrets_read(const struct config *config, bool forget, struct config_secrets *ret, struct error *error);

/* What it takes to put a changed setting to work, in growing order. */
enum config_effect {
        EFFECT_LIVE,       /* nothing: the next use has it */
        EFFECT_GENERATION, /* new runners for that handler */
        EFFECT_RESTART,    /* a new host process: reload refuses it */
};

struct config_change {
        char *name; /* "retry.backoff", "config.db.url", "store.url" */
        enum config_effect effect;
};

/* In the order of the table. */
struct config_changes {
        struct config_change *items;
        size_t count;
        enum config_effect effect; /* the greatest of them; EFFECT_LIVE if there are none */
};

/* All but the handlers.  Adds to *changes. */
void config_compare(const struct config *before, const struct config *after, struct config_changes *changes);
/* Two versions of one handler.  Adds to *changes. */
void config_compare_handlers(
        const struct handler_config *before, const struct handler_config *after, struct config_changes *changes);
/* Tells apart what runners are started with: changes with every setting whose change takes a new generation. */
uint64_t config_handler_hash(const struct handler_config *handler);
void config_changes_free(struct config_changes *changes);

/* Every setting with its value, as a file that could be loaded; what may be a secret is replaced by "***". */
void config_show(const struct config *config, FILE *out);
/* The same as one JSON object; plugin settings flattened. */
struct json_t;
struct json_t *config_show_json(const struct config *config);

/* Every setting there is, in Markdown. */
void config_reference(FILE *out);

#endif
