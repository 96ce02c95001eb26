/* sim_fleet.c: a host as one of several: as runtime/host/membership/membership.c and assigner_io.c have it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "sim.h"

static void read_assign(struct sim_host *h);

static void on_assign(struct coord_request *request)
{
        struct sim_host *h = (struct sim_host *)((char *)request - offsetof(struct sim_host, get.request));
        struct assignment read = { 0 };
        struct error error;
        h->is_getting = false;
        if (request->status == 0 && assign_doc_parse(h->get.data, &read, &error) == 0) {
                assignment_free(&h->assignment);
                h->assignment = read;
                if (!h->is_leaving)
                        shards_assign(&h->shards, false, h->sim->now_ms);
        } else if (request->status != -ENOENT) {
                h->must_get = true;
        }
        if (request->status == 0 && h->must_get)
                read_assign(h);
        sim_host_turn(h);
}

static void read_assign(struct sim_host *h)
{
        h->must_get = true;
        if (h->is_getting)
                return;
        h->is_getting = true;
        h->must_get = false;
        h->get = (struct coord_get){ .request.done = on_assign, .path = "assign", .watch = true };
        coord_get(h->coord, &h->get);
}

void sim_fleet_report(struct sim_host *h)
{
        static struct member_doc doc;
        struct buffer text = { 0 };
        doc = (struct member_doc){ .member = { .weight = 1, .sees_store = true, .is_draining = h->is_leaving } };
        memcpy(doc.member.nonce, h->nonce, sizeof(h->nonce));
        (void)snprintf(doc.member.name, sizeof(doc.member.name), "h%u", h->index);
        for (uint32_t i = 0; i < SHARDS; i++)
                if (h->shards.list[i].shard.stale_epoch)
                        member_doc_add_stale(&doc, i, h->shards.list[i].shard.stale_epoch);
        doc.member.load = h->load;
        member_doc_put(&text, &doc);
        if (text.size != h->doc.size || memcmp(text.data, h->doc.data, text.size) != 0) {
                buffer_free(&h->doc);
                h->doc = text;
                member_set(&h->member, (struct span){ (const char *)text.data, text.size });
        } else {
                buffer_free(&text);
        }
}

/* One time in eight it tells nothing, as an older host.  Mostly it tells of shards that it holds, and of others, too:
 * what a host says of its load is not trusted. */
void sim_fleet_load(struct sim_host *h)
{
        struct sim *sim = h->sim;
        h->load = (struct load_summary){ 0 };
        uint32_t most = sim_draw(sim, 2) ? 50 : 5000;
        if (sim_draw(sim, 8)) {
                for (uint32_t i = 0; i < SHARDS; i++)
                        if (shard_is_held(&h->shards.list[i].shard) || !sim_draw(sim, 4))
                                load_summary_add(&h->load, i, sim_draw(sim, most));
                load_summary_end(&h->load);
        }
        sim_fleet_report(h);
}

static void on_joined(void *self, const char *name, uint64_t created, struct span data)
{
        struct sim_host *h = self;
        struct error error;
        if (assigner_member(&h->assigner, name, created, data, h->sim->now_ms, &error) < 0)
                sim_fail(h->sim, "a member that cannot be read: %s", error.text);
}

static void on_left(void *self, const char *name)
{
        struct sim_host *h = self;
        assigner_left(&h->assigner, name, h->sim->now_ms);
}

static void on_known(void *self, bool is_known)
{
        struct sim_host *h = self;
        assigner_know(&h->assigner, is_known, h->sim->now_ms);
}

static const struct member_events member_events = {
        .joined = on_joined, .changed = on_joined, .left = on_left, .known = on_known
};

static void lead(struct sim_host *h, bool is_leading)
{
        assigner_free(&h->assigner);
        assigner_init(&h->assigner, SHARDS, 0);
        assigner_even_load(&h->assigner, true, h->sim->now_ms);
        assigner_lead(&h->assigner, is_leading, h->sim->now_ms);
        member_follow(&h->member, is_leading);
}

static void on_gained(void *self)
{
        lead(self, true);
}

static void on_lost(void *self)
{
        lead(self, false);
}

static const struct leader_events leader_events = { .gained = on_gained, .lost = on_lost };

