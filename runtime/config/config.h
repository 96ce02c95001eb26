/* config.h: runtime.cfg as checked plain structs.
 *
 * A configuration is a value: load it, pass it on as const, free it.  Nothing here is global, and two configurations
 * can be compared.  A loaded configuration has been checked: units are converted, paths absolute, names valid, defaults
 * filled in.  The settings themselves (name, type, default, range, meaning) are defined in table.c and table_handler.c
 * only; `quiver check --reference` prints them. */
#ifndef QUIVER_CONFIG_CONFIG_H
#define QUIVER_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/file/file_trust.h"
#include "base/setting_list.h"
#include "base/strings.h"
#include "base/url.h"
#include "config/problems.h"
#include "id/layout.h"

/* Where to read a password; the configuration itself never holds one. */
struct secret_config {
        char *file; /* at most one of the two is set */
        char *environment;
};

/* The login for the Sentinels themselves; the servers that they monitor have a user and password of their own. */
struct sentinel_config {
        char *user; /* NULL: none */
        struct secret_config password;
};

/* Whom to trust over TLS, and our own certificate; NULL: the system's authorities, and no certificate. */
struct tls_config {
        char *ca_file;
        char *cert_file, *key_file;
        char *server_name; /* Redis */
};

enum synchronous { SYNCHRONOUS_FULL, SYNCHRONOUS_NORMAL };

struct results_config {
        uint32_t count_max; /* per shard; 0: keep none */
        uint64_t age_max_ms;
        uint64_t lease_ms;
        uint64_t reply_ttl_ms;
};

/* Which done tasks a host remembers, to answer what became of them. */
struct done_config {
        uint32_t keep; /* 0: none */
        uint64_t age_ms;
};

struct store_config {
        struct url url;
        char *user; /* NULL: none */
        struct secret_config password;
        struct sentinel_config sentinel;
        struct tls_config tls; /* rediss */
        int synchronous;       /* enum synchronous; sqlite */
        uint32_t wait_replicas;
        uint64_t payload_max_bytes;
        uint32_t backlog_max; /* tasks per shard; 0: no limit */
        struct results_config results;
        struct done_config done;
};

struct coordination_config {
        struct url url;
        uint64_t session_ms;
        char *user;
        struct secret_config password;
        struct sentinel_config sentinel;
        struct tls_config tls; /* etcd+tls, rediss */
        uint32_t members_max;  /* 0: no limit */
        bool evens_load;       /* shards are exchanged to even out load */
};

/* For `quiver lock`, `quiver elect` and the client library. */
struct locks_config {
        uint64_t ttl_ms;   /* of the session that holds them; 0: coordination.session */
        uint64_t wait_ms;  /* 0: for ever */
        uint64_t grace_ms; /* from SIGTERM to SIGKILL */
        uint64_t backoff_ms, backoff_max_ms;
};

enum ids_layout { IDS_RECORDED, IDS_SNOWFLAKE, IDS_SONYFLAKE };

