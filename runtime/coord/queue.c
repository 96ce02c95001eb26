#include "coord/queue.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

#define SEQUENCE_DIGITS 10u

static void pump(struct queue *queue);

void queue_init(
        struct queue *queue, struct coord *coord, const char *path, const char *id, const struct queue_events *events)
{
        *queue = (struct queue){ .events = *events, .coord = coord };
        (void)snprintf(queue->path, sizeof(queue->path), "%s", path);
        (void)snprintf(queue->ticket, sizeof(queue->ticket), "%.*s/%.*s-", (int)(COORD_PATH_MAX - QUEUE_ID_MAX - 20),
                path, (int)QUEUE_ID_MAX, id);
}

static struct queue *queue_of(struct coord_request *request)
{
        return container_of(request, struct queue, request);
}

/* Forgets our node: it is gone, or was never ours. */
static void lose(struct queue *queue)
{
        bool was_front = queue->is_front;
        queue->own[0] = queue->watched[0] = 0;
        queue->is_front = false;
        queue->step = queue->wants ? QUEUE_FIND : QUEUE_REST;
        if (was_front && queue->events.lost)
                queue->events.lost(queue->events.self);
}

static bool is_unknown(int status)
{
        return status == -ETIMEDOUT || status == -ECONNRESET;
}

static void fail(struct queue *queue)
{
        queue->is_failed = true;
        if (queue->events.failed)
                queue->events.failed(queue->events.self, queue->request.status, queue->request.error.text);
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static bool is_ours(const struct queue *queue, const char *name);

/* The authority gave us a name without a valid number, because somebody has changed its sequence.  The node is given
 * up, and another one is made after the next look. */
static void refuse_place(struct queue *queue)
{
        queue->step = QUEUE_REMOVE;
        queue->request.status = error_set(&queue->request.error, -EBADMSG,
                "%.300s is not a place in the queue %.200s: its number is out of range", queue->own, queue->path);
        fail(queue);
}

static void created(struct queue *queue)
{
        int status = queue->request.status;
        if (!status) {
                (void)snprintf(queue->own, sizeof(queue->own), "%s", queue->create.made);
                queue->token = queue->create.stat.created;
                queue->step = queue->wants ? QUEUE_LOOK : QUEUE_REMOVE;
                if (strlen(queue->own) <= strlen(queue->path) || !is_ours(queue, queue->own + strlen(queue->path) + 1))
                        refuse_place(queue);
        } else if (is_unknown(status) || status == -EEXIST) {
                queue->step = QUEUE_FIND;
        } else {
                fail(queue);
        }
}

/* The number at the end of a name, which may begin with anything.  NULL: it is no name of this queue. */
static const char *number_of(const char *name)
{
        size_t size = strlen(name);
        const char *number = size > SEQUENCE_DIGITS ? name + size - SEQUENCE_DIGITS : "";
        return strspn(number, "0123456789") == SEQUENCE_DIGITS ? number : NULL;
}

/* Whether the node of that name is ours.  There may be several: of a create that got no answer, or a late one. */
static bool is_ours(const struct queue *queue, const char *name)
{
        const char *ticket = queue->ticket + strlen(queue->path) + 1;
        return !strncmp(name, ticket, strlen(ticket)) && strlen(name) == strlen(ticket) + SEQUENCE_DIGITS &&
               number_of(name);
}

static void take_place(struct queue *queue, const char *name)
{
        (void)snprintf(queue->own, sizeof(queue->own), "%.*s/%.255s", (int)(COORD_PATH_MAX - 257), queue->path, name);
}

/* Our node with the lowest number, if there is one. */
static void found(struct queue *queue)
{
        const char *own = NULL;
        if (is_unknown(queue->request.status))
                return;
        if (queue->request.status) {
                fail(queue);
                return;
        }
        for (uint32_t i = 0; i < queue->children.names_count; i++) {
                const char *name = queue->children.names[i];
                if (is_ours(queue, name) && (!own || strcmp(number_of(name), number_of(own)) < 0))
                        own = name;
        }
        queue->step = own ? QUEUE_VERIFY : queue->wants ? QUEUE_CREATE : queue->is_untidy ? QUEUE_TIDY : QUEUE_REST;
        if (own)
                take_place(queue, own);
}

static void verified(struct queue *queue)
{
        int status = queue->request.status;
        if (!status && queue->get.stat.owner == queue->session) {
                queue->token = queue->get.stat.created;
                queue->step = queue->wants ? QUEUE_LOOK : QUEUE_REMOVE;
        } else if (!status || status == -EBADMSG) {
                queue->step = QUEUE_REMOVE; /* the node of an earlier session, which would be deleted with it, or a node
                                               that no session holds */
        } else if (status == -ENOENT) {
                lose(queue);
        } else if (!is_unknown(status)) {
                fail(queue);
        }
}

static void looked(struct queue *queue)
{
        const char *own = queue->own + strlen(queue->path) + 1;
        const char *before = NULL;
        bool is_there = false;
        if (is_unknown(queue->request.status))
                return;
        if (queue->request.status) {
                fail(queue);
                return;
        }
        for (uint32_t i = 0; i < queue->children.names_count; i++) {
                const char *name = queue->children.names[i];
                const char *number = number_of(name);
                is_there |= !strcmp(name, own);
                if (number && strcmp(number, number_of(own)) < 0 && (!before || strcmp(number, number_of(before)) > 0))
                        before = name;
        }
        if (!is_there) {
                lose(queue);
                return;
        }
        if (before && is_ours(queue, before)) {
                /* The place before ours is ours, too: we take that one. */
                take_place(queue, before);
                queue->step = QUEUE_VERIFY;
                return;
        }
        (void)snprintf(queue->watched, sizeof(queue->watched), "%.*s/%.255s", (int)(COORD_PATH_MAX - 257), queue->path,
                before ? before : own);
        queue->step = QUEUE_WATCH;
}

static void watching(struct queue *queue)
{
        /* A node whose value is invalid exists, and is watched like any other. */
        int status = queue->request.status == -EBADMSG ? 0 : queue->request.status;
        bool is_own = !strcmp(queue->watched, queue->own);
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT) {
                fail(queue);
                return;
        }
        if (is_own && status) {
                lose(queue);
                return;
        }
        if (!is_own && !queue->request.status && !queue->get.stat.owner) {
                queue->step = QUEUE_CLEAR;
                return;
        }
        queue->step = status ? QUEUE_LOOK : QUEUE_REST;
        if (is_own && !queue->is_front) {
                queue->is_front = true;
                if (queue->events.front)
                        queue->events.front(queue->events.self, queue->token);
        } else if (!is_own && !status && queue->events.behind) {
                queue->events.behind(queue->events.self);
        }
}

