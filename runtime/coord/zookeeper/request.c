/* request.c: requests as ZooKeeper operations.  Most need one; a missing parent, or a watch on a missing node, needs
 * more. */
#include <errno.h>
#include <string.h>

#include "base/numbers.h"
#include "base/strings.h"
#include "coord/zookeeper/zookeeper.h"

int zk_errno(int rc)
{
        switch (rc) {
        case ZOK:
                return 0;
        case ZNONODE:
                return -ENOENT;
        case ZNODEEXISTS:
                return -EEXIST;
        case ZBADVERSION:
                return -ESTALE;
        case ZNOTEMPTY:
                return -ENOTEMPTY;
        case ZNOAUTH:
        case ZAUTHFAILED:
        case ZINVALIDACL:
                return -EACCES;
        case ZBADARGUMENTS:
                return -EINVAL;
        case ZNOCHILDRENFOREPHEMERALS:
                return -ENOTDIR;
        case ZCONNECTIONLOSS:
        case ZOPERATIONTIMEOUT:
        case ZSESSIONMOVED:
                return -ECONNRESET;
        case ZSESSIONEXPIRED:
                return -EOWNERDEAD;
        default:
                return -EREMOTEIO;
        }
}

struct coord_stat zk_stat(const struct Stat *stat)
{
        return (struct coord_stat){ .created = (uint64_t)stat->czxid,
                .version = (uint64_t)stat->version,
                .owner = (uint64_t)stat->ephemeralOwner };
}

int32_t zk_version(uint64_t version)
{
        if (version == COORD_ANY_VERSION)
                return -1;
        return (int32_t)min_u64(version, INT32_MAX);
}

