/* table.c: every setting of runtime.cfg, except those of a handler (table_handler.c). */
#include "config/table.h"

#include <string.h>

#include "config/names.h"
#include "config/table_rows.h"
#include "schedule/record.h"

/* --- store ------------------------------------------------------------------------------------------------------- */

static const char *const synchronous_words[] = { "full", "normal", NULL };

static const struct field results_fields[] = {
        COUNT("max", results_config, count_max, "10000", 0, 10e6, RESTART,
                "Results kept per shard until they are consumed; beyond it the oldest are removed and counted."),
        DURATION("age", results_config, age_max_ms, "1d", SECOND, 365 * DAY, RESTART,
                "Results older than this are removed and counted."),
        DURATION("lease", results_config, lease_ms, "1m", SECOND, DAY, RESTART,
                "How long a consumer may take before its uncommitted results go to another."),
        DURATION("reply_ttl", results_config, reply_ttl_ms, "1h", SECOND, 7 * DAY, RESTART,
                "How long the answer to a `submit --wait` is kept."),
};
static const struct group results_table = TABLE(results_fields);

static const struct field done_fields[] = {
        COUNT("keep", done_config, keep, "1000", 0, 100000, RESTART,
                "Done tasks that each host remembers, so that `quiver task ID` says what became of one. 0: none."),
        DURATION("age", done_config, age_ms, "1h", SECOND, 7 * DAY, RESTART,
                "A task that was done longer ago than this is forgotten."),
};
static const struct group done_table = TABLE(done_fields);

/* Sentinels have passwords of their own, apart from those of the servers that they monitor. */
static const struct field sentinel_fields[] = {
        TEXT("user", sentinel_config, user, "none", name_check_user, RESTART, "Their ACL user."),
        PATH("password_file", sentinel_config, password.file, NULL, "none", RESTART,
                "A file that holds their password; only the host's user may read it."),
        TEXT("password_env", sentinel_config, password.environment, "none", name_check_environment, RESTART,
                "The environment variable that holds their password."),
};
static const struct group sentinel_table = TABLE(sentinel_fields);

static const struct field tls_fields[] = {
        PATH("ca_file", tls_config, ca_file, NULL, "the system's", RESTART,
                "The authorities (PEM) that may have signed the servers' certificates."),
        PATH("cert_file", tls_config, cert_file, NULL, "none", RESTART,
                "The host's own certificate (PEM), for servers that ask for one (Redis: `tls-auth-clients`; etcd: "
                "`--client-cert-auth`)."),
        PATH("key_file", tls_config, key_file, NULL, "none", RESTART,
                "Its key, without a passphrase; only the host's user may read it."),
        TEXT("server_name", tls_config, server_name, "the host of the URL", NULL, RESTART,
                "Redis: the name that the servers' certificates must have, where Sentinel or Cluster tell addresses "
                "that "
                "no certificate has."),
};
static const struct group tls_table = TABLE(tls_fields);

static const struct field store_fields[] = {
        URL("url", store_config, url, URL_FOR_STORE, NULL, RESTART,
                "Where tasks live: `sqlite:FILE`, `redis://HOST:PORT/DATABASE`, `redis+unix:SOCKET`, "
                "`redis+sentinel://H1,H2,H3/MASTER` or `redis+cluster://H1,H2,H3`; with TLS `rediss://HOST:PORT`, "
                "`rediss+sentinel:` and `rediss+cluster:` in the same way."),
        TEXT("user", store_config, user, "none", name_check_user, RESTART, "Redis: the ACL user."),
        PATH("password_file", store_config, password.file, NULL, "none", RESTART,
                "Redis: a file that holds the password; only the host's user may read it."),
        TEXT("password_env", store_config, password.environment, "none", name_check_environment, RESTART,
                "Redis: the environment variable that holds the password."),
        GROUP("sentinel", store_config, sentinel, &sentinel_table,
                "Redis with Sentinel: the login for the Sentinels themselves, if they have a password "
                "(`requirepass`)."),
        GROUP("tls", store_config, tls, &tls_table,
                "`rediss:`: whom to trust; certificates are always verified. Files that were renewed are used for new "
                "connections; a reload checks them."),
        CHOICE("synchronous", store_config, synchronous, "full", synchronous_words, RESTART,
                "SQLite: with `full`, every acknowledged submit survives a power cut; `normal` is faster, loses "
                "nothing "
                "when a process crashes, and may lose the latest submits at a power cut."),
        COUNT("wait_replicas", store_config, wait_replicas, "0", 0, 16, RESTART,
                "Redis: a submit returns only when this many replicas have it."),
        SIZE("max_payload", store_config, payload_max_bytes, "1MiB", 1, 64 * MIB, RESTART,
                "The largest payload that a submit accepts."),
        COUNT("max_backlog", store_config, backlog_max, "1000000", 0, 2147483647, RESTART,
                "Tasks waiting in one shard, beyond which submits are refused. 0: no limit."),
        GROUP("results", store_config, results, &results_table, "Which results of finished tasks are kept."),
        GROUP("done", store_config, done, &done_table, "Which done tasks can still be looked up by their id."),
};
static const struct group store_table = TABLE(store_fields);