/* The layout of the app's 64-bit ids, and the slot of this process. */
struct ids_config {
        int layout;                                   /* enum ids_layout */
        uint32_t time_bits, slot_bits, sequence_bits; /* 0: the layout's own */
        char *epoch;                                  /* NULL: the layout's own */
        char *machine;                                /* NULL: any free slot; "address"; or a number */
        uint64_t horizon_ms;
        /* Derived from the fields above, if a layout is named. */
        bool has_layout;
        struct id_layout asked;
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

enum cgroup_use { CGROUP_USE_AUTO, CGROUP_USE_OFF, CGROUP_USE_REQUIRE };

struct host_config {
        char *name;
        uint32_t weight;
        int cgroup; /* enum cgroup_use */
};

enum http_ready { HTTP_READY_MEMBER, HTTP_READY_STRICT };

struct http_config {
        char *listen; /* "ADDRESS:PORT"; NULL: the Unix socket only */
        struct strings hosts;
        char *tokens_file; /* NULL: none */
        bool has_open_metrics;
        int ready; /* enum http_ready */
        uint32_t connections;
};

struct log_config {
        int level;     /* enum log_level */
        int format;    /* enum log_format */
        char *file;    /* NULL: standard error */
        char *journal; /* the socket of systemd's journal */
        uint32_t rate; /* lines per second and runner */
};

/* Where spans are sent. */
struct traces_config {
        char *url; /* NULL: not sent */
        double ratio;
        uint64_t interval_ms;
        uint32_t queue;
        struct strings headers;
        char *headers_file; /* NULL: none */
        struct tls_config tls;
};

struct retry_config {
        uint32_t attempts;
        uint64_t backoff_ms;
        double factor;
        uint64_t max_ms;
        double jitter;
};

struct later_config {
        uint32_t max; /* 0: LATER is a RETRY */
        uint64_t wait_ms;
};

struct batch_config {
        uint32_t max; /* 1: no batches */
        uint64_t wait_ms;
        bool same_key; /* several tasks of one key may be in a batch, in order */
};

/* For a handler whose tasks workers run. */
struct remote_config {
        uint64_t ttl_ms;
        uint32_t concurrency; /* tasks that workers of one host have at once */
};

enum network_use { NETWORK_ANY, NETWORK_NONE };

/* 0 or NULL: no limit. */
struct limits_config {
        char *user;
        uint64_t memory_bytes;
        uint64_t cpu_ms;
        uint32_t descriptors;
        uint32_t processes;
        uint64_t core_bytes; /* 0: no core dumps */
        double cores;        /* 0: no limit */
        int network;         /* enum network_use */
        struct strings read; /* if both lists are empty, the file system is not confined */
        struct strings write;
};

enum world_writable { WORLD_WRITABLE_REFUSE, WORLD_WRITABLE_ALLOW };

/* How a host replaces a handler's version with a new one. */
struct reload_config {
        uint64_t probation_ms; /* 0: none */
        uint32_t tasks;
        uint32_t crashes;
        uint32_t failures;    /* roll back after this many; 0: decide only at the end of the probation */
        uint32_t generations; /* the most generations of one handler that may have processes at once */
        int world_writable;   /* enum world_writable */
};

enum on_exhausted { ON_EXHAUSTED_DEAD, ON_EXHAUSTED_HOLD };

/* How each of several named groups of one kind begins. */
struct named_config {
        char *name;
        char *file; /* the file that defines it, for messages */
        uint32_t line;
};

#define LIMIT_CONFIG_MAX  1000000u
#define LIMITS_OF_HANDLER 4u
/* A start may lag this much behind the grant that allows it, so a rate reserves at least that much of its burst
 * (host/limit). */
#define LIMIT_LAG_MIN_MS 20u

/* How much of something the whole app may use (store/limits.h): a rate or a concurrency. */
struct limit_config {
        struct named_config named;
        uint32_t rate; /* 0: a concurrency */
        uint64_t per_ms;
        uint32_t burst;
        uint32_t concurrency;
        char *by; /* "key", "header.NAME"; NULL: one bucket for all */
        uint32_t values_max;
        uint64_t version; /* when its file was last changed, in unix milliseconds: the newest definition is used */
};

/* A schedule (schedule/words.h), as written; its values have been checked. */
struct schedule_config {
        struct named_config named;
        char *cron, *zone, *handler, *key, *payload;
        char *at, *start, *end;
        uint64_t every_ms, catchup_ms, jitter_ms;
        uint32_t runs_max;
        int overlap, catchup; /* enum schedule_overlap, schedule_catchup */
        int lane;             /* enum lane */
};

struct handler_config {
        char *name;
        char *file; /* the file that defines the handler, for messages */
        uint32_t line;

        char *plugin;         /* as written: "echo.so" */
        char *plugin_path;    /* absolute */
        struct strings tasks; /* the task names that the handler serves */

        uint32_t processes;
        uint32_t threads;
        uint64_t timeout_ms; /* 0: none */
        uint64_t grace_ms;
        uint64_t stall_ms; /* 0: none */
        uint64_t init_timeout_ms;

        struct retry_config retry;
        struct later_config later;
        uint32_t crashes;
        int on_exhausted; /* enum on_exhausted */
        struct batch_config batch;
        struct remote_config remote;
        bool spread; /* its tasks without a key may run on seats of other hosts, and other hosts' tasks here */

        uint32_t max_tasks;       /* 0: a runner is never recycled */
        uint64_t idle_timeout_ms; /* 0: runners stay */
        struct limits_config limits;
        struct strings limited_by; /* names of fleet_limits; ≤ LIMITS_OF_HANDLER */
        uint64_t payload_max_bytes;
        uint64_t result_max_bytes;

        struct strings environment;   /* variables that runners inherit besides the usual ones */
        struct setting_list settings; /* the plugin's own settings */
};

/* plugin = "remote": workers run the tasks, and there are no runners. */
#define PLUGIN_REMOTE "remote"
bool handler_is_remote(const struct handler_config *handler);
/* How many tasks of one key a window should hold for this handler's ordered batches; 0: the default. */
uint32_t handler_per_key(const struct handler_config *handler);

struct config {
        char *path;         /* the configuration file, as given */
        uint64_t version;   /* when the youngest of its files was written, in unix milliseconds */
        struct strings set; /* --set options of the command line, needed when the file is read again */

