/* table_handler.c: every setting of a handler: `handlers = { NAME = { … }; }` in runtime.cfg. */
#include "config/names.h"
#include "config/table_rows.h"

static const struct field retry_fields[] = {
        COUNT("attempts", retry_config, attempts, "4", 1, 1000, LIVE,
                "The most starts of a task, including the first."),
        DURATION("backoff", retry_config, backoff_ms, "1s", 0, DAY, LIVE, "The wait before the second attempt."),
        NUMBER("factor", retry_config, factor, "2.0", 1, 100, LIVE, "Each further wait is this many times longer."),
        DURATION("max", retry_config, max_ms, "5m", 0, 30 * DAY, LIVE, "The longest wait."),
        NUMBER("jitter", retry_config, jitter, "0.5", 0, 1, LIVE,
                "The random part of a wait: 0.5 waits between half of it and all of it."),
};
static const struct group retry_table = TABLE(retry_fields);

static const struct field later_fields[] = {
        COUNT("max", later_config, max, "1000", 0, 1000000, LIVE,
                "How often one task may be told LATER; beyond that, LATER counts as RETRY. 0: it always does."),
        DURATION("wait", later_config, wait_ms, "5s", 0, 30 * DAY, LIVE,
                "How long the key waits, if the handler did not call `retry_after`."),
};
static const struct group later_table = TABLE(later_fields);

static const struct field batch_fields[] = {
        COUNT("max", batch_config, max, "1", 1, 256, GENERATION,
                "Tasks that the plugin's `handle_many` gets in one call. 1: one by one."),
        DURATION("wait", batch_config, wait_ms, "5ms", 0, 10 * SECOND, LIVE, "How long to wait for a full batch."),
        FLAG("same_key", batch_config, same_key, "false", GENERATION,
                "Ordered batches: a call may get several tasks of one key, in order; the first that is not DONE ends "
                "its "
                "key's part. Up to 2 × `max` tasks of a key are claimed, if that is more than `window.per_key`."),
};
static const struct group batch_table = TABLE(batch_fields);

static const struct field remote_fields[] = {
        DURATION("ttl", remote_config, ttl_ms, "30s", 100, DAY, LIVE,
                "How long a worker may be silent: a task that it has is its own until then, and longer with each "
                "heartbeat."),
        COUNT("concurrency", remote_config, concurrency, "1000", 1, 100000, LIVE,
                "Tasks that workers may have at once, of one host's shards."),
};
static const struct group remote_table = TABLE(remote_fields);

static const char *const network_words[] = { "any", "none", NULL };

static const struct field limits_fields[] = {
        TEXT("user", limits_config, user, "the host's", name_check_user, GENERATION,
                "The system user that runners run as; needs a host started by root."),
        SIZE("memory", limits_config, memory_bytes, "0", 0, TIB, GENERATION,
                "Memory that one runner may have. 0: no limit. With a control group all of it, shared memory too, and "
                "that of the processes that it starts; else what each of them allocates for itself."),
        DURATION("cpu", limits_config, cpu_ms, "0", 0, 365 * DAY, GENERATION,
                "Processor time that one runner may use before it is ended. 0: no limit."),
        NUMBER("cores", limits_config, cores, "0", 0, 1024, GENERATION,
                "Processors that one runner and what it starts may use at once, such as 0.5. 0: no limit. Needs a "
                "control group."),
        COUNT("descriptors", limits_config, descriptors, "0", 0, 1048576, GENERATION,
                "Open files and sockets of one runner, 16 or more. 0: the host's own limit."),
        COUNT("processes", limits_config, processes, "0", 0, 1048576, GENERATION,
                "Processes and threads: with a control group of one runner and what it starts, else of all processes "
                "of the runners' user. 0: the host's own limit."),
        CHOICE("network", limits_config, network, "any", network_words, GENERATION,
                "`none`: runners have no network; Unix sockets in the file system remain."),
        SIZE("core", limits_config, core_bytes, "0", 0, TIB, GENERATION,
                "The largest core dump that a runner may leave, where kernel.core_pattern says. 0: none."),
        PATHS("read", limits_config, read, "not confined", GENERATION,
                "With `write`: the only folders and files that runners can read, where the kernel has Landlock."),
        PATHS("write", limits_config, write, "not confined", GENERATION,
                "With `read`: the only ones that they can change."),
};
static const struct group limits_table = TABLE(limits_fields);