/* --- the host ---------------------------------------------------------------------------------------------------- */

static const struct field coordination_fields[] = {
        URL("url", coordination_config, url, URL_FOR_COORDINATION, "`redis` on a Redis store, else `local:` in `state`",
                RESTART,
                "Where hosts agree on which host owns which shard: `local:FOLDER` (hosts on one machine), "
                "`zookeeper://H1,H2,H3/CHROOT`, `etcd://H1,H2,H3/ROOT`, `etcd+tls://H1,H2,H3/ROOT`, "
                "`redis` (the store's), or another Redis, as for a store."),
        DURATION("session", coordination_config, session_ms, "10s", SECOND, 5 * MINUTE, RESTART,
                "A host that sends no heartbeat for this long is no member any more. etcd: whole seconds."),
        TEXT("user", coordination_config, user, "none", name_check_user, RESTART,
                "ZooKeeper: the digest user. etcd, a Redis of its own: its user."),
        PATH("password_file", coordination_config, password.file, NULL, "none", RESTART,
                "A file that holds the password for it; only the host's user may read it."),
        TEXT("password_env", coordination_config, password.environment, "none", name_check_environment, RESTART,
                "The environment variable that holds the password for it."),
        GROUP("sentinel", coordination_config, sentinel, &sentinel_table,
                "A Redis of its own with Sentinel: the login for the Sentinels themselves."),
        GROUP("tls", coordination_config, tls, &tls_table,
                "`etcd+tls:` and a `rediss:` of its own: whom to trust; certificates are always verified. `redis` (the "
                "store's) uses `store.tls`."),
        COUNT("max_members", coordination_config, members_max, "0", 0, 1000, RESTART,
                "Hosts that own shards at the same time; further ones stand by. 0: all of them. The app's first host "
                "records it; later: quiver app set max_members=N."),
        FLAG("even_load", coordination_config, evens_load, "true", LIVE,
                "A busy shard is exchanged for a quiet one of another host when one host has much more work than the "
                "others: at most three exchanges a minute. The leader's setting decides; a host without it does not "
                "take part."),
};
static const struct group coordination_table = TABLE(coordination_fields);

static const char *const layout_words[] = { "recorded", "snowflake", "sonyflake", NULL };

static const struct field ids_fields[] = {
        CHOICE("layout", ids_config, layout, "recorded", layout_words, RESTART,
                "How 64-bit ids are made of time, slot and sequence: `snowflake` (41 bits of 1 ms, 10, 12), "
                "`sonyflake` (39 bits of 10 ms, 16, 8), or what the app has recorded. The app's first host records it; "
                "a host with another one does not start. A new app without the setting gets `snowflake`."),
        COUNT("time_bits", ids_config, time_bits, "0", 0, 61, RESTART,
                "Bits of the time. 0: the layout's own. The three together are 63."),
        COUNT("slot_bits", ids_config, slot_bits, "0", 0, 22, RESTART,
                "Bits of the slot: as many processes as it has numbers can give ids at once. 0: the layout's own."),
        COUNT("sequence_bits", ids_config, sequence_bits, "0", 0, 61, RESTART,
                "Bits of the sequence: so many ids in one unit of time, of one process. 0: the layout's own."),
        TEXT("epoch", ids_config, epoch, "the layout's own", name_check_time, RESTART,
                "When the time of ids begins, such as `2024-01-01T00:00:00Z`."),
        TEXT("machine", ids_config, machine, "any slot that is free", name_check_machine, RESTART,
                "The slot of this process: a number, or `address` (the low bits of this machine's IPv4 address). "
                "Whoever wants one that another process has is refused."),
        DURATION("horizon", ids_config, horizon_ms, "10s", SECOND, HOUR, RESTART,
                "How far ahead of the clock a process reserves its slot: so long it gives ids without the "
                "coordination, and so long a killed one's slot is not used again."),
};
static const struct group ids_table = TABLE(ids_fields);

