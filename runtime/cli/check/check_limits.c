#include "cli/check/check_limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/confine/cgroups.h"
#include "runner/sandbox.h"
#include "view/json.h"

#define NAMES_SHOWN 3
#define LINES_MAX   16 /* each limit covers one of a few things */

struct check_machine check_machine_look(const struct config *config)
{
        struct check_machine m = { .facts = { .landlock = sandbox_landlock_version(),
                                           .has_namespace = sandbox_can_leave_network(),
                                           .is_root = geteuid() == 0 } };
        if (config->host.cgroup == CGROUP_USE_OFF)
                (void)error_set(&m.why, 0, "host.cgroup is \"off\"");
        else if (cgroups_probe(config->host.cgroup == CGROUP_USE_REQUIRE, &m.facts.controllers, m.group, &m.why) < 0)
                *m.group = 0;
        return m;
}

/* Handlers mostly have the same limits: a line is about all handlers to which it applies. */
struct shared_line {
        struct coverage_line line;
        size_t handlers;
        char names[160]; /* of the first of them */
};

static void add_line(struct shared_line *lines, size_t *count, const struct coverage_line *line, const char *handler)
{
        size_t i = 0;
        while (i < *count && (lines[i].line.limit != line->limit || lines[i].line.covers != line->covers))
                i++;
        if (i == LINES_MAX)
                return;
        if (i == *count)
                lines[(*count)++] = (struct shared_line){ .line = *line };
        struct shared_line *shared = &lines[i];
        size_t used = strlen(shared->names);
        if (++shared->handlers <= NAMES_SHOWN)
                (void)snprintf(
                        shared->names + used, sizeof(shared->names) - used, "%s%.40s", used ? ", " : "", handler);
}

void check_print_limits(const struct config *config)
{
        struct check_machine m = check_machine_look(config);
        struct shared_line shared[LINES_MAX] = { 0 };
        size_t shared_count = 0;
        char controllers[64];
        if (*m.group)
                (void)printf("control group   in %s, if the host is started as this command was; limits by it: %s\n",
                        m.group, cgroup_controllers_text(m.facts.controllers, controllers, sizeof(controllers)));
        else
                (void)printf("control group   none: %s\n", m.why.text);
        for (size_t i = 0; i < config->handlers_count; i++) {
                struct coverage_line lines[COVERAGE_LINES_MAX];
                size_t count = coverage_of(&config->handlers[i].limits, &m.facts, lines);
                for (size_t k = 0; k < count; k++)
                        add_line(shared, &shared_count, &lines[k], config->handlers[i].name);
        }
        for (size_t i = 0; i < shared_count; i++)
                (void)printf("  limits.%s (%s%s): %s\n", shared[i].line.limit, shared[i].names,
                        shared[i].handlers > NAMES_SHOWN ? " …" : "", shared[i].line.covers);
}

json_t *check_json_limits(const struct config *config)
{
        struct check_machine m = check_machine_look(config);
        json_t *handlers = json_array();
        for (size_t i = 0; i < config->handlers_count; i++) {
                struct coverage_line lines[COVERAGE_LINES_MAX];
                size_t count = coverage_of(&config->handlers[i].limits, &m.facts, lines);
                for (size_t k = 0; k < count; k++)
                        (void)json_array_append_new(
                                handlers, json_pack("{s:o, s:s, s:s, s:b}", "handler",
                                                  view_json_text(config->handlers[i].name), "limit", lines[k].limit,
                                                  "covers", lines[k].covers, "has_effect", !lines[k].is_void));
        }
        return json_pack("{s:o, s:o, s:b, s:b, s:b, s:i, s:b, s:o}", "cgroup",
                *m.group ? view_json_text(m.group) : json_null(), "why", view_json_text(m.why.text), "memory",
                !!(m.facts.controllers & CGROUP_MEMORY), "processes", !!(m.facts.controllers & CGROUP_PIDS), "cpu",
                !!(m.facts.controllers & CGROUP_CPU), "landlock", (int)m.facts.landlock, "network_namespace",
                m.facts.has_namespace, "limits", handlers);
}
