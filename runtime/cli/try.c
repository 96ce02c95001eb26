/* try.c: `quiver try`: tasks through a plugin in a real runner, with no server.
 *
 * The same pool, ring and runner as in a host; only the queue is missing: tasks come from the command line, follow-ups
 * and results are shown, locks and ids live in memory. */
#include "cli/try.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/options.h"
#include "config/config.h"
#include "host/stage.h"

#define LEASES        1
#define LOG_RATE      10000
#define RESULT_MAX    (UINT64_C(1) << 20)

struct try_run {
        const struct try_request *request;
        uv_loop_t loop;
        struct crew crew;
        struct leases leases;
        struct staged staged;
        char folder[64];
        struct try_source source;
        struct try_services *services;
        struct try_counts counts;
        struct try_bench bench;
        uint64_t begun_ns, first_ns;
        pid_t runner_pid;
        bool is_exhausted; /* no more tasks to come */
        bool has_failed;
};

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
        OPT_MAX_PAYLOAD,
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
        { OPT_MAX_PAYLOAD, "max-payload", "SIZE", "largest payload (default 1MiB, at most 64MiB)" },
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

/* --- the run ----------------------------------------------------------------------------------------------------- */

/* The runner's own memory while it still runs: resident, with what it shares with us. */
static uint64_t resident_bytes(pid_t pid)
{
        char path[64];
        unsigned long long total = 0;
        unsigned long long resident = 0;
        (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return 0;
        if (fscanf(file, "%llu %llu", &total, &resident) != 2)
                resident = 0;
        (void)fclose(file);
        return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void finish_if_done(struct try_run *t)
{
        if (!t->is_exhausted || !pool_is_idle(&t->crew.pool) || t->crew.is_stopping)
                return;
        t->bench.elapsed_ns = clock_boot_ns() - t->first_ns;
        t->bench.runner_bytes = resident_bytes(t->runner_pid);
        crew_stop(&t->crew);
}

static void offer_more(struct try_run *t)
{
        struct error error = { "" };
        while (!t->is_exhausted && crew_has_room(&t->crew)) {
                struct try_task *task = try_source_next(&t->source, &error);
                if (!task) {
                        t->is_exhausted = true;
                        break;
                }
                crew_offer(&t->crew, &task->pool);
        }
        if (*error.text) {
                try_show_error(t->request, error.text);
                t->has_failed = true;
        }
        finish_if_done(t);
}

static void on_settled(void *owner, struct pool_task *pool_task, const struct settled *settled)
{
        struct try_run *t = owner;
        struct try_task *task = pool_task->owner;
        if (settled->is_suspect) {
                /* What a host does too: run it alone, and then it is known. */
                pool_task->is_suspect = true;
                crew_offer(&t->crew, pool_task);
                return;
        }
        t->counts.total++;
        t->counts.outcomes[settled->outcome]++;
        if (settled->outcome != OUTCOME_DONE)
                t->has_failed = true;
        if (!t->bench.first_ns) {
                t->first_ns = clock_boot_ns();
                t->bench.first_ns = t->first_ns - t->begun_ns;
        }
        if (!t->request->bench || settled->outcome != OUTCOME_DONE)
                try_show_task(t->request, task, settled);
        try_source_done(&t->source, task);
}

static void on_log(void *owner, const struct runner_log *log, const struct pool_task *task)
{
        const struct try_run *t = owner;
        const struct try_task *mine = task ? task->owner : NULL;
        try_show_log(t->request, log, mine ? mine->id : NULL);
}

static void on_ready(void *owner, const struct runner_ready *ready, pid_t pid)
{
        struct try_run *t = owner;
        bool is_first = !t->runner_pid;
        t->runner_pid = pid;
        if (!is_first)
                return;
        if (*ready->unread)
                (void)fprintf(stderr, "warning: settings that the plugin never read (misspelt?): %s\n", ready->unread);
        if (*ready->notes)
                (void)fprintf(stderr, "note: %s\n", ready->notes);
        if (t->request->batch > 1 && !ready->has_many)
                (void)fprintf(stderr, "note: the plugin has no handle_many, so --batch does nothing\n");
}

static void on_refused(void *owner, const char *text)
{
        struct try_run *t = owner;
        t->has_failed = true;
        try_show_error(t->request, text);
}

static int on_call(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        struct try_run *t = owner;
        return try_services_call(t->services, service, holder, name, number);
}

static void on_quarantined(void *owner, const char *text)
{
        struct try_run *t = owner;
        (void)text; /* a person is watching: the runner's own words, shown already, say more */
        t->has_failed = true;
        uv_stop(&t->loop);
}

static void on_stopped(void *owner)
{
        struct try_run *t = owner;
        uv_stop(&t->loop);
}

static const struct crew_events crew_events = {
        .settled = on_settled,
        .log = on_log,
        .ready = on_ready,
        .refused = on_refused,
        .call = on_call,
        .quarantined = on_quarantined,
        .stopped = on_stopped,
};

static void on_prepare(uv_prepare_t *prepare)
{
        offer_more(prepare->data);
}

static int open_folder(struct try_run *t, struct error *error)
{
        const char *temporary = getenv("TMPDIR");
        (void)snprintf(t->folder, sizeof(t->folder), "%.40s/quiver-XXXXXX", temporary ? temporary : "/tmp");
        if (!mkdtemp(t->folder)) {
                int r = -errno;
                *t->folder = 0;
                return error_set(error, r, "cannot make a temporary folder in %s: %s", temporary ? temporary : "/tmp",
                        strerror(-r));
        }
        return stage_copy(t->request->plugin, t->folder, &t->staged, error);
}

static void close_folder(struct try_run *t)
{
        if (*t->staged.path)
                stage_remove(&t->staged);
        if (*t->folder)
                (void)rmdir(t->folder);
}

static int open_crew(struct try_run *t, struct error *error)
{
        const struct try_request *q = t->request;
        struct pool_policy policy = {
                .processes = q->processes,
                .threads = q->threads,
                .batch_max = q->batch,
                .batch_wait_ms = q->batch > 1 ? 1 : 0,
                .grace_ms = q->grace_ms,
                .abort_ms = 1000,
                .init_ms = 10000,
                .backoff_ms = 10,
                .backoff_max_ms = 1000,
                .quarantine_after = 8,
                .ring_entries = 256,
        };
        struct runner_start start = {
                .handler = q->handler,
                .plugin = t->staged.path,
                .label = t->staged.label,
                .seats = q->threads,
                .batch_max = q->batch,
                .leases = LEASES,
                .log_level = LEVEL_DEBUG,
                .log_rate = LOG_RATE,
                .result_max = RESULT_MAX,
                .payload_max = q->payload_max,
                .can_call = 1u << SERVICE_NEXT_ID | 1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK,
                .user = "",
                .settings = q->settings,
                .settings_count = q->settings_count,
        };
        int r = leases_create(&t->leases, LEASES);
        if (r < 0)
                return error_set(error, r, "cannot make the lease page: %s", strerror(-r));
        /* Nobody can take this lease away. */
        leases_set(&t->leases, 0, 1, UINT64_MAX);
        r = crew_init(&t->crew, &t->loop, &policy, &start, &t->leases, &crew_events, t);
        return r < 0 ? error_set(error, r, "cannot set up the pool: %s", strerror(-r)) : 0;
}

static void kill_rest(struct try_run *t)
{
        for (uint32_t i = 0; i < t->crew.pool.runners_count; i++)
                if (t->crew.pool.runners[i].process)
                        process_kill(t->crew.pool.runners[i].process, SIGKILL);
}

static int run(struct try_run *t)
{
        struct error error = { "" };
        uv_prepare_t prepare;
        int r = open_folder(t, &error);
        if (r == 0)
                r = open_crew(t, &error);
        if (r < 0) {
                try_show_error(t->request, error.text);
                close_folder(t);
                return EXIT_FAILED;
        }
        (void)uv_prepare_init(&t->loop, &prepare);
        prepare.data = t;
        (void)uv_prepare_start(&prepare, on_prepare);
        (void)uv_run(&t->loop, UV_RUN_DEFAULT);
        kill_rest(t);
        uv_close((uv_handle_t *)&prepare, NULL);
        crew_close(&t->crew);
        while (uv_run(&t->loop, UV_RUN_DEFAULT))
                ;
        close_folder(t);
        leases_free(&t->leases);
        if (t->request->bench && !t->has_failed) {
                t->bench.tasks = t->counts.total - 1;
                try_show_bench(t->request, &t->bench);
        } else {
                try_show_total(t->request, &t->counts);
        }
        return t->has_failed ? EXIT_FAILED : EXIT_DONE;
}

/* --- the command line -------------------------------------------------------------------------------------------- */

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

/* The first one counts: the command line's are added before the file's. */
static void add_setting(struct try_request *q, const char *name, const char *value)
{
        for (size_t i = 0; i < q->settings_count; i++)
                if (!strcmp(q->settings[i].name, name))
                        return;
        struct setting *settings = realloc(q->settings, (q->settings_count + 1) * sizeof(*settings));
        if (!settings)
                abort();
        settings[q->settings_count++] = (struct setting){ .name = name, .value = value };
        q->settings = settings;
}

/* "NAME=VALUE", cut in two in place. */
static int set_option(struct try_request *q, char *text)
{
        char *equals = strchr(text, '=');
        if (!equals || equals == text)
                return options_wrong(&options, "--set wants NAME=VALUE, not \"%s\"", text);
        *equals = 0;
        add_setting(q, text, equals + 1);
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

static int payload_option(uint64_t *ret)
{
        struct error error;
        if (units_size_bytes(options.value, ret, &error) < 0)
                return options_wrong(&options, "--max-payload: %s", error.text);
        if (!*ret || *ret > UINT64_C(64) << 20)
                return options_wrong(&options, "--max-payload: from 1 byte to 64MiB");
        return 0;
}

static int take_option(struct try_request *q, int id, const char **config)
{
        switch (id) {
        case OPTIONS_WORD:
                if (q->plugin)
                        return options_wrong(&options, "one plugin at a time: %s, %s", q->plugin, options.value);
                q->plugin = options.value;
                return 0;
        case OPT_CONFIG:
                *config = options.value;
                return 0;
        case OPT_SET:
                return set_option(q, (char *)options.value);
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
        case OPT_MAX_PAYLOAD:
                return payload_option(&q->payload_max);
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

/* The plugin's file name without its ending: what a runtime.cfg would call it. */
static void default_handler(const char *plugin, char *name, size_t size)
{
        const char *slash = strrchr(plugin, '/');
        const char *base = slash ? slash + 1 : plugin;
        const char *dot = strrchr(base, '.');
        size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
        (void)snprintf(name, size, "%.*s", (int)(length < 64 ? length : 64), base);
}

static int check(const struct try_request *q)
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

int cmd_try(int argc, char **argv)
{
        struct try_request q = { .processes = 1,
                .threads = 1,
                .batch = 1,
                .timeout_ms = 30000,
                .grace_ms = 5000,
                .payload_max = UINT64_C(1) << 20 };
        struct try_run t = { .request = &q, .begun_ns = clock_boot_ns() };
        struct setting_list settings = { 0 };
        struct error error = { "" };
        const char *config = NULL;
        char handler[80];
        int id;
        int r = 0;
        options_start(&options, argc, argv);
        while (r == 0 && (id = options_next(&options)) != OPTIONS_END) {
                if (id == OPTIONS_HELP || id == OPTIONS_WRONG)
                        r = id == OPTIONS_HELP ? -1 : EXIT_USAGE;
                else
                        r = take_option(&q, id, &config);
        }
        if (r == 0)
                r = check(&q);
        if (r != 0)
                goto out;
        bool is_named = q.handler;
        if (!is_named) {
                default_handler(q.plugin, handler, sizeof(handler));
                q.handler = handler;
        }
        if (config && config_load_settings(config, is_named ? q.handler : q.plugin, &settings, &error) < 0) {
                try_show_error(&q, error.text);
                r = EXIT_FAILED;
                goto out;
        }
        for (size_t i = 0; i < settings.count; i++)
                add_setting(&q, settings.items[i].name, settings.items[i].value);
        r = try_source_open(&t.source, &q, &error);
        if (r < 0) {
                try_show_error(&q, error.text);
                r = EXIT_FAILED;
                goto out;
        }
        if (q.is_here) {
                r = try_here(&q, &t.source);
        } else {
                t.services = try_services_new();
                (void)uv_loop_init(&t.loop);
                r = run(&t);
                (void)uv_loop_close(&t.loop);
                try_services_free(t.services);
        }
        try_source_close(&t.source);
out:
        setting_list_free(&settings);
        free(q.settings);
        return r < 0 ? EXIT_DONE : r;
}
