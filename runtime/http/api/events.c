/* events.c: GET /v1/events: the status (`quiver status --json`) whenever it has changed, as server-sent events.
 *
 * One look at the store serves all streams of a host, at most once a second and for at most a tenth of the time.  A
 * client that reads slowly misses versions, but never a part of one.  Without a stream there is no look. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "http/api/endpoints.h"
#include "http/api/look_io.h"
#include "http/server.h"
#include "look/status_look.h"

#define STREAMS_MAX  32u /* per host */
#define TICK_MS      1000u
#define HEARTBEAT_MS 15000u
#define LOOK_PORTION 10u /* the pause is this many times the duration of the last look */

struct event_stream {
        struct event_stream *prev, *next;
        struct http_exchange *x;
        struct http_events *events;
        uint64_t seen;    /* number of the last event sent to it; 0: none */
        uint64_t sent_ms; /* by the loop's clock */
};

struct http_events {
        struct http_server *server;
        uv_timer_t timer; /* runs while there are streams */
        struct event_stream *streams;
        uint32_t streams_count;
        struct look_run run;
        struct status_look look;
        bool is_looking;
        bool is_stopped;
        bool is_timer_closed;
        uint64_t began_ms; /* when the look began, by the loop's clock */
        uint64_t next_ms;  /* no look before this time */
        char *text;        /* the last event; NULL: none yet */
        uint64_t number;   /* number of the last event */
};

static uint64_t now_of(const struct http_events *events)
{
        return uv_now(events->server->loop);
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static void stream_end(struct event_stream *stream)
{
        struct http_events *events = stream->events;
        struct http_exchange *x = stream->x;
        DL_DELETE(events->streams, stream);
        events->streams_count--;
        /* An idle host polls nothing. */
        if (!events->streams && !events->is_stopped)
                (void)uv_timer_stop(&events->timer);
        free(stream);
        http_stream_end(x);
}

static void on_gone(struct http_exchange *x)
{
        stream_end(x->call);
}

static void stream_write(struct event_stream *stream, const char *text)
{
        stream->sent_ms = now_of(stream->events);
        http_stream_write(stream->x, span_of_text(text));
}

/* Sends the latest event, if it is new and the stream has room; otherwise a sign of life when due. */
static void stream_serve(struct event_stream *stream)
{
        const struct http_events *events = stream->events;
        if (http_stream_is_full(stream->x))
                return;
        if (events->text && stream->seen != events->number) {
                stream->seen = events->number;
                stream_write(stream, events->text);
        } else if (now_of(events) - stream->sent_ms >= HEARTBEAT_MS) {
                stream_write(stream, ":\n\n");
        }
}

static void serve_all(struct http_events *events)
{
        for (struct event_stream *stream = events->streams; stream; stream = stream->next)
                stream_serve(stream);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

static void free_if_over(struct http_events *events)
{
        struct http_server *server = events->server;
        if (!events->is_stopped || !events->is_timer_closed || events->is_looking)
                return;
        free(events->text);
        free(events);
        server->events = NULL;
        http_server_free_if_over(server);
}

/* Takes ownership of `data`. */
static void set_event(struct http_events *events, const char *name, json_t *data)
{
        struct buffer text = { 0 };
        char *json = memory_or_abort(json_dumps(data, JSON_COMPACT | JSON_PRESERVE_ORDER));
        json_decref(data);
        buffer_printf(&text, "event: %s\ndata: ", name);
        buffer_put(&text, json, strlen(json));
        buffer_printf(&text, "\n\n");
        buffer_put(&text, "", 1);
        free(json);
        if (events->text && !strcmp(events->text, (const char *)text.data)) {
                buffer_free(&text);
                return;
        }
        free(events->text);
        events->text = (char *)text.data;
        events->number++;
}

static void on_looked(struct look_run *run, int status, const char *text)
{
        struct http_events *events = container_of(run, struct http_events, run);
        uint64_t now = now_of(events);
        events->is_looking = false;
        events->next_ms = now + (now - events->began_ms) * LOOK_PORTION;
        if (!events->is_stopped && status == 0)
                set_event(events, "status", status_as_json(&events->look.status));
        else if (!events->is_stopped)
                set_event(events, "problem", json_pack("{s:i, s:s}", "status", 503, "detail", text));
        status_look_free(&events->look);
        if (events->is_stopped)
                free_if_over(events);
        else
                serve_all(events);
}

static void look(struct http_events *events)
{
        const struct http_services *services = &events->server->services;
        if (events->is_looking || now_of(events) < events->next_ms)
                return;
        events->is_looking = true;
        events->began_ms = now_of(events);
        events->look = (struct status_look){ 0 };
        events->run = (struct look_run){ .done = on_looked };
        status_look_init(&events->look, services->config(services->self)->store.url.text, clock_wall_ms());
        look_run_start(&events->run, services->store, &events->look.look);
}

static void on_tick(uv_timer_t *timer)
{
        struct http_events *events = timer->data;
        serve_all(events);
        if (events->streams)
                look(events);
}

/* --- from start to end -------------------------------------------------------------------------------------------- */

static struct http_events *events_ensure(struct http_server *server)
{
        if (server->events)
                return server->events;
        struct http_events *events = memory_zero(1, sizeof(*events));
        events->server = server;
        (void)uv_timer_init(server->loop, &events->timer);
        events->timer.data = events;
        server->events = events;
        return events;
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct http_events *events = handle->data;
        events->is_timer_closed = true;
        free_if_over(events);
}

void http_events_end_all(struct http_events *events)
{
        if (!events)
                return;
        for (struct event_stream *stream = events->streams, *next; stream; stream = next) {
                next = stream->next;
                stream_end(stream);
        }
}

void http_events_stop(struct http_events *events)
{
        if (!events || events->is_stopped)
                return;
        events->is_stopped = true;
        events->run.is_stopped = true;
        http_events_end_all(events);
        uv_close((uv_handle_t *)&events->timer, on_timer_closed);
}

void http_get_events(struct http_exchange *x)
{
        struct http_events *events = events_ensure(x->server);
        if (events->is_stopped || events->streams_count == STREAMS_MAX) {
                http_answer_field(x, "Retry-After", "5");
                http_answer_problem(x, 503, "%s",
                        events->is_stopped ? "this host stops" : "this host has as many event streams as it may");
                return;
        }
        http_stream_begin(x, 200, "text/event-stream");
        if (x->head->verb == VERB_HEAD) {
                http_stream_end(x);
                return;
        }
        struct event_stream *stream = memory_zero(1, sizeof(*stream));
        stream->x = x;
        stream->events = events;
        x->call = stream;
        x->gone = on_gone;
        DL_APPEND(events->streams, stream);
        if (!events->streams_count++)
                (void)uv_timer_start(&events->timer, on_tick, TICK_MS, TICK_MS);
        stream_write(stream, "retry: 2000\n\n");
        /* The first event that a client gets is never older than a second. */
        if (now_of(events) >= events->next_ms + TICK_MS || !events->text)
                look(events);
        else
                stream_serve(stream);
}
