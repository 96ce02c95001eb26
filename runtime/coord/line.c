#include "coord/line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define SEQUENCE_DIGITS 10u

static void pump(struct line *line);

void line_init(
        struct line *line, struct coord *coord, const char *path, const char *id, const struct line_events *events)
{
        *line = (struct line){ .events = *events, .coord = coord };
        (void)snprintf(line->path, sizeof(line->path), "%s", path);
        (void)snprintf(line->ticket, sizeof(line->ticket), "%.*s/%.*s-", (int)(COORD_PATH_MAX - LINE_ID_MAX - 20), path,
                (int)LINE_ID_MAX, id);
}

static struct line *line_of(struct coord_request *request)
{
        return (struct line *)((char *)request - offsetof(struct line, request));
}

/* Our node is gone, or was never ours. */
static void lose(struct line *line)
{
        bool was_front = line->is_front;
        line->own[0] = line->watched[0] = 0;
        line->is_front = false;
        line->step = line->wants ? LINE_FIND : LINE_REST;
        if (was_front && line->events.lost)
                line->events.lost(line->events.self);
}

static bool is_unknown(int status)
{
        return status == -ETIMEDOUT || status == -ECONNRESET;
}

static void fail(struct line *line)
{
        line->is_failed = true;
        if (line->events.failed)
                line->events.failed(line->events.self, line->request.status, line->request.error.text);
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static bool is_ours(const struct line *line, const char *name);

/* The authority gave us a place that is none, since somebody has changed its numbers.  It is given up, and another is
 * tried for after the next look. */
static void refuse_place(struct line *line)
{
        line->step = LINE_REMOVE;
        line->request.status = error_set(&line->request.error, -EBADMSG,
                "%.300s is no place in the line %.200s: its number cannot be", line->own, line->path);
        fail(line);
}

static void created(struct line *line)
{
        int status = line->request.status;
        if (!status) {
                (void)snprintf(line->own, sizeof(line->own), "%s", line->create.made);
                line->token = line->create.stat.created;
                line->step = line->wants ? LINE_LOOK : LINE_REMOVE;
                if (strlen(line->own) <= strlen(line->path) || !is_ours(line, line->own + strlen(line->path) + 1))
                        refuse_place(line);
        } else if (is_unknown(status) || status == -EEXIST) {
                line->step = LINE_FIND;
        } else {
                fail(line);
        }
}

/* The number at the end of a name; names begin with whatever their makers like.  NULL: it is not of this line. */
static const char *number_of(const char *name)
{
        size_t size = strlen(name);
        const char *number = size > SEQUENCE_DIGITS ? name + size - SEQUENCE_DIGITS : "";
        return strspn(number, "0123456789") == SEQUENCE_DIGITS ? number : NULL;
}

/* Whether the node of that name is one of ours.  There may be several: one whose making got no answer, or a late one.
 */
static bool is_ours(const struct line *line, const char *name)
{
        const char *ticket = line->ticket + strlen(line->path) + 1;
        return !strncmp(name, ticket, strlen(ticket)) && strlen(name) == strlen(ticket) + SEQUENCE_DIGITS &&
               number_of(name);
}

static void take_place(struct line *line, const char *name)
{
        (void)snprintf(line->own, sizeof(line->own), "%.*s/%.255s", (int)(COORD_PATH_MAX - 257), line->path, name);
}

/* Our lowest place, if there is one. */
static void found(struct line *line)
{
        const char *own = NULL;
        if (is_unknown(line->request.status))
                return;
        if (line->request.status) {
                fail(line);
                return;
        }
        for (uint32_t i = 0; i < line->children.names_count; i++) {
                const char *name = line->children.names[i];
                if (is_ours(line, name) && (!own || strcmp(number_of(name), number_of(own)) < 0))
                        own = name;
        }
        line->step = own ? LINE_VERIFY : line->wants ? LINE_CREATE : line->is_untidy ? LINE_TIDY : LINE_REST;
        if (own)
                take_place(line, own);
}

static void verified(struct line *line)
{
        int status = line->request.status;
        if (!status && line->get.stat.owner == line->session) {
                line->token = line->get.stat.created;
                line->step = line->wants ? LINE_LOOK : LINE_REMOVE;
        } else if (!status || status == -EBADMSG) {
                line->step = LINE_REMOVE; /* an earlier session's, which would vanish under us, or nobody's */
        } else if (status == -ENOENT) {
                lose(line);
        } else if (!is_unknown(status)) {
                fail(line);
        }
}

static void looked(struct line *line)
{
        const char *own = line->own + strlen(line->path) + 1;
        const char *before = NULL;
        bool is_there = false;
        if (is_unknown(line->request.status))
                return;
        if (line->request.status) {
                fail(line);
                return;
        }
        for (uint32_t i = 0; i < line->children.names_count; i++) {
                const char *name = line->children.names[i];
                const char *number = number_of(name);
                is_there |= !strcmp(name, own);
                if (number && strcmp(number, number_of(own)) < 0 && (!before || strcmp(number, number_of(before)) > 0))
                        before = name;
        }
        if (!is_there) {
                lose(line);
                return;
        }
        if (before && is_ours(line, before)) {
                /* Nobody waits for oneself. */
                take_place(line, before);
                line->step = LINE_VERIFY;
                return;
        }
        (void)snprintf(line->watched, sizeof(line->watched), "%.*s/%.255s", (int)(COORD_PATH_MAX - 257), line->path,
                before ? before : own);
        line->step = LINE_WATCH;
}

static void watching(struct line *line)
{
        /* One that cannot be read is there, and is watched. */
        int status = line->request.status == -EBADMSG ? 0 : line->request.status;
        bool is_own = !strcmp(line->watched, line->own);
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT) {
                fail(line);
                return;
        }
        if (is_own && status) {
                lose(line);
                return;
        }
        if (!is_own && !line->request.status && !line->get.stat.owner) {
                line->step = LINE_CLEAR;
                return;
        }
        line->step = status ? LINE_LOOK : LINE_REST;
        if (is_own && !line->is_front) {
                line->is_front = true;
                if (line->events.front)
                        line->events.front(line->events.self, line->token);
        } else if (!is_own && !status && line->events.behind) {
                line->events.behind(line->events.self);
        }
}

