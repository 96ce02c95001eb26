#include "host/membership/membership.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "host/membership/membership_private.h"

/* The interval at which failed requests are tried again. */
#define RETRY_MS 500
/* Minimum time between two reports of load. */
#define LOAD_EVERY_MS 15000

/* --- the assignment --- */

/* Returns the generation of the assignment; 0: it cannot be read. */
static uint64_t take_assign(struct membership *m, struct span text)
{
        struct assignment read = { 0 };
        struct error error = { "" };
        int r = assign_doc_parse(text, &read, &error);
        if (r == 0 && read.shards_count != m->shards_count) {
                r = error_set(&error, -EBADMSG, "it is for %" PRIu32 " shards, the store has %" PRIu32,
                        read.shards_count, m->shards_count);
                assignment_free(&read);
        }
        if (r == 0 && read.generation > ASSIGN_GENERATION_MAX) {
                r = error_set(&error, -EBADMSG, "the assignment's generation %" PRIu64 " is damaged: too high",
                        read.generation);
                assignment_free(&read);
        }
        if (r < 0 && r != -EPROTO) {
                /* The leader replaces the document.  Until then the previous assignment stays in force. */
                log_event(LEVEL_ERROR, "assign", "text=%s", LOG_QUOTE(error.text));
                return 0;
        }
        if (r == -EPROTO && !m->is_standing_by)
                log_event(LEVEL_ERROR, "standing-by", "text=%s hint=%s", LOG_QUOTE(error.text),
                        LOG_QUOTE("upgrade this host; it gives up its shards meanwhile"));
        m->is_standing_by = r == -EPROTO;
        if (r == 0) {
                if (read.generation != m->assignment.generation)
                        log_event(LEVEL_DEBUG, "assigned", "generation=%" PRIu64, read.generation);
                assignment_free(&m->assignment);
                m->assignment = read;
        }
        m->events->assigned(m->self);
        return r == 0 ? m->assignment.generation : 0;
}

static void keep_node(struct membership *m)
{
        int status = m->get.request.status;
        struct assign_node *node = &m->node;
        node->is_current = !m->must_get;
        node->exists = status != -ENOENT;
        node->version = status == 0 ? m->get.stat.version : COORD_ANY_VERSION;
        buffer_clear(&node->text);
        if (status == 0)
                buffer_put(&node->text, m->get.data.data, m->get.data.size);
}

static void on_assign(struct coord_request *request)
{
        struct membership *m = container_of(request, struct membership, get.request);
        uint64_t generation = 0;
        m->is_getting = false;
        if (request->status == -ECANCELED)
                return;
        /* The leader makes the node, and replaces a document that cannot be read. */
        if (request->status == 0 || request->status == -ENOENT || request->status == -EBADMSG) {
                keep_node(m);
                if (request->status == 0)
                        generation = take_assign(m, m->get.data);
                assigner_saw(&m->assigner, generation, clock_boot_ms());
        } else {
                m->must_get = true; /* the timer tries again */
        }
        if (m->must_get && (request->status == 0 || request->status == -ENOENT || request->status == -EBADMSG))
                membership_read_assign(m);
        membership_step(m);
}

void membership_read_assign(struct membership *m)
{
        m->node.is_current = false;
        m->must_get = true;
        if (m->is_getting)
                return;
        m->is_getting = true;
        m->must_get = false;
        m->get = (struct coord_get){ .request.done = on_assign, .path = MEMBERSHIP_ASSIGN, .watch = true };
        coord_get(m->coord, &m->get);
}

/* --- our own document --- */

static void describe(struct membership *m, struct member_doc *doc)
{
        *doc = (struct member_doc){ .member = { .weight = m->weight,
                                            .is_draining = m->is_drained || m->is_leaving,
                                            .sees_store = !m->has_lost_store } };
        doc->member.load = m->load;
        memcpy(doc->member.nonce, m->nonce, sizeof(m->nonce));
        (void)snprintf(doc->member.name, sizeof(doc->member.name), "%s", m->name);
        m->events->describe(m->self, doc);
}

void membership_report(struct membership *m)
{
        static struct member_doc doc;
        struct buffer text = { 0 };
        if (!m->is_started)
                return;
        describe(m, &doc);
        member_doc_put(&text, &doc);
        if (text.size == m->doc.size && !memcmp(text.data, m->doc.data, text.size)) {
                buffer_free(&text);
                return;
        }
        buffer_free(&m->doc);
        m->doc = text;
        member_set(&m->member, (struct span){ (const char *)text.data, text.size });
}

