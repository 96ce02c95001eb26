/* sim_coord.c: a host's end of the tree: a driver as any other, on a network that loses, delays and forgets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_tree.h"

static void free_parcel(void *arg)
{
        struct parcel *p = arg;
        free(p->data);
        for (uint32_t i = 0; i < p->names_count; i++)
                free(p->names[i]);
        free(p->names);
        for (uint32_t i = 0; i < p->ops_count; i++)
                free(p->op_data[i]);
        free(p);
}

/* Is the request still waiting for this very parcel? */
static bool is_awaited(const struct parcel *p)
{
        if (!p->host->is_alive || p->host->life != p->life)
                return false;
        for (const struct coord_request *r = p->coord->base.requests; r; r = r->next)
                if (r == p->request && r->deadline_ms == p->number)
                        return true;
        return false;
}

static void fill_reply(struct parcel *p)
{
        struct arena_chunk **arena = coord_arena(p->request);
        struct span data = { p->data, p->size };
        if (p->op == COORD_OP_CREATE) {
                struct coord_create *create_request = (struct coord_create *)p->request;
                create_request->made = arena_copy(arena, (struct span){ p->made, strlen(p->made) }).data;
                create_request->stat = p->stat;
        } else if (p->op == COORD_OP_GET) {
                struct coord_get *get = (struct coord_get *)p->request;
                get->data = arena_copy(arena, data);
                get->stat = p->stat;
        } else if (p->op == COORD_OP_SET) {
                ((struct coord_set *)p->request)->stat = p->stat;
        } else if (p->op == COORD_OP_CHILDREN) {
                struct coord_children *children = (struct coord_children *)p->request;
                children->names = arena_take(arena, (p->names_count + 1) * sizeof(char *));
                for (uint32_t i = 0; i < p->names_count; i++)
                        children->names[i] = arena_copy(arena, (struct span){ p->names[i], strlen(p->names[i]) }).data;
                children->names_count = p->names_count;
        } else if (p->op == COORD_OP_MULTI) {
                struct coord_multi *m = (struct coord_multi *)p->request;
                for (uint32_t i = 0; i < p->ops_count; i++) {
                        m->ops[i].status = p->ops[i].status;
                        m->ops[i].stat = p->ops[i].stat;
                }
        }
}

static void on_answer(struct sim *sim, void *arg)
{
        struct parcel *p = arg;
        (void)sim;
        if (is_awaited(p)) {
                fill_reply(p);
                p->coord->answered_ms = sim->now_ms;
                coord_finish_error(p->request, p->status, "the tree says %d", p->status);
        }
        free_parcel(p);
}

static void on_arrival(struct sim *sim, void *arg)
{
        struct parcel *p = arg;
        sim_tree_execute(sim, p);
        if (p->is_answer_lost || sim_tree_is_cut(p->host) || !p->host->is_alive || p->host->life != p->life) {
                free_parcel(p);
                return;
        }
        /* Not sim_at_host(): should the host die meanwhile, the parcel has to be freed all the same. */
        uint64_t delay_ms = sim_travel_ms(sim);
        uint64_t wake_ms = p->host->paused_until_ms > sim->now_ms ? p->host->paused_until_ms - sim->now_ms : 0;
        sim_at_owned(sim, delay_ms > wake_ms ? delay_ms : wake_ms, on_answer, p, free_parcel);
}

static void on_timeout(struct sim *sim, void *arg)
{
        struct parcel *p = arg; /* a bare copy: only who and which */
        (void)sim;
        if (is_awaited(p))
                coord_finish_error(p->request, -ETIMEDOUT, "no answer");
}

static struct span keep(struct span data, char **ret_copy)
{
        *ret_copy = malloc(data.size + 1);
        if (!*ret_copy)
                abort();
        if (data.size)
                memcpy(*ret_copy, data.data, data.size);
        return (struct span){ *ret_copy, data.size };
}

static void copy_request(struct parcel *p, struct coord_request *request)
{
        struct span data = { NULL, 0 };
        const char *path = coord_op_path(request);
        (void)snprintf(p->path, sizeof(p->path), "%s", path ? path : "");
        if (p->op == COORD_OP_CREATE) {
                data = ((struct coord_create *)request)->data;
                p->flags = ((struct coord_create *)request)->flags;
        } else if (p->op == COORD_OP_SET) {
                data = ((struct coord_set *)request)->data;
                p->version = ((struct coord_set *)request)->version;
        } else if (p->op == COORD_OP_GET) {
                p->watch = ((struct coord_get *)request)->watch;
        } else if (p->op == COORD_OP_CHILDREN) {
                p->watch = ((struct coord_children *)request)->watch;
        } else if (p->op == COORD_OP_MULTI) {
                const struct coord_multi *m = (struct coord_multi *)request;
                p->ops_count = m->ops_count;
                for (uint32_t i = 0; i < m->ops_count; i++) {
                        p->ops[i] = m->ops[i];
                        p->ops[i].data = keep(m->ops[i].data, &p->op_data[i]);
                        p->ops[i].path = i == 0 ? p->path : m->ops[i].path; /* the others' are constants */
                }
                (void)snprintf(p->path, sizeof(p->path), "%s", m->ops[0].path);
        }
        if (data.data) {
                char *copy;
                p->size = keep(data, &copy).size;
                p->data = copy;
        }
}

