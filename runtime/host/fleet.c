#include "host/fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/fleet_parts.h"
#include "host/host_parts.h"

/* While something is not as it should be, it is tried again so often. */
#define RETRY_MS 500

static void read_assign(struct host *h);

/* --- what is assigned --- */

static bool is_us(const struct host *h, const struct assign_owner *owner)
{
        return owner && !memcmp(owner->nonce, h->nonce, sizeof(h->nonce));
}

static void apply(struct host *h, uint64_t now_ms)
{
        const struct assignment *a = &h->fleet.assignment;
        if (h->is_stopping)
                return;
        for (uint32_t i = 0; i < h->shards_count; i++) {
                struct shard *s = &h->shards[i].shard;
                bool is_ours = i < a->shards_count && is_us(h, assignment_owner(a, i)) && !h->fleet.is_standing_by;
                if (is_ours)
                        shard_assign(s, h->nonce, a->slots[i].epoch, a->slots[i].is_firm);
                else
                        shard_unassign(s, now_ms);
        }
}

void fleet_reconcile(struct host *h)
{
        const struct assignment *a = &h->fleet.assignment;
        for (uint32_t i = 0; i < a->shards_count && i < h->shards_count && !h->is_stopping; i++) {
                struct shard *s = &h->shards[i].shard;
                if (s->state == SHARD_AWAY && s->stale_epoch < a->slots[i].epoch && is_us(h, assignment_owner(a, i)))
                        shard_assign(s, h->nonce, a->slots[i].epoch, a->slots[i].is_firm);
        }
}

/* Returns its generation; 0: it cannot be read. */
static uint64_t take_assign(struct host *h, struct span text)
{
        struct fleet *f = &h->fleet;
        struct assignment read = { 0 };
        struct error error = { "" };
        int r = assign_doc_parse(text, &read, &error);
        if (r == 0 && read.shards_count != h->shards_count) {
                r = error_set(&error, -EBADMSG, "it is for %" PRIu32 " shards, the store has %" PRIu32,
                        read.shards_count, h->shards_count);
                assignment_free(&read);
        }
        if (r == 0 && read.generation > ASSIGN_GENERATION_MAX) {
                r = error_set(&error, -EBADMSG, "its generation %" PRIu64 " leaves no room above it", read.generation);
                assignment_free(&read);
        }
        if (r < 0 && r != -EPROTO) {
                /* The leader replaces it.  Until then what was assigned before stands. */
                log_event(LEVEL_ERROR, "assign", "text=%s", LOG_QUOTE(error.text));
                return 0;
        }
        if (r == -EPROTO && !f->is_standing_by)
                log_event(LEVEL_ERROR, "standing-by", "text=%s hint=%s", LOG_QUOTE(error.text),
                        LOG_QUOTE("upgrade this host; it gives up its shards meanwhile"));
        f->is_standing_by = r == -EPROTO;
        if (r == 0) {
                if (read.generation != f->assignment.generation)
                        log_event(LEVEL_DEBUG, "assigned", "generation=%" PRIu64, read.generation);
                assignment_free(&f->assignment);
                f->assignment = read;
        }
        apply(h, clock_boot_ms());
        return r == 0 ? f->assignment.generation : 0;
}

static void on_assign(struct coord_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, fleet.get.request));
        struct fleet *f = &h->fleet;
        f->is_getting = false;
        if (request->status == -ECANCELED)
                return;
        if (request->status == 0)
                chair_saw(&f->chair, take_assign(h, f->get.data), clock_boot_ms());
        else if (request->status == -ENOENT || request->status == -EBADMSG) /* the leader replaces it */
                chair_saw(&f->chair, 0, clock_boot_ms());
        else
                f->must_get = true; /* the timer tries again */
        if ((request->status == 0 || request->status == -EBADMSG) && f->must_get)
                read_assign(h);
        fleet_turn(h);
}

static void read_assign(struct host *h)
{
        struct fleet *f = &h->fleet;
        f->must_get = true;
        if (f->is_getting)
                return;
        f->is_getting = true;
        f->must_get = false;
        f->get = (struct coord_get){ .request.done = on_assign, .path = FLEET_ASSIGN, .watch = true };
        coord_get(f->coord, &f->get);
}

/* --- what we say of ourselves --- */