        char *app;
        uint32_t shards;
        char *state;   /* folder */
        char *plugins; /* folder */
        struct store_config store;
        struct coordination_config coordination;
        struct ids_config ids;
        struct locks_config locks;
        struct lease_config lease;
        struct window_config window;
        struct host_config host;
        struct http_config http;
        struct log_config log;
        struct traces_config traces;
        struct reload_config reload;
        struct schedule_config *schedules;
        size_t schedules_count;
        struct handler_config *handlers; /* in the order of the file */
        size_t handlers_count;
        struct limit_config *fleet_limits;
        size_t fleet_limits_count;
};

/* Chooses the configuration file: `given` (from -c) if not NULL, else $QUIVER_CONFIG, else the first of
 * ./etc/runtime.cfg and /etc/quiver/runtime.cfg that exists.  The caller frees *ret_path; *ret_how says why this file
 * was chosen ("-c", "$QUIVER_CONFIG", "found in the working directory" …).  0, or -ENOENT with a text that names every
 * place. */
int config_find(const char *given, char **ret_path, const char **ret_how, struct error *error);

/* Reads and checks the whole file.  `set` has settings of the command line, NAME=VALUE, which override the file's;
 * NULL: none.  0: the caller frees *ret_config with config_free().  On a negative errno it is untouched.  Either way
 * everything found is added to `problems`; after 0 these are only warnings. */
int config_load(const char *path, const struct strings *set, struct config *ret_config, struct problems *problems);

/* As config_load(), with `text` as the content of the file `path`. */
int config_parse(const char *path, const char *text, size_t size, struct config *ret_config, struct problems *problems);

void config_free(struct config *config);

/* The handler of that name, or NULL. */
const struct handler_config *config_handler(const struct config *config, const char *name);
/* The handler that serves tasks of that name, or NULL. */
const struct handler_config *config_serving(const struct config *config, const char *task);

/* The limit of that name, or NULL. */
const struct limit_config *config_limit(const struct config *config, const char *name);

/* Parses a schedule of the configuration.  0: schedule_free() it; or -EINVAL with the text set. */
struct schedule;
int config_schedule(const struct schedule_config *config, struct schedule *ret, struct error *error);

/* Reads the settings of one plugin from `path`, which is either a whole runtime.cfg (it has `handlers`) or only
 * settings: the inside of a handler's `config = { … }`.
 *
 * From a whole runtime.cfg it takes the handler named `which`, or else the only handler whose plugin has the same file
 * name as `which` ("./build/echo.so" finds plugin = "echo.so").  Nothing else in that file is checked.
 * 0: free *ret_settings with setting_list_free().  -ENOENT if no handler matches, -EEXIST if several do, or another
 * errno; the text is set. */
int config_load_settings(const char *path, const char *which, struct setting_list *ret_settings, struct error *error);

#define SECRET_MAX 1024

/* Reads the password, without the newline at the end of a file.  If it comes from a file and ret_trust is not NULL,
 * fills *ret_trust.  0; -ENOENT without a text if neither file nor variable is set; another errno with the text set.
 * The caller wipes the password with explicit_bzero() after use. */
int config_secret(const struct secret_config *secret, char ret_password[SECRET_MAX], struct file_trust *ret_trust,
        struct error *error);

/* All passwords of a configuration; "" where none is set. */
struct config_secrets {
        char store[SECRET_MAX], store_sentinel[SECRET_MAX];
        char coordination[SECRET_MAX], coordination_sentinel[SECRET_MAX];
};

/* Reads all passwords.  With `forget`, which a host uses, it refuses a file that others could have written, and wipes
 * the environment variables, so that neither child processes nor /proc/PID/environ have them.  0, or -errno with the
 * text set.  The caller wipes *ret with explicit_bzero() after use, on failure too. */
int config_secrets_read(const struct config *config, bool forget, struct config_secrets *ret, struct error *error);

/* What a changed setting needs to take effect, in ascending order. */
enum config_effect {
        EFFECT_LIVE,       /* nothing: the next use reads the new value */
        EFFECT_GENERATION, /* new runners for that handler */
        EFFECT_RESTART,    /* a new host process; a reload refuses the change */
        EFFECT_FIXED,      /* nothing: it is recorded when the app is made, and a host with another value is refused */
};

struct config_change {
        char *name; /* "retry.backoff", "config.db.url", "store.url" */
        enum config_effect effect;
};

/* In the order of the table. */
struct config_changes {
        struct config_change *items;
        size_t count;
        enum config_effect effect; /* the highest effect of all changes; EFFECT_LIVE if there are none */
};

/* Compares everything but the handlers.  Adds to *changes. */
void config_compare(const struct config *before, const struct config *after, struct config_changes *changes);
/* Compares two versions of one handler.  Adds to *changes. */
void config_compare_handlers(
        const struct handler_config *before, const struct handler_config *after, struct config_changes *changes);
/* A hash of everything that runners are started with: every setting whose effect is EFFECT_GENERATION. */
uint64_t config_handler_hash(const struct handler_config *handler);
void config_changes_free(struct config_changes *changes);

/* Prints every setting with its value in the syntax of runtime.cfg; possible secrets are replaced by "***". */
void config_show(const struct config *config, FILE *out);
/* As config_show(), as one JSON object with the plugin settings flattened. */
struct json_t;
struct json_t *config_show_json(const struct config *config);

/* Prints the reference of all settings in Markdown. */
void config_reference(FILE *out);

#endif
