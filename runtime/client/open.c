/* open.c: opens the store of a configuration file, or the one that the caller names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/admin.h"
#include "client/call.h"
#include "client/ids.h"
#include "client/sized_struct.h"
#include "config/connect.h"

static _Thread_local struct error last_error;

struct error *client_error_start(void)
{
        last_error.text[0] = 0;
        return &last_error;
}

const char *qv_client_error(void)
{
        return last_error.text;
}

static int open_config(const struct config *config, bool may_create, struct qv_client **ret_client, struct error *error)
{
        struct config_secrets secrets;
        int r = config_secrets_read(config, false, &secrets, error);
        if (r < 0) {
                explicit_bzero(&secrets, sizeof(secrets));
                return r;
        }
        /* The coordination is not passed: only hosts record and check it. */
        struct store_options options = store_options_of(config, &secrets);
        options.may_create = may_create;
        r = client_open(&options, ret_client, error);
        if (r == 0) {
                struct coord_options coordination = coord_options_of(config, &secrets);
                client_set_state(*ret_client, config->state);
                client_tree_set(*ret_client, &coordination);
                client_ids_set(*ret_client, NULL, SLOT_ANY, config->ids.horizon_ms);
        }
        explicit_bzero(&secrets, sizeof(secrets));
        if (r == -ENOENT && !may_create)
                return error_set(error, r, "there is no store at %s yet; a host makes it: quiver run -c %s",
                        config->store.url.text, config->path);
        return r;
}

int client_open_config(const struct config *config, struct qv_client **ret_client, struct error *error)
{
        return open_config(config, false, ret_client, error);
}

int client_open_or_make(const struct config *config, struct qv_client **ret_client, struct error *error)
{
        return open_config(config, true, ret_client, error);
}

static int open_file(const char *given, struct qv_client **ret_client, struct error *error)
{
        struct config config = { 0 };
        struct problems problems = { .reader = READER_COMMAND };
        const char *how = NULL;
        char *path = NULL;
        int r = config_find(given, &path, &how, error);
        if (r < 0)
                return r;
        r = config_load(path, NULL, &config, &problems);
        if (r < 0) {
                char text[ERROR_TEXT_MAX / 2] = "cannot be read";
                if (problems.count)
                        (void)problem_format(&problems.items[0], text, sizeof(text));
                (void)error_set(error, -EINVAL, "%s; all that is wrong: quiver check -c %s", text, path);
                r = -EINVAL;
        } else {
                r = client_open_config(&config, ret_client, error);
        }
        config_free(&config);
        problems_free(&problems);
        free(path);
        return r;
}

static int open_store(const struct qv_client_options *o, struct qv_client **ret_client, struct error *error)
{
        if (!o->app)
                return error_set(error, -EINVAL, "options.app: needed with options.store");
        if (o->config)
                return error_set(error, -EINVAL, "options.config and options.store: only one of them");
        struct store_options options = { .url = o->store, .app = o->app, .shards = o->shards };
        int r = client_open(&options, ret_client, error);
        if (r == -ENOENT)
                return error_set(error, r, "there is no store at %s yet; a host makes it: quiver run", o->store);
        return r;
}

int qv_client_open(const struct qv_client_options *given, struct qv_client **ret_client)
{
        struct error *error = client_error_start();
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        if (given && SIZED_COPY(&options, given) < 0)
                return error_set(error, -EINVAL, "options.size: start from QV_CLIENT_OPTIONS_INIT");
        if (options.store)
                return open_store(&options, ret_client, error);
        return open_file(options.config, ret_client, error);
}

int qv_client_info(struct qv_client *client, struct qv_client_info *info)
{
        struct error *error = client_error_start();
        const struct store_info *found = client_store_info(client);
        const struct qv_client_info full = {
                .size = sizeof(full),
                .shards = found->shards,
                .app = found->app,
                .driver = found->driver,
                .durability = found->durability,
        };
        if (SIZED_FILL(info, &full) < 0)
                return error_set(error, -EINVAL, "info.size: start from QV_CLIENT_INFO_INIT");
        return 0;
}