char *zk_path(const struct zk *zk, const char *path)
{
        return text_printf("%s%s%s", zk->root, path ? "/" : "", path ? path : "");
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

static struct zk_call *make_call(struct zk *zk, struct coord_request *request)
{
        if (request->op == COORD_OP_MULTI)
                return zk_multi_call(zk, (struct coord_multi *)request);
        struct zk_call *call = zk_call_new(zk_path(zk, coord_op_path(request)));
        switch (request->op) {
        case COORD_OP_CREATE:
                call->step = STEP_CREATE;
                call->data = ((struct coord_create *)request)->data;
                call->flags = ((struct coord_create *)request)->flags;
                break;
        case COORD_OP_GET:
                call->step = STEP_GET;
                call->watch = ((struct coord_get *)request)->watch;
                break;
        case COORD_OP_SET:
                call->step = STEP_SET;
                call->data = ((struct coord_set *)request)->data;
                call->version = zk_version(((struct coord_set *)request)->version);
                break;
        case COORD_OP_DELETE:
                call->step = STEP_DELETE;
                call->version = zk_version(((struct coord_delete *)request)->version);
                break;
        default:
                call->step = STEP_CHILDREN;
                call->watch = ((struct coord_children *)request)->watch;
                break;
        }
        return call;
}

void *zk_request_make(struct remote *remote, struct coord_request *request)
{
        struct zk *zk = (struct zk *)remote;
        struct zk_call *call = make_call(zk, request);
        call->acl = zk->acl;
        call->request = request;
        return call;
}

/* A call that cannot be sent now waits for the connection, or for the end of this session, which is near. */
void zk_request_send(struct remote *remote, struct coord_request *request)
{
        struct zk *zk = (struct zk *)remote;
        struct zk_call *call = request->driver;
        if (call->is_out || !zk->is_connected || !remote_is_proven(remote))
                return;
        int rc = call->is_lost ? ZCONNECTIONLOSS : zk_call_send(call, zk->current->handle);
        if (rc != ZOK && rc != ZINVALIDSTATE)
                remote_refuse(remote, request, zk_errno(rc), zerror(rc));
}

void zk_call_forget(void *forgotten)
{
        struct zk_call *call = forgotten;
        call->request = NULL;
        if (!call->is_out)
                zk_call_free(call);
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static void finish(struct zk_call *call, int rc)
{
        struct coord_request *request = call->request;
        remote_forget(request);
        if (rc == ZOK)
                coord_finish(request, 0);
        else if (rc == ZNOAUTH)
                coord_finish_error(request, -EACCES, "it belongs to another user; look at user and password");
        else
                coord_finish_error(request, zk_errno(rc), "%s", zerror(rc));
}

/* Sends the call again, as another operation. */
static void go_on(struct zk *zk, struct zk_call *call, enum call_step step)
{
        call->step = step;
        zk_request_send(&zk->remote, call->request);
}

/* Goes up until a node exists, then down again, making each node.  A node that exists is not touched: it may belong to
 * another user, who only lets us make nodes below it. */
bool zk_parent_next(struct zk_call *call, size_t path_size)
{
        size_t size = call->parent_size;
        if (call->rc == ZNONODE) {
                while (size && call->path[size - 1] != '/')
                        size--;
                if (size < 2)
                        return false;
                call->parent_size = size - 1;
                return true;
        }
        if ((call->rc != ZOK && call->rc != ZNODEEXISTS) || size == path_size)
                return false;
        call->parent_size = size + 1 + strcspn(call->path + size + 1, "/");
        return true;
}

/* The size of the path without its last name.  There is always a parent: the app's root is above every node. */
static size_t parents_size(const struct zk_call *call)
{
        return (size_t)(strrchr(call->path, '/') - call->path);
}

static void parent_answered(struct zk *zk, struct zk_call *call)
{
        if (zk_parent_next(call, parents_size(call)))
                go_on(zk, call, STEP_PARENT);
        else if (call->rc == ZOK || call->rc == ZNODEEXISTS)
                go_on(zk, call, STEP_CREATE);
        else
                finish(call, call->rc);
}

static void create_answered(struct zk *zk, struct zk_call *call)
{
        struct coord_create *create = (struct coord_create *)call->request;
        if (call->rc == ZNONODE) {
                call->parent_size = parents_size(call);
                go_on(zk, call, STEP_PARENT);
                return;
        }
        if (call->rc == ZOK && strncmp(call->bytes, call->path, strlen(call->path)) != 0) {
                call->rc = ZRUNTIMEINCONSISTENCY; /* not the node that was asked for */
        } else if (call->rc == ZOK) {
                const char *made = call->bytes + strlen(zk->root) + 1;
                create->made = arena_copy(coord_arena(&create->request), (struct span){ made, strlen(made) }).data;
                create->stat = zk_stat(&call->stat);
        }
        finish(call, call->rc);
}

static void get_answered(struct zk *zk, struct zk_call *call)
{
        struct coord_get *get = (struct coord_get *)call->request;
        /* A read that failed has armed no watch. */
        if (call->rc == ZNONODE && call->watch) {
                go_on(zk, call, STEP_EXISTS);
                return;
        }
        if (call->rc == ZOK) {
                get->data = arena_copy(coord_arena(&get->request), (struct span){ call->bytes, call->size });
                get->stat = zk_stat(&call->stat);
        }
        finish(call, call->rc);
}

static void give_names(struct coord_children *children, const struct zk_call *call)
{
        const char *at = call->bytes;
        remote_names_begin(children, call->count);
        for (uint32_t i = 0; i < call->count; i++) {
                struct span name = { at, strlen(at) };
                remote_names_add(children, name);
                at += name.size + 1;
        }
        remote_names_end(children);
}

static void children_answered(struct zk *zk, struct zk_call *call)
{
        struct coord_children *children = (struct coord_children *)call->request;
        if (call->rc == ZNONODE && call->watch) {
                go_on(zk, call, STEP_EXISTS);
                return;
        }
        if (call->rc == ZOK)
                give_names(children, call);
        else if (call->rc == ZNONODE)
                children->names_count = 0;
        finish(call, call->rc == ZNONODE ? ZOK : call->rc);
}

/* The watch for the creation of the node is armed, unless the node was made in the meantime. */
static void exists_answered(struct zk *zk, struct zk_call *call)
{
        bool is_get = call->request->op == COORD_OP_GET;
        if (call->rc == ZOK) {
                go_on(zk, call, is_get ? STEP_GET : STEP_CHILDREN);
        } else if (call->rc == ZNONODE && !is_get) {
                ((struct coord_children *)call->request)->names_count = 0;
                finish(call, ZOK);
        } else {
                finish(call, call->rc);
        }
}

static bool is_lost(const struct zk_call *call)
{
        return call->rc == ZCONNECTIONLOSS || call->rc == ZOPERATIONTIMEOUT;
}

static bool may_repeat(const struct zk_call *call)
{
        if (call->rc == ZSESSIONMOVED)
                return true; /* the server has not executed it */
        return is_lost(call) && (call->step == STEP_GET || call->step == STEP_CHILDREN || call->step == STEP_EXISTS ||
                                        call->step == STEP_PARENT);
}

void zk_request_answered(struct zk *zk, struct zk_call *call)
{
        struct coord_request *request = call->request;
        /* Whether a lost create of an ephemeral node took effect does not matter if the session turns out to be over:
         * then the node is gone in any case. */
        call->is_lost = is_lost(call) && call->step == STEP_CREATE && (call->flags & COORD_EPHEMERAL);
        /* The request waits for the next connection, until its deadline. */
        if (may_repeat(call) || call->is_lost) {
                zk_request_send(&zk->remote, request);
                return;
        }
        switch (call->step) {
        case STEP_CREATE:
                create_answered(zk, call);
                break;
        case STEP_PARENT:
                parent_answered(zk, call);
                break;
        case STEP_GET:
                get_answered(zk, call);
                break;
        case STEP_CHILDREN:
                children_answered(zk, call);
                break;
        case STEP_EXISTS:
                exists_answered(zk, call);
                break;
        case STEP_SET:
                if (call->rc == ZOK)
                        ((struct coord_set *)request)->stat = zk_stat(&call->stat);
                finish(call, call->rc);
                break;
        case STEP_DELETE:
                finish(call, call->rc);
                break;
        case STEP_MULTI: {
                int r = zk_multi_answer((struct coord_multi *)request, call);
                int rc = call->rc;
                remote_forget(request);
                if (r)
                        coord_finish_error(request, r, "%s", zerror(rc));
                else
                        coord_finish(request, 0);
                break;
        }
        }
}
