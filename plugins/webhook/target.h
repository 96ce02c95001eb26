/* target.h: a URL, taken apart and checked. */
#ifndef QUIVER_WEBHOOK_TARGET_H
#define QUIVER_WEBHOOK_TARGET_H

#include <curl/curl.h>

#include "address.h"
#include "destinations.h"

struct target {
        CURLU *url;
        char destination[DESTINATION_NAME]; /* "https://hooks.example.org:443" */
        bool is_https;
};

enum target_result {
        TARGET_GOOD,
        TARGET_BAD,       /* no URL that can be used */
        TARGET_FORBIDDEN, /* its address may not be connected to */
};

/* Takes http and https without user or password.  An address in the URL is checked here; a name's are when they are
 * connected to, but for the names of this machine if `is_proxied`: then nobody else looks at it.  On failure `why` is
 * set, and there is nothing to free. */
#define TARGET_WHY 256
enum target_result target_parse(
        struct target *t, const char *text, const struct ranges *allowed, bool is_proxied, char why[TARGET_WHY]);
void target_free(struct target *t);

/* Whether a path in the URL has the segment "." or "..", which would lead out of its place. */
bool target_has_dots(const char *text);

#endif
