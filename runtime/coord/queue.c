#include "coord/queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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
        (void)snprintf(queue->id, sizeof(queue->id), "%s", id);
        queue_set_limit(queue, 1);
}

void queue_set_limit(struct queue *queue, uint32_t limit)
{
        char kind[16] = "";
        if (limit == QUEUE_NO_LIMIT)
                (void)snprintf(kind, sizeof(kind), ".s");
        else if (limit > 1)
                (void)snprintf(kind, sizeof(kind), ".%" PRIu32, limit);
        (void)snprintf(queue->ticket, sizeof(queue->ticket), "%.*s/%s%s-", (int)(COORD_PATH_MAX - QUEUE_ID_MAX - 40),
                queue->path, queue->id, kind);
        queue->limit = limit;
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

/* The node's name has no valid number, because somebody has changed its sequence.  Deletes the node; another one is
 * made after the next look. */
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
                queue->is_unsure = true;
                queue->step = QUEUE_FIND;
        } else {
                fail(queue);
        }
}

const char *queue_number_of(const char *name)
{
        size_t size = strlen(name);
        const char *number = size > SEQUENCE_DIGITS ? name + size - SEQUENCE_DIGITS : "";
        return strspn(number, "0123456789") == SEQUENCE_DIGITS ? number : NULL;
}

uint32_t queue_limit_of(const char *name)
{
        const char *dot = strrchr(name, '.');
        char *end;
        if (!dot || strlen(dot) < SEQUENCE_DIGITS + 3)
                return 1;
        if (dot[1] == 's' && dot[2] == '-')
                return QUEUE_NO_LIMIT;
        unsigned long limit = strtoul(dot + 1, &end, 10);
        /* A place with any other name has limit 1. */
        return *end == '-' && strlen(end) == SEQUENCE_DIGITS + 1 && limit > 1 && limit <= QUEUE_LIMIT_MAX
                       ? (uint32_t)limit
                       : 1;
}

uint32_t queue_smaller_limit(uint32_t a, uint32_t b)
{
        if (a == QUEUE_NO_LIMIT || b == QUEUE_NO_LIMIT)
                return a == QUEUE_NO_LIMIT ? b : a;
        return a < b ? a : b;
}

bool queue_is_in_front(uint32_t before, uint32_t smallest, uint32_t limit)
{
        uint32_t all = queue_smaller_limit(smallest, limit);
        return all == QUEUE_NO_LIMIT || before < all;
}

/* Whether the node of that name is ours.  There may be several after a create without an answer, or with a late one. */
static bool is_ours(const struct queue *queue, const char *name)
{
        const char *ticket = queue->ticket + strlen(queue->path) + 1;
        return !strncmp(name, ticket, strlen(ticket)) && strlen(name) == strlen(ticket) + SEQUENCE_DIGITS &&
               queue_number_of(name);
}

static void take_place(struct queue *queue, const char *name)
{
        (void)snprintf(queue->own, sizeof(queue->own), "%.*s/%.255s", (int)(COORD_PATH_MAX - 257), queue->path, name);
}

/* The places before a place. */
struct queue_before {
        uint32_t count;
        uint32_t smallest;    /* the smallest of their limits */
        const char *previous; /* the last of them; NULL: none */
        const char *alone;    /* the last of them with limit 1 */
        const char *ours;     /* the first of them that is ours */
};

static bool is_later(const char *name, const char *than)
{
        return !than || strcmp(queue_number_of(name), queue_number_of(than)) > 0;
}

/* `own` NULL: as if we took the next place. */
static struct queue_before look_before(const struct queue *queue, const char *own)
{
        struct queue_before before = { 0 };
        for (uint32_t i = 0; i < queue->children.names_count; i++) {
                const char *name = queue->children.names[i];
                if (!queue_number_of(name) || (own && !is_later(own, name)))
                        continue;
                before.count++;
                before.smallest = queue_smaller_limit(before.smallest, queue_limit_of(name));
                if (is_later(name, before.previous))
                        before.previous = name;
                if (queue_limit_of(name) == 1 && is_later(name, before.alone))
                        before.alone = name;
                if (is_ours(queue, name) && (!before.ours || is_later(before.ours, name)))
                        before.ours = name;
        }
        return before;
}

static void watch_place(struct queue *queue, const char *name, enum queue_step step)
{
        (void)snprintf(
                queue->watched, sizeof(queue->watched), "%.*s/%.255s", (int)(COORD_PATH_MAX - 257), queue->path, name);
        queue->step = step;
}

/* Chooses the next step when we have no place. */
static void found_none(struct queue *queue, const struct queue_before *before)
{
        queue->is_unsure = false;
        if (!queue->wants) {
                /* The others in the queue delete its node when they leave. */
                queue->is_untidy &= !before->count;
                queue->step = queue->is_untidy ? QUEUE_TIDY : QUEUE_REST;
        } else if (queue->gives_up && !queue_is_in_front(before->count, before->smallest, queue->limit)) {
                watch_place(queue, before->previous, QUEUE_PEEK);
        } else {
                queue->step = QUEUE_CREATE;
        }
}

/* Takes our node with the lowest number, if there is one. */
static void found(struct queue *queue)
{
        if (is_unknown(queue->request.status))
                return;
        if (queue->request.status) {
                fail(queue);
                return;
        }
        struct queue_before before = look_before(queue, NULL);
        if (before.ours) {
                take_place(queue, before.ours);
                queue->step = QUEUE_VERIFY;
        } else {
                found_none(queue, &before);
        }
}

