#include "cli/admin/membership_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "cli/open.h"
#include "config/connect.h"
#include "coord/coord.h"
#include "look/tree_look.h"

#define PATIENCE_MS 5000

struct asking {
        struct membership_look look;
        struct coord *coord;
        uv_loop_t loop;
        uv_timer_t timer, slow_timer;
        struct coord_open open;
        const struct config *config;
        const char *command;
        struct membership_asked asked;
        uint64_t sent_ns;
        int status;
        struct error error;
        bool is_over;
};

static void on_closed(void *self)
{
        struct asking *a = self;
        uv_close((uv_handle_t *)&a->timer, NULL);
        uv_close((uv_handle_t *)&a->slow_timer, NULL);
}

static void end(struct asking *a, int status, const char *text)
{
        if (a->is_over)
                return;
        a->is_over = true;
        a->status = status < 0 ? error_set(&a->error, status, "%s", text) : 0;
        if (a->coord)
                coord_close(a->coord, on_closed, a);
        else
                on_closed(a);
}

static void ask_next(struct asking *a);

static void on_answer(struct coord_request *request)
{
        struct asking *a = container_of(request, struct asking, look.look.request);
        uint64_t took_ns = clock_boot_ns() - a->sent_ns;
        a->asked.round_trip_ns = a->asked.round_trip_ns ? min_u64(a->asked.round_trip_ns, took_ns) : took_ns;
        if (a->is_over)
                return;
        if (tree_look_has_failed(&a->look.look))
                end(a, request->status, request->error.text);
        else
                ask_next(a);
}

static void ask_next(struct asking *a)
{
        if (!tree_look_next(&a->look.look)) {
                struct coord_info info;
                coord_info(a->coord, &info);
                a->asked.session_ms = info.session ? info.session_ms : 0;
                end(a, 0, "");
                return;
        }
        a->look.look.request.done = on_answer;
        a->sent_ns = clock_boot_ns();
        tree_look_start(a->coord, &a->look.look);
}

static void on_open(struct coord_request *request)
{
        struct asking *a = container_of(request, struct asking, open.request);
        if (request->status < 0) {
                end(a, request->status, request->error.text);
                return;
        }
        a->coord = a->open.coord;
        if (a->is_over)
                coord_close(a->coord, on_closed, a);
        else
                ask_next(a);
}

static void on_timer(uv_timer_t *timer)
{
        struct asking *a = timer->data;
        if (a->coord)
                end(a, -ETIMEDOUT, "the coordination does not answer");
}

static void on_slow(uv_timer_t *timer)
{
        const struct asking *a = timer->data;
        cli_say_waiting(a->command, "the coordination", &a->config->coordination.url);
}

/* --- all of it --- */

int membership_ask(const struct config *config, const char *command, struct membership_view *ret_view,
        struct membership_asked *ret_asked, struct error *error)
{
        static struct config_secrets secrets;
        struct asking *a = memory_zero(1, sizeof(*a));
        *ret_view = (struct membership_view){ 0 };
        int r = config_secrets_read(config, false, &secrets, error);
        if (r < 0) {
                explicit_bzero(&secrets, sizeof(secrets));
                free(a);
                return r;
        }
        membership_look_init(&a->look);
        log_set_level(LEVEL_WARN); /* what drivers tell of every step is for a host's log */
        (void)uv_loop_init(&a->loop);
        (void)uv_timer_init(&a->loop, &a->timer);
        a->timer.data = a;
        (void)uv_timer_start(&a->timer, on_timer, PATIENCE_MS, PATIENCE_MS);
        (void)uv_timer_init(&a->loop, &a->slow_timer);
        a->slow_timer.data = a;
        a->config = config;
        a->command = command;
        (void)uv_timer_start(&a->slow_timer, on_slow, CLI_SLOW_MS, 0);
        a->open = (struct coord_open){ .request.done = on_open, .options = coord_options_of(config, &secrets) };
        coord_open(&a->loop, &a->open);
        (void)uv_run(&a->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&a->loop);
        explicit_bzero(&secrets, sizeof(secrets));
        r = a->status;
        if (r < 0)
                *error = a->error;
        if (ret_asked)
                *ret_asked = a->asked;
        *ret_view = a->look.view;
        membership_look_free(&a->look);
        free(a);
        return r;
}
