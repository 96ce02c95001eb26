/* app_io.c: the app as the commands see it: its record, its hosts' documents, what `quiver status` complains about. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "cli/doctor/judge.h"
#include "cli/doctor/probes.h"
#include "cli/look.h"
#include "client/admin.h"
#include "look/status_look.h"
#include "view/json.h"
#include "view/problems.h"

#define REFRESH_MS 2000u /* a host writes its document at least every ttl, and this at the soonest */

struct app_probe {
        const struct config *config;
        struct doctor_figures *to;
        char machine[65];
};

/* A document may say anything. */
static void take_document(void *self, const struct store_status *found)
{
        struct app_probe *p = self;
        struct doctor_app *app = &p->to->app;
        json_t *said = json_loadb(found->document.size ? found->document.data : "", found->document.size, 0, NULL);
        uint64_t wall_ms = view_json_get_number(said, "wall_ms");
        app->hosts = array_grow(app->hosts, app->hosts_count, sizeof(*app->hosts));
        struct doctor_host *h = &app->hosts[app->hosts_count++];
        (void)snprintf(h->name, sizeof(h->name), "%s", view_json_get_text(said, "name"));
        (void)snprintf(h->version, sizeof(h->version), "%s", view_json_get_text(said, "version"));
        (void)snprintf(h->machine, sizeof(h->machine), "%s", view_json_get_text(said, "machine"));
        h->silent_ms = found->age_ms;
        h->refresh_ms = max_u64(p->config->lease.ttl_ms, REFRESH_MS);
        h->has_clock = wall_ms != 0;
        h->ahead_ms = (int64_t)(wall_ms + found->age_ms) - (int64_t)clock_wall_ms();
        if (!strcmp(h->machine, p->machine) && !strcmp(h->name, p->config->host.name))
                p->to->machine.host_pid = view_json_get_number(said, "pid");
        json_decref(said);
}

static void find_fullest(struct doctor_app *app, const struct status *status)
{
        for (uint32_t i = 0; i < status->info->shards; i++) {
                uint64_t tasks = status_shard_waiting(status, i);
                if (tasks <= app->fullest)
                        continue;
                app->fullest = tasks;
                app->fullest_shard = i;
        }
}

static int look(struct cli_store *s, struct app_probe *p, struct findings *findings, struct error *error)
{
        struct doctor_app *app = &p->to->app;
        struct status_look look = { 0 };
        status_look_init(&look, p->config->store.url.text, clock_wall_ms());
        int r = cli_look(s, &look.look, error);
        if (r == 0) {
                json_t *problems = problems_as_json(&look.status);
                judge_problems(problems, findings);
                json_decref(problems);
                find_fullest(app, &look.status);
                r = client_documents(s->client, DOCUMENT_STATUS, take_document, NULL, p, error);
        }
        status_look_free(&look);
        return r;
}

static void take_record(struct doctor_app *app, const struct store_info *info)
{
        app->shards = info->shards;
        app->schema = info->record->schema;
        for (size_t i = 0; i < store_features_count; i++)
                if (!store_app_has(info->record, store_features[i].name))
                        strings_add(&app->features_off, store_features[i].name);
}

void probe_app(const struct config *config, struct doctor_figures *to, struct findings *findings)
{
        struct app_probe p = { .config = config, .to = to };
        struct cli_store s = { .command = "doctor" };
        struct doctor_app *app = &to->app;
        (void)gethostname(p.machine, sizeof(p.machine) - 1);
        app->backlog_max = config->store.backlog_max;
        if (config->store.url.kind == URL_SQLITE)
                (void)snprintf(app->synchronous, sizeof(app->synchronous), "%s",
                        config->store.synchronous == SYNCHRONOUS_NORMAL ? "normal" : "full");
        app->status = client_open_config(config, &s.client, &app->error);
        app->is_missing = app->status == -ENOENT;
        if (app->status < 0)
                return;
        s.info = client_store_info(s.client);
        take_record(app, s.info);
        app->status = look(&s, &p, findings, &app->error);
        app->is_open = app->status == 0;
        to->coordination.hosts_alive = app->is_open ? app->hosts_count : (size_t)UNKNOWN;
        qv_client_close(s.client);
}