/* The place that we would wait for was read.  A place that no session holds is removed by those who wait behind it. */
static void peeked(struct queue *queue)
{
        int status = queue->request.status;
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT && status != -EBADMSG) {
                fail(queue);
                return;
        }
        queue->watched[0] = 0;
        if (status) {
                queue->step = status == -ENOENT ? QUEUE_FIND : QUEUE_CREATE;
        } else if (!queue->get.stat.owner) {
                queue->step = QUEUE_CREATE;
        } else {
                queue->wants = false;
                queue->is_leaving = true;
                queue->step = QUEUE_REST;
        }
}

static void verified(struct queue *queue)
{
        int status = queue->request.status;
        if (!status && queue->get.stat.owner == queue->session) {
                queue->token = queue->get.stat.created;
                queue->step = queue->wants ? QUEUE_LOOK : QUEUE_REMOVE;
        } else if (!status || status == -EBADMSG) {
                queue->step = QUEUE_REMOVE; /* of an earlier session, or one that no session holds */
        } else if (status == -ENOENT) {
                lose(queue);
        } else if (!is_unknown(status)) {
                fail(queue);
        }
}

static bool is_there(const struct queue *queue, const char *own)
{
        for (uint32_t i = 0; i < queue->children.names_count; i++)
                if (!strcmp(queue->children.names[i], own))
                        return true;
        return false;
}

static void looked(struct queue *queue)
{
        const char *own = queue->own + strlen(queue->path) + 1;
        if (is_unknown(queue->request.status))
                return;
        if (queue->request.status) {
                fail(queue);
                return;
        }
        if (!is_there(queue, own)) {
                lose(queue);
                return;
        }
        queue->has_others = queue->children.names_count > 1;
        struct queue_before before = look_before(queue, own);
        if (before.ours) {
                /* An earlier place is ours, too: we take that one. */
                queue->is_unsure = true;
                take_place(queue, before.ours);
                queue->step = QUEUE_VERIFY;
        } else if (queue_is_in_front(before.count, before.smallest, queue->limit)) {
                watch_place(queue, own, QUEUE_WATCH);
        } else if (queue->limit == 1 || before.alone) {
                watch_place(queue, queue->limit == 1 ? before.previous : before.alone, QUEUE_WATCH);
        } else {
                /* Any place before ours may make room: we watch the whole list, which QUEUE_LOOK has armed. */
                (void)snprintf(queue->watched, sizeof(queue->watched), "%s", queue->path);
                queue->step = QUEUE_REST;
                if (queue->events.behind)
                        queue->events.behind(queue->events.self);
        }
}

#define REQUEST "resign=asked "

void queue_put_request(char ret_text[QUEUE_SAYS_MAX], struct span says)
{
        (void)snprintf(ret_text, QUEUE_SAYS_MAX, REQUEST "%.*s", (int)says.size, says.size ? says.data : "");
}

static bool is_request(struct span says)
{
        return says.size >= strlen(REQUEST) && !memcmp(says.data, REQUEST, strlen(REQUEST));
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
        bool is_asked = is_own && !queue->request.status && is_request(queue->get.data);
        if (is_own && !queue->is_front) {
                queue->is_front = true;
                if (queue->events.front)
                        queue->events.front(queue->events.self, queue->token);
        } else if (!is_own && !status && queue->events.behind) {
                queue->events.behind(queue->events.self);
        }
        if (is_asked && queue->is_front && queue->events.asked)
                queue->events.asked(queue->events.self);
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
        if (queue->wants || queue->is_unsure || queue->has_others)
                queue->step = QUEUE_FIND;
        else
                queue->step = queue->is_untidy ? QUEUE_TIDY : QUEUE_REST;
}

/* A node that has children again is not deleted; one that another process deleted first is gone. */
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
        case QUEUE_PEEK:
                peeked(queue);
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
                /* A node whose creation got no answer is found by the id in its name. */
                if (queue->step == QUEUE_CREATE || queue->step == QUEUE_PEEK)
                        queue->step = QUEUE_FIND;
                queue->is_unsure = true;
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
                queue->children = (struct coord_children){
                        .request = request, .path = queue->path, .watch = queue->step == QUEUE_LOOK && queue->limit != 1
                };
                coord_children(queue->coord, &queue->children);
                break;
        case QUEUE_PEEK:
                queue->get = (struct coord_get){ .request = request, .path = queue->watched };
                coord_get(queue->coord, &queue->get);
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
        /* With gives_up the queue is read first, so that we make no node that others would wait for. */
        if (queue->step == QUEUE_REST && !queue->own[0])
                queue->step = queue->gives_up || queue->is_unsure ? QUEUE_FIND : QUEUE_CREATE;
        pump(queue);
}

bool queue_leave(struct queue *queue)
{
        queue->wants = queue->is_front = false;
        /* Nothing was sent yet, so there is nothing to remove. */
        if (!queue->own[0] && !queue->is_busy &&
                (queue->step == QUEUE_CREATE || queue->step == QUEUE_PEEK || !queue->session))
                queue->step = QUEUE_REST;
        queue->is_leaving = queue->own[0] || queue->is_busy || queue->step != QUEUE_REST;
        queue->is_failed = false;
        pump(queue);
        return queue->is_leaving;
}

bool queue_is_idle(const struct queue *queue)
{
        return !queue->is_busy && !queue->wants && queue->step == QUEUE_REST && !queue->own[0];
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
