#include "cli/check_plugins.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/try/try.h"
#include "config/file.h"
#include "host/handler/plugin_copy.h"
#include "host/pool/runner_settings.h"

static int on_call(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        return try_services_call(owner, service, holder, name, number);
}

/* A problem is one line: of a backtrace it has the innermost function. */
static void make_one_line(char *text)
{
        char *end = strchr(text, '\n');
        if (!end)
                return;
        char *frame_end = strchr(end + 1, '\n');
        if (frame_end)
                *frame_end = 0;
        if (end[1])
                *end = ' ';
        else
                *end = 0;
}

static void probe_handler(const struct config *config, const struct handler_config *h, const struct plugin_copy *copy,
        struct problems *problems, struct plugin_report *report)
{
        struct config_place place = { .file = h->file, .line = h->line };
        struct try_services *services = try_services_new();
        struct runner_start start;
        runner_settings_fill(&start, config, h, copy);
        start.leases = 1;
        start.can_call = 1u << SERVICE_NEXT_ID | 1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK;
        if (*start.user && geteuid() != 0) {
                problems_warn(problems, place, "handlers.%s: loaded as you, not as user %s: only root can", h->name,
                        start.user);
                start.user = "";
        }
        struct plugin_probe_request request = { .start = &start,
                .init_ms = h->init_timeout_ms,
                .close_ms = h->grace_ms,
                .call = on_call,
                .owner = services };
        plugin_probe_run(&request, report);
        try_services_free(services);
        make_one_line(report->error);
        if (*report->error)
                problems_error(problems, place, "handlers.%s: %s", h->name, report->error);
        if (*report->unread)
                problems_warn(problems, place, "handlers.%s: plugin %s never read the setting%s %s; misspelt?", h->name,
                        copy->label, strchr(report->unread, ',') ? "s" : "", report->unread);
        if (*report->notes)
                problems_warn(problems, place, "handlers.%s: %s", h->name, report->notes);
}

void check_state(const struct config *config, struct problems *problems)
{
        struct file_trust trust;
        struct error error;
        char prefix[PATH_MAX + 32];
        int fd = file_trust_open(config->state, FILE_TRUST_FOLDER, &trust, &error);
        /* The host makes it if it is not there; whoever checks may not be let in. */
        if (fd >= 0)
                (void)close(fd);
        (void)snprintf(prefix, sizeof(prefix), "state folder %s: ", config->state);
        file_judge(problems, (struct config_place){ .file = config->path }, prefix, &trust);
        problems_sort(problems);
}

struct plugin_report *check_plugins(const struct config *config, struct problems *problems)
{
        struct plugin_report *reports = calloc(config->handlers_count + 1, sizeof(*reports));
        if (!reports)
                abort();
        for (size_t i = 0; i < config->handlers_count; i++) {
                const struct handler_config *h = &config->handlers[i];
                struct error error;
                struct plugin_copy copy;
                if (plugin_copy_make_temporary(h->plugin_path, plugin_copy_source_of(config), &copy, &error) < 0) {
                        problems_error(problems, (struct config_place){ .file = h->file, .line = h->line },
                                "handlers.%s: %s", h->name, error.text);
                        continue;
                }
                probe_handler(config, h, &copy, problems, &reports[i]);
                plugin_copy_remove_temporary(&copy);
        }
        problems_sort(problems);
        return reports;
}
