/* check.c: is this configuration any good? */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/check.h"
#include "cli/check/check_acl.h"
#include "cli/check/check_limits.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/plugin_session.h"
#include "cli/print.h"
#include "cli/schedule/schedule_show.h"
#include "config/connect.h"
#include "host/harden.h"
#include "host/pool/runner_settings.h"
#include "schedule/time_text.h"
#include "tls/tls.h"
#include "view/json.h"
#include "view/text.h"

#define HANDLERS_SHOWN         12
#define SCHEDULE_TIMES_CHECKED 3u

/* The state of one check. */
struct check {
        const char *path;
        const char *how; /* how the file was chosen */
        bool is_ok;
        struct config config; /* valid if it could be loaded */
        struct problems problems;
        struct plugin_report *plugins; /* one per handler; NULL: none was loaded */
};

/* The command's options. */
struct check_request {
        const char *config;
        bool has_show, has_json, is_config_only, is_reference, is_acl;
};

static void print_handler(const struct handler_config *h, const struct plugin_report *plugin)
{
        char timeout[UNITS_TEXT_MAX];
        char loaded[sizeof(plugin->name) + sizeof(plugin->version) + 8] = "";
        if (plugin)
                (void)snprintf(loaded, sizeof(loaded), " (%s%s%s)", plugin->name, *plugin->version ? " " : "",
                        plugin->version);
        (void)printf("  %-13s %s%s, %u process%s of %u thread%s, timeout %s, %u attempt%s\n", h->name, h->plugin,
                loaded, h->processes, h->processes == 1 ? "" : "es", h->threads, text_plural(h->threads),
                h->timeout_ms ? units_format_ms(timeout, h->timeout_ms) : "none", h->retry.attempts,
                text_plural(h->retry.attempts));
}

/* The schedule's next times, as if it were set now. */
static uint32_t next_times(const struct schedule_config *c, struct schedule *ret_schedule, uint64_t *ret_times)
{
        struct error error = { "" };
        if (config_schedule(c, ret_schedule, &error) < 0)
                return 0;
        return schedule_times(
                ret_schedule, span_of_text(c->named.name), clock_wall_ms(), 0, SCHEDULE_TIMES_CHECKED, ret_times);
}

static void print_schedule(const struct schedule_config *c)
{
        struct schedule schedule = { 0 };
        struct buffer text = { 0 };
        uint64_t times[SCHEDULE_TIMES_CHECKED];
        uint32_t count = next_times(c, &schedule, times);
        buffer_printf(&text, "  %-13s ", c->named.name);
        schedule_put_when(&text, &schedule);
        text_put_between(&text, ", submits ", c->handler, ", next:\n");
        for (uint32_t i = 0; i < count; i++) {
                buffer_printf(&text, "                ");
                time_put(&text, times[i], &schedule.zone);
                buffer_printf(&text, "\n");
        }
        if (count < SCHEDULE_TIMES_CHECKED)
                buffer_printf(&text, "                %s\n", count ? "and no more" : "never");
        cli_text_print(&text);
        schedule_free(&schedule);
}

static json_t *json_schedules(const struct config *config)
{
        json_t *list = json_array();
        for (size_t i = 0; i < config->schedules_count; i++) {
                const struct schedule_config *c = &config->schedules[i];
                struct schedule schedule = { 0 };
                uint64_t times[SCHEDULE_TIMES_CHECKED];
                uint32_t count = next_times(c, &schedule, times);
                (void)json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", c->named.name, "handler",
                                                          c->handler, "times", schedule_times_as_json(times, count)));
                schedule_free(&schedule);
        }
        return list;
}

/* Describes TLS in one line; false if the URL has no TLS to Redis, or its files are unusable, which is reported
 * elsewhere. */
static bool describe_tls(const struct url *url, const struct tls_config *tls, char text[TLS_DESCRIPTION_MAX])
{
        const struct tls_files files = tls_files_of(tls);
        struct tls_context *context;
        if (!url_is_redis(url) || !url->is_tls || tls_context_open(&files, &context, NULL))
                return false;
        tls_context_describe(context, text);
        tls_context_free(context);
        return true;
}

static json_t *json_tls(const struct config *c)
{
        json_t *json = json_object();
        char text[TLS_DESCRIPTION_MAX];
        if (describe_tls(&c->store.url, &c->store.tls, text))
                (void)json_object_set_new(json, "store", view_json_text(text));
        if (describe_tls(&c->coordination.url, &c->coordination.tls, text))
                (void)json_object_set_new(json, "coordination", view_json_text(text));
        return json;
}

