#include "cli/reload_hints.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/admin.h"

/* So many are counted; a person wants to know whether it is three or a lot. */
#define COUNTED_MAX 1000u

/* Those that come with Quiver are there for whoever needs them. */
static bool is_stock(const char *file)
{
        static const char *const stock[] = { "echo.so", "exec.so", "pipe.so", "sql.so", "webhook.so" };
        for (size_t i = 0; i < sizeof(stock) / sizeof(stock[0]); i++)
                if (!strcmp(stock[i], file))
                        return true;
        return false;
}

static bool is_named(const struct config *config, const char *file)
{
        for (size_t i = 0; i < config->handlers_count; i++) {
                const char *plugin = config->handlers[i].plugin;
                const char *slash = plugin ? strrchr(plugin, '/') : NULL;
                if (plugin && !strcmp(slash ? slash + 1 : plugin, file))
                        return true;
        }
        return false;
}

static void hint_at_plugins(const struct config *config)
{
        DIR *folder = opendir(config->plugins);
        const struct dirent *entry;
        while (folder && (entry = readdir(folder))) {
                const char *file = entry->d_name;
                size_t size = strlen(file);
                if (size < 4 || *file == '.' || strcmp(file + size - 3, ".so") != 0 || is_stock(file) ||
                        is_named(config, file))
                        continue;
                (void)fprintf(stderr, "%s/%s: no handler uses it; to name it: quiver handler add %.*s %s\n",
                        config->plugins, file, (int)(size - 3), file, file);
        }
        if (folder)
                (void)closedir(folder);
}

static void ignore(void *self, const struct store_listed *task)
{
        (void)self;
        (void)task;
}

static uint32_t count_waiting(struct qv_client *client, const char *handler)
{
        static const enum store_state states[] = { STATE_QUEUED, STATE_DELAYED, STATE_IN_FLIGHT, STATE_PARKED };
        uint32_t shards = client_store_info(client)->shards;
        uint32_t count = 0;
        struct error error;
        for (uint32_t shard = 0; shard < shards; shard++)
                for (size_t i = 0; i < sizeof(states) / sizeof(states[0]) && count < COUNTED_MAX; i++) {
                        int n = client_list(client, shard, states[i], (struct span){ handler, strlen(handler) },
                                COUNTED_MAX - count, ignore, NULL, &error);
                        count += n > 0 ? (uint32_t)n : 0;
                }
        return count;
}

static void hint_at_removed(const struct config *config, const char *handler)
{
        struct qv_client *client = NULL;
        struct error error = { "" };
        if (client_open_config(config, &client, &error) < 0)
                return;
        uint32_t count = count_waiting(client, handler);
        qv_client_close(client);
        if (count)
                (void)fprintf(stderr,
                        "%s is removed, and %" PRIu32 "%s of its tasks wait: they stay until a host has a handler for "
                        "them. Which ones: quiver tasks --handler %s\n",
                        handler, count, count == COUNTED_MAX ? " or more" : "", handler);
}

void reload_hints(const struct config *config, const json_t *plan)
{
        size_t i;
        json_t *handler;
        hint_at_plugins(config);
        json_array_foreach(plan, i, handler)
        {
                const char *name = json_string_value(json_object_get(handler, "handler"));
                const char *action = json_string_value(json_object_get(handler, "action"));
                if (name && action && !strcmp(action, "removed") && !config_handler(config, name))
                        hint_at_removed(config, name);
        }
}
