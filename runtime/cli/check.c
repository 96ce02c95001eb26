/* check.c: is this configuration any good? */
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "cli/check_plugins.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/options.h"
#include "config/config.h"
#include "host/harden.h"

#define HANDLERS_SHOWN 12

enum { OPTION_JSON = 256, OPTION_SHOW, OPTION_REFERENCE, OPTION_CONFIG_ONLY };

static const struct option_spec specs[] = {
        { 'c', "config", "FILE", "the file; else $QUIVER_CONFIG, ./etc/runtime.cfg, /etc/quiver/runtime.cfg" },
        { OPTION_SHOW, "show", NULL, "print every setting with its value; secrets are not shown" },
        { OPTION_CONFIG_ONLY, "config-only", NULL, "look at the file alone: load no plugin, run no init" },
        { OPTION_JSON, "json", NULL, "print one JSON object" },
        { OPTION_REFERENCE, "reference", NULL, "print what can be set, in Markdown, and look at no file" },
};

/* What was looked at, and what came of it. */
struct check {
        const char *path;
        const char *how; /* why that file */
        bool is_ok;
        struct config config; /* if it could be loaded */
        struct problems problems;
        struct plugin_report *plugins; /* one per handler; NULL: none was loaded */
};

/* How to go about it. */
struct check_request {
        bool has_show, has_json, is_config_only;
};

static const char *plural(size_t count)
{
        return count == 1 ? "" : "s";
}

static void print_handler(const struct handler_config *h, const struct plugin_report *plugin)
{
        char timeout[UNITS_TEXT_MAX];
        char loaded[sizeof(plugin->name) + sizeof(plugin->version) + 8] = "";
        if (plugin)
                (void)snprintf(loaded, sizeof(loaded), " (%s%s%s)", plugin->name, *plugin->version ? " " : "",
                        plugin->version);
        (void)printf("  %-13s %s%s, %u process%s of %u thread%s, timeout %s, %u attempt%s\n", h->name, h->plugin,
                loaded, h->processes, h->processes == 1 ? "" : "es", h->threads, plural(h->threads),
                h->timeout_ms ? units_format_ms(timeout, h->timeout_ms) : "none", h->retry.attempts,
                plural(h->retry.attempts));
}

static void print_summary(const struct check *check)
{
        const struct config *c = &check->config;
        char ttl[UNITS_TEXT_MAX];
        (void)printf("app             %s, %u shard%s\n", c->app, c->shards, plural(c->shards));
        (void)printf("store           %s\n", c->store.url.text);
        (void)printf("coordination    %s, lease %s\n", c->coordination.url.text, units_format_ms(ttl, c->lease.ttl_ms));
        (void)printf("host            %s, weight %u\n", c->host.name, c->host.weight);
        (void)printf("http            %s\n", c->http.listen ? c->http.listen : "none");
        (void)printf("state           %s\n", c->state);
        (void)printf("plugins         %s\n", c->plugins);
        (void)printf("handlers        %zu\n", c->handlers_count);
        for (size_t i = 0; i < c->handlers_count && i < HANDLERS_SHOWN; i++)
                print_handler(&c->handlers[i], check->plugins ? &check->plugins[i] : NULL);
        if (c->handlers_count > HANDLERS_SHOWN)
                (void)printf("  and %zu more (--show prints all)\n", c->handlers_count - HANDLERS_SHOWN);
}

static void report_text(const struct check *check, bool has_show)
{
        const struct problems *p = &check->problems;
        char text[2048];
        for (size_t i = 0; i < p->count; i++)
                (void)fprintf(stderr, "%s\n", problem_format(&p->items[i], text, sizeof(text)));
        if (p->left_off)
                (void)fprintf(stderr, "… and %zu more\n", p->left_off);
        if (!check->is_ok) {
                (void)fprintf(stderr, "%s (%s): %zu error%s\n", check->path, check->how, p->errors, plural(p->errors));
                return;
        }
        if (has_show) {
                (void)printf("// %s (%s)\n", check->path, check->how);
                config_show(&check->config, stdout);
                return;
        }
        (void)printf("%s (%s): ok\n", check->path, check->how);
        print_summary(check);
}

static json_t *json_problem(const struct problem *p)
{
        json_t *json = json_object();
        (void)json_object_set_new(json, "file", cli_json_text(p->file));
        (void)json_object_set_new(json, "line", p->line ? json_integer(p->line) : json_null());
        (void)json_object_set_new(json, "severity", json_string(p->is_warning ? "warning" : "error"));
        (void)json_object_set_new(json, "text", cli_json_text(p->text));
        return json;
}