static void cleared(struct line *line)
{
        int status = line->request.status;
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT) {
                fail(line);
                return;
        }
        log_event(LEVEL_WARN, "line", "node=%s text=%s", line->watched,
                LOG_QUOTE("a place that no session held; it is removed"));
        line->step = LINE_LOOK;
}

static void removed(struct line *line)
{
        int status = line->request.status;
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT) {
                fail(line);
                return;
        }
        line->own[0] = line->watched[0] = 0;
        line->step = LINE_FIND;
}

/* Of a node with children nothing is removed, and one that somebody was quicker with is gone. */
static void tidied(struct line *line)
{
        if (is_unknown(line->request.status))
                return;
        line->is_untidy = false;
        line->step = line->wants ? LINE_FIND : LINE_REST;
}

static void tell_left(struct line *line)
{
        if (!line->is_leaving || line->is_busy || line->own[0] || line->step != LINE_REST)
                return;
        line->is_leaving = false;
        if (line->events.left)
                line->events.left(line->events.self);
}

static void answered(struct line *line)
{
        switch (line->step) {
        case LINE_CREATE:
                created(line);
                break;
        case LINE_FIND:
                found(line);
                break;
        case LINE_VERIFY:
                verified(line);
                break;
        case LINE_LOOK:
                looked(line);
                break;
        case LINE_WATCH:
                watching(line);
                break;
        case LINE_CLEAR:
                cleared(line);
                break;
        case LINE_REMOVE:
                removed(line);
                break;
        case LINE_TIDY:
                tidied(line);
                break;
        case LINE_REST:
                break;
        }
}

