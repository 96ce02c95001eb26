/* health.c: /livez and /readyz, which need no token. */
#include "http/api/endpoints.h"
#include "http/server.h"

void http_get_live(struct http_exchange *x)
{
        /* Any answer shows that the loop runs. */
        http_answer(x, 200, "text/plain; charset=utf-8", SPAN_TEXT("ok\n"));
}

static void put_check(struct buffer *to, bool is_good, const char *good, const char *bad)
{
        buffer_printf(to, "%s %s\n", is_good ? "ok  " : "FAIL", is_good ? good : bad);
}

void http_get_ready(struct http_exchange *x)
{
        struct http_health health = { 0 };
        struct buffer text = { 0 };
        x->services->health(x->services->self, &health);
        bool is_strict = x->server->is_strict_ready;
        bool is_ready = health.is_member && health.sees_store && !health.is_draining && !(is_strict && health.refused);
        if (http_parameter(x, "verbose")) {
                put_check(&text, health.is_member, "member of the app", "no member: coordination is not reached");
                put_check(&text, health.sees_store, "the store answers", "the store has not answered within lease.ttl");
                put_check(&text, !health.is_draining, "takes work", "draining: it stops, or a person asked for it");
                if (health.endangers && *health.endangers)
                        buffer_printf(&text, "warn %s\n", health.endangers);
                if (health.refused)
                        buffer_printf(&text, "%s %u handlers are refused; see quiver status\n",
                                is_strict ? "FAIL" : "warn", health.refused);
        } else {
                buffer_printf(&text, "%s\n", is_ready ? "ready" : "not ready; ask for /readyz?verbose");
        }
        http_answer(x, is_ready ? 200 : 503, "text/plain; charset=utf-8",
                (struct span){ (const char *)text.data, text.size });
        buffer_free(&text);
}
