/* try_options.c: what `quiver try` was asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/options.h"
#include "cli/plugin_args.h"
#include "cli/try/try.h"

enum {
        OPT_CONFIG = 256,
        OPT_SET,
        OPT_HANDLER,
        OPT_LINES,
        OPT_PROCESSES,
        OPT_THREADS,
        OPT_BATCH,
        OPT_TIMEOUT,
        OPT_GRACE,
        OPT_INIT_TIMEOUT,
        OPT_MAX_PAYLOAD,
        OPT_MEMORY,
        OPT_MAX_PROCESSES,
        OPT_HERE,
        OPT_JSON,
        OPT_BENCH,
};

static const struct option_spec specs[] = {
        { OPT_CONFIG, "config", "FILE", "settings for the plugin: a runtime.cfg, or just the settings" },
        { OPT_SET, "set", "NAME=VALUE", "one setting; may be repeated, and overrides --config" },
        { OPT_HANDLER, "handler", "NAME", "the task's handler name (default: the plugin's file name)" },
        { 'k', "key", "KEY", "the task's key (default: its id)" },
        { 'p', "payload", "TEXT", "the payload; - reads it from standard input" },
        { OPT_LINES, "lines", NULL, "a task per line of standard input: KEY<TAB>PAYLOAD or PAYLOAD" },
        { OPT_PROCESSES, "processes", "N", "runners (default 1)" },
        { OPT_THREADS, "threads", "N", "seats in each runner (default 1)" },
        { OPT_BATCH, "batch", "N", "up to N tasks in one handle_many (default 1)" },
        { OPT_TIMEOUT, "timeout", "TIME", "raise the stop flag after this time (default 30s; 0: never)" },
        { OPT_GRACE, "grace", "TIME", "… and kill the runner this much later (default 5s)" },
        { OPT_INIT_TIMEOUT, "init-timeout", "TIME", "give up on a plugin that is not ready by then (default 10s)" },
        { OPT_MAX_PAYLOAD, "max-payload", "SIZE", "largest payload (default 1MiB, at most 64MiB)" },
        { OPT_MEMORY, "memory", "SIZE", "a runner's heap, stacks and data at most (default: no limit)" },
        { OPT_MAX_PROCESSES, "max-processes", "N", "processes and threads of the user at most; not for root" },
        { OPT_HERE, "here", NULL, "load the plugin into this process, for gdb and valgrind" },
        { OPT_BENCH, "bench", "N", "pass N tasks of 100 bytes and say how fast" },
        { OPT_JSON, "json", NULL, "one JSON object per task" },
        { 'q', "quiet", NULL, "do not show the handler's log and output" },
};

static struct options options = {
        .usage = "try PLUGIN.so [options]",
        .about = "Runs tasks through a plugin in a real runner, with no server.  Shows outcome, result, follow-ups, "
                 "logs\n"
                 "and time of each.  Exit code 0 only if all are DONE.",
        .specs = specs,
        .count = sizeof(specs) / sizeof(specs[0]),
        .examples = "  quiver try plugins/echo.so --payload world --set greeting=hi\n"
                    "  printf 'alice\\tinsert\\nalice\\tdelete\\n' | quiver try ./mine.so --lines --json\n"
                    "  quiver try plugins/echo.so --bench 1000000\n"
                    "  gdb --args quiver try ./mine.so --here --payload crash-me\n",
};

static int parse_count(const char *text, uint64_t max, uint64_t *ret)
{
        char *end = NULL;
        errno = 0;
        unsigned long long value = strtoull(text, &end, 10);
        if (errno || end == text || *end || *text == '-' || value < 1 || value > max)
                return -EINVAL;
        *ret = value;
        return 0;
}

static int set_option(struct try_request *q)
{
        struct error error;
        if (plugin_args_set(&q->settings, options.value, &error) < 0)
                return options_wrong(&options, "%s", error.text);
        return 0;
}

static int count_option(const char *name, uint64_t max, uint64_t *ret)
{
        if (parse_count(options.value, max, ret) < 0)
                return options_wrong(&options, "--%s wants a number from 1 to %llu, not \"%s\"", name,
                        (unsigned long long)max, options.value);
        return 0;
}

static int small_count_option(const char *name, uint64_t max, uint32_t *ret)
{
        uint64_t value = 0;
        int r = count_option(name, max, &value);
        if (r == 0)
                *ret = (uint32_t)value;
        return r;
}

static int duration_option(const char *name, uint64_t *ret)
{
        struct error error;
        if (units_duration_ms(options.value, ret, &error) < 0)
                return options_wrong(&options, "--%s: %s", name, error.text);
        return 0;
}

static int size_option(const char *name, uint64_t *ret)
{
        struct error error;
        if (units_size_bytes(options.value, ret, &error) < 0)
                return options_wrong(&options, "--%s: %s", name, error.text);
        return 0;
}

static int payload_option(uint64_t *ret)
{
        int r = size_option("max-payload", ret);
        if (r == 0 && (!*ret || *ret > UINT64_C(64) << 20))
                return options_wrong(&options, "--max-payload: from 1 byte to 64MiB");
        return r;
}

static int take_option(struct try_request *q, int id)
{
        switch (id) {
        case OPTIONS_WORD:
                if (q->plugin)
                        return options_wrong(&options, "one plugin at a time: %s, %s", q->plugin, options.value);
                q->plugin = options.value;
                return 0;
        case OPT_CONFIG:
                q->config = options.value;
                return 0;
        case OPT_SET:
                return set_option(q);
        case OPT_HANDLER:
                q->handler = options.value;
                return 0;
        case 'k':
                q->key = options.value;
                if (!*q->key || strlen(q->key) > 255)
                        return options_wrong(&options, "a key has 1 to 255 bytes");
                return 0;
        case 'p':
                q->payload = options.value;
                return 0;
        case OPT_LINES:
                q->is_lines = true;
                return 0;
        case OPT_PROCESSES:
                return small_count_option("processes", 64, &q->processes);
        case OPT_THREADS:
                return small_count_option("threads", RING_SEATS_MAX, &q->threads);
        case OPT_BATCH:
                return small_count_option("batch", 128, &q->batch);
        case OPT_TIMEOUT:
                return duration_option("timeout", &q->timeout_ms);
        case OPT_GRACE:
                return duration_option("grace", &q->grace_ms);
        case OPT_INIT_TIMEOUT:
                return duration_option("init-timeout", &q->init_ms);
        case OPT_MAX_PAYLOAD:
                return payload_option(&q->payload_max);
        case OPT_MEMORY:
                return size_option("memory", &q->memory_max);
        case OPT_MAX_PROCESSES:
                return count_option("max-processes", UINT64_C(1) << 22, &q->processes_max);
        case OPT_HERE:
                q->is_here = true;
                return 0;
        case OPT_BENCH:
                return count_option("bench", UINT64_C(1) << 40, &q->bench);
        case OPT_JSON:
                q->is_json = true;
                return 0;
        default:
                q->is_quiet = true;
                return 0;
        }
}

static int check_request(const struct try_request *q)
{
        if (!q->plugin)
                return options_wrong(&options, "which plugin?  quiver try PLUGIN.so");
        if (q->is_lines && (q->payload || q->bench))
                return options_wrong(&options, "--lines takes the payloads from standard input; leave out --payload "
                                               "and --bench");
        if (q->is_here && (q->processes > 1 || q->threads > 1))
                return options_wrong(&options, "--here has one seat in this process; leave out --threads and "
                                               "--processes");
        if (q->payload && strlen(q->payload) > q->payload_max)
                return options_wrong(&options, "the payload is larger than --max-payload");
        return 0;
}

int try_options(struct try_request *q, int argc, char **argv)
{
        int id;
        int r = 0;
        *q = (struct try_request){ .processes = 1,
                .threads = 1,
                .batch = 1,
                .timeout_ms = 30000,
                .grace_ms = 5000,
                .init_ms = 10000,
                .payload_max = UINT64_C(1) << 20 };
        options_start(&options, argc, argv);
        while (r == 0 && (id = options_next(&options)) != OPTIONS_END) {
                if (id == OPTIONS_HELP)
                        return -1;
                r = id == OPTIONS_WRONG ? EXIT_USAGE : take_option(q, id);
        }
        if (r == 0)
                r = check_request(q);
        if (r == 0 && !q->handler) {
                plugin_args_handler(q->plugin, q->handler_text, sizeof(q->handler_text));
                q->handler = q->handler_text;
        }
        return r;
}
