/* vet.c: `quiver vet`: is this plugin fit to run? */
#include "cli/vet/vet.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command.h"

#define PAYLOADS       10000
#define PAYLOADS_QUICK 500
#define PAYLOADS_MAX   UINT64_C(1000000000)

/* Each step only if the one before leaves anything to look at. */
static void vet(struct vet_request *q, struct vet_report *report, struct plugin_report *probe)
{
        if (!vet_elf(q, report))
                return;
        bool is_ready = vet_init(q, probe, report);
        vet_links(q, is_ready, report);
        if (is_ready)
                vet_payloads(q, probe, report);
}

static int print_payload(const struct vet_request *q)
{
        struct buffer payload = { 0 };
        vet_generate(q->seed, (uint64_t)q->printed, &q->corpus, &payload);
        size_t n = payload.size ? fwrite(payload.data, 1, payload.size, stdout) : 0;
        bool is_whole = n == payload.size && fflush(stdout) == 0;
        buffer_free(&payload);
        return is_whole ? EXIT_DONE : EXIT_FAILED;
}

static int run(struct vet_request *q)
{
        struct vet_report report = { .is_json = q->is_json };
        struct plugin_report probe = { 0 };
        struct error error = { "" };
        struct runner_start *start = &q->session.start;
        int r = plugin_args_load(&q->args, &error);
        if (r == 0 && q->corpus_path)
                r = vet_corpus_load(&q->corpus, q->corpus_path, &error);
        if (r == 0 && q->printed >= 0)
                return print_payload(q);
        if (r == 0)
                r = plugin_session_open(&q->session, q->args.plugin, PLUGIN_ANYBODYS, &error);
        if (!q->is_json)
                (void)printf("%s\n", q->args.plugin);
        if (r < 0) {
                vet_find(&report, VET_ERROR, "file", NULL, "%s", error.text);
        } else {
                plugin_session_preload(q->args.plugin);
                start->handler = q->args.handler;
                start->log_level = LEVEL_ERROR;
                start->log_rate = 100;
                start->memory_max = q->memory_max;
                start->settings = q->args.settings.items;
                start->settings_count = q->args.settings.count;
                vet(q, &report, &probe);
                plugin_session_close(&q->session);
        }
        vet_finish(&report, q, &probe);
        int code = report.errors ? EXIT_FAILED : EXIT_DONE;
        vet_report_free(&report);
        return code;
}

int cmd_vet(int argc, char **argv)
{
        /* JSON readers take a number for a double: keep it exact. */
        struct vet_request q = { .init_ms = 10000, .run_ms = 60000, .seed = clock_wall_ms() & UINT32_MAX };
        uint64_t printed = UINT64_MAX;
        const struct option table[] = {
                PLUGIN_OPTIONS(&q.args),
                OPT_NUMBER("--payloads N", &q.payloads, 1, PAYLOADS_MAX, "random payloads (default 10000)"),
                OPT_TEXT("--corpus FILE", &q.corpus_path,
                        "payloads to begin with, and to change: one per line, or a folder with one per file"),
                OPT_NUMBER("--print N", &printed, 0, PAYLOADS_MAX,
                        "only write payload N of that --seed to standard output"),
                OPT_NUMBER("--seed N", &q.seed, 0, INT64_MAX, "the same payloads again"),
                OPT_DURATION("--init-timeout TIME", &q.init_ms, 0, "how long loading and init may take (default 10s)"),
                OPT_DURATION("--limit TIME", &q.run_ms, 1, "for each run of random payloads (default 60s)"),
                OPT_SIZE(
                        "--memory SIZE", &q.memory_max, "a runner's heap, stacks and data at most (default: no limit)"),
                OPT_FLAG("--quick", &q.is_quick, "500 payloads, and init and close 20 times instead of 100"),
                OPT_FLAG("--json", &q.is_json, "print one JSON object"),
        };
        struct options o = {
                .usage = "vet PLUGIN.so [options]",
                .about = "Looks for what would make a plugin trouble in production, and says what to do about it: its "
                         "file and\nexports, its table, what init and close leave behind, how it takes random "
                         "payloads, whether it grows\nwith them, whether it stops when told.  handle() really runs, "
                         "with all "
                         "that it does elsewhere.  Its code runs in throw-away runners only.  Exit "
                         "code 1 if there are errors; warnings alone are 0.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver vet plugins/echo.so\n"
                            "  quiver vet ./mine.so --config etc/runtime.cfg --quick\n"
                            "  quiver vet ./mine.so --corpus tests/payloads.txt\n"
                            "  quiver vet ./mine.so --set db.url=postgres://localhost/test --json\n",
        };
        int code;
        if (options_read(&o, argc, argv, &code) && (code = plugin_args_finish(&q.args, &o)) == EXIT_DONE) {
                if (!q.payloads)
                        q.payloads = q.is_quick ? PAYLOADS_QUICK : PAYLOADS;
                q.printed = printed == UINT64_MAX ? -1 : (int64_t)printed;
                code = run(&q);
        }
        vet_corpus_free(&q.corpus);
        plugin_args_free(&q.args);
        return code;
}