static const char *const exhausted_words[] = { "dead", "hold", NULL };

static const struct field handler_fields[] = {
        TEXT("plugin", handler_config, plugin, NULL, name_check_plugin, GENERATION,
                "The shared object: a file in `plugins`, or an absolute path. `remote`: none; workers outside run the "
                "tasks, "
                "over HTTP."),
        TEXTS("tasks", handler_config, tasks, "the handler's own name", name_check_handler, LIVE,
                "The task names that this handler's runners serve."),
        COUNT("processes", handler_config, processes, "1", 1, 256, LIVE, "Runners; they share nothing."),
        COUNT("threads", handler_config, threads, "1", 1, 256, GENERATION,
                "Seats of each runner; more than one only if the plugin allows it."),
        DURATION("timeout", handler_config, timeout_ms, "30s", 0, 30 * DAY, LIVE,
                "How long one task may take before its stop flag is raised. 0: for ever."),
        DURATION("grace", handler_config, grace_ms, "5s", 0, HOUR, LIVE,
                "How long a task may run after its stop flag was raised, before its runner is killed."),
        DURATION("stall", handler_config, stall_ms, "0", 0, 30 * DAY, LIVE,
                "How long one task may run without calling `progress` before its stop flag is raised. 0: for ever."),
        DURATION("init_timeout", handler_config, init_timeout_ms, "10s", 10, HOUR, LIVE,
                "How long loading and `init` may take."),
        GROUP("retry", handler_config, retry, &retry_table, "When a handler returns RETRY."),
        GROUP("later", handler_config, later, &later_table,
                "When a handler returns LATER: this key alone waits, and it costs the task nothing."),
        COUNT("crashes", handler_config, crashes, "3", 1, 1000, LIVE,
                "Crashes and hangs of one task, after which it is not started again."),
        CHOICE("on_exhausted", handler_config, on_exhausted, "dead", exhausted_words, LIVE,
                "When attempts or crashes are used up: `dead` lets the key continue without the task; `hold` stops the "
                "key until a person decides."),
        GROUP("batch", handler_config, batch, &batch_table, "Several tasks in one call."),
        GROUP("remote", handler_config, remote, &remote_table, "With `plugin = \"remote\"`."),
        FLAG("spread", handler_config, spread, "true", LIVE,
                "Tasks without a key that wait here run on free seats of other hosts, and theirs on free seats here; a "
                "worker of a remote handler gets tasks of any host. `false`: every host runs its own."),
        COUNT("max_tasks", handler_config, max_tasks, "0", 0, 2147483647, LIVE,
                "A runner is replaced after this many tasks. 0: never."),
        DURATION("idle_timeout", handler_config, idle_timeout_ms, "5m", 0, 30 * DAY, LIVE,
                "A runner without work for this long is ended, and started again when needed. 0: runners stay."),
        GROUP("limits", handler_config, limits, &limits_table, "What runners may use."),
        TEXTS("limited_by", handler_config, limited_by, "none", name_check_handler, LIVE,
                "The `limits` of the file that its tasks are subject to, 4 at most: a task starts when all allow it, "
                "and waits at no cost until then."),
        TEXTS("environment", handler_config, environment, "none", name_check_environment, GENERATION,
                "Variables of the host's environment that runners get besides the usual ones (PATH, HOME, LANG …)."),
        SIZE("max_payload", handler_config, payload_max_bytes, "0", 0, 64 * MIB, GENERATION,
                "The largest payload that this handler accepts. 0: `store.max_payload`."),
        SIZE("max_result", handler_config, result_max_bytes, "1MiB", 0, 64 * MIB, GENERATION,
                "The largest result that it may return."),
        { .name = "config",
                .type = FIELD_SETTINGS,
                .offset = AT(handler_config, settings, struct setting_list),
                .otherwise = "none",
                .effect = EFFECT_GENERATION,
                .help = "The plugin's own settings, any that it knows." },
};
const struct group handler_table = TABLE(handler_fields);