static const struct field locks_fields[] = {
        DURATION("ttl", locks_config, ttl_ms, "0", 0, 5 * MINUTE, RESTART,
                "How long a lock outlives a machine that is lost: the session of whoever holds it. 0: "
                "`coordination.session`; else at least a second."),
        DURATION(
                "wait", locks_config, wait_ms, "0", 0, 365 * DAY, RESTART, "How long to wait for a lock. 0: for ever."),
        DURATION("grace", locks_config, grace_ms, "5s", 0, HOUR, RESTART,
                "From SIGTERM to SIGKILL for a command whose lock is lost."),
        DURATION("backoff", locks_config, backoff_ms, "50ms", 1, HOUR, RESTART,
                "With `--retries`: the longest pause before the first retry; each pause is random, and its limit "
                "doubles."),
        DURATION("backoff_max", locks_config, backoff_max_ms, "5s", 1, HOUR, RESTART, "Where the doubling ends."),
};
static const struct group locks_table = TABLE(locks_fields);

static const struct field lease_fields[] = {
        DURATION("ttl", lease_config, ttl_ms, "10s", 500, 10 * MINUTE, LIVE,
                "How long a host may act on a shard without renewing: shorter means a quicker takeover of a lost "
                "machine."),
        DURATION("drain", lease_config, drain_ms, "30s", 0, DAY, LIVE,
                "How long running tasks may take to end when the host stops or its runners are replaced."),
};
static const struct group lease_table = TABLE(lease_fields);

static const struct field window_fields[] = {
        COUNT("tasks", window_config, tasks, "1024", 16, 65536, LIVE, "Claimed tasks of one shard that a host holds."),
        SIZE("bytes", window_config, bytes, "16MiB", 64 * KIB, 1024 * MIB, LIVE, "The same in bytes of payload."),
        COUNT("per_key", window_config, per_key, "16", 1, 65536, LIVE,
                "Claimed tasks of one key; its further ones wait aside, so that one key cannot fill the window."),
};
static const struct group window_table = TABLE(window_fields);

static const char *const cgroup_words[] = { "auto", "off", "require", NULL };

static const struct field host_fields[] = {
        TEXT("name", host_config, name, "the machine's name", name_check_host, RESTART,
                "This host's name. Two hosts of one `state` folder need two: the second of one name does not start."),
        COUNT("weight", host_config, weight, "1", 0, 1000, LIVE,
                "Its share of the shards, relative to the other hosts'. 0: only stands by."),
        CHOICE("cgroup", host_config, cgroup, "auto", cgroup_words, RESTART,
                "Control groups (version 2) for runners: `auto` makes them where the host may (root, or systemd with "
                "`Delegate=yes`), `require` does not start without, `off` makes none."),
};
static const struct group host_table = TABLE(host_fields);

static const char *const ready_words[] = { "member", "strict", NULL };

