#include "cli/lock/tree.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "config/connect.h"

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

static int open_tree(struct cli_tree *t, const struct coord_events *events, struct error *error)
{
        static struct config_secrets secrets;
        struct opening opening = { .open = { .request.done = on_opened } };
        int r = config_secrets_read(&t->config, false, &secrets, error);
        if (!r) {
                opening.open.options = coord_options_of(&t->config, &secrets);
                opening.open.options.events = events;
                coord_open(&t->loop, &opening.open);
                while (!opening.is_done)
                        (void)uv_run(&t->loop, UV_RUN_ONCE);
                r = opening.open.request.status;
                *error = opening.open.request.error;
                t->coord = opening.open.coord;
        }
        explicit_bzero(&secrets, sizeof(secrets));
        return r;
}

int cli_tree_open(struct cli_tree *t, const char *command, const char *given_config, const struct coord_events *events)
{
        struct error error = { "" };
        struct cli_store loaded;
        *t = (struct cli_tree){ .command = command };
        int code = cli_load(&loaded, command, given_config, READER_COMMAND);
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