void membership_load(struct membership *m, const struct load_summary *load, uint64_t now_ms)
{
        if (!m->evens_load || now_ms < m->load_ms + LOAD_EVERY_MS || !load_summary_differs(&m->load, load))
                return;
        m->load = *load;
        m->load_ms = now_ms;
        membership_report(m);
}

void membership_even_load(struct membership *m, bool evens_load)
{
        m->evens_load = evens_load;
        /* The reported load starts as 0, so an idle host has nothing to report. */
        if (m->load.is_known != evens_load)
                m->load = (struct load_summary){ .is_known = evens_load };
        if (!m->is_started)
                return;
        assigner_even_load(&m->assigner, evens_load, clock_boot_ms());
        membership_report(m);
        membership_step(m);
}

void membership_store_seen(struct membership *m, bool is_seen)
{
        if (m->has_lost_store != is_seen)
                return;
        m->has_lost_store = !is_seen;
        membership_report(m);
}

void membership_limit(struct membership *m, uint32_t members_max)
{
        if (m->members_max == members_max)
                return;
        m->members_max = members_max;
        if (!m->is_started)
                return;
        assigner_limit(&m->assigner, members_max, clock_boot_ms());
        membership_step(m);
}

void membership_desired(struct membership *m, const struct store_desired *items, size_t count)
{
        char name[128];
        int size = snprintf(name, sizeof(name), "drain.%s", m->name);
        bool is_drained = false;
        for (size_t i = 0; i < count; i++)
                is_drained |= span_is(items[i].name, (struct span){ name, (size_t)size });
        if (is_drained != m->is_drained)
                log_event(LEVEL_INFO, is_drained ? "draining" : "active", "host=%s", m->name);
        m->is_drained = is_drained;
        membership_report(m);
}

/* --- the tree's events --- */

static const char *const state_names[] = { "connecting", "alive", "suspended", "expired" };

static void tell_session(const struct membership *m)
{
        char token[COORD_TOKEN_MAX] = "";
        coord_token(m->coord, token);
        m->events->session(m->self, token);
        explicit_bzero(token, sizeof(token));
}

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct membership *m = self;
        struct coord_info info;
        coord_info(m->coord, &info);
        log_event(state == COORD_ALIVE ? LEVEL_INFO : LEVEL_WARN, "coordination",
                "state=%s driver=%s session=%" PRIx64 " timeout_ms=%" PRIu64 "%s%s", state_names[state], info.driver,
                session, info.session_ms, *info.server ? " server=" : "", info.server);
        if (state == COORD_ALIVE && session != m->session) {
                m->session = session;
                tell_session(m);
                if (m->was_lost)
                        m->calm_ms = clock_boot_ms() + info.session_ms;
                m->was_lost = false;
        }
        m->was_lost |= state == COORD_EXPIRED;
        if (!m->is_started)
                return;
        member_session(&m->member, state, session);
        leader_session(&m->leader, state, session);
        if (state == COORD_ALIVE)
                membership_read_assign(m);
        m->others.session(m->others.self, state, session);
        membership_step(m);
}

static void on_changed(void *self, const char *path)
{
        struct membership *m = self;
        if (!m->is_started)
                return;
        if (!strcmp(path, MEMBERSHIP_ASSIGN))
                membership_read_assign(m);
        member_changed(&m->member, path);
        leader_changed(&m->leader, path);
        m->others.changed(m->others.self, path);
        membership_step(m);
}

static void on_look(void *self)
{
        struct membership *m = self;
        if (!m->is_started)
                return;
        membership_read_assign(m);
        member_look(&m->member);
        leader_look(&m->leader);
        m->others.look(m->others.self);
        membership_step(m);
}

static void on_timer(uv_timer_t *timer)
{
        struct membership *m = timer->data;
        m->retry_ms = 0;
        if (m->must_get && !m->is_getting)
                membership_read_assign(m);
        member_retry(&m->member);
        leader_retry(&m->leader);
        membership_step(m);
}