static const struct field http_fields[] = {
        TEXT("listen", http_config, listen, "the Unix socket `STATE/NAME.http` alone", name_check_listen, RESTART,
                "`ADDRESS:PORT` of intake, API, health and metrics. An address beyond loopback takes a "
                "`tokens_file`."),
        TEXTS("hosts", http_config, hosts, "loopback names alone", name_check_host, LIVE,
                "Further names under which clients may ask for this server; a request under any other name is "
                "refused."),
        PATH("tokens_file", http_config, tokens_file, NULL, "`STATE/http.token` alone", LIVE,
                "Further tokens, one a line: `NAME ROLE[,ROLE...] TOKEN`. Roles are read, submit, work, consume, "
                "operate, all. "
                "Only the host's user may read the file."),
        FLAG("open_metrics", http_config, has_open_metrics, "false", LIVE,
                "Whether `/metrics` may be read without a token."),
        CHOICE("ready", http_config, ready, "member", ready_words, LIVE,
                "What `/readyz` asks for: `member` (known to the coordination, sees its store, does not stop), or "
                "`strict`: also that no handler is refused."),
        COUNT("connections", http_config, connections, "256", 1, 65536, LIVE,
                "Connections at once; further ones are closed."),
};
static const struct group http_table = TABLE(http_fields);

static const char *const level_words[] = { "error", "warn", "info", "debug", NULL };

/* In the order of enum log_format. */
static const char *const format_words[] = { "logfmt", "json", "journal", NULL };

static const struct field log_fields[] = {
        PATH("file", log_config, file, NULL, "standard error", RESTART,
                "The file that a host logs to; SIGUSR1 or SIGHUP opens it anew after it was renamed."),
        CHOICE("format", log_config, format, "logfmt", format_words, RESTART,
                "`logfmt`, `json` (an object a line), or `journal`: fields for systemd's journal, by its native "
                "protocol. "
                "The fields have the same names in each."),
        PATH("journal", log_config, journal, "/run/systemd/journal/socket", NULL, RESTART,
                "The journal's socket, for `format = \"journal\"`."),
        CHOICE("level", log_config, level, "info", level_words, LIVE, "More detailed lines are not written."),
        COUNT("rate", log_config, rate, "1000", 1, 1e6, LIVE,
                "Lines a second that one runner may log; the rest is dropped and counted. A runner keeps what it was "
                "started with."),
};
static const struct group log_table = TABLE(log_fields);

static const struct field traces_tls_fields[] = {
        PATH("ca_file", tls_config, ca_file, NULL, "the system's", RESTART,
                "The authorities (PEM) that may have signed the receiver's certificate."),
        PATH("cert_file", tls_config, cert_file, NULL, "none", RESTART,
                "The host's own certificate (PEM), for a receiver that asks for one."),
        PATH("key_file", tls_config, key_file, NULL, "none", RESTART,
                "Its key, without a passphrase; only the host's user may read it."),
};
static const struct group traces_tls_table = TABLE(traces_tls_fields);

static const struct field traces_fields[] = {
        TEXT("url", traces_config, url, "none: traces are off", name_check_traces_url, LIVE,
                "The receiver of spans, by OTLP/HTTP in JSON, such as `http://127.0.0.1:4318/v1/traces`."),
        NUMBER("ratio", traces_config, ratio, "0.1", 0, 1, LIVE,
                "Of the traces that begin here, so many are recorded; the same ones on every host. A trace that a "
                "producer began is recorded if its `traceparent` says so."),
        DURATION("interval", traces_config, interval_ms, "5s", 10, HOUR, LIVE,
                "A span waits so long for others, up to 512, to be sent with it."),
        COUNT("queue", traces_config, queue, "4096", 64, 1e6, LIVE,
                "Spans that wait to be sent; further ones are dropped and counted. A span takes about 1 KiB."),
        TEXTS("headers", traces_config, headers, "none", name_check_header_line, LIVE,
                "Headers of each request, `NAME: VALUE`. What is secret goes into `headers_file`."),
        PATH("headers_file", traces_config, headers_file, NULL, "none", LIVE,
                "A file of further headers, one a line (`Authorization: Bearer …`); only the host's user may read it."),
        GROUP("tls", traces_config, tls, &traces_tls_table,
                "`https:`: whom to trust; certificates are always verified."),
};
static const struct group traces_table = TABLE(traces_fields);

static const char *const writable_words[] = { "refuse", "allow", NULL };

