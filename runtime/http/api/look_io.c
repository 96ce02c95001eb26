#include "http/api/look_io.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "http/server.h"

#define LOOKS_MAX 64u /* looks of one host under way at once */

/* --- one request after the other ---------------------------------------------------------------------------------- */

static void step(struct look_run *run);

static void on_answer(struct store_request *request)
{
        struct look *look = container_of(request, struct look, request);
        struct look_run *run = look->driver;
        if (request->status < 0)
                run->done(run, request->status, request->error.text);
        else
                step(run);
}

static void step(struct look_run *run)
{
        if (run->is_stopped) {
                run->done(run, -ECANCELED, "nobody waits for it");
                return;
        }
        if (!look_next(run->look)) {
                run->done(run, 0, "");
                return;
        }
        run->look->request.done = on_answer;
        run->look->start(run->store, run->look);
}

void look_run_start(struct look_run *run, struct store *store, struct look *look)
{
        run->store = store;
        run->look = look;
        look->driver = run;
        store_info(store, &look->info);
        step(run);
}

static void step_tree(struct look_run *run);

static void on_tree_answer(struct coord_request *request)
{
        struct tree_look *tree = container_of(request, struct tree_look, request);
        struct look_run *run = tree->driver;
        if (tree_look_has_failed(tree))
                run->done(run, request->status, request->error.text);
        else
                step_tree(run);
}

static void step_tree(struct look_run *run)
{
        if (run->is_stopped) {
                run->done(run, -ECANCELED, "nobody waits for it");
                return;
        }
        if (!tree_look_next(run->tree)) {
                run->done(run, 0, "");
                return;
        }
        run->tree->request.done = on_tree_answer;
        tree_look_start(run->coord, run->tree);
}

void look_run_start_tree(struct look_run *run, struct coord *coord, struct tree_look *tree)
{
        run->coord = coord;
        run->tree = tree;
        tree->driver = run;
        step_tree(run);
}

/* --- for an answer ------------------------------------------------------------------------------------------------ */

static void on_gone(struct http_exchange *x)
{
        struct http_look *http_look = x->call;
        http_look->run.is_stopped = true;
}

static void on_done(struct look_run *run, int status, const char *text)
{
        struct http_look *http_look = container_of(run, struct http_look, run);
        struct http_exchange *x = http_look->x;
        if (status == 0) {
                http_look->answer(http_look);
                return;
        }
        struct error error = { { 0 } };
        (void)snprintf(error.text, sizeof(error.text), "%s", text);
        if (http_look->failed && http_look->failed(http_look, status, error.text))
                return;
        x->server->looks--;
        http_look->free(http_look);
        if (status == -ENOENT)
                http_answer_problem(x, 404, "%s", error.text);
        else if (status == -ENOTSUP)
                http_answer_problem(x, 409, "%s", error.text);
        else
                http_answer_store_problem(x, status, error.text);
}

/* False: there are too many looks, and the request was answered. */
static bool begin(struct http_look *http_look, struct http_exchange *x)
{
        if (x->server->looks == LOOKS_MAX) {
                http_look->free(http_look);
                http_answer_field(x, "Retry-After", "1");
                http_answer_problem(x, 503, "%u others look at the store through this host; try again", LOOKS_MAX);
                return false;
        }
        x->server->looks++;
        x->call = http_look;
        x->gone = on_gone;
        http_look->x = x;
        http_look->run.done = on_done;
        return true;
}

void http_look_start(struct http_look *http_look, struct http_exchange *x, struct look *look)
{
        if (begin(http_look, x))
                look_run_start(&http_look->run, x->services->store, look);
}

void http_look_start_tree(struct http_look *http_look, struct http_exchange *x, struct tree_look *tree)
{
        struct coord *coord = x->services->coord(x->services->self);
        if (!coord) {
                http_look->free(http_look);
                http_answer_field(x, "Retry-After", "1");
                http_answer_problem(x, 503, "this host has no coordination: it starts or stops");
                return;
        }
        if (begin(http_look, x))
                look_run_start_tree(&http_look->run, coord, tree);
}

void http_look_answer(struct http_look *http_look, unsigned status, json_t *object)
{
        struct http_exchange *x = http_look->x;
        x->server->looks--;
        http_look->free(http_look);
        http_answer_json(x, status, object);
}

void http_look_problem(struct http_look *http_look, unsigned status, const char *format, ...)
{
        struct http_exchange *x = http_look->x;
        struct error error = { { 0 } };
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(error.text, sizeof(error.text), format, arguments);
        va_end(arguments);
        x->server->looks--;
        http_look->free(http_look);
        http_answer_problem(x, status, "%s", error.text);
}
