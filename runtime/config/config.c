#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers.h"
#include "config/field.h"
#include "config/read.h"
#include "config/table.h"

int config_find(const char *given, char **ret_path, const char **ret_how, struct error *error)
{
        static const char here[] = "./etc/runtime.cfg";
        static const char system[] = "/etc/quiver/runtime.cfg";
        const char *environment = getenv("QUIVER_CONFIG");
        const char *path = given;
        const char *how = "-c";
        if (!path && environment && *environment) {
                path = environment;
                how = "$QUIVER_CONFIG";
        }
        if (!path && !access(here, F_OK)) {
                path = here;
                how = "in the working directory";
        }
        if (!path && !access(system, F_OK)) {
                path = system;
                how = "the system's";
        }
        if (!path)
                return error_set(error, -ENOENT,
                        "no configuration: no -c FILE, $QUIVER_CONFIG is not set, and there is neither %s nor %s; go "
                        "to a "
                        "folder that has one, or make one: quiver init FOLDER",
                        here, system);
        *ret_path = text_copy(path);
        *ret_how = how;
        return 0;
}

static int load(const char *path, const char *text, size_t size, const struct strings *set, struct config *ret_config,
        struct problems *problems)
{
        struct config config = { 0 };
        struct config_tree tree;
        size_t errors = problems->errors;
        int r = tree_open(&tree, path, text, size, set, problems);
        if (!r) {
                config.path = text_copy(path);
                for (const struct source_file *file = tree.source.files; file; file = file->next)
                        config.version = max_u64(config.version, file->written_ms);
                for (size_t i = 0; set && i < set->count; i++)
                        strings_add(&config.set, set->items[i]);
                config_read_tree(&tree, &config);
                config_finish(&tree, &config);
                if (problems->errors > errors)
                        r = -EINVAL;
        }
        tree_close(&tree);
        problems_sort(problems);
        if (r)
                config_free(&config);
        else
                *ret_config = config;
        return r;
}

int config_load(const char *path, const struct strings *set, struct config *ret_config, struct problems *problems)
{
        return load(path, NULL, 0, set, ret_config, problems);
}

int config_parse(const char *path, const char *text, size_t size, struct config *ret_config, struct problems *problems)
{
        return load(path, text, size, NULL, ret_config, problems);
}

void config_free(struct config *config)
{
        if (!config)
                return;
        group_free(&config_table, config);
        free(config->path);
        strings_free(&config->set);
        *config = (struct config){ 0 };
}

const struct handler_config *config_handler(const struct config *config, const char *name)
{
        for (size_t i = 0; i < config->handlers_count; i++)
                if (!strcmp(config->handlers[i].name, name))
                        return &config->handlers[i];
        return NULL;
}

const struct limit_config *config_limit(const struct config *config, const char *name)
{
        for (size_t i = 0; i < config->fleet_limits_count; i++)
                if (!strcmp(config->fleet_limits[i].named.name, name))
                        return &config->fleet_limits[i];
        return NULL;
}

const struct handler_config *config_serving(const struct config *config, const char *task)
{
        for (size_t i = 0; i < config->handlers_count; i++)
                if (strings_has(&config->handlers[i].tasks, task))
                        return &config->handlers[i];
        return NULL;
}