static const struct field reload_fields[] = {
        DURATION("probation", reload_config, probation_ms, "1m", 0, DAY, LIVE,
                "How long a new version of a handler is watched. If it only fails in that time, the host returns to "
                "the "
                "last good version. 0: it is not watched."),
        COUNT("tasks", reload_config, tasks, "100", 0, 1e6, LIVE,
                "The probation ends early when the new version has done this many tasks. 0: it does not."),
        COUNT("crashes", reload_config, crashes, "3", 0, 1e6, LIVE,
                "On probation, a version with this many crashes, and more than one for ten tasks done, is rolled back. "
                "0: crashes do not count."),
        COUNT("failures", reload_config, failures, "10", 0, 1e6, LIVE,
                "On probation, a version with this many failed tasks and none done is rolled back. 0: not before the "
                "probation ends."),
        COUNT("generations", reload_config, generations, "3", 2, 16, LIVE,
                "Versions of one handler that may have processes at the same time; a further one waits."),
        CHOICE("world_writable", reload_config, world_writable, "refuse", writable_words, LIVE,
                "Whether to run a plugin that others on this machine could have written or replaced: everybody, or a "
                "user or group that is neither root's nor the host's."),
};
static const struct group reload_table = TABLE(reload_fields);

/* --- limits ------------------------------------------------------------------------------------------------------ */

static const struct field limit_fields[] = {
        COUNT("rate", limit_config, rate, "0", 0, LIMIT_CONFIG_MAX, LIVE,
                "Starts in the time `per`, of all hosts together. Either this or `concurrency`."),
        DURATION("per", limit_config, per_ms, "1s", 1, DAY, LIVE, "The time that `rate` is about."),
        COUNT("burst", limit_config, burst, "0", 0, LIMIT_CONFIG_MAX, LIVE,
                "Starts beyond `rate` that are allowed after a rest: in any time t at most rate × t / per + burst. 0: "
                "1, and the starts of a fifth of a second."),
        COUNT("concurrency", limit_config, concurrency, "0", 0, LIMIT_CONFIG_MAX, LIVE,
                "Tasks that run at once, on all hosts together."),
        TEXT("by", limit_config, by, "one for all tasks", name_check_limit_by, LIVE,
                "`key`, or `header.NAME`: each value has a limit of its own. A task without that header is limited "
                "with all others without it."),
        COUNT("values", limit_config, values_max, "10000", 1, 100000, LIVE,
                "With `by`: values in use at once; the tasks of further ones wait until one has been at rest."),
};
const struct group limit_table = TABLE(limit_fields);

/* --- schedules --------------------------------------------------------------------------------------------------- */

static const char *const lane_words[] = { "high", "normal", "low", NULL };

static const struct field schedule_fields[] = {
        TEXT("cron", schedule_config, cron, "another of the three says when", NULL, LIVE,
                "When: minute hour day month weekday, or @daily, @hourly …; by the clock of `zone`."),
        DURATION("every", schedule_config, every_ms, "0", 0, 365 * DAY, LIVE, "When: so often, counted from `start`."),
        TEXT("at", schedule_config, at, "another of the three says when", NULL, LIVE,
                "When: once, \"2026-12-01T03:00:00Z\" or \"2026-12-01 03:00\" by the clock of `zone`."),
        TEXT("zone", schedule_config, zone, "UTC", NULL, LIVE, "Whose clock it goes by: \"Europe/Berlin\"."),
        TEXT("handler", schedule_config, handler, NULL, name_check_handler, LIVE, "Whose task it submits."),
        TEXT("key", schedule_config, key, "the schedule's name", NULL, LIVE, "The task's key."),
        TEXT("payload", schedule_config, payload, "empty", NULL, LIVE, "The task's payload."),
        CHOICE("lane", schedule_config, lane, "normal", lane_words, LIVE, "The task's lane."),
        CHOICE("overlap", schedule_config, overlap, "skip", schedule_overlaps, LIVE,
                "While the task of the last time is not over: `skip` this time, `queue-one`, `queue-all`, `replace` "
                "the last, `allow` both at once."),
        CHOICE("catchup", schedule_config, catchup, "last", schedule_catchups, LIVE,
                "Of times that were missed while no host was there: the `last` fires, `all` do, or `none`."),
        DURATION("catchup_for", schedule_config, catchup_ms, "1h", 0, 365 * DAY, LIVE,
                "Times that were missed longer ago than this pass."),
        DURATION("jitter", schedule_config, jitter_ms, "0", 0, 365 * DAY, LIVE,
                "Each time is later by up to this; always the same for a name."),
        TEXT("start", schedule_config, start, "from always", NULL, LIVE, "No time before."),
        TEXT("end", schedule_config, end, "for ever", NULL, LIVE, "No time from then on."),
        COUNT("runs", schedule_config, runs_max, "0", 0, 4294967295.0, LIVE, "So many tasks in all; 0: any number."),
};
static const struct group schedule_table = TABLE(schedule_fields);

