#include "cli/lock/tree.h"

#include <errno.h>
#include <stdio.h>
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

static void on_slow(uv_timer_t *timer)
{
        struct cli_tree *t = timer->data;
        cli_say_waiting(t->command, "the coordination", &t->config.coordination.url);
        t->has_said_slow = true;
}

void cli_tree_answers(struct cli_tree *t, bool is_so)
{
        if (!is_so) {
                if (!t->has_said_slow && !uv_is_active((uv_handle_t *)&t->slow_timer))
                        (void)uv_timer_start(&t->slow_timer, on_slow, CLI_SLOW_MS, 0);
                return;
        }
        (void)uv_timer_stop(&t->slow_timer);
        if (t->has_said_slow)
                (void)fprintf(stderr, "quiver %s: the coordination answers again\n", t->command);
        t->has_said_slow = false;
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
        (void)uv_timer_init(&t->loop, &t->slow_timer);
        t->slow_timer.data = t;
        cli_tree_answers(t, false);
        int r = open_tree(t, events, &error);
        if (!r)
                return EXIT_DONE;
        uv_close((uv_handle_t *)&t->slow_timer, NULL);
        (void)uv_run(&t->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&t->loop);
        config_free(&t->config);
        return cli_fail(command, r, error.text);
}

void cli_tree_close(struct cli_tree *t)
{
        bool is_closed = false;
        uv_close((uv_handle_t *)&t->slow_timer, NULL);
        coord_close(t->coord, on_closed, &is_closed);
        while (!is_closed)
                (void)uv_run(&t->loop, UV_RUN_ONCE);
        (void)uv_run(&t->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&t->loop);
        config_free(&t->config);
}
