/* driver.h: what a coordination driver implements.  Included by coord.c, request.c and the drivers, by nobody else
 * (tests with a tree of their own are drivers too). */
#ifndef QUIVER_COORD_DRIVER_H
#define QUIVER_COORD_DRIVER_H

#include "base/arena.h"
#include "coord/coord.h"

enum coord_op {
        COORD_OP_OPEN,
        COORD_OP_END_SESSION,
        COORD_OP_CREATE,
        COORD_OP_GET,
        COORD_OP_SET,
        COORD_OP_DELETE,
        COORD_OP_CHILDREN,
        COORD_OP_MULTI,
        COORD_OPS
};

struct coord_driver {
        const char *scheme; /* of the URL: what stands before the first ':' or '+', or the whole of it */
        /* Makes a tree from open->options and finishes the request; options are read before that, or copied.  If its
         * status is negative already, it only has to be finished.  Never finishes it before it returns. */
        void (*open)(struct uv_loop_s *loop, struct coord_open *open);
        /* The same rules as for open; there is no tree. */
        void (*end_session)(struct uv_loop_s *loop, struct coord_end_session *end);
        /* Executes a request that coord.c has checked, in the order of starting.  If its status is negative already, it
         * only has to be finished, and not before this returns.  Sets request->deadline_ms if coord_sweep() is to end
         * it.  Where a request is finished with an error, the driver has set the text. */
        void (*start)(struct coord *coord, struct coord_request *request);
        void (*token)(const struct coord *coord, char ret_token[COORD_TOKEN_MAX]);
        /* Finishes all requests (coord_cancel), then calls closed(); neither before it returns. */
        void (*close)(struct coord *coord, void (*closed)(void *self), void *self);
        /* coord_rights().  NULL: it has no such users. */
        bool (*rights)(const struct coord_options *options, bool is_for_sentinels, struct rights *to);
};

/* The drivers that coord.c knows.  A new one needs a line here and one there. */
extern const struct coord_driver local_driver;
extern const struct coord_driver zookeeper_driver;
extern const struct coord_driver redis_tree_driver;
extern const struct coord_driver etcd_driver;

#define COORD_NOTED_MAX 64u

/* Drivers embed this first. coord_base_init() fills in what is known at the start.  The driver keeps the rest true,
 * because coord_info() shows it. */
struct coord {
        const struct coord_driver *driver;
        char *app;
        char *url;
        char *server; /* NULL: nobody answered yet */
        struct coord_events events;
        bool is_visitor; /* opened without events: it neither watches nor makes ephemeral nodes */
        enum coord_state state;
        uint64_t session;
        uint64_t session_ms;
        uint64_t answered_ms;
        struct coord_request *requests;  /* utlist; under way, in order of starting; coord_begin() puts them in,
                                            coord_finish() takes them out */
        uint64_t noted[COORD_NOTED_MAX]; /* hashes of the last texts that coord_note() has logged */
        unsigned noted_count;
};

/* From open->options.  `url` is as coord_info() shows it. */
void coord_base_init(
        struct coord *coord, const struct coord_driver *driver, const struct coord_options *options, const char *url);
/* Frees what base_init allocated, and `server`; not the struct. */
void coord_base_free(struct coord *coord);

/* Records the session's new state and tells the owner.  Call it for each change, in order. */
void coord_tell(struct coord *coord, enum coord_state state, uint64_t session);

/* The arena of the request's reply. */
struct arena_chunk **coord_arena(struct coord_request *request);

/* Takes the request out of the tree's list, calls done() and frees the reply.  On the loop only.  The request must not
 * be touched afterwards.  done() may start others and may close the tree, but that frees nothing before it returns. */
void coord_finish(struct coord_request *request, int status);
/* The same with "OP PATH: TEXT" as the error; `format` gives the text. */
__attribute__((format(printf, 3, 4))) void coord_finish_error(
        struct coord_request *request, int status, const char *format, ...);

/* Finishes, with -ETIMEDOUT, requests whose deadline_ms is not 0 and has passed.  Returns the next deadline, or
 * UINT64_MAX.  `forget` (or NULL) is called for each before done(), so that the driver drops its own reference. */
uint64_t coord_sweep(struct coord *coord, uint64_t now_ms, void (*forget)(struct coord_request *request));
/* Finishes all that are under way with `status` (-ECANCELED on close), also those that done() starts meanwhile. */
void coord_cancel(struct coord *coord, int status);

/* For messages: "create", "get", … and the path that the request is about ("" if none). */
const char *coord_op_name(unsigned op);
const char *coord_op_path(const struct coord_request *request);

/* Checks a path such as "members/3f2a": 0 or -EINVAL / -E2BIG. */
int coord_path_check(const char *path, struct error *error);
/* Whether it can be one name of a path.  Other names that an authority lists are left out, since no path can name them.
 */
#define COORD_NAME_MAX 255u
bool coord_name_is_good(struct span name);

/* Logs that a value in the tree is invalid; `text` names it.  Each text is logged once, however often the value is
 * read. */
void coord_note(struct coord *coord, const char *text);

#endif
