#include "cli/admin/membership_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/open.h"
#include "config/connect.h"
#include "coord/coord.h"

#define PATIENCE_MS 5000

/* One question after the other: who is there, each of them, who leads, what was decided. */
struct asking {
        struct membership_view *view;
        struct coord *coord;
        uv_loop_t loop;
        uv_timer_t timer, slow_timer;
        struct coord_open open;
        struct coord_children children;
        struct coord_get get;
        char path[COORD_PATH_MAX];
        struct strings nodes; /* the members' */
        size_t next;          /* of them, to be read */
        int status;
        struct error error;
        bool is_over;
};

static void ask_next(struct asking *a);

static struct asking *asking_of_get(struct coord_request *request)
{
        return container_of(request, struct asking, get.request);
}

static struct asking *asking_of_children(struct coord_request *request)
{
        return container_of(request, struct asking, children.request);
}

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

static void get(struct asking *a, const char *path, void (*done)(struct coord_request *request))
{
        (void)snprintf(a->path, sizeof(a->path), "%s", path);
        a->get = (struct coord_get){ .request.done = done, .path = a->path };
        coord_get(a->coord, &a->get);
}

/* True: there is something to read; false: there is not, or it is over.  A node that cannot be read is shown as such.
 */
static bool is_answered(struct asking *a, const struct coord_request *request)
{
        if (request->status < 0 && request->status != -ENOENT && request->status != -EBADMSG)
                end(a, request->status, request->error.text);
        return request->status == 0;
}

/* --- what was decided --- */

static void on_moves(struct coord_request *request)
{
        struct asking *a = asking_of_get(request);
        if (is_answered(a, request))
                membership_view_set_moves(a->view, a->get.data);
        if (!a->is_over)
                end(a, 0, "");
}

static void on_assign(struct coord_request *request)
{
        struct asking *a = asking_of_get(request);
        if (is_answered(a, request))
                membership_view_set_assignment(a->view, a->get.data);
        else if (request->status == -EBADMSG)
                (void)snprintf(a->view->problem, sizeof(a->view->problem), "%s", request->error.text);
        if (!a->is_over)
                get(a, "moves", on_moves);
}

static void on_election(struct coord_request *request)
{
        struct asking *a = asking_of_children(request);
        if (request->status < 0) {
                end(a, request->status, request->error.text);
                return;
        }
        membership_view_set_leader(a->view, a->children.names, a->children.names_count);
        get(a, "assign", on_assign);
}

/* --- the members --- */

/* One that is not there any more has left meanwhile. */
static void on_member(struct coord_request *request)
{
        struct asking *a = asking_of_get(request);
        const char *node = a->nodes.items[a->next++];
        if (is_answered(a, request)) {
                membership_view_add_member(a->view, node, a->get.data);
        } else if (request->status == -EBADMSG) {
                membership_view_add_member(a->view, node, (struct span){ "", 0 });
                struct view_member *added = &a->view->members[a->view->members_count - 1];
                (void)snprintf(added->problem, sizeof(added->problem), "%s", request->error.text);
        }
        if (!a->is_over)
                ask_next(a);
}

static void ask_next(struct asking *a)
{
        char path[COORD_PATH_MAX];
        if (a->next < a->nodes.count) {
                (void)snprintf(path, sizeof(path), "members/%s", a->nodes.items[a->next]);
                get(a, path, on_member);
                return;
        }
        a->children = (struct coord_children){ .request.done = on_election, .path = "election" };
        coord_children(a->coord, &a->children);
}

static void on_members(struct coord_request *request)
{
        struct asking *a = asking_of_children(request);
        if (request->status < 0) {
                end(a, request->status, request->error.text);
                return;
        }
        for (uint32_t i = 0; i < a->children.names_count; i++)
                strings_add(&a->nodes, a->children.names[i]);
        ask_next(a);
}

static void on_open(struct coord_request *request)
{
        struct asking *a = container_of(request, struct asking, open.request);
        if (request->status < 0) {
                end(a, request->status, request->error.text);
                return;
        }
        a->coord = a->open.coord;
        if (a->is_over) {
                coord_close(a->coord, on_closed, a);
                return;
        }
        a->children = (struct coord_children){ .request.done = on_members, .path = "members" };
        coord_children(a->coord, &a->children);
}

static void on_timer(uv_timer_t *timer)
{
        struct asking *a = timer->data;
        if (a->coord)
                end(a, -ETIMEDOUT, "the coordination does not answer");
}

static void on_slow(uv_timer_t *timer)
{
        const struct config *config = timer->data;
        cli_say_waiting("members", "the coordination", &config->coordination.url);
}

/* --- all of it --- */

int membership_ask(const struct config *config, struct membership_view *ret_view, struct error *error)
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
        a->view = ret_view;
        log_set_level(LEVEL_WARN); /* what drivers tell of every step is for a host's log */
        (void)uv_loop_init(&a->loop);
        (void)uv_timer_init(&a->loop, &a->timer);
        a->timer.data = a;
        (void)uv_timer_start(&a->timer, on_timer, PATIENCE_MS, PATIENCE_MS);
        (void)uv_timer_init(&a->loop, &a->slow_timer);
        a->slow_timer.data = (void *)config;
        (void)uv_timer_start(&a->slow_timer, on_slow, CLI_SLOW_MS, 0);
        a->open = (struct coord_open){ .request.done = on_open, .options = coord_options_of(config, &secrets) };
        coord_open(&a->loop, &a->open);
        (void)uv_run(&a->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&a->loop);
        explicit_bzero(&secrets, sizeof(secrets));
        r = a->status;
        if (r < 0)
                *error = a->error;
        strings_free(&a->nodes);
        free(a);
        return r;
}
