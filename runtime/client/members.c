/* members.c: groups for programs: who is a member, joins or leaves; joining a group. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/memory.h"
#include "client/call.h"
#include "client/recipes.h"
#include "client/told.h"
#include "client/tree.h"
#include "coord/member.h"

#define IDLE_MS  5
#define RETRY_MS 500

struct qv_client_members {
        struct qv_client *client;
        struct member member;
        struct client_listener listener;
        uv_timer_t timer;
        struct told told;
        struct client_call *call; /* waits for the end */
        struct span data;         /* our data, borrowed from the call that joins */
        bool is_member;
};

/* --- on the client's thread --------------------------------------------------------------------------------------- */

static void on_joined(void *self, const char *name, uint64_t created, struct span data)
{
        told_add(&((struct qv_client_members *)self)->told, QV_CLIENT_JOINED, created, name, data);
}

static void on_changed_data(void *self, const char *name, uint64_t created, struct span data)
{
        told_add(&((struct qv_client_members *)self)->told, QV_CLIENT_CHANGED, created, name, data);
}

static void on_left(void *self, const char *name)
{
        told_add(&((struct qv_client_members *)self)->told, QV_CLIENT_LEFT, 0, name, (struct span){ 0 });
}

static void on_known(void *self, bool is_known)
{
        (void)self;
        (void)is_known;
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        member_session(&((struct qv_client_members *)self)->member, state, session);
}

static void on_changed(void *self, const char *path)
{
        member_changed(&((struct qv_client_members *)self)->member, path);
}

static void on_look(void *self)
{
        member_look(&((struct qv_client_members *)self)->member);
}

/* Repeats failed requests. */
static void on_timer(uv_timer_t *timer)
{
        struct qv_client_members *m = timer->data;
        if (!m->member.is_known || !member_is_settled(&m->member))
                member_retry(&m->member);
}

static void start_following(struct qv_client *client, struct client_call *call)
{
        struct qv_client_members *m = call->self;
        (void)uv_timer_init(client_loop(client), &m->timer);
        m->timer.data = m;
        m->listener.events = (struct coord_events){ on_session, on_changed, on_look, m };
        member_follow(&m->member, true);
        if (m->is_member)
                member_set(&m->member, m->data);
        client_tree_listen(client, &m->listener);
        (void)uv_timer_start(&m->timer, on_timer, RETRY_MS, RETRY_MS);
        client_recipe_answer(call);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct qv_client_members *m = handle->data;
        struct client_call *call = m->call;
        member_free(&m->member);
        told_free(&m->told);
        free(m);
        client_recipe_answer(call);
}

/* Waits until no request is under way, because it would use freed memory. */
static void on_idle_timer(uv_timer_t *timer)
{
        struct qv_client_members *m = timer->data;
        bool has_session = client_tree(m->client)->session != 0;
        if (m->member.is_busy || m->member.is_listing || m->member.getting ||
                (m->is_member && has_session && !member_is_settled(&m->member))) {
                (void)uv_timer_start(timer, on_idle_timer, IDLE_MS, 0);
                return;
        }
        client_tree_unlisten(m->client, &m->listener);
        uv_close((uv_handle_t *)timer, on_timer_closed);
}

static void start_closing(struct qv_client *client, struct client_call *call)
{
        struct qv_client_members *m = call->self;
        (void)client;
        m->call = call;
        if (m->is_member)
                member_leave(&m->member);
        member_follow(&m->member, false);
        (void)uv_timer_start(&m->timer, on_idle_timer, 0, 0);
}

/* --- on the program's --------------------------------------------------------------------------------------------- */

static int check(const char *group, const char *name, const void *data, size_t data_size, struct error *error)
{
        int r = group ? client_recipe_check(group, error) : 0;
        if (r == 0 && name)
                r = client_recipe_check(name, error);
        if (r == 0 && name && !group)
                r = error_set(error, -EINVAL, "name: the hosts are members by themselves; a group is needed");
        if (r == 0 && ((data_size && !data) || data_size > COORD_DATA_MAX))
                r = error_set(error, -EINVAL, "data: at most %u bytes", COORD_DATA_MAX);
        return r;
}

int qv_client_members(struct qv_client *client, const char *group, const char *name, const void *data, size_t data_size,
        struct qv_client_members **ret_members)
{
        static const struct member_events events = { on_joined, on_changed_data, on_left, on_known };
        struct error *error = client_error_start();
        char path[COORD_PATH_MAX] = "members";
        int r = check(group, name, data, data_size, error);
        if (r == 0)
                r = client_tree_ensure(client, error);
        if (r < 0)
                return r;
        struct qv_client_members *m = memory_zero(1, sizeof(*m));
        m->client = client;
        m->is_member = name != NULL;
        m->data = (struct span){ data, data_size };
        r = told_init(&m->told);
        if (r < 0) {
                free(m);
                return error_set(error, r, "no descriptor is left: %s", strerror(-r));
        }
        if (group)
                (void)snprintf(path, sizeof(path), "groups/%s", group);
        member_init(&m->member, client_tree(client)->coord, path, name, &events, m);
        struct client_call call = { .start = start_following, .self = m };
        r = client_call(client, &call, error);
        if (r == 0)
                *ret_members = m;
        return r;
}

int qv_client_members_next(struct qv_client_members *members, uint64_t timeout_ms, struct qv_client_notice **ret_notice)
{
        (void)client_error_start();
        return told_next(&members->told, timeout_ms, ret_notice);
}

int qv_client_members_fd(const struct qv_client_members *members)
{
        return members->told.fd;
}

void qv_client_members_close(struct qv_client_members *members)
{
        struct client_call call = { .start = start_closing, .self = members, .is_patient = true };
        if (members)
                (void)client_call(members->client, &call, client_error_start());
}
