/* assigner_io.c: on the leader: reads the assignment, passes the members to the assigner, writes its decisions. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "host/membership/membership_private.h"

#define AGAIN_MS 1000

/* --- members --- */

static void told(struct membership *m, const char *name, uint64_t created, struct span data)
{
        struct error error = { "" };
        int r = assigner_member(&m->assigner, name, created, data, clock_boot_ms(), &error);
        if (r < 0)
                log_event(LEVEL_WARN, "member", "node=%s text=%s hint=%s", name, LOG_QUOTE(error.text),
                        LOG_QUOTE("it gets no shards"));
        membership_step(m);
}

static void on_joined(void *self, const char *name, uint64_t created, struct span data)
{
        log_event(LEVEL_INFO, "member-joined", "node=%s", name);
        told(self, name, created, data);
}

static void on_changed(void *self, const char *name, uint64_t created, struct span data)
{
        told(self, name, created, data);
}

static void on_left(void *self, const char *name)
{
        struct membership *m = self;
        log_event(LEVEL_INFO, "member-left", "node=%s", name);
        assigner_left(&m->assigner, name, clock_boot_ms());
        membership_step(m);
}

static void on_known(void *self, bool is_known)
{
        struct membership *m = self;
        assigner_know(&m->assigner, is_known, clock_boot_ms());
        membership_step(m);
}

const struct member_events membership_member_events = {
        .joined = on_joined,
        .changed = on_changed,
        .left = on_left,
        .known = on_known,
};

static void lead(struct membership *m, bool is_leading)
{
        log_event(LEVEL_INFO, is_leading ? "leading" : "not-leading", "host=%s", m->name);
        assigner_free(&m->assigner);
        assigner_init(&m->assigner, m->shards_count, m->members_max);
        assigner_even_load(&m->assigner, m->evens_load, clock_boot_ms());
        assigner_wait(&m->assigner, m->calm_ms);
        assigner_lead(&m->assigner, is_leading, clock_boot_ms());
        member_follow(&m->member, is_leading);
        membership_step(m);
}

static void on_gained(void *self)
{
        lead(self, true);
}

static void on_lost(void *self)
{
        lead(self, false);
}

const struct leader_events membership_leader_events = { .gained = on_gained, .lost = on_lost };

/* --- reading --- */

static void fail(struct membership *m, const struct coord_request *request)
{
        m->work.again_ms = clock_boot_ms() + AGAIN_MS;
        if (request->status != -ECANCELED)
                log_event(LEVEL_WARN, "assign", "text=%s", LOG_QUOTE(request->error.text));
}

static void on_moves(struct coord_request *request)
{
        struct membership *m = container_of(request, struct membership, work.get.request);
        struct assigner_work *w = &m->work;
        const struct assign_node *node = &m->node;
        struct error error = { "" };
        struct span moves = { "", 0 };
        w->is_busy = false;
        /* A node that is not there is made, and one that cannot be read is replaced. */
        if (request->status && request->status != -ENOENT && request->status != -EBADMSG) {
                fail(m, request);
                return;
        }
        w->has_moves = request->status != -ENOENT;
        if (request->status == 0)
                moves = w->get.data;
        struct span assign = { (const char *)node->text.data, node->text.size };
        if (assigner_read(&m->assigner, node->exists, assign, node->version, moves, clock_boot_ms(), &error) < 0) {
                w->again_ms = clock_boot_ms() + AGAIN_MS;
                log_event(LEVEL_ERROR, "assign", "node=%s text=%s", MEMBERSHIP_ASSIGN, LOG_QUOTE(error.text));
        }
        membership_step(m);
}

/* Uses the assignment that membership.c has read.  If that must be read first, this function is called again
 * afterwards; after a failure the timer repeats it. */
static void read_all(struct membership *m)
{
        if (m->node.is_current) {
                m->work.is_busy = true;
                m->work.get = (struct coord_get){ .request.done = on_moves, .path = MEMBERSHIP_MOVES };
                coord_get(m->coord, &m->work.get);
        } else if (!m->is_getting && !m->must_get) {
                membership_read_assign(m);
        }
}

/* --- writing --- */

static void note_moves(struct membership *m)
{
        const struct assign_plan *plan = &m->assigner.plan;
        log_event(LEVEL_INFO, "assign", "generation=%" PRIu64 " moves=%" PRIu32 " later=%" PRIu32,
                plan->next.generation, plan->moves_count, plan->moves_left);
        for (uint32_t i = 0; i < plan->moves_count; i++) {
                const struct assign_move *move = &plan->moves[i];
                m->moves_made[move->reason]++;
                log_event(move->reason == ASSIGN_LOAD ? LEVEL_INFO : LEVEL_DEBUG, "move",
                        "shard=%" PRIu32 " from=%s to=%s epoch=%" PRIu64 " reason=%s", move->shard,
                        *move->from.name ? move->from.name : "-", move->to.name, move->epoch,
                        assign_reason_name(move->reason));
        }
}

static void on_written(struct coord_request *request)
{
        struct membership *m = container_of(request, struct membership, work.multi.request);
        m->work.is_busy = false;
        m->node.is_current = false;
        if (request->status == 0) {
                m->work.has_moves = true;
                note_moves(m);
        } else {
                fail(m, request);
        }
        assigner_wrote(&m->assigner, request->status, m->work.ops[1].stat.version, clock_boot_ms());
        membership_step(m);
}

static struct coord_multi_op put(const char *path, const struct buffer *data, bool exists, uint64_t version)
{
        return (struct coord_multi_op){ .kind = exists ? COORD_SET : COORD_CREATE,
                .path = path,
                .data = { (const char *)data->data, data->size },
                .version = version };
}

/* Writes the documents in one transaction with the check that we still lead. */
static void write_all(struct membership *m)
{
        struct assigner_work *w = &m->work;
        w->ops[0] = leader_check(&m->leader);
        w->ops[1] = put(MEMBERSHIP_ASSIGN, &w->assign, m->assigner.exists, m->assigner.version);
        w->ops[2] = put(MEMBERSHIP_MOVES, &w->moves, w->has_moves, COORD_ANY_VERSION);
        w->is_busy = true;
        w->multi = (struct coord_multi){ .request.done = on_written, .ops = w->ops, .ops_count = 3 };
        coord_multi(m->coord, &w->multi);
}

void membership_assign(struct membership *m, uint64_t now_ms)
{
        struct assigner_work *w = &m->work;
        if (w->is_busy || !m->session || now_ms < w->again_ms || !leader_is_leading(&m->leader))
                return;
        if (assigner_wants_read(&m->assigner))
                read_all(m);
        else if (assigner_plan(&m->assigner, now_ms, clock_wall_ms(), &w->assign, &w->moves))
                write_all(m);
        else if (m->assigner.failure.text[0])
                log_event(LEVEL_ERROR, "assign", "text=%s", LOG_QUOTE(m->assigner.failure.text));
        m->assigner.failure.text[0] = 0;
}