static void cleared(struct queue *queue)
{
        int status = queue->request.status;
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT) {
                fail(queue);
                return;
        }
        log_event(LEVEL_WARN, "queue", "node=%s text=%s", queue->watched,
                LOG_QUOTE("a place that no session held; it is removed"));
        queue->step = QUEUE_LOOK;
}

static void removed(struct queue *queue)
{
        int status = queue->request.status;
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT) {
                fail(queue);
                return;
        }
        queue->own[0] = queue->watched[0] = 0;
        queue->step = QUEUE_FIND;
}

/* A node that has children again is not deleted, and one that another process deleted first is gone. */
static void tidied(struct queue *queue)
{
        if (is_unknown(queue->request.status))
                return;
        queue->is_untidy = false;
        queue->step = queue->wants ? QUEUE_FIND : QUEUE_REST;
}

static void tell_left(struct queue *queue)
{
        if (!queue->is_leaving || queue->is_busy || queue->own[0] || queue->step != QUEUE_REST)
                return;
        queue->is_leaving = false;
        if (queue->events.left)
                queue->events.left(queue->events.self);
}

static void answered(struct queue *queue)
{
        switch (queue->step) {
        case QUEUE_CREATE:
                created(queue);
                break;
        case QUEUE_FIND:
                found(queue);
                break;
        case QUEUE_VERIFY:
                verified(queue);
                break;
        case QUEUE_LOOK:
                looked(queue);
                break;
        case QUEUE_WATCH:
                watching(queue);
                break;
        case QUEUE_CLEAR:
                cleared(queue);
                break;
        case QUEUE_REMOVE:
                removed(queue);
                break;
        case QUEUE_TIDY:
                tidied(queue);
                break;
        case QUEUE_REST:
                break;
        }
}

