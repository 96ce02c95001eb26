#include "cli/lock/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
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

static int open_it(struct cli_tree *t, const char *command, const char *given_config, bool is_holder, uint64_t ttl_ms,
        const struct coord_events *events)
{
        struct error error = { "" };
        struct cli_store loaded;
        *t = (struct cli_tree){ .command = command };
        int code = cli_load(&loaded, command, given_config, READER_COMMAND);
        if (code != EXIT_DONE)
                return code;
        t->config = loaded.config;
        if (is_holder && (ttl_ms || t->config.locks.ttl_ms))
                t->config.coordination.session_ms = ttl_ms ? ttl_ms : t->config.locks.ttl_ms;
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

int cli_tree_open(struct cli_tree *t, const char *command, const char *given_config, const struct coord_events *events)
{
        return open_it(t, command, given_config, false, 0, events);
}

int cli_tree_open_for(struct cli_tree *t, const char *command, const char *given_config, uint64_t ttl_ms,
        const struct coord_events *events)
{
        return open_it(t, command, given_config, true, ttl_ms, events);
}

struct tree_looking {
        struct coord *coord;
        bool is_over;
        int status;
        struct error error;
};

static void look_on(struct tree_look *look);

/* What a reply points to lives as long as this call: the look takes it here. */
static void on_look_answer(struct coord_request *request)
{
        struct tree_look *look = container_of(request, struct tree_look, request);
        struct tree_looking *looking = look->driver;
        if (!tree_look_has_failed(look)) {
                look_on(look);
                return;
        }
        looking->is_over = true;
        looking->status = request->status;
        looking->error = request->error;
}

static void look_on(struct tree_look *look)
{
        struct tree_looking *looking = look->driver;
        if (!tree_look_next(look)) {
                looking->is_over = true;
                return;
        }
        look->request.done = on_look_answer;
        tree_look_start(looking->coord, look);
}

int cli_tree_look(struct cli_tree *t, struct tree_look *look)
{
        struct tree_looking looking = { .coord = t->coord };
        look->driver = &looking;
        look_on(look);
        while (!looking.is_over)
                (void)uv_run(&t->loop, UV_RUN_ONCE);
        look->driver = NULL;
        cli_tree_answers(t, true);
        return looking.status < 0 ? cli_fail(t->command, looking.status, looking.error.text) : EXIT_DONE;
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
