#include "cli/membership_view.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "coord/coord.h"

#define PATIENCE_MS 5000

/* One question after the other: who is there, each of them, who leads, what was decided. */
struct asking {
        struct membership_view *view;
        struct coord *coord;
        uv_loop_t loop;
        uv_timer_t timer;
        struct coord_open open;
        struct coord_children children;
        struct coord_get get;
        char path[COORD_PATH_MAX];
        size_t next; /* member to be read */
        char leader[64];
        int status;
        struct error error;
        bool is_over;
};

static void ask_next(struct asking *a);

static struct asking *asking_of_get(struct coord_request *request)
{
        return (struct asking *)((char *)request - offsetof(struct asking, get.request));
}

static void on_closed(void *self)
{
        struct asking *a = self;
        uv_close((uv_handle_t *)&a->timer, NULL);
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

/* --- the documents --- */

static void on_moves(struct coord_request *request)
{
        struct asking *a = asking_of_get(request);
        struct error ignored;
        if (is_answered(a, request) && moves_doc_parse(a->get.data, &a->view->moves, &ignored) < 0)
                a->view->moves = (struct moves){ 0 };
        if (!a->is_over)
                end(a, 0, "");
}

static void on_assign(struct coord_request *request)
{
        struct asking *a = asking_of_get(request);
        struct error error;
        if (is_answered(a, request) && assign_doc_parse(a->get.data, &a->view->assignment, &error) < 0)
                (void)snprintf(a->view->problem, sizeof(a->view->problem), "%s", error.text);
        if (request->status == -EBADMSG)
                (void)snprintf(a->view->problem, sizeof(a->view->problem), "%s", request->error.text);
        if (!a->is_over)
                get(a, "moves", on_moves);
}

static void on_election(struct coord_request *request)
{
        struct asking *a = (struct asking *)((char *)request - offsetof(struct asking, children.request));
        const char *lowest = NULL;
        if (request->status < 0) {
                end(a, request->status, request->error.text);
                return;
        }
        for (uint32_t i = 0; i < a->children.names_count; i++) {
                const char *dash = strrchr(a->children.names[i], '-');
                if (dash && (!lowest || strcmp(dash, strrchr(lowest, '-')) < 0))
                        lowest = a->children.names[i];
        }
        if (lowest)
                (void)snprintf(a->leader, sizeof(a->leader), "%.*s", (int)(strrchr(lowest, '-') - lowest), lowest);
        get(a, "assign", on_assign);
}

/* --- the members --- */

static void on_member(struct coord_request *request)
{
        struct asking *a = asking_of_get(request);
        struct view_member *m = &a->view->members[a->next];
        struct error error;
        if (is_answered(a, request) || request->status == -EBADMSG) {
                m->doc = calloc(1, sizeof(*m->doc));
                if (!m->doc)
                        abort();
                if (request->status)
                        (void)snprintf(m->problem, sizeof(m->problem), "%s", request->error.text);
                else if (member_doc_parse(a->get.data, m->doc, &error) < 0)
                        (void)snprintf(m->problem, sizeof(m->problem), "%s", error.text);
                a->next++;
        } else if (!a->is_over) {
                /* It left meanwhile. */
                *m = a->view->members[--a->view->members_count];
        }
        if (!a->is_over)
                ask_next(a);
}

static void ask_next(struct asking *a)
{
        char path[COORD_PATH_MAX];
        if (a->next < a->view->members_count) {
                (void)snprintf(path, sizeof(path), "members/%s", a->view->members[a->next].node);
                get(a, path, on_member);
                return;
        }
        a->children = (struct coord_children){ .request.done = on_election, .path = "election" };
        coord_children(a->coord, &a->children);
}

static void on_members(struct coord_request *request)
{
        struct asking *a = (struct asking *)((char *)request - offsetof(struct asking, children.request));
        struct membership_view *view = a->view;
        if (request->status < 0) {
                end(a, request->status, request->error.text);
                return;
        }
        view->members = calloc(a->children.names_count + 1, sizeof(*view->members));
        if (!view->members)
                abort();
        for (uint32_t i = 0; i < a->children.names_count; i++)
                (void)snprintf(view->members[view->members_count++].node, sizeof(view->members->node), "%s",
                        a->children.names[i]);
        ask_next(a);
}

static void on_open(struct coord_request *request)
{
        struct asking *a = (struct asking *)((char *)request - offsetof(struct asking, open.request));
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

/* --- all of it --- */

static bool is_nonce(const uint8_t nonce[STORE_NONCE_SIZE], const char *text)
{
        char own[2 * STORE_NONCE_SIZE + 1];
        return !strcmp(units_hex(own, nonce, STORE_NONCE_SIZE), text);
}

static void complete(struct membership_view *view, const char *leader)
{
        for (size_t i = 0; i < view->members_count; i++) {
                struct view_member *m = &view->members[i];
                if (*m->problem)
                        continue;
                m->is_leader = is_nonce(m->doc->member.nonce, leader);
                for (uint32_t shard = 0; shard < view->assignment.shards_count; shard++) {
                        const struct assign_owner *owner = assignment_owner(&view->assignment, shard);
                        m->shards += owner && !memcmp(owner->nonce, m->doc->member.nonce, STORE_NONCE_SIZE);
                }
        }
}

int membership_view_read(const struct config *config, struct membership_view *ret_view, struct error *error)
{
        static struct config_secrets secrets;
        struct asking *a = calloc(1, sizeof(*a));
        if (!a)
                return error_set(error, -ENOMEM, "out of memory");
        int r = config_secrets_read(config, false, &secrets, error);
        if (r < 0) {
                explicit_bzero(&secrets, sizeof(secrets));
                free(a);
                return r;
        }
        *ret_view = (struct membership_view){ 0 };
        a->view = ret_view;
        (void)uv_loop_init(&a->loop);
        (void)uv_timer_init(&a->loop, &a->timer);
        a->timer.data = a;
        (void)uv_timer_start(&a->timer, on_timer, PATIENCE_MS, PATIENCE_MS);
        a->open = (struct coord_open){ .request.done = on_open, .options = coord_options_of(config, &secrets) };
        coord_open(&a->loop, &a->open);
        (void)uv_run(&a->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&a->loop);
        explicit_bzero(&secrets, sizeof(secrets));
        r = a->status;
        if (r < 0) {
                *error = a->error;
                membership_view_free(ret_view);
        } else {
                complete(ret_view, a->leader);
        }
        free(a);
        return r;
}

void membership_view_free(struct membership_view *view)
{
        for (size_t i = 0; i < view->members_count; i++)
                free(view->members[i].doc);
        free(view->members);
        assignment_free(&view->assignment);
        *view = (struct membership_view){ 0 };
}