static void on_done(struct coord_request *request)
{
        struct line *line = line_of(request);
        line->is_busy = false;
        if (request->status == -ECANCELED)
                return;
        if (request->status == -EOWNERDEAD)
                line->session = 0; /* until the next one is told */
        if (line->is_stale || request->status == -EOWNERDEAD) {
                /* A place that was got after all is found by its ticket. */
                if (line->step == LINE_CREATE)
                        line->step = LINE_FIND;
                line->is_stale = false;
        } else {
                answered(line);
        }
        tell_left(line);
        pump(line);
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

static void start(struct line *line)
{
        struct coord_request request = { .done = on_done };
        line->is_busy = true;
        switch (line->step) {
        case LINE_CREATE:
                line->is_untidy = line->removes_empty;
                line->create = (struct coord_create){
                        .request = request, .path = line->ticket, .flags = COORD_EPHEMERAL | COORD_SEQUENTIAL
                };
                coord_create(line->coord, &line->create);
                break;
        case LINE_FIND:
        case LINE_LOOK:
                line->children = (struct coord_children){ .request = request, .path = line->path };
                coord_children(line->coord, &line->children);
                break;
        case LINE_VERIFY:
                line->get = (struct coord_get){ .request = request, .path = line->own };
                coord_get(line->coord, &line->get);
                break;
        case LINE_WATCH:
                line->get = (struct coord_get){ .request = request, .path = line->watched, .watch = true };
                coord_get(line->coord, &line->get);
                break;
        case LINE_CLEAR:
        case LINE_REMOVE:
        case LINE_TIDY:
                line->del = (struct coord_delete){ .request = request,
                        .path = line->step == LINE_CLEAR  ? line->watched
                                : line->step == LINE_TIDY ? line->path
                                                          : line->own,
                        .version = COORD_ANY_VERSION };
                coord_delete(line->coord, &line->del);
                break;
        case LINE_REST:
                line->is_busy = false;
                break;
        }
}

static void pump(struct line *line)
{
        if (line->is_busy || line->is_failed || !line->session)
                return;
        if (!line->wants && line->own[0] && line->step != LINE_VERIFY)
                line->step = LINE_REMOVE;
        else if (line->has_news && line->own[0] && line->step == LINE_REST)
                line->step = LINE_LOOK;
        line->has_news &= line->step != LINE_LOOK;
        start(line);
}

/* --- from outside ------------------------------------------------------------------------------------------------ */

void line_enter(struct line *line)
{
        line->wants = true;
        line->is_leaving = false;
        if (line->step == LINE_REST && !line->own[0])
                line->step = LINE_FIND;
        pump(line);
}

bool line_leave(struct line *line)
{
        line->wants = line->is_front = false;
        /* Nothing was sent yet. */
        if (!line->own[0] && !line->is_busy && (line->step == LINE_CREATE || !line->session))
                line->step = LINE_REST;
        line->is_leaving = line->own[0] || line->is_busy || line->step != LINE_REST;
        line->is_failed = false;
        pump(line);
        return line->is_leaving;
}

void line_session(struct line *line, enum coord_state state, uint64_t session)
{
        if (state == COORD_EXPIRED) {
                line->session = 0;
                line->is_stale = line->is_busy;
                lose(line);
                tell_left(line);
        } else if (state == COORD_ALIVE) {
                line->session = session;
                line->is_failed = false;
                if (line->is_untidy && !line->wants && line->step == LINE_REST)
                        line->step = LINE_FIND;
                pump(line);
        }
}

void line_changed(struct line *line, const char *path)
{
        if (strcmp(path, line->watched) != 0)
                return;
        line->has_news = true;
        pump(line);
}

void line_look(struct line *line)
{
        line->has_news = true;
        line->is_failed = false;
        pump(line);
}
