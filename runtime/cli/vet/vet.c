/* vet.c: `quiver vet`: is this plugin fit to run? */
#include "cli/vet/vet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/plugin_args.h"

#define PAYLOADS         10000
#define PAYLOADS_QUICK   500
#define PAYLOADS_MAX     UINT64_C(1000000000)
#define INIT_MS          10000
#define REHEARSALS       100
#define REHEARSALS_QUICK 20

enum { OPT_CONFIG = 256, OPT_SET, OPT_HANDLER, OPT_PAYLOADS, OPT_SEED, OPT_INIT_TIMEOUT, OPT_QUICK, OPT_JSON };

static const struct option_spec specs[] = {
        { OPT_CONFIG, "config", "FILE", "settings for the plugin: a runtime.cfg, or just the settings" },
        { OPT_SET, "set", "NAME=VALUE", "one setting; may be repeated, and overrides --config" },
        { OPT_HANDLER, "handler", "NAME", "the handler's name (default: the plugin's file name)" },
        { OPT_PAYLOADS, "payloads", "N", "random payloads (default 10000)" },
        { OPT_SEED, "seed", "N", "the same payloads again" },
        { OPT_INIT_TIMEOUT, "init-timeout", "TIME", "how long loading and init may take (default 10s)" },
        { OPT_QUICK, "quick", NULL, "500 payloads, and init and close 20 times instead of 100" },
        { OPT_JSON, "json", NULL, "print one JSON object" },
};

static struct options options = {
        .usage = "vet PLUGIN.so [options]",
        .about = "Looks for what would make a plugin trouble in production, and says what to do about it: its file "
                 "and\nexports, its table, what init and close leave behind, how it takes random payloads, whether it "
                 "stops when\ntold.  Its code runs in throw-away runners only.  Exit code 1 if there are errors; "
                 "warnings alone are 0.",
        .specs = specs,
        .count = sizeof(specs) / sizeof(specs[0]),
        .examples = "  quiver vet plugins/echo.so\n"
                    "  quiver vet ./mine.so --config etc/runtime.cfg --quick\n"
                    "  quiver vet ./mine.so --set db.url=postgres://localhost/test --json\n",
};

static int parse_number(const char *name, uint64_t least, uint64_t most, uint64_t *ret)
{
        char *end = NULL;
        errno = 0;
        unsigned long long value = strtoull(options.value, &end, 10);
        if (errno || end == options.value || *end || *options.value == '-' || value < least || value > most)
                return options_wrong(&options, "--%s wants a number from %llu to %llu, not \"%s\"", name,
                        (unsigned long long)least, (unsigned long long)most, options.value);
        *ret = value;
        return 0;
}

static int take_option(struct vet_request *q, int id, bool *is_quick)
{
        struct error error;
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
                if (plugin_args_set(&q->settings, options.value, &error) < 0)
                        return options_wrong(&options, "%s", error.text);
                strings_add(&q->sets, options.value);
                return 0;
        case OPT_HANDLER:
                q->handler = options.value;
                return 0;
        case OPT_PAYLOADS:
                return parse_number("payloads", 1, PAYLOADS_MAX, &q->payloads);
        case OPT_SEED:
                return parse_number("seed", 0, INT64_MAX, &q->seed);
        case OPT_INIT_TIMEOUT:
                if (units_duration_ms(options.value, &q->init_ms, &error) < 0)
                        return options_wrong(&options, "--init-timeout: %s", error.text);
                return 0;
        case OPT_QUICK:
                *is_quick = true;
                return 0;
        default:
                q->is_json = true;
                return 0;
        }
}

/* An exit code, or -1 after the help was shown. */
static int parse(struct vet_request *q, int argc, char **argv)
{
        bool is_quick = false;
        int r = 0;
        int id;
        /* JSON readers take a number for a double: keep it exact. */
        q->seed = clock_wall_ms() & UINT32_MAX;
        options_start(&options, argc, argv);
        while (r == 0 && (id = options_next(&options)) != OPTIONS_END) {
                if (id == OPTIONS_HELP || id == OPTIONS_WRONG)
                        return id == OPTIONS_HELP ? -1 : EXIT_USAGE;
                r = take_option(q, id, &is_quick);
        }
        if (r == 0 && !q->plugin)
                return options_wrong(&options, "which plugin?  quiver vet PLUGIN.so");
        if (!q->payloads)
                q->payloads = is_quick ? PAYLOADS_QUICK : PAYLOADS;
        q->rehearsals = is_quick ? REHEARSALS_QUICK : REHEARSALS;
        return r;
}

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

static int run(struct vet_request *q)
{
        struct vet_report report = { .is_json = q->is_json };
        struct plugin_report probe = { 0 };
        struct error error = { "" };
        char handler[80];
        const char *which = q->handler ? q->handler : q->plugin;
        int r = 0;
        if (!q->handler) {
                plugin_args_handler(q->plugin, handler, sizeof(handler));
                q->handler = handler;
        }
        if (q->config)
                r = plugin_args_load(&q->settings, q->config, which, &error);
        if (r == 0)
                r = plugin_copy_make_temporary(q->plugin, PLUGIN_ANYBODYS, &q->copy, &error);
        if (!q->is_json)
                (void)printf("%s\n", q->plugin);
        if (r < 0) {
                vet_find(&report, VET_ERROR, "file", NULL, "%s", error.text);
        } else {
                vet(q, &report, &probe);
                plugin_copy_remove_temporary(&q->copy);
        }
        vet_finish(&report, q, &probe);
        int code = report.errors ? EXIT_FAILED : EXIT_DONE;
        vet_report_free(&report);
        return code;
}

int cmd_vet(int argc, char **argv)
{
        struct vet_request q = { .init_ms = INIT_MS };
        int r = parse(&q, argc, argv);
        if (r == 0)
                r = run(&q);
        setting_list_free(&q.settings);
        strings_free(&q.sets);
        return r < 0 ? EXIT_DONE : r;
}
