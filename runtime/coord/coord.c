#include "coord/coord.h"

#include <errno.h>
#include <string.h>

#include "base/url.h"
#include "coord/request.h"

static const struct coord_driver *const drivers[] = {
        &local_driver,
        &zookeeper_driver,
        &redis_tree_driver,
        &etcd_driver,
};

#define SEQUENCE_DIGITS 10u

/* --- checking requests ------------------------------------------------------------------------------------------- */

static void check_path(struct coord_request *request, const char *path)
{
        struct error error;
        int r = coord_path_check(path, &error);
        if (r && !request->status) {
                request->status = r;
                (void)error_set(&request->error, 0, "%s: %s", coord_op_name(request->op), error.text);
        }
}

/* The name must leave room for the digits that are appended. */
static void check_sequential(struct coord_request *request, const char *path)
{
        const char *slash = strrchr(path, '/');
        size_t name = strlen(slash ? slash + 1 : path);
        if (strlen(path) + SEQUENCE_DIGITS >= COORD_PATH_MAX || name + SEQUENCE_DIGITS > COORD_NAME_MAX)
                coord_refuse(request, -E2BIG, "no room for the sequence number");
}

static void check_data(struct coord_request *request, size_t size)
{
        if (size > COORD_DATA_MAX)
                coord_refuse(request, -E2BIG, "too much data");
}

static void check_watch(struct coord_request *request, bool watch)
{
        if (watch && request->coord->is_visitor)
                coord_refuse(request, -EINVAL, "a visitor cannot watch");
}

static void check_flags(struct coord_request *request, unsigned flags, unsigned allowed)
{
        if (flags & ~allowed)
                coord_refuse(request, -EINVAL, "unknown flag");
        if ((flags & COORD_EPHEMERAL) && request->coord->is_visitor)
                coord_refuse(request, -EINVAL, "a visitor has no session for ephemeral nodes");
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static int options_check(const struct coord_options *options, struct error *error)
{
        if (!options->app || !options->app[0] || strlen(options->app) > 64 ||
                strspn(options->app, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(options->app))
                return error_set(error, -EINVAL, "app: 1 to 64 of a-z, 0-9, _ and -");
        return 0;
}

/* Never NULL: a driver has to finish a refused request, too, because done() must not be called inside the starting
 * call. */
static const struct coord_driver *choose(struct coord_request *request, const struct coord_options *options)
{
        const char *url = options->url ? options->url : "";
        size_t scheme = url_is_redis_tls(url) ? strlen("redis") : strcspn(url, ":+");
        request->status = options_check(options, &request->error);
        for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
                if (strlen(drivers[i]->scheme) == scheme && !strncmp(url, drivers[i]->scheme, scheme))
                        return drivers[i];
        if (!request->status)
                request->status = error_set(&request->error, -EINVAL,
                        "coordination url \"%s\": unknown scheme; write local:FOLDER, zookeeper://HOSTS/ROOT, "
                        "etcd://HOSTS/ROOT or redis://HOST:PORT",
                        url);
        return drivers[0];
}

void coord_open(struct uv_loop_s *loop, struct coord_open *open)
{
        coord_prepare(&open->request, COORD_OP_OPEN);
        open->coord = NULL;
        choose(&open->request, &open->options)->open(loop, open);
}

void coord_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        coord_prepare(&end->request, COORD_OP_END_SESSION);
        const struct coord_driver *driver = choose(&end->request, &end->options);
        if (!end->token || !end->token[0] || strlen(end->token) >= COORD_TOKEN_MAX)
                coord_refuse(&end->request, -EINVAL, "a session's token is needed");
        driver->end_session(loop, end);
}

bool coord_rights(const struct coord_options *options, bool is_for_sentinels, struct rights *to)
{
        struct coord_request request = { 0 };
        const struct coord_driver *driver = choose(&request, options);
        return !request.status && driver->rights && driver->rights(options, is_for_sentinels, to);
}

void coord_close(struct coord *coord, void (*closed)(void *self), void *self)
{
        coord->driver->close(coord, closed, self);
}

void coord_info(const struct coord *coord, struct coord_info *ret_info)
{
        *ret_info = (struct coord_info){ .driver = coord->driver->scheme,
                .url = coord->url,
                .server = coord->server ? coord->server : "",
                .state = coord->state,
                .session = coord->session,
                .session_ms = coord->session_ms,
                .answered_ms = coord->answered_ms };
}

void coord_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX])
{
        coord->driver->token(coord, ret_token);
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

void coord_create(struct coord *coord, struct coord_create *create)
{
        struct coord_request *request = &create->request;
        coord_begin(coord, request, COORD_OP_CREATE);
        check_path(request, create->path);
        check_data(request, create->data.size);
        check_flags(request, create->flags, COORD_EPHEMERAL | COORD_SEQUENTIAL);
        if (!request->status && (create->flags & COORD_SEQUENTIAL))
                check_sequential(request, create->path);
        coord_start(request);
}

void coord_get(struct coord *coord, struct coord_get *get)
{
        coord_begin(coord, &get->request, COORD_OP_GET);
        check_path(&get->request, get->path);
        check_watch(&get->request, get->watch);
        coord_start(&get->request);
}

void coord_set(struct coord *coord, struct coord_set *set)
{
        coord_begin(coord, &set->request, COORD_OP_SET);
        check_path(&set->request, set->path);
        check_data(&set->request, set->data.size);
        coord_start(&set->request);
}

void coord_delete(struct coord *coord, struct coord_delete *del)
{
        coord_begin(coord, &del->request, COORD_OP_DELETE);
        check_path(&del->request, del->path);
        coord_start(&del->request);
}

void coord_children(struct coord *coord, struct coord_children *children)
{
        coord_begin(coord, &children->request, COORD_OP_CHILDREN);
        check_path(&children->request, children->path);
        check_watch(&children->request, children->watch);
        coord_start(&children->request);
}

void coord_multi(struct coord *coord, struct coord_multi *multi)
{
        struct coord_request *request = &multi->request;
        size_t data = 0;
        coord_begin(coord, request, COORD_OP_MULTI);
        if (!multi->ops_count || multi->ops_count > COORD_MULTI_MAX)
                coord_refuse(request, -EINVAL, "1 to 16 operations");
        for (uint32_t i = 0; !request->status && i < multi->ops_count; i++) {
                struct coord_multi_op *op = &multi->ops[i];
                op->status = 0;
                check_path(request, op->path);
                if ((unsigned)op->kind > COORD_DELETE)
                        coord_refuse(request, -EINVAL, "unknown kind");
                if (op->kind == COORD_CREATE)
                        check_flags(request, op->flags, COORD_EPHEMERAL);
                if (op->kind == COORD_SET || op->kind == COORD_CREATE)
                        data += op->data.size;
                check_data(request, data);
        }
        coord_start(request);
}
