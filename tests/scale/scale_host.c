/* scale_host.c: one of many hosts: its membership, and no shard at work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "scale.h"

#define SAMPLE_NS (3333 * NS_PER_MS)

struct scale_host *scale_hosts;
uint32_t scale_hosts_count;
static uint32_t shards;
static uint64_t next_session = 1;

static struct scale_host *host_of(struct membership *m)
{
        return container_of(m, struct scale_host, membership);
}

/* --- what the membership tells its host --- */

static void on_opened(void *self, int status, const char *text)
{
        struct scale_host *h = self;
        (void)text;
        if (status < 0)
                abort();
        membership_start(&h->membership, shards);
}

static void on_session(void *self, const char *token)
{
        (void)self;
        (void)token;
}

static uint32_t count_owned(const struct scale_host *h)
{
        const struct assignment *a = &h->membership.assignment;
        uint32_t count = 0;
        for (uint32_t i = 0; i < a->shards_count; i++) {
                const struct assign_owner *owner = assignment_owner(a, i);
                count += owner && !memcmp(owner->nonce, h->membership.nonce, STORE_NONCE_SIZE);
        }
        return count;
}

static void on_gone(void *arg)
{
        struct scale_host *h = arg;
        if (h->is_alive)
                scale_host_kill(h);
}

/* A host that leaves goes when nothing is assigned to it. */
static void on_assigned(void *self)
{
        struct scale_host *h = self;
        if (!h->is_leaving || count_owned(h))
                return;
        h->is_leaving = false;
        scale_at(100 * NS_PER_MS, on_gone, h);
}

static void describe(void *self, struct member_doc *doc)
{
        (void)self;
        for (int i = 0; i < 4; i++) {
                char name[16];
                (void)snprintf(name, sizeof(name), "handler%d", i);
                member_doc_add_handler(doc, name, "1.0");
        }
        member_doc_add_features(doc);
}

static const struct membership_events events = {
        .opened = on_opened, .session = on_session, .assigned = on_assigned, .describe = describe
};

static void other_session(void *self, enum coord_state state, uint64_t session)
{
        (void)self;
        (void)state;
        (void)session;
}

static void other_changed(void *self, const char *path)
{
        (void)self;
        (void)path;
}

static void other_look(void *self)
{
        (void)self;
}

/* Takes the place of coord.c's, which knows only drivers with servers. */
void __wrap_coord_open(struct uv_loop_s *loop, struct coord_open *open);
void __wrap_coord_open(struct uv_loop_s *loop, struct coord_open *open)
{
        struct scale_host *h = host_of(container_of(open, struct membership, open));
        (void)loop;
        scale_tree_open(&h->coord, open->options.events);
        open->coord = &h->coord.base;
        open->request.done(&open->request);
}

/* --- its life --- */

/* Its tasks take about as much time as before, give or take a third. */
static void on_sample(void *arg)
{
        struct scale_host *h = arg;
        struct load_summary load = { .is_known = true };
        if (!h->is_alive)
                return;
        load.total = h->load ? h->load * 9 / 10 + scale_draw(h->load / 5 + 1) : 0;
        membership_load(&h->membership, &load, scale_now_ns / NS_PER_MS);
        scale_at(SAMPLE_NS, on_sample, h);
}

void scale_host_start(struct scale_host *h, uint32_t shards_count)
{
        uint64_t life = h->coord.life;
        struct membership *m = &h->membership;
        shards = shards_count;
        *h = (struct scale_host){ .index = h->index, .is_alive = true, .session = next_session++, .load = h->load };
        h->coord.life = life + 1;
        h->coord.host = h;
        (void)snprintf(h->name, sizeof(h->name), "host-%04u", h->index);
        m->name = h->name;
        m->weight = 1;
        m->events = &events;
        m->self = h;
        m->others = (struct coord_events){ .session = other_session, .changed = other_changed, .look = other_look };
        for (uint32_t i = 0; i < STORE_NONCE_SIZE; i++)
                m->nonce[i] = (uint8_t)scale_draw(256);
        membership_even_load(m, true);
        membership_init(m, NULL);
        membership_open(m, NULL, &(struct coord_options){ .app = "scale", .session_ms = SCALE_SESSION_MS });
        scale_tree_connect(&h->coord, h->session);
        scale_at(scale_draw((uint32_t)SAMPLE_NS), on_sample, h);
}

static void stop(struct scale_host *h)
{
        h->is_alive = h->is_leaving = false;
        h->coord.life++;
        (void)uv_timer_stop(&h->membership.timer);
        membership_free(&h->membership);
        coord_base_free(&h->coord.base);
}

static void on_session_over(void *arg)
{
        scale_tree_end_session((uint64_t)(uintptr_t)arg);
}

void scale_host_lose(struct scale_host *h)
{
        stop(h);
        /* Its last heartbeat was up to a third of the session's time ago. */
        uint64_t ms = SCALE_SESSION_MS - scale_draw(SCALE_SESSION_MS / 3);
        scale_at(ms * NS_PER_MS, on_session_over, (void *)(uintptr_t)h->session);
}

void scale_host_kill(struct scale_host *h)
{
        stop(h);
        scale_at(SCALE_TRAVEL_NS, on_session_over, (void *)(uintptr_t)h->session);
}

void scale_host_leave(struct scale_host *h)
{
        h->is_leaving = true;
        membership_leave(&h->membership);
}

struct scale_host *scale_host_leader(void)
{
        for (uint32_t i = 0; i < scale_hosts_count; i++)
                if (scale_hosts[i].is_alive && leader_is_leading(&scale_hosts[i].membership.leader))
                        return &scale_hosts[i];
        return NULL;
}

bool scale_is_stable(void)
{
        const struct scale_host *leader = scale_host_leader();
        if (!leader)
                return false;
        const struct assigner *a = &leader->membership.assigner;
        uint32_t alive = 0;
        if (!a->is_known || !a->has_read || a->is_writing || a->urgent_ms != UINT64_MAX || a->planned_ms != UINT64_MAX)
                return false;
        for (uint32_t i = 0; i < scale_hosts_count; i++) {
                const struct scale_host *h = &scale_hosts[i];
                if (!h->is_alive)
                        continue;
                alive++;
                if (h->is_leaving || h->membership.assignment.generation != a->current.generation)
                        return false;
        }
        return HASH_COUNT(a->members) == alive;
}
