/* http_fake.h: an HTTP server that says what a test wants, for what a real one does not say when asked. */
#ifndef QUIVER_TESTS_CONTRACT_HTTP_FAKE_H
#define QUIVER_TESTS_CONTRACT_HTTP_FAKE_H

#include <stdint.h>

/* To a request whose path begins so: the status and the body.  The last one, with the path "", answers all others. */
struct http_fake_line {
        const char *path;
        int status;
        const char *body;
};

struct http_fake;
struct http_fake *http_fake_start(const struct http_fake_line *lines);
void http_fake_stop(struct http_fake *fake);
uint16_t http_fake_port(const struct http_fake *fake);
/* Requests that came in. */
unsigned http_fake_asked(const struct http_fake *fake);

#endif