static void start(struct coord *base, struct coord_request *request)
{
        struct sim_coord *coord = (struct sim_coord *)base;
        struct sim_host *h = coord->host;
        struct sim *sim = h->sim;
        struct parcel *p = calloc(1, sizeof(*p));
        struct parcel *stub = calloc(1, sizeof(*stub));
        if (!p || !stub)
                abort();
        request->deadline_ms = ++sim->next_number; /* tells this use of the request from others */
        *p = (struct parcel){ .coord = coord,
                .host = h,
                .life = h->life,
                .request = request,
                .session = base->session,
                .number = request->deadline_ms,
                .op = request->op };
        *stub = *p;
        copy_request(p, request);
        p->is_answer_lost = sim_happens(sim, 60);
        sim_at_host(h, SESSION_MS, on_timeout, stub);
        if (request->status < 0 || sim_tree_is_cut(h) || sim_happens(sim, 60)) {
                free_parcel(p);
                return;
        }
        uint64_t delay_ms = sim_happens(sim, 80) ? sim_draw(sim, 3 * SESSION_MS) : sim_travel_ms(sim);
        sim_at_owned(sim, delay_ms, on_arrival, p, free_parcel);
}

static const struct coord_driver sim_driver = { .scheme = "sim", .start = start };

/* --- its session --- */

static void renew_session(struct sim_coord *coord)
{
        struct sim *sim = coord->host->sim;
        struct sim_tree *tree = sim->tree;
        if (tree->sessions_count == SESSIONS_MAX) {
                /* Forget the dead ones. */
                uint32_t kept = 0;
                for (uint32_t i = 0; i < tree->sessions_count; i++)
                        if (tree->sessions[i].is_alive)
                                tree->sessions[kept++] = tree->sessions[i];
                tree->sessions_count = kept;
        }
        struct session *s = &tree->sessions[tree->sessions_count++];
        *s = (struct session){ .number = ++sim->next_number,
                .heard_ms = sim->now_ms,
                .is_alive = true,
                .host = coord->host,
                .life = coord->host->life };
        coord->answered_ms = sim->now_ms;
        coord_tell(&coord->base, COORD_ALIVE, s->number);
        coord->base.events.look(coord->base.events.self);
}

/* The authority's part: sessions that were not heard of end. */
static void sweep(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->tree->sessions_count; i++)
                if (sim->tree->sessions[i].is_alive && sim->now_ms > sim->tree->sessions[i].heard_ms + SESSION_MS)
                        sim_tree_end_session(sim, sim->tree->sessions[i].number);
}

static void expire(struct sim_coord *coord)
{
        coord_tell(&coord->base, COORD_EXPIRED, coord->base.session);
        coord->base.session = 0;
        coord_cancel(&coord->base, -EOWNERDEAD);
}

/* It was answered, and its session is there. */
static void confirm(struct sim_coord *coord, struct session *s)
{
        struct sim *sim = coord->host->sim;
        s->heard_ms = coord->answered_ms = sim->now_ms;
        if (coord->base.state == COORD_SUSPENDED)
                coord_tell(&coord->base, COORD_ALIVE, coord->base.session);
        if (!coord->has_missed)
                return;
        coord->has_missed = false;
        coord->base.events.look(coord->base.events.self);
}

static void heartbeat(struct sim_coord *coord)
{
        struct sim *sim = coord->host->sim;
        struct session *s = sim_tree_session(sim->tree, coord->base.session);
        bool is_heard = !sim_tree_is_cut(coord->host) && !sim_happens(sim, 20);
        uint64_t silent_ms = sim->now_ms - coord->answered_ms;
        if (!coord->base.session) {
                if (is_heard)
                        renew_session(coord);
        } else if (is_heard && s && s->is_alive) {
                confirm(coord, s);
        } else if (is_heard || silent_ms > SESSION_MS) {
                expire(coord); /* it was told so; or it must have */
        } else if (silent_ms > SESSION_MS / 2 && coord->base.state == COORD_ALIVE) {
                coord_tell(&coord->base, COORD_SUSPENDED, coord->base.session);
        }
}

struct coord *sim_tree_connect(struct sim_host *host, const struct coord_events *events)
{
        struct sim_coord *coord = calloc(1, sizeof(*coord));
        if (!coord)
                abort();
        struct coord_options options = { .app = "sim", .session_ms = SESSION_MS, .events = events };
        coord_base_init(&coord->base, &sim_driver, &options, "sim:");
        coord->host = host;
        return &coord->base;
}

void sim_tree_disconnect(struct coord *coord)
{
        coord_base_free(coord);
        free(coord);
}

/* One beat for all, for ever. */
void sim_tree_beat(struct sim *sim, void *arg)
{
        (void)arg;
        for (uint32_t i = 0; i < HOSTS; i++) {
                struct sim_host *h = &sim->hosts[i];
                if (h->is_alive && h->paused_until_ms <= sim->now_ms && h->coord)
                        heartbeat((struct sim_coord *)h->coord);
        }
        sweep(sim);
        sim_at(sim, SESSION_MS / 8, sim_tree_beat, NULL);
}
