#include "coord/leader.h"

#include <string.h>

#include "base/log.h"

static void on_front(void *self, uint64_t token)
{
        struct leader *l = self;
        (void)token;
        l->failure.text[0] = 0;
        l->events->gained(l->self);
}

static void on_lost(void *self)
{
        struct leader *l = self;
        l->events->lost(l->self);
}

/* The request is repeated, but each error is logged only once. */
static void on_failed(void *self, int status, const char *text)
{
        struct leader *l = self;
        (void)status;
        if (!strcmp(text, l->failure.text))
                return;
        (void)error_set(&l->failure, 0, "%s", text);
        log_event(LEVEL_WARN, "election", "text=%s", LOG_QUOTE(text));
}

void leader_init(struct leader *l, struct coord *coord, const char *path, const char *nonce,
        const struct leader_events *events, void *self)
{
        l->events = events;
        l->self = self;
        l->failure.text[0] = 0;
        queue_init(&l->queue, coord, path, nonce,
                &(struct queue_events){ .front = on_front, .lost = on_lost, .failed = on_failed, .self = l });
}

void leader_stand(struct leader *l, bool is_standing)
{
        bool was_leading = l->queue.is_front;
        if (is_standing) {
                queue_enter(&l->queue);
                return;
        }
        (void)queue_leave(&l->queue);
        if (was_leading)
                l->events->lost(l->self);
}

bool leader_is_leading(const struct leader *l)
{
        return l->queue.is_front;
}

bool leader_is_settled(const struct leader *l)
{
        const struct queue *queue = &l->queue;
        return !queue->session || (queue->step == QUEUE_REST && !queue->is_busy && !queue->is_failed);
}

struct coord_multi_op leader_check(const struct leader *l)
{
        return (struct coord_multi_op){ .kind = COORD_CHECK, .path = l->queue.own, .version = COORD_ANY_VERSION };
}

void leader_session(struct leader *l, enum coord_state state, uint64_t session)
{
        queue_session(&l->queue, state, session);
}

void leader_changed(struct leader *l, const char *path)
{
        queue_changed(&l->queue, path);
}

void leader_look(struct leader *l)
{
        queue_look(&l->queue);
}

void leader_retry(struct leader *l)
{
        if (l->queue.is_failed)
                queue_look(&l->queue);
}
