/* reload.c: `quiver reload`: the hosts on this machine take up their changed configuration and plugins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/check.h"
#include "cli/command.h"
#include "cli/control_call.h"
#include "cli/open.h"
#include "cli/print.h"
#include "cli/reload_fleet.h"
#include "cli/reload_hints.h"
#include "host/harden.h"

#define ANSWER_MS UINT64_C(60000) /* time for a host to read its configuration and plugins */
#define PING_MS   UINT64_C(5000)
#define WAIT_MS   UINT64_C(90000000) /* a probation lasts a day at most */

struct reload_request {
        const char *config;
        const char *host;
        bool is_patient;
        bool is_dry;
        bool is_fleet;
        bool has_json;
};

static const char *text_of(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

static void print_plan(const json_t *handlers)
{
        size_t i;
        json_t *handler;
        json_array_foreach(handlers, i, handler)
        {
                const char *why = text_of(handler, "why");
                (void)printf("%-24s %s%s%s\n", text_of(handler, "handler"), text_of(handler, "action"),
                        *why ? ": " : "", why);
        }
}

static void print_outcomes(const json_t *outcomes)
{
        size_t i;
        json_t *entry;
        json_array_foreach(outcomes, i, entry)
        {
                const char *why = text_of(entry, "text");
                long long generation = json_integer_value(json_object_get(entry, "generation"));
                if (generation)
                        (void)printf("%-24s generation %lld, version %s: %s%s%s\n", text_of(entry, "handler"),
                                generation, *text_of(entry, "version") ? text_of(entry, "version") : "unknown",
                                text_of(entry, "outcome"), *why ? ": " : "", why);
        }
}

/* Prints the handlers whose new generations are on probation.  A generation that replaces none has nothing to go back
 * to and so no probation: it is good once it is ready. */
static void print_wait(const json_t *handlers, const struct config *config)
{
        size_t i;
        json_t *handler;
        struct buffer names = { 0 };
        char probation[UNITS_TEXT_MAX];
        bool is_watched = false;
        json_array_foreach(handlers, i, handler)
        {
                const char *action = text_of(handler, "action");
                bool is_new = !strcmp(action, "new generation");
                if (is_new || !strcmp(action, "added"))
                        buffer_printf(&names, "%s%s", names.size ? ", " : "", text_of(handler, "handler"));
                is_watched |= is_new && config->reload.probation_ms;
        }
        if (names.size && is_watched)
                (void)printf("waiting for %s: ready, then on probation for %s or %u tasks (Ctrl-C ends only the "
                             "waiting)\n",
                        buffer_text(&names), units_format_ms(probation, config->reload.probation_ms),
                        (unsigned)config->reload.tasks);
        else if (names.size)
                (void)printf("waiting for %s to be ready (Ctrl-C ends only the waiting)\n", buffer_text(&names));
        (void)fflush(stdout);
        buffer_free(&names);
}

static void print_reply(const json_t *reply, bool is_dry)
{
        size_t i;
        json_t *problem;
        json_array_foreach(json_object_get(reply, "problems"), i, problem)
        {
                (void)fprintf(stderr, "%s\n", json_string_value(problem));
        }
        if (json_object_get(reply, "problems")) {
                (void)fprintf(stderr, "quiver reload: refused; nothing was changed\n");
                return;
        }
        print_plan(json_object_get(reply, "handlers"));
        print_outcomes(json_object_get(reply, "outcomes"));
        if (is_dry)
                (void)printf("(nothing was changed)\n");
}

/* Prints the plan at once, and then waits for the outcome. */
static int await(const struct reload_request *q, const struct config *config, const char *name, json_t *planned,
        json_t **ret_reply, struct error *error)
{
        json_t *request = json_pack("{s:s, s:O}", "verb", "reload-await", "reload", json_object_get(planned, "reload"));
        if (!q->has_json) {
                print_plan(json_object_get(planned, "handlers"));
                print_wait(json_object_get(planned, "handlers"), config);
                reload_hints(config, json_object_get(planned, "handlers"));
        }
        int r = control_ask(config->state, name, request, WAIT_MS, ret_reply, error);
        if (r == 0 && q->has_json)
                (void)json_object_set(*ret_reply, "handlers", json_object_get(planned, "handlers"));
        return r;
}

static int ask(const struct reload_request *q, const struct config *config, const char *name, json_t **ret_reply,
        struct error *error)
{
        json_t *request = json_pack("{s:s, s:b}", "verb", "reload", "dry_run", q->is_dry);
        json_t *planned = NULL;
        int r = control_ask(config->state, name, request, ANSWER_MS, &planned, error);
        if (r < 0 || !q->is_patient || q->is_dry || json_object_get(planned, "problems")) {
                *ret_reply = planned;
                return r;
        }
        r = await(q, config, name, planned, ret_reply, error);
        json_decref(planned);
        return r;
}

/* Whether that host runs, and with the same configuration file. */
static bool is_ours(const struct config *config, const char *name)
{
        struct error error = { "" };
        json_t *reply = NULL;
        if (control_ask(config->state, name, json_pack("{s:s}", "verb", "ping"), PING_MS, &reply, &error) < 0)
                return false;
        char *theirs = realpath(text_of(reply, "config"), NULL);
        char *ours = realpath(config->path, NULL);
        bool is_same = theirs && ours && !strcmp(theirs, ours);
        free(theirs);
        free(ours);
        json_decref(reply);
        return is_same;
}

/* The named host, or every host on this machine that runs with this configuration.  If none does, the host that the
 * configuration names, so that the error names it. */
static void find_hosts(const struct reload_request *q, const struct config *config, struct strings *ret_hosts)
{
        struct strings names = { 0 };
        if (!q->host)
                control_names(config->state, &names);
        for (size_t i = 0; i < names.count; i++)
                if (is_ours(config, names.items[i]))
                        strings_add(ret_hosts, names.items[i]);
        if (!ret_hosts->count)
                strings_add(ret_hosts, q->host ? q->host : config->host.name);
        strings_free(&names);
}

/* Adds what the plan cannot show: whether the plugins load and accept their settings. */
static int add_check(const struct config *config, json_t *replies)
{
        size_t i;
        json_t *item;
        json_t *errors = check_errors(config->path);
        json_array_foreach(errors, i, item)
        {
                (void)fprintf(stderr, "%s\n", json_string_value(item));
        }
        int code = i ? EXIT_FAILED : EXIT_DONE;
        json_array_foreach(replies, i, item)
        {
                (void)json_object_set(item, "check", errors);
                if (code != EXIT_DONE)
                        (void)json_object_set_new(item, "failed", json_true());
        }
        json_decref(errors);
        return code;
}

/* Reloads one host after the other and stops at the first that refuses something: the others stay as they are. */
static int reload_hosts(const struct reload_request *q, const struct config *config, const struct strings *hosts)
{
        json_t *all = json_array();
        int code = EXIT_DONE;
        for (size_t i = 0; i < hosts->count && code == EXIT_DONE; i++) {
                struct error error = { "" };
                json_t *reply = NULL;
                if (hosts->count > 1 && !q->has_json)
                        (void)printf("host %s\n", hosts->items[i]);
                int r = ask(q, config, hosts->items[i], &reply, &error);
                if (r < 0) {
                        code = control_fail("reload", r, &error);
                        break;
                }
                code = json_is_true(json_object_get(reply, "failed")) ? EXIT_FAILED : EXIT_DONE;
                if (hosts->count > 1)
                        (void)json_object_set_new(reply, "host", json_string(hosts->items[i]));
                if (!q->has_json) {
                        print_reply(reply, q->is_dry);
                        (void)fflush(stdout);
                        if (json_object_get(reply, "handlers"))
                                reload_hints(config, json_object_get(reply, "handlers"));
                }
                (void)json_array_append_new(all, reply);
                if (code != EXIT_DONE && i + 1 < hosts->count)
                        (void)fprintf(stderr, "quiver reload: host %s refused; %zu more were not asked\n",
                                hosts->items[i], hosts->count - i - 1);
        }
        if (q->is_dry && code == EXIT_DONE)
                code = add_check(config, all);
        if (q->has_json && json_array_size(all))
                cli_json_print_wide(json_incref(hosts->count > 1 ? all : json_array_get(all, 0)));
        json_decref(all);
        return code;
}

static int reload(const struct reload_request *q)
{
        struct cli_store s; /* the hosts' folder is in their configuration */
        struct strings hosts = { 0 };
        int code = cli_load(&s, "reload", q->config, READER_COMMAND);
        if (code != EXIT_DONE)
                return code;
        find_hosts(q, &s.config, &hosts);
        code = reload_hosts(q, &s.config, &hosts);
        strings_free(&hosts);
        config_free(&s.config);
        return code;
}

static int reload_all(struct cli_store *s, void *self)
{
        const struct reload_request *q = self;
        return reload_fleet(s, &(struct reload_fleet_request){ .is_patient = q->is_patient, .has_json = q->has_json });
}

int cmd_reload(int argc, char **argv)
{
        struct reload_request q = { 0 };
        /* --dry-run: a plugin's code runs as a child of this. */
        harden_process();
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--wait", &q.is_patient,
                        "until every new version that it brings has proved itself, was refused or was rolled back"),
                OPT_FLAG("--dry-run", &q.is_dry, "only say what would happen; loads the plugins as quiver check does"),
                OPT_TEXT(
                        "--host NAME", &q.host, "only that one (default: all on this machine that run with this file)"),
                OPT_FLAG("--all", &q.is_fleet, "every host of the app, on any machine; each reads its own file"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "reload [-c FILE] [--wait] [--dry-run] [--host NAME | --all] [--json]",
                .about = "The hosts on this machine that run with this configuration take up what has changed: "
                         "settings, "
                         "and the files of\nplugins; one after the other, and none after the first that refuses "
                         "something.\n"
                         "--all: the same for every host of the app, through the store; one that is gone or does not "
                         "answer within\na minute stops it, too.\n"
                         "Says what happens to each handler. Exit code 1: something was refused, or rolled back.",
                OPTIONS_TABLE(table),
                .examples =
                        "  quiver reload --dry-run\n"
                        "  cp build/mail.so plugins/mail.so.new && mv plugins/mail.so.new plugins/mail.so && quiver "
                        "reload --wait\n"
                        "  quiver reload --all --wait\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (!q.is_fleet)
                return reload(&q);
        if (q.host)
                return options_wrong(&o, "--all and --host exclude each other");
        if (q.is_dry)
                return options_wrong(&o, "--dry-run asks the hosts of this machine only; leave out --all");
        return cli_act(&o, q.config, reload_all, &q);
}
