/* doctor.c: `quiver doctor`: looks at everything that an operator should know, and says what to do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/check.h"
#include "cli/command.h"
#include "cli/doctor/judge.h"
#include "cli/doctor/probes.h"
#include "cli/doctor/redis_read.h"
#include "cli/open.h"
#include "cli/print.h"
#include "view/json.h"

struct doctor_request {
        const char *config;
        bool has_all, has_json;
};

struct doctor {
        const char *path, *how;
        struct config config;
        struct findings findings;
        struct doctor_figures figures;
        bool is_unreachable;
};

static void free_deployment(struct doctor_deployment *d)
{
        for (size_t i = 0; i < d->servers_count; i++)
                redis_read_free(&d->servers[i]);
        free(d->servers);
        strings_free(&d->host.lacking);
        strings_free(&d->operator.lacking);
}

void figures_free(struct doctor_figures *f)
{
        free_deployment(&f->store);
        free_deployment(&f->tree);
        free(f->certificates);
        free(f->coordination.zookeepers);
        free(f->app.hosts);
        strings_free(&f->app.features_off);
        strings_free(&f->machine.void_limits);
        free(f->files.plugins);
}

/* What `quiver check` finds in the file alone, modes and owners included. */
static void add_problems(const struct problems *problems, struct findings *to)
{
        char text[ERROR_TEXT_MAX];
        for (size_t i = 0; i < problems->count; i++)
                findings_add(to, problems->items[i].is_warning ? FINDING_WARNING : FINDING_ERROR, SUBJECT_SETTINGS,
                        "settings", "correct it; quiver check", "%s",
                        problem_format(&problems->items[i], text, sizeof(text)));
        if (!problems->count)
                findings_add(to, FINDING_OK, SUBJECT_SETTINGS, "settings", NULL, "The settings can be used.");
}

/* Every probe but the first two is made whatever the others found; the app is not asked of a store that is away. */
static void look(struct doctor *d, const struct config_secrets *secrets)
{
        const struct config *config = &d->config;
        struct doctor_figures *f = &d->figures;
        f->coordination.doubt_ms = UNKNOWN;
        probe_files(config, &f->files);
        probe_redis(config, secrets, f);
        probe_certificates(config, f);
        probe_coordination(config, f);
        if (f->store.status == 0)
                probe_app(config, f, &d->findings);
        else
                f->app.error = f->store.error;
        probe_machine(config, f);
        doctor_judge(f, &d->findings);
        d->is_unreachable = f->store.status < 0 || f->tree.status < 0 || f->coordination.status < 0 ||
                            (!f->app.is_open && !f->app.is_missing && cli_exit_code(f->app.status) == EXIT_UNREACHABLE);
}

static enum exit_code exit_of(const struct doctor *d)
{
        if (d->is_unreachable)
                return EXIT_UNREACHABLE;
        return d->findings.counts[FINDING_ERROR] || d->findings.counts[FINDING_WARNING] ? EXIT_FAILED : EXIT_DONE;
}

static void print_json(const struct doctor *d, enum exit_code code)
{
        const struct findings *f = &d->findings;
        json_t *counts = json_object();
        for (int level = 0; level < FINDING_LEVELS; level++)
                view_json_number(counts, finding_level_name((enum finding_level)level), f->counts[level]);
        cli_json_print_wide(json_pack("{s:o, s:o, s:b, s:i, s:o, s:o}", "file", view_json_text(d->path), "app",
                view_json_text(d->config.app ? d->config.app : ""), "reachable", !d->is_unreachable, "exit", (int)code,
                "counts", counts, "findings", findings_as_json(f)));
}

static void print_text(const struct doctor *d, bool has_all)
{
        struct buffer text = { 0 };
        if (d->config.app)
                (void)printf("%s (%s): app %s, store %s, coordination %s\n", d->path, d->how, d->config.app,
                        d->config.store.url.text, d->config.coordination.url.text);
        findings_as_text(&text, &d->findings, has_all, cli_has_color());
        cli_text_print(&text);
}

static int examine(const char *path, const char *how, const struct doctor_request *q)
{
        static struct config_secrets secrets;
        struct doctor d = { .path = path, .how = how };
        struct problems problems = { .reader = READER_CHECK };
        struct error error;
        log_set_level(LEVEL_ERROR); /* what drivers tell of every step is for a host's log */
        bool is_loaded = config_load(path, &cli_set, &d.config, &problems) == 0;
        if (is_loaded)
                check_state(&d.config, &problems);
        add_problems(&problems, &d.findings);
        if (is_loaded) {
                /* What cannot be read of them is among the problems. */
                (void)config_secrets_read(&d.config, false, &secrets, &error);
                look(&d, &secrets);
        }
        explicit_bzero(&secrets, sizeof(secrets));
        enum exit_code code = exit_of(&d);
        if (q->has_json)
                print_json(&d, code);
        else
                print_text(&d, q->has_all);
        figures_free(&d.figures);
        findings_free(&d.findings);
        config_free(&d.config);
        problems_free(&problems);
        return (int)code;
}

int cmd_doctor(int argc, char **argv)
{
        struct doctor_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--all", &q.has_all, "show what is ok, too"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "doctor [-c FILE] [--all] [--json]",
                .about = "Looks at everything that an operator should know, and says what to do: the settings, clocks, "
                         "the store's\nand the coordination's servers (what they keep, evict and allow, rights, "
                         "certificates), the app and its\nhosts, files, disks, limits and the kernel.  It changes "
                         "nothing, and waits for no server for long.\n\n"
                         "exit codes: 0 nothing worse than a note, 1 a warning or an error, 3 the store or the "
                         "coordination\ncannot be used; everything else is reported all the same",
                OPTIONS_TABLE(table),
                .hint = "a file is given with -c",
                .examples = "  quiver doctor\n"
                            "  quiver doctor --all\n"
                            "  quiver doctor --json | jq '.findings[] | select(.level == \"error\")'\n",
        };
        const char *how = NULL;
        char *path = NULL;
        struct error error;
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (config_find(q.config, &path, &how, &error) < 0)
                return cli_fail(o.command, -EINVAL, error.text);
        code = examine(path, how, &q);
        free(path);
        return code;
}