static void describe(struct host *h, struct member_doc *doc)
{
        const struct fleet *f = &h->fleet;
        *doc = (struct member_doc){ .member = { .weight = h->config->host.weight,
                                            .is_draining = f->is_drained || f->is_leaving,
                                            .sees_store = !f->has_lost_store } };
        memcpy(doc->member.nonce, h->nonce, sizeof(h->nonce));
        (void)snprintf(doc->member.name, sizeof(doc->member.name), "%s", h->config->host.name);
        for (uint32_t i = 0; i < h->handlers_count; i++)
                handler_describe(h->handlers[i], doc);
        for (uint32_t i = 0; i < h->shards_count; i++)
                if (h->shards[i].shard.stale_epoch)
                        member_doc_add_stale(doc, i, h->shards[i].shard.stale_epoch);
}

void fleet_report(struct host *h)
{
        static struct member_doc doc;
        struct fleet *f = &h->fleet;
        struct buffer text = { 0 };
        if (!f->is_started)
                return;
        describe(h, &doc);
        member_doc_put(&text, &doc);
        if (text.size == f->doc.size && !memcmp(text.data, f->doc.data, text.size)) {
                buffer_free(&text);
                return;
        }
        buffer_free(&f->doc);
        f->doc = text;
        member_set(&f->member, (struct span){ (const char *)text.data, text.size });
}

void fleet_store_seen(struct host *h, bool is_seen)
{
        if (h->fleet.has_lost_store != is_seen)
                return;
        h->fleet.has_lost_store = !is_seen;
        fleet_report(h);
}

void fleet_desired(struct host *h, const struct store_desired *items, size_t count)
{
        struct fleet *f = &h->fleet;
        char name[128];
        int size = snprintf(name, sizeof(name), "drain.%s", h->config->host.name);
        bool is_drained = false;
        for (size_t i = 0; i < count; i++)
                is_drained |= span_is(items[i].name, (struct span){ name, (size_t)size });
        if (is_drained != f->is_drained)
                log_event(LEVEL_INFO, is_drained ? "draining" : "active", "host=%s", h->config->host.name);
        f->is_drained = is_drained;
        fleet_report(h);
}

/* --- the tree's events --- */

static const char *const state_names[] = { "connecting", "alive", "suspended", "expired" };

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct host *h = self;
        struct fleet *f = &h->fleet;
        struct coord_info info;
        char token[COORD_TOKEN_MAX] = "";
        coord_info(f->coord, &info);
        log_event(state == COORD_ALIVE ? LEVEL_INFO : LEVEL_WARN, "coordination",
                "state=%s driver=%s session=%" PRIx64 " timeout_ms=%" PRIu64 "%s%s", state_names[state], info.driver,
                session, info.session_ms, *info.server ? " server=" : "", info.server);
        if (state == COORD_ALIVE && session != f->session) {
                f->session = session;
                coord_token(f->coord, token);
                if (h->has_guardian)
                        guardian_session(&h->guardian, token);
                explicit_bzero(token, sizeof(token));
                if (f->was_lost)
                        f->calm_ms = clock_boot_ms() + info.session_ms;
                f->was_lost = false;
        }
        f->was_lost |= state == COORD_EXPIRED;
        if (!f->is_started)
                return;
        member_session(&f->member, state, session);
        leader_session(&f->leader, state, session);
        if (state == COORD_ALIVE)
                read_assign(h);
        fleet_turn(h);
}

static void on_changed(void *self, const char *path)
{
        struct host *h = self;
        struct fleet *f = &h->fleet;
        if (!f->is_started)
                return;
        if (!strcmp(path, FLEET_ASSIGN))
                read_assign(h);
        member_changed(&f->member, path);
        leader_changed(&f->leader, path);
        fleet_turn(h);
}

static void on_look(void *self)
{
        struct host *h = self;
        struct fleet *f = &h->fleet;
        if (!f->is_started)
                return;
        read_assign(h);
        member_look(&f->member);
        leader_look(&f->leader);
        fleet_turn(h);
}

static void on_timer(uv_timer_t *timer)
{
        struct host *h = timer->data;
        struct fleet *f = &h->fleet;
        if (f->must_get && !f->is_getting)
                read_assign(h);
        member_retry(&f->member);
        leader_retry(&f->leader);
        fleet_turn(h);
}