static json_t *json_plugins(const struct check *check)
{
        json_t *list = json_array();
        for (size_t i = 0; i < check->config.handlers_count; i++) {
                const struct plugin_report *plugin = &check->plugins[i];
                if (!plugin->is_ready)
                        continue;
                json_t *json = json_object();
                (void)json_object_set_new(json, "handler", cli_json_text(check->config.handlers[i].name));
                (void)json_object_set_new(json, "plugin", cli_json_text(check->config.handlers[i].plugin_path));
                (void)json_object_set_new(json, "name", cli_json_text(plugin->name));
                (void)json_object_set_new(json, "version", cli_json_text(plugin->version));
                (void)json_array_append_new(list, json);
        }
        return list;
}

static void report_json(const struct check *check, bool has_show)
{
        json_t *json = json_object();
        json_t *list = json_array();
        for (size_t i = 0; i < check->problems.count; i++)
                (void)json_array_append_new(list, json_problem(&check->problems.items[i]));
        (void)json_object_set_new(json, "file", cli_json_text(check->path));
        (void)json_object_set_new(json, "found", json_string(check->how));
        (void)json_object_set_new(json, "ok", json_boolean(check->is_ok));
        (void)json_object_set_new(json, "errors", json_integer((json_int_t)check->problems.errors));
        (void)json_object_set_new(json, "problems", list);
        if (check->plugins)
                (void)json_object_set_new(json, "plugins", json_plugins(check));
        if (has_show && check->is_ok)
                (void)json_object_set_new(json, "settings", config_show_json(&check->config));
        (void)json_dumpf(json, stdout, JSON_INDENT(2));
        (void)printf("\n");
        json_decref(json);
}

/* Every step adds to the problems; they are reported together. */
static int check_file(const char *path, const char *how, const struct check_request *request)
{
        struct check check = { .path = path, .how = how, .problems = { .reader = READER_CHECK } };
        bool is_loaded = config_load(path, &check.config, &check.problems) == 0;
        if (is_loaded)
                check_state(&check.config, &check.problems);
        if (is_loaded && !request->is_config_only)
                check.plugins = check_plugins(&check.config, &check.problems);
        check.is_ok = is_loaded && !check.problems.errors;
        if (request->has_json)
                report_json(&check, request->has_show);
        else
                report_text(&check, request->has_show);
        int code = check.is_ok ? EXIT_DONE : EXIT_FAILED;
        free(check.plugins);
        config_free(&check.config);
        problems_free(&check.problems);
        return code;
}

int cmd_check(int argc, char **argv)
{
        struct options o = {
                .usage = "check [-c FILE] [--config-only] [--show] [--json]",
                .about = "Says which configuration is used and everything that is wrong with it, or \"ok\" and a "
                         "summary.\nEvery plugin is loaded in a throw-away runner with its settings, so its init "
                         "runs.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver check\n"
                            "  quiver check -c etc/runtime.cfg --show\n"
                            "  quiver check --config-only          no plugin's code is run\n",
        };
        const char *given = NULL;
        const char *how = NULL;
        char *path = NULL;
        struct check_request request = { 0 };
        struct error error;
        /* A plugin's code runs as a child of this, too. */
        harden_process();
        options_start(&o, argc, argv);
        for (int id = options_next(&o); id != OPTIONS_END; id = options_next(&o)) {
                switch (id) {
                case 'c':
                        given = o.value;
                        break;
                case OPTION_SHOW:
                        request.has_show = true;
                        break;
                case OPTION_JSON:
                        request.has_json = true;
                        break;
                case OPTION_CONFIG_ONLY:
                        request.is_config_only = true;
                        break;
                case OPTION_REFERENCE:
                        config_reference(stdout);
                        return EXIT_DONE;
                case OPTIONS_HELP:
                        return EXIT_DONE;
                case OPTIONS_WORD:
                        return options_wrong(&o, "what is %s? A file is given with -c", o.value);
                default:
                        return EXIT_USAGE;
                }
        }
        if (config_find(given, &path, &how, &error) < 0) {
                (void)fprintf(stderr, "quiver check: %s\n", error.text);
                return EXIT_FAILED;
        }
        int code = check_file(path, how, &request);
        free(path);
        return code;
}
