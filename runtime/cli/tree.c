#include "cli/tree.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

struct opening {
        struct coord_open open;
        bool is_done;
};

static void on_opened(struct coord_request *request)
{
        ((struct opening *)request)->is_done = true;
}

static void on_closed(void *self)
{
        *(bool *)self = true;
}

/* NULL if there is none. */
static int read_secret(
        const struct secret_config *secret, char password[SECRET_MAX], const char **ret_password, struct error *error)
{
        int r = config_secret(secret, password, error);
        *ret_password = r ? NULL : password;
        return r == -ENOENT ? 0 : r;
}

static int open_tree(struct cli_tree *t, const struct coord_events *events, struct error *error)
{
        const struct config *config = &t->config;
        char password[SECRET_MAX], store_password[SECRET_MAX];
        struct opening opening = { .open = { .request.done = on_opened } };
        struct coord_options *o = &opening.open.options;
        *o = (struct coord_options){ .url = config->coordination.url.text,
                .app = config->app,
                .session_ms = config->coordination.session_ms,
                .user = config->coordination.user,
                .store_url = config->store.url.text,
                .store_user = config->store.user,
                .events = events };
        int r = read_secret(&config->coordination.password, password, &o->password, error);
        if (!r)
                r = read_secret(&config->store.password, store_password, &o->store_password, error);
        if (!r) {
                coord_open(&t->loop, &opening.open);
                while (!opening.is_done)
                        (void)uv_run(&t->loop, UV_RUN_ONCE);
                r = opening.open.request.status;
                *error = opening.open.request.error;
                t->coord = opening.open.coord;
        }
        explicit_bzero(password, sizeof(password));
        explicit_bzero(store_password, sizeof(store_password));
        return r;
}

int cli_tree_open(struct cli_tree *t, const char *command, const char *given_config, const struct coord_events *events)
{
        struct error error = { "" };
        struct cli_store loaded;
        *t = (struct cli_tree){ .command = command };
        int code = cli_load(&loaded, command, given_config);
        if (code != EXIT_DONE)
                return code;
        t->config = loaded.config;
        log_set_level(LEVEL_WARN); /* what drivers tell of every step is for a host's log */
        (void)uv_loop_init(&t->loop);
        int r = open_tree(t, events, &error);
        if (!r)
                return EXIT_DONE;
        (void)uv_run(&t->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&t->loop);
        config_free(&t->config);
        return cli_fail(command, r, error.text);
}

void cli_tree_close(struct cli_tree *t)
{
        bool is_closed = false;
        coord_close(t->coord, on_closed, &is_closed);
        while (!is_closed)
                (void)uv_run(&t->loop, UV_RUN_ONCE);
        (void)uv_run(&t->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&t->loop);
        config_free(&t->config);
}