void fleet_turn(struct host *h)
{
        struct fleet *f = &h->fleet;
        uint64_t now_ms = clock_boot_ms();
        if (!f->is_started || !f->coord || f->closed)
                return;
        fleet_chair(h, now_ms);
        /* What is under way comes back here by itself. */
        uint64_t due_ms = f->work.is_busy ? UINT64_MAX : chair_due_ms(&f->chair);
        if (due_ms < f->work.again_ms)
                due_ms = f->work.again_ms;
        bool is_settled = member_is_settled(&f->member) && !f->must_get && !chair_wants_read(&f->chair) &&
                          (!f->member.is_following || f->member.is_known) && leader_is_settled(&f->leader);
        if (!is_settled && now_ms + RETRY_MS < due_ms)
                due_ms = now_ms + RETRY_MS;
        if (due_ms == UINT64_MAX)
                (void)uv_timer_stop(&f->timer);
        else
                (void)uv_timer_start(&f->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* --- start and end --- */

static void on_open(struct coord_request *request)
{
        struct host *h = (struct host *)((char *)request - offsetof(struct host, fleet.open.request));
        if (request->status < 0) {
                h->status = error_set(&h->error, request->status, "%s", request->error.text);
                host_close(h);
                return;
        }
        h->fleet.coord = h->fleet.open.coord;
        if (h->is_stopping)
                host_close(h);
        else
                host_open_store(h);
}

void fleet_open(struct host *h)
{
        struct fleet *f = &h->fleet;
        const struct config *c = h->config;
        (void)uv_timer_init(&h->loop, &f->timer);
        f->timer.data = h;
        f->events = (struct coord_events){ .session = on_session, .changed = on_changed, .look = on_look, .self = h };
        f->open = (struct coord_open){
                .request.done = on_open,
                .options = coord_options_of(c, &h->secrets),
        };
        f->open.options.events = &f->events;
        coord_open(&h->loop, &f->open);
}

void fleet_start(struct host *h)
{
        struct fleet *f = &h->fleet;
        struct coord_info info;
        char nonce[2 * STORE_NONCE_SIZE + 1];
        char name[256];
        host_nonce_text(h, nonce);
        (void)snprintf(name, sizeof(name), "%.200s.%s", h->config->host.name, nonce);
        member_init(&f->member, f->coord, FLEET_MEMBERS, name, &fleet_member_events, h);
        leader_init(&f->leader, f->coord, FLEET_ELECTION, nonce, &fleet_leader_events, h);
        chair_init(&f->chair, h->shards_count, h->config->coordination.members_max);
        f->is_started = true;
        coord_info(f->coord, &info);
        if (info.state != COORD_ALIVE)
                log_event(LEVEL_INFO, "coordination", "state=%s driver=%s text=%s", state_names[info.state],
                        info.driver, LOG_QUOTE("no shard is taken before it answers"));
        fleet_report(h);
        leader_stand(&f->leader, true);
        if (info.session) {
                member_session(&f->member, COORD_ALIVE, info.session);
                leader_session(&f->leader, COORD_ALIVE, info.session);
                if (f->session && h->has_guardian) {
                        char token[COORD_TOKEN_MAX] = "";
                        coord_token(f->coord, token);
                        guardian_session(&h->guardian, token);
                        explicit_bzero(token, sizeof(token));
                }
        }
        read_assign(h);
        fleet_turn(h);
}

void fleet_leave(struct host *h)
{
        struct fleet *f = &h->fleet;
        f->is_leaving = true;
        if (!f->is_started)
                return;
        leader_stand(&f->leader, false);
        fleet_report(h);
        fleet_turn(h);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct host *h = handle->data;
        h->fleet.closed(h);
}

static void on_coord_closed(void *self)
{
        struct host *h = self;
        uv_close((uv_handle_t *)&h->fleet.timer, on_timer_closed);
}

void fleet_close(struct host *h, void (*closed)(void *self))
{
        struct coord *coord = h->fleet.coord;
        h->fleet.closed = closed;
        h->fleet.coord = NULL;
        if (coord)
                coord_close(coord, on_coord_closed, h);
        else
                on_coord_closed(h);
}

void fleet_free(struct host *h)
{
        struct fleet *f = &h->fleet;
        if (f->is_started) {
                member_free(&f->member);
                chair_free(&f->chair);
        }
        assignment_free(&f->assignment);
        buffer_free(&f->doc);
        buffer_free(&f->work.assign);
        buffer_free(&f->work.moves);
}