static void print_summary(const struct check *check)
{
        const struct config *c = &check->config;
        char ttl[UNITS_TEXT_MAX];
        char tls[TLS_DESCRIPTION_MAX];
        (void)printf("app             %s, %u shard%s\n", c->app, c->shards, text_plural(c->shards));
        (void)printf("store           %s\n", c->store.url.text);
        if (describe_tls(&c->store.url, &c->store.tls, tls))
                (void)printf("                %s\n", tls);
        (void)printf("coordination    %s, lease %s\n", c->coordination.url.text, units_format_ms(ttl, c->lease.ttl_ms));
        if (describe_tls(&c->coordination.url, &c->coordination.tls, tls))
                (void)printf("                %s\n", tls);
        (void)printf("host            %s, weight %u\n", c->host.name, c->host.weight);
        (void)printf("http            %s\n", c->http.listen ? c->http.listen : "none");
        (void)printf("state           %s\n", c->state);
        (void)printf("plugins         %s\n", c->plugins);
        check_print_limits(c);
        (void)printf("handlers        %zu\n", c->handlers_count);
        for (size_t i = 0; i < c->handlers_count && i < HANDLERS_SHOWN; i++)
                print_handler(&c->handlers[i], check->plugins ? &check->plugins[i] : NULL);
        if (c->handlers_count > HANDLERS_SHOWN)
                (void)printf("  and %zu more (--show prints all)\n", c->handlers_count - HANDLERS_SHOWN);
        if (c->schedules_count)
                (void)printf("schedules       %zu\n", c->schedules_count);
        for (size_t i = 0; i < c->schedules_count && i < HANDLERS_SHOWN; i++)
                print_schedule(&c->schedules[i]);
        if (c->schedules_count > HANDLERS_SHOWN)
                (void)printf("  and %zu more (--json has all)\n", c->schedules_count - HANDLERS_SHOWN);
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
                (void)fprintf(
                        stderr, "%s (%s): %zu error%s\n", check->path, check->how, p->errors, text_plural(p->errors));
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

static json_t *json_problems(const struct problems *problems)
{
        json_t *list = json_array();
        for (size_t i = 0; i < problems->count; i++) {
                const struct problem *p = &problems->items[i];
                (void)json_array_append_new(
                        list, json_pack("{s:o, s:o, s:s, s:o}", "file", view_json_text(p->file), "line",
                                      p->line ? json_integer(p->line) : json_null(), "severity",
                                      p->is_warning ? "warning" : "error", "text", view_json_text(p->text)));
        }
        return list;
}

static json_t *json_plugins(const struct check *check)
{
        json_t *list = json_array();
        for (size_t i = 0; i < check->config.handlers_count; i++) {
                const struct handler_config *h = &check->config.handlers[i];
                const struct plugin_report *p = &check->plugins[i];
                if (p->is_ready)
                        (void)json_array_append_new(
                                list, json_pack("{s:o, s:o, s:o, s:o}", "handler", view_json_text(h->name), "plugin",
                                              view_json_text(h->plugin_path), "name", view_json_text(p->name),
                                              "version", view_json_text(p->version)));
        }
        return list;
}

static void report_json(const struct check *check, bool has_show)
{
        json_t *json = json_pack("{s:o, s:s, s:b, s:I, s:o}", "file", view_json_text(check->path), "found", check->how,
                "ok", check->is_ok, "errors", (json_int_t)check->problems.errors, "problems",
                json_problems(&check->problems));
        if (check->plugins)
                (void)json_object_set_new(json, "plugins", json_plugins(check));
        if (check->is_ok)
                (void)json_object_set_new(json, "tls", json_tls(&check->config));
        if (check->is_ok)
                (void)json_object_set_new(json, "confinement", check_json_limits(&check->config));
        if (check->is_ok && check->config.schedules_count)
                (void)json_object_set_new(json, "schedules", json_schedules(&check->config));
        if (has_show && check->is_ok)
                (void)json_object_set_new(json, "settings", config_show_json(&check->config));
        cli_json_print_wide(json);
}

/* --- does every plugin load, and does its init like its settings? --- */

/* A problem is one line: keeps only the plugin's innermost function of a backtrace. */
static void make_one_line(char *text, const char *label)
{
        char mark[300];
        char *end = strchr(text, '\n');
        (void)snprintf(mark, sizeof(mark), " (%.255s)", label);
        char *frame = end ? strstr(end, mark) : NULL;
        while (frame && frame[-1] != '\n')
                frame--;
        if (frame) {
                size_t size = strcspn(frame, "\n");
                *end++ = ' ';
                memmove(end, frame, size);
                end += size;
        }
        if (end)
                *end = 0;
}

/* Starts a runner as a host would, with the handler's settings and limits, so that init runs; then ends it again. */
static void check_plugin(struct check *check, const struct handler_config *h, struct plugin_report *report)
{
        struct problems *problems = &check->problems;
        struct config_place place = { .file = h->file, .line = h->line };
        struct plugin_session session;
        struct error error;
        int r = plugin_session_open(&session, h->plugin_path, plugin_copy_source_of(&check->config), &error);
        if (r < 0) {
                problems_error(problems, place, "handlers.%s: %s", h->name, error.text);
                return;
        }
        runner_settings_fill(&session.start, &check->config, h, &session.copy);
        if (*session.start.user && geteuid() != 0) {
                problems_warn(problems, place, "handlers.%s: loaded as you, not as user %s: only root can", h->name,
                        session.start.user);
                session.start.user = "";
        }
        plugin_session_probe(&session, h->init_timeout_ms, h->grace_ms, report);
        make_one_line(report->error, session.copy.label);
        if (*report->error)
                problems_error(problems, place, "handlers.%s: %s", h->name, report->error);
        if (*report->unread)
                problems_warn(problems, place, "handlers.%s: plugin %s never read the setting%s %s; misspelt?", h->name,
                        session.copy.label, strchr(report->unread, ',') ? "s" : "", report->unread);
        if (*report->notes)
                problems_warn(problems, place, "handlers.%s: %s", h->name, report->notes);
        plugin_session_close(&session);
}

void check_state(const struct config *config, struct problems *problems)
{
        struct file_trust trust;
        struct error error;
        char prefix[PATH_MAX + 32];
        int fd = file_trust_open(config->state, FILE_TRUST_FOLDER, &trust, &error);
        /* A missing folder is fine: the host creates it.  The user who checks may lack access. */
        if (fd >= 0)
                (void)close(fd);
        (void)snprintf(prefix, sizeof(prefix), "state folder %s: ", config->state);
        problems_judge(problems, (struct config_place){ .file = config->path }, prefix, &trust);
        problems_sort(problems);
}

static void check_plugins(struct check *check)
{
        size_t count = check->config.handlers_count;
        check->plugins = memory_zero(count + 1, sizeof(*check->plugins));
        for (size_t i = 0; i < count; i++)
                if (!handler_is_remote(&check->config.handlers[i]))
                        check_plugin(check, &check->config.handlers[i], &check->plugins[i]);
        problems_sort(&check->problems);
}

/* Every step adds to the problems; they are reported together. */
static int check_file(const char *path, const char *how, const struct check_request *request)
{
        struct check check = { .path = path, .how = how, .problems = { .reader = READER_CHECK } };
        bool is_loaded = config_load(path, &cli_set, &check.config, &check.problems) == 0;
        if (is_loaded)
                check_state(&check.config, &check.problems);
        if (is_loaded && !request->is_config_only)
                check_plugins(&check);
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

/* The rights follow from the settings; the plugins have no part in them. */
static int print_acl(const char *path, const char *how, const struct check_request *request)
{
        struct check check = { .path = path, .how = how, .problems = { .reader = READER_CHECK } };
        int code = EXIT_FAILED;
        if (config_load(path, &cli_set, &check.config, &check.problems) == 0)
                code = check_acl(&check.config, request->has_json);
        else
                report_text(&check, false);
        config_free(&check.config);
        problems_free(&check.problems);
        return code;
}

json_t *check_errors(const char *path)
{
        struct check check = { .path = path, .problems = { .reader = READER_CHECK } };
        json_t *errors = json_array();
        if (config_load(path, &cli_set, &check.config, &check.problems) == 0) {
                check_state(&check.config, &check.problems);
                check_plugins(&check);
        }
        for (size_t i = 0; i < check.problems.count; i++) {
                char text[ERROR_TEXT_MAX];
                if (check.problems.items[i].is_warning)
                        continue;
                json_t *error = json_string(problem_format(&check.problems.items[i], text, sizeof(text)));
                (void)json_array_append_new(errors, error ? error : json_string("(not UTF-8)"));
        }
        free(check.plugins);
        config_free(&check.config);
        problems_free(&check.problems);
        return errors;
}

int cmd_check(int argc, char **argv)
{
        struct check_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--show", &q.has_show, "print every setting with its value; secrets are not shown"),
                OPT_FLAG("--config-only", &q.is_config_only, "look at the file alone: load no plugin, run no init"),
                OPT_FLAG("--json", &q.has_json, "print one JSON object"),
                OPT_FLAG("--acl", &q.is_acl,
                        "print the ACL line of each user that Redis may know: host, operator, producers"),
                OPT_FLAG("--reference", &q.is_reference, "print what can be set, in Markdown, and look at no file"),
        };
        struct options o = {
                .usage = "check [-c FILE] [--config-only] [--show | --acl] [--json]",
                .about = "Says which configuration is used and everything that is wrong with it, or \"ok\" and a "
                         "summary.\nEvery plugin is loaded in a throw-away runner with its settings, so its init "
                         "runs.\nOf each handler's limits it says what they cover on this machine.",
                OPTIONS_TABLE(table),
                .hint = "a file is given with -c",
                .examples = "  quiver check\n"
                            "  quiver check -c etc/runtime.cfg --show\n"
                            "  quiver check --config-only          no plugin's code is run\n"
                            "  quiver check --acl                  the rights of users in Redis, per role\n",
        };
        const char *how = NULL;
        char *path = NULL;
        struct error error;
        int code;
        /* Plugin code runs as a child of this process. */
        harden_process();
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (q.is_reference) {
                config_reference(stdout);
                return EXIT_DONE;
        }
        if (config_find(q.config, &path, &how, &error) < 0)
                return cli_fail(o.command, -EINVAL, error.text);
        code = q.is_acl ? print_acl(path, how, &q) : check_file(path, how, &q);
        free(path);
        return code;
}
