/* metrics.c: GET /metrics, for Prometheus. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/waiter.h"
#include "http/api/endpoints.h"
#include "http/server.h"
#include "view/metrics.h"

struct metrics_call {
        struct waiter waiter;
        struct http_exchange *x;
};

static void put_server(const struct http_server *server, struct metrics *m)
{
        const struct http_counts *counts = &server->counts;
        metrics_put_one(m, METRIC_HTTP_REQUESTS, (double)counts->requests);
        metrics_begin(m, METRIC_HTTP_REQUESTS_REFUSED);
        metrics_put(m, (double)counts->malformed, "malformed");
        metrics_put(m, (double)counts->forbidden, "forbidden");
        metrics_put_one(m, METRIC_HTTP_CONNECTIONS, server->connections_count);
        metrics_put_one(m, METRIC_HTTP_CONNECTIONS_REFUSED, (double)counts->refused);
        metrics_put_one(m, METRIC_HTTP_CONNECTIONS_TIMED_OUT, (double)counts->timed_out);
        metrics_put_one(m, METRIC_HTTP_WAITS, server->waits);
}

/* A client that accepts OpenMetrics says so; everybody else gets the older text format. */
static bool accepts_open(const struct http_head *head)
{
        static const char type[] = "application/openmetrics-text";
        const struct span *accept = http_head_field(head, "accept");
        return accept && memmem(accept->data, accept->size, type, sizeof(type) - 1);
}

static void on_ready(struct waiter *waiter)
{
        struct metrics_call *call = container_of(waiter, struct metrics_call, waiter);
        struct http_exchange *x = call->x;
        struct metrics m = { .is_open = accepts_open(x->head) };
        free(call);
        x->services->put_metrics(x->services->self, &m);
        put_server(x->server, &m);
        metrics_end(&m);
        http_answer(x, 200, m.is_open ? METRICS_TYPE_OPEN : METRICS_TYPE_TEXT,
                (struct span){ (const char *)m.text.data, m.text.size });
        metrics_free(&m);
}

void http_get_metrics(struct http_exchange *x)
{
        struct metrics_call *call = memory_zero(1, sizeof(*call));
        call->x = x;
        call->waiter.done = on_ready;
        x->call = call;
        x->services->want_metrics(x->services->self, &call->waiter);
}
