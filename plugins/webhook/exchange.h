/* exchange.h: one request and its answer, by libcurl.
 *
 * A seat has one: its connections are kept open and used again.  Every address is looked at right before it is
 * connected to, so what a name resolved to a moment ago does not matter.  Nothing of the environment is used: no proxy,
 * no .netrc, no cookies.  Answers are taken as they are, never unpacked. */
#ifndef QUIVER_WEBHOOK_EXCHANGE_H
#define QUIVER_WEBHOOK_EXCHANGE_H

#include <curl/curl.h>

#include "../common/bytes.h"
#include "settings.h"

struct exchange {
        CURLM *multi; /* has the connections */
        CURL *easy;

        /* Of the request under way. */
        const struct settings *settings;
        size_t head_size;        /* bytes of the answer's head, of 1xx and trailers too */
        bool is_head_whole;      /* of the final answer */
        bool is_head_long;       /* it went on for longer than a head may be */
        unsigned tried, refused; /* addresses that were connected to, and that may not be */
        char refused_text[160];  /* which, and why */
        char problem[CURL_ERROR_SIZE];

        /* Of the answer. */
        struct bytes body;
        bool is_cut; /* there was more than max_result */
};

/* What goes over the line, borrowed. */
struct request {
        CURLU *url;
        struct curl_slist *fields;
        const void *body;
        size_t body_size;
        uint64_t deadline_ms; /* CLOCK_BOOTTIME */
};

/* 0 or -ENOMEM. */
int exchange_open(struct exchange *x);
void exchange_close(struct exchange *x);

/* Sends it and waits for the answer, until the deadline or until the task has to stop.  x->body and x->problem belong
 * to the answer until the next call. */
struct answer exchange_run(
        struct exchange *x, const struct settings *s, const struct qv_task *task, const struct request *r);

/* Where the answer redirects to, absolute; NULL: nowhere.  Borrowed until the next request. */
const char *exchange_redirect(const struct exchange *x);

uint64_t now_boot_ms(void);

#endif