static void on_chair_read(struct coord_request *request)
{
        struct sim_host *h = (struct sim_host *)((char *)request - offsetof(struct sim_host, assigner_get.request));
        struct error error;
        h->is_chair_busy = false;
        if (request->status < 0 && request->status != -ENOENT) {
                h->assigner_again_ms = h->sim->now_ms + 200;
                return;
        }
        bool has_assign = request->status == 0;
        struct span none = { "", 0 };
        (void)assigner_read(&h->assigner, has_assign, has_assign ? h->assigner_get.data : none,
                has_assign ? h->assigner_get.stat.version : 0, none, h->sim->now_ms, &error);
        sim_host_turn(h);
}

static void on_written(struct coord_request *request)
{
        struct sim_host *h = (struct sim_host *)((char *)request - offsetof(struct sim_host, multi.request));
        h->is_chair_busy = false;
        if (request->status < 0)
                h->assigner_again_ms = h->sim->now_ms + 200;
        const struct assign_plan *plan = &h->assigner.plan;
        for (uint32_t i = 0; request->status == 0 && h->assigner.is_writing && i < plan->moves_count; i++)
                h->sim->counts.exchanged += plan->moves[i].reason == ASSIGN_LOAD;
        assigner_wrote(&h->assigner, request->status, h->ops[1].stat.version, h->sim->now_ms);
        sim_host_turn(h);
}

void sim_fleet_chair(struct sim_host *h)
{
        struct sim *sim = h->sim;
        if (h->is_chair_busy || sim->now_ms < h->assigner_again_ms || !leader_is_leading(&h->leader))
                return;
        if (assigner_wants_read(&h->assigner)) {
                h->is_chair_busy = true;
                h->assigner_get = (struct coord_get){ .request.done = on_chair_read, .path = "assign" };
                coord_get(h->coord, &h->assigner_get);
        } else if (assigner_plan(&h->assigner, sim->now_ms, sim->unix_ms + sim->now_ms, &h->assign, &h->moves)) {
                h->is_chair_busy = true;
                h->ops[0] = leader_check(&h->leader);
                h->ops[1] = (struct coord_multi_op){ .kind = h->assigner.exists ? COORD_SET : COORD_CREATE,
                        .path = "assign",
                        .data = { (const char *)h->assign.data, h->assign.size },
                        .version = h->assigner.version };
                h->multi = (struct coord_multi){ .request.done = on_written, .ops = h->ops, .ops_count = 2 };
                coord_multi(h->coord, &h->multi);
        }
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct sim_host *h = self;
        member_session(&h->member, state, session);
        leader_session(&h->leader, state, session);
        if (state == COORD_ALIVE)
                read_assign(h);
}

static void on_changed(void *self, const char *path)
{
        struct sim_host *h = self;
        if (!strcmp(path, "assign"))
                read_assign(h);
        member_changed(&h->member, path);
        leader_changed(&h->leader, path);
        sim_host_turn(h);
}

static void on_look(void *self)
{
        struct sim_host *h = self;
        read_assign(h);
        member_look(&h->member);
        leader_look(&h->leader);
        sim_host_turn(h);
}

void sim_fleet_tick(struct sim_host *h)
{
        if (h->must_get && !h->is_getting && h->coord->session)
                read_assign(h);
        member_retry(&h->member);
        leader_retry(&h->leader);
}

void sim_fleet_open(struct sim_host *h)
{
        char nonce[2 * STORE_NONCE_SIZE + 1];
        char name[64];
        (void)units_hex(nonce, h->nonce, sizeof(h->nonce));
        (void)snprintf(name, sizeof(name), "h%u.%s", h->index, nonce);
        h->events = (struct coord_events){ .session = on_session, .changed = on_changed, .look = on_look, .self = h };
        h->coord = sim_tree_connect(h, &h->events);
        member_init(&h->member, h->coord, "members", name, &member_events, h);
        leader_init(&h->leader, h->coord, "election", nonce, &leader_events, h);
        assigner_init(&h->assigner, SHARDS, 0);
        sim_fleet_report(h);
        leader_stand(&h->leader, true);
}

void sim_fleet_free(struct sim_host *h)
{
        member_free(&h->member);
        assigner_free(&h->assigner);
        assignment_free(&h->assignment);
        buffer_free(&h->doc);
        buffer_free(&h->assign);
        buffer_free(&h->moves);
        sim_tree_disconnect(h->coord);
        h->coord = NULL;
}