/* --- the file ---------------------------------------------------------------------------------------------------- */

static const struct field config_fields[] = {
        TEXT("app", config, app, NULL, name_check_app, RESTART,
                "The name space: hosts, queues and producers of one deployment share it."),
        COUNT("shards", config, shards, "64", 1, 4096, FIXED,
                "Queues that keys are spread over. Recorded when the app is created, and fixed from then on."),
        PATH("state", config, state, "../var", NULL, RESTART,
                "The folder for this host's socket, its locks and its private copies of plugins."),
        PATH("plugins", config, plugins, "../plugins", NULL, LIVE, "The folder of the plugins."),
        GROUP("store", config, store, &store_table, "Where tasks live."),
        GROUP("coordination", config, coordination, &coordination_table,
                "Which hosts are members, and which shards each owns."),
        GROUP("ids", config, ids, &ids_table, "Unique 64-bit ids: `quiver id`, `next_id`, `qv_client_next_id`."),
        GROUP("locks", config, locks, &locks_table, "Locks and elections: `quiver lock`, `quiver elect`."),
        GROUP("lease", config, lease, &lease_table, "The right to act on a shard."),
        GROUP("window", config, window, &window_table, "What a host claims ahead."),
        GROUP("host", config, host, &host_table, "This host."),
        GROUP("http", config, http, &http_table, "Intake, API, health and metrics over HTTP: see HTTP.md."),
        GROUP("log", config, log, &log_table, "What is written to standard error."),
        GROUP("traces", config, traces, &traces_table, "Where spans of tasks are sent: see OPERATIONS.md."),
        GROUP("reload", config, reload, &reload_table, "How a new version of a handler replaces the old one."),
        NAMED("schedules", config, schedules, schedules_count, schedule_config, &schedule_table, LIVE,
                schedule_name_check,
                "Tasks at given times: one group per schedule, named as `quiver schedule` names it. What leaves the "
                "file leaves the store; of several hosts' files the one that was written last is in force."),
        { .name = "handlers",
                .type = FIELD_HANDLERS,
                .offset = offsetof(struct config, handlers),
                .group = &handler_table,
                .otherwise = "none",
                .help = "What runs: one group per handler, named as the tasks name it." },
        NAMED("limits", config, fleet_limits, fleet_limits_count, limit_config, &limit_table, LIVE, name_check_handler,
                "How much the whole app may start or run: one group per limit; `limited_by` of a handler names it."),
};
const struct group config_table = TABLE(config_fields);

const struct field *group_field(const struct group *group, const char *name)
{
        for (size_t i = 0; i < group->count; i++)
                if (!strcmp(group->fields[i].name, name))
                        return &group->fields[i];
        return NULL;
}

size_t named_count(const struct field *f, const void *base)
{
        return *(const size_t *)((const char *)base + f->count_offset);
}

struct named_config *named_at(const struct field *f, const void *base, size_t index)
{
        char *items = *(char *const *)((const char *)base + f->offset);
        return (struct named_config *)(items + index * f->item_size);
}

struct named_config *named_find(const struct field *f, const void *base, const char *name)
{
        for (size_t i = 0; i < named_count(f, base); i++)
                if (!strcmp(named_at(f, base, i)->name, name))
                        return named_at(f, base, i);
        return NULL;
}

struct named_config *named_add(const struct field *f, void *base)
{
        void **items = (void **)((char *)base + f->offset);
        size_t *count = (size_t *)((char *)base + f->count_offset);
        *items = array_grow(*items, *count, f->item_size);
        return named_at(f, base, (*count)++);
}

const char *group_nearest(const struct group *group, const char *name)
{
        const char *known[64];
        size_t count = 0;
        for (size_t i = 0; i < group->count && count < 64; i++)
                known[count++] = group->fields[i].name;
        return error_nearest(name, known, count);
}
