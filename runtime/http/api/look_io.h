/* look_io.h: drives a look (look/look.h, look/tree_look.h) on the host's loop. */
#ifndef QUIVER_HTTP_API_LOOK_IO_H
#define QUIVER_HTTP_API_LOOK_IO_H

#include "http/exchange.h"
#include "look/look.h"
#include "look/tree_look.h"

/* Zero-initialise; embedded in the caller's struct.  `done` is called once, and from inside the starting call only if
 * the look makes no request.  The status is 0, or that of the request that failed, with its text. */
struct look_run {
        void (*done)(struct look_run *run, int status, const char *text);
        bool is_stopped; /* nobody wants the result: ends with -ECANCELED after the request under way */

        /* private */
        struct store *store;
        struct look *look;
        struct coord *coord;
        struct tree_look *tree;
};

void look_run_start(struct look_run *run, struct store *store, struct look *look);
void look_run_start_tree(struct look_run *run, struct coord *coord, struct tree_look *tree);

/* --- for an answer --- */

/* A look whose result answers a request.  Embedded in the endpoint's call, which `free` frees. */
struct http_look {
        struct look_run run;
        struct http_exchange *x;
        /* The look is complete: answers with http_look_answer(). */
        void (*answer)(struct http_look *look);
        /* May be NULL.  A request failed after others may have changed something: true if it has answered. */
        bool (*failed)(struct http_look *look, int status, const char *text);
        void (*free)(struct http_look *look);
};

/* Starts the look.  Answers 503 if too many are under way.  A failed request is answered, too, and everything is
 * freed. */
void http_look_start(struct http_look *http_look, struct http_exchange *x, struct look *look);
void http_look_start_tree(struct http_look *http_look, struct http_exchange *x, struct tree_look *tree);
/* Frees the call, then answers.  Takes ownership of `object`. */
void http_look_answer(struct http_look *http_look, unsigned status, json_t *object);
__attribute__((format(printf, 3, 4))) void http_look_problem(
        struct http_look *http_look, unsigned status, const char *format, ...);

#endif