static void on_done(struct coord_request *request)
{
        struct queue *queue = queue_of(request);
        queue->is_busy = false;
        if (request->status == -ECANCELED)
                return;
        if (request->status == -EOWNERDEAD)
                queue->session = 0; /* until the next session is reported */
        if (queue->is_stale || request->status == -EOWNERDEAD) {
                /* A node that was made although no answer came is found by the id in its name. */
                if (queue->step == QUEUE_CREATE)
                        queue->step = QUEUE_FIND;
                queue->is_stale = false;
        } else {
                answered(queue);
        }
        tell_left(queue);
        pump(queue);
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

static void start(struct queue *queue)
{
        struct coord_request request = { .done = on_done };
        queue->is_busy = true;
        switch (queue->step) {
        case QUEUE_CREATE:
                queue->is_untidy = queue->removes_empty;
                queue->create = (struct coord_create){ .request = request,
                        .path = queue->ticket,
                        .data = span_of_text(queue->says),
                        .flags = COORD_EPHEMERAL | COORD_SEQUENTIAL };
                coord_create(queue->coord, &queue->create);
                break;
        case QUEUE_FIND:
        case QUEUE_LOOK:
                queue->children = (struct coord_children){ .request = request, .path = queue->path };
                coord_children(queue->coord, &queue->children);
                break;
        case QUEUE_VERIFY:
                queue->get = (struct coord_get){ .request = request, .path = queue->own };
                coord_get(queue->coord, &queue->get);
                break;
        case QUEUE_WATCH:
                queue->get = (struct coord_get){ .request = request, .path = queue->watched, .watch = true };
                coord_get(queue->coord, &queue->get);
                break;
        case QUEUE_CLEAR:
        case QUEUE_REMOVE:
        case QUEUE_TIDY:
                queue->del = (struct coord_delete){ .request = request,
                        .path = queue->step == QUEUE_CLEAR  ? queue->watched
                                : queue->step == QUEUE_TIDY ? queue->path
                                                            : queue->own,
                        .version = COORD_ANY_VERSION };
                coord_delete(queue->coord, &queue->del);
                break;
        case QUEUE_REST:
                queue->is_busy = false;
                break;
        }
}

static void pump(struct queue *queue)
{
        if (queue->is_busy || queue->is_failed || !queue->session)
                return;
        if (!queue->wants && queue->own[0] && queue->step != QUEUE_VERIFY)
                queue->step = QUEUE_REMOVE;
        else if (queue->has_news && queue->own[0] && queue->step == QUEUE_REST)
                queue->step = QUEUE_LOOK;
        queue->has_news &= queue->step != QUEUE_LOOK;
        start(queue);
}

/* --- from outside ------------------------------------------------------------------------------------------------ */

void queue_enter(struct queue *queue)
{
        queue->wants = true;
        queue->is_leaving = false;
        if (queue->step == QUEUE_REST && !queue->own[0])
                queue->step = QUEUE_FIND;
        pump(queue);
}

bool queue_leave(struct queue *queue)
{
        queue->wants = queue->is_front = false;
        /* Nothing was sent yet. */
        if (!queue->own[0] && !queue->is_busy && (queue->step == QUEUE_CREATE || !queue->session))
                queue->step = QUEUE_REST;
        queue->is_leaving = queue->own[0] || queue->is_busy || queue->step != QUEUE_REST;
        queue->is_failed = false;
        pump(queue);
        return queue->is_leaving;
}

void queue_session(struct queue *queue, enum coord_state state, uint64_t session)
{
        if (state == COORD_EXPIRED) {
                queue->session = 0;
                queue->is_stale = queue->is_busy;
                lose(queue);
                tell_left(queue);
        } else if (state == COORD_ALIVE) {
                queue->session = session;
                queue->is_failed = false;
                if (queue->is_untidy && !queue->wants && queue->step == QUEUE_REST)
                        queue->step = QUEUE_FIND;
                pump(queue);
        }
}

void queue_changed(struct queue *queue, const char *path)
{
        if (strcmp(path, queue->watched) != 0)
                return;
        queue->has_news = true;
        pump(queue);
}

void queue_look(struct queue *queue)
{
        queue->has_news = true;
        queue->is_failed = false;
        pump(queue);
}
