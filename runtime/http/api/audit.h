/* audit.h: one log line per action of a person: who did what to which object. */
#ifndef QUIVER_HTTP_API_AUDIT_H
#define QUIVER_HTTP_API_AUDIT_H

#include "base/log.h"
#include "http/exchange.h"

static inline void http_audit(const struct http_exchange *x, const char *action, const char *target)
{
        log_event(LEVEL_INFO, "action", "by=%s action=%s on=%s", LOG_QUOTE(x->who.name), action, LOG_QUOTE(target));
}

#endif