void membership_step(struct membership *m)
{
        uint64_t now_ms = clock_boot_ms();
        if (!m->is_started || !m->coord || m->closed)
                return;
        membership_assign(m, now_ms);
        /* A leader's request that is under way calls this again when it ends. */
        uint64_t due_ms = m->work.is_busy ? UINT64_MAX : assigner_due_ms(&m->assigner);
        if (due_ms < m->work.again_ms)
                due_ms = m->work.again_ms;
        bool is_settled = member_is_settled(&m->member) && !m->must_get && !assigner_wants_read(&m->assigner) &&
                          (!m->member.is_following || m->member.is_known) && leader_is_settled(&m->leader);
        /* The retry time stays as set: in a large fleet, other events would postpone it forever. */
        if (is_settled)
                m->retry_ms = 0;
        else if (!m->retry_ms)
                m->retry_ms = now_ms + RETRY_MS;
        if (m->retry_ms)
                due_ms = min_u64(due_ms, m->retry_ms);
        if (due_ms == UINT64_MAX)
                (void)uv_timer_stop(&m->timer);
        else
                (void)uv_timer_start(&m->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* --- start and end --- */

static void on_open(struct coord_request *request)
{
        struct membership *m = container_of(request, struct membership, open.request);
        if (request->status == 0)
                m->coord = m->open.coord;
        m->events->opened(m->self, request->status, request->error.text);
}

void membership_nonce_text(const struct membership *m, char ret_text[NONCE_TEXT_SIZE])
{
        (void)units_hex(ret_text, m->nonce, sizeof(m->nonce));
}

void membership_init(struct membership *m, uv_loop_t *loop)
{
        (void)uv_timer_init(loop, &m->timer);
        m->timer.data = m;
}

void membership_open(struct membership *m, uv_loop_t *loop, const struct coord_options *options)
{
        m->coord_events =
                (struct coord_events){ .session = on_session, .changed = on_changed, .look = on_look, .self = m };
        m->open = (struct coord_open){ .request.done = on_open, .options = *options };
        m->open.options.events = &m->coord_events;
        coord_open(loop, &m->open);
}

void membership_start(struct membership *m, uint32_t shards_count)
{
        struct coord_info info;
        char nonce[NONCE_TEXT_SIZE];
        char name[256];
        membership_nonce_text(m, nonce);
        (void)snprintf(name, sizeof(name), "%.200s.%s", m->name, nonce);
        member_init(&m->member, m->coord, MEMBERSHIP_MEMBERS, name, &membership_member_events, m);
        leader_init(&m->leader, m->coord, MEMBERSHIP_ELECTION, nonce, &membership_leader_events, m);
        (void)snprintf(
                m->leader.queue.says, sizeof(m->leader.queue.says), "host=%.255s pid=%d\n", m->name, (int)getpid());
        m->shards_count = shards_count;
        assigner_init(&m->assigner, shards_count, m->members_max);
        assigner_even_load(&m->assigner, m->evens_load, clock_boot_ms());
        m->is_started = true;
        coord_info(m->coord, &info);
        if (info.state != COORD_ALIVE)
                log_event(LEVEL_INFO, "coordination", "state=%s driver=%s text=%s", state_names[info.state],
                        info.driver, LOG_QUOTE("no shard is taken before it answers"));
        membership_report(m);
        leader_stand(&m->leader, true);
        if (info.session) {
                member_session(&m->member, COORD_ALIVE, info.session);
                leader_session(&m->leader, COORD_ALIVE, info.session);
                if (m->session)
                        tell_session(m);
        }
        membership_read_assign(m);
        membership_step(m);
}

void membership_leave(struct membership *m)
{
        m->is_leaving = true;
        if (!m->is_started)
                return;
        leader_stand(&m->leader, false);
        membership_report(m);
        membership_step(m);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct membership *m = handle->data;
        m->closed(m->self);
}

static void on_coord_closed(void *self)
{
        struct membership *m = self;
        uv_close((uv_handle_t *)&m->timer, on_timer_closed);
}

void membership_close(struct membership *m, void (*closed)(void *self))
{
        struct coord *coord = m->coord;
        m->closed = closed;
        m->coord = NULL;
        if (coord)
                coord_close(coord, on_coord_closed, m);
        else
                on_coord_closed(m);
}

void membership_free(struct membership *m)
{
        if (m->is_started) {
                member_free(&m->member);
                assigner_free(&m->assigner);
        }
        assignment_free(&m->assignment);
        buffer_free(&m->node.text);
        buffer_free(&m->doc);
        buffer_free(&m->work.assign);
        buffer_free(&m->work.moves);
}
