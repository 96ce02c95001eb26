/* driver.h: what a coordination driver implements.  Included only by coord.c, request.c, the drivers, and tests that
 * are a driver themselves. */
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
        const char *scheme; /* the URL up to the first ':' or '+' */
        /* Makes a tree from open->options and finishes the request; the options are valid until then.  If the status is
         * already negative, it only finishes the request.  Never finishes it before it returns. */
        void (*open)(struct uv_loop_s *loop, struct coord_open *open);
        /* The same rules as for open(), but makes no tree. */
        void (*end_session)(struct uv_loop_s *loop, struct coord_end_session *end);
        /* Executes a request that coord.c has checked, in the order of starting.  If the status is already negative, it
         * only finishes the request, and not before this returns.  Sets request->deadline_ms if coord_sweep() is to end
         * it.  The driver sets the error text of a request that it finishes with an error. */
        void (*start)(struct coord *coord, struct coord_request *request);
        void (*token)(const struct coord *coord, char ret_token[COORD_TOKEN_MAX]);
        /* Finishes all requests (coord_cancel), then calls closed(); neither before it returns. */
        void (*close)(struct coord *coord, void (*closed)(void *self), void *self);
        /* coord_rights().  NULL: the driver has no such users. */
        bool (*rights)(const struct coord_options *options, bool is_for_sentinels, struct rights *to);
};

/* A new driver needs a line here and one in coord.c. */
extern const struct coord_driver local_driver;
extern const struct coord_driver zookeeper_driver;
extern const struct coord_driver redis_tree_driver;
extern const struct coord_driver etcd_driver;

#define COORD_NOTED_MAX 64u

/* Drivers embed this as their first member.  coord_base_init() sets the initial values; the driver keeps them true,
 * because coord_info() shows them. */
struct coord {
        const struct coord_driver *driver;
        char *app;
        char *url;
        char *server; /* NULL: no server has answered yet */
        struct coord_events events;
        bool is_visitor; /* opened without events: it neither watches nor makes ephemeral nodes */
        enum coord_state state;
        uint64_t session;
        uint64_t session_ms;
        uint64_t answered_ms;
        struct coord_request *requests;  /* under way, in order of starting (utlist) */
        uint64_t noted[COORD_NOTED_MAX]; /* hashes of the last texts that coord_note() has logged */
        unsigned noted_count;
};

/* Initialises from open->options.  `url` is shown by coord_info(). */
void coord_base_init(
        struct coord *coord, const struct coord_driver *driver, const struct coord_options *options, const char *url);
/* Frees what coord_base_init() allocated, and `server`; not the struct. */
void coord_base_free(struct coord *coord);

/* Records the session's new state and reports it to the owner.  Call it for each change, in order. */
void coord_tell(struct coord *coord, enum coord_state state, uint64_t session);

/* The arena that the request's reply is allocated in. */
struct arena_chunk **coord_arena(struct coord_request *request);

/* Removes the request from the tree's list, calls done() and frees the reply.  On the loop only.  The request must not
 * be touched afterwards.  done() may start other requests and may close the tree, but nothing is freed before it
 * returns. */
void coord_finish(struct coord_request *request, int status);
/* Finishes with the error text "OP PATH: TEXT"; `format` gives TEXT. */
__attribute__((format(printf, 3, 4))) void coord_finish_error(
        struct coord_request *request, int status, const char *format, ...);

/* Finishes, with -ETIMEDOUT, requests whose deadline_ms is not 0 and has passed.  Returns the next deadline, or
 * UINT64_MAX.  `forget` (or NULL) is called for each before done(), so that the driver drops its own reference. */
uint64_t coord_sweep(struct coord *coord, uint64_t now_ms, void (*forget)(struct coord_request *request));
/* Finishes all requests under way with `status` (-ECANCELED on close), and those that done() starts meanwhile. */
void coord_cancel(struct coord *coord, int status);

/* For messages: "create", "get", … and the path that the request is about ("" if none). */
const char *coord_op_name(unsigned op);
const char *coord_op_path(const struct coord_request *request);

/* Checks a path such as "members/3f2a": 0 or -EINVAL / -E2BIG. */
int coord_path_check(const char *path, struct error *error);
/* Whether it can be one name of a path.  Other names that an authority lists are skipped, because no path can contain
 * them. */
#define COORD_NAME_MAX 255u
bool coord_name_is_good(struct span name);

/* Logs that a value in the tree is invalid; `text` names it.  Each text is logged once, however often the value is
 * read. */
void coord_note(struct coord *coord, const char *text);

#endif
