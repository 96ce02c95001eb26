/* request.c: requests as scripts.  A write is fenced by its session and waits until there is one; reads need none. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "coord/redis/redis_tree.h"

/* --- making calls ------------------------------------------------------------------------------------------------ */

static void get_answered(struct tree_op *op);
static void children_answered(struct tree_op *op);
static void write_answered(struct tree_op *op);

static void put_version(struct tree_op *op, uint64_t version)
{
        if (version == COORD_ANY_VERSION)
                rtree_op_text(op, "");
        else
                rtree_op_number(op, version);
}

static void put_write(
        struct tree_op *op, const char *kind, const char *path, uint64_t version, const char *flags, struct span data)
{
        rtree_op_text(op, kind);
        rtree_op_text(op, path);
        put_version(op, version);
        rtree_op_text(op, flags);
        rtree_op_word(op, data);
}

static void put_multi(struct tree_op *op, const struct coord_multi *multi)
{
        static const char *const kinds[] = {
                [COORD_CHECK] = "k", [COORD_SET] = "s", [COORD_CREATE] = "c", [COORD_DELETE] = "d"
        };
        for (uint32_t i = 0; i < multi->ops_count; i++) {
                const struct coord_multi_op *one = &multi->ops[i];
                put_write(op, kinds[one->kind], one->path, one->kind == COORD_CREATE ? COORD_ANY_VERSION : one->version,
                        one->flags & COORD_EPHEMERAL ? "e" : "", one->data);
        }
}

static struct tree_op *make_write(struct redis_tree *tree, struct coord_request *request)
{
        static const char *const flags[] = { "p", "pe", "pq", "peq" }; /* by enum coord_flags */
        struct tree_op *op = rtree_op_new(tree, TREE_WRITE, write_answered);
        const char *path = coord_op_path(request);
        op->needs_session = !tree->remote.coord.is_visitor;
        /* The session's number and nonce are filled in when the call is sent: there may be no session yet. */
        rtree_op_text(op, "0");
        rtree_op_text(op, "");
        if (request->op == COORD_OP_CREATE) {
                const struct coord_create *create = (struct coord_create *)request;
                put_write(op, "c", path, COORD_ANY_VERSION, flags[create->flags], create->data);
        } else if (request->op == COORD_OP_SET) {
                const struct coord_set *set = (struct coord_set *)request;
                put_write(op, "s", path, set->version, "", set->data);
        } else if (request->op == COORD_OP_DELETE) {
                put_write(op, "d", path, ((struct coord_delete *)request)->version, "", (struct span){ 0 });
        } else {
                put_multi(op, (struct coord_multi *)request);
        }
        return op;
}

static struct tree_op *make_get(struct redis_tree *tree, const struct coord_get *get)
{
        struct tree_op *op = rtree_op_new(tree, TREE_GET, get_answered);
        rtree_op_key(op, "node", get->path);
        op->command.is_tracked = get->watch;
        if (get->watch)
                op->watch[0] = rtree_watch_begin(tree, "node", get->path);
        return op;
}

/* The node itself is watched as well, because its creation must be reported if it is missing. */
static struct tree_op *make_children(struct redis_tree *tree, const struct coord_children *children)
{
        struct tree_op *op = rtree_op_new(tree, TREE_CHILDREN, children_answered);
        rtree_op_key(op, "children", children->path);
        rtree_op_key(op, "node", children->path);
        op->command.is_tracked = children->watch;
        if (children->watch) {
                op->watch[0] = rtree_watch_begin(tree, "children", children->path);
                op->watch[1] = rtree_watch_begin(tree, "node", children->path);
        }
        return op;
}

static struct tree_op *make_op(struct redis_tree *tree, struct coord_request *request)
{
        if (request->op == COORD_OP_GET)
                return make_get(tree, (struct coord_get *)request);
        if (request->op == COORD_OP_CHILDREN)
                return make_children(tree, (struct coord_children *)request);
        return make_write(tree, request);
}

void *rtree_request_make(struct remote *remote, struct coord_request *request)
{
        struct tree_op *op = make_op((struct redis_tree *)remote, request);
        op->request = request;
        return op;
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

#define WORD_NUMBER 4 /* EVALSHA sha 1 key NUMBER NONCE … */
#define WORD_NONCE  5

static void put_session(struct tree_op *op)
{
        const struct redis_tree *tree = op->tree;
        const char *const words[] = { tree->number, tree->nonce };
        for (int i = 0; i < 2; i++) {
                struct span copy = arena_copy(&op->memory, (struct span){ words[i], strlen(words[i]) });
                op->argv[WORD_NUMBER + i] = copy.data;
                op->sizes[WORD_NUMBER + i] = copy.size;
        }
        (void)snprintf(op->number, sizeof(op->number), "%s", tree->number);
}

void rtree_request_send(struct remote *remote, struct coord_request *request)
{
        const struct redis_tree *tree = (struct redis_tree *)remote;
        struct tree_op *op = request->driver;
        uint64_t now_ms = clock_boot_ms();
        if (op->is_out || !tree->redis || (op->needs_session && !tree->number[0]))
                return;
        if (op->needs_session)
                put_session(op);
        rtree_op_send(op, request->deadline_ms > now_ms ? request->deadline_ms - now_ms : 0);
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

/* A call that has ended: its request is finished first, then its watches. */
struct ended {
        struct redis_tree *tree;
        struct coord_request *request;
        struct redis_watch *watch[2];
};

static struct ended end(struct tree_op *op)
{
        struct ended ended = { op->tree, op->request, { op->watch[0], op->watch[1] } };
        op->request->driver = NULL;
        op->watch[0] = op->watch[1] = NULL;
        rtree_op_free(op);
        return ended;
}

static void end_watches(const struct ended *ended, bool is_armed, bool is_second_armed)
{
        rtree_watch_end(ended->tree, ended->watch[0], is_armed);
        rtree_watch_end(ended->tree, ended->watch[1], is_second_armed);
}

/* After -ECONNREFUSED and the like the call was never sent, and its deadline has passed. */
static int failure(const struct tree_op *op)
{
        int status = op->command.status;
        return status == -ECONNREFUSED || status == -EHOSTUNREACH ? -ETIMEDOUT : status;
}

static void fail(struct tree_op *op, int status, const char *text)
{
        struct error copy;
        (void)error_set(&copy, 0, "%s", text);
        struct ended ended = end(op);
        coord_finish_error(ended.request, status, "%s", copy.text);
        end_watches(&ended, false, false);
}

/* A lost read is repeated before its deadline. */
static bool read_again(struct tree_op *op)
{
        int status = op->command.status;
        bool is_lost = status == -ECONNRESET || status == -EROFS || status == -ETIMEDOUT;
        if (!is_lost || clock_boot_ms() >= op->request->deadline_ms || op->tree->remote.is_closing)
                return false;
        rtree_request_send(&op->tree->remote, op->request);
        return true;
}

/* The node exists, but its value is invalid.  The watch stays armed, so that a change is reported. */
static void fail_broken(struct tree_op *op, struct span why)
{
        struct error copy;
        (void)error_set(&copy, 0, "%.*s", (int)why.size, why.data ? why.data : "");
        struct ended ended = end(op);
        coord_finish_error(ended.request, -EBADMSG, "%s", copy.text);
        end_watches(&ended, true, false);
}

static void fail_unknown(struct tree_op *op)
{
        if (op->tree->redis)
                redis_verify(op->tree->redis);
        fail(op, -EPROTO, "Redis gave an answer that this Quiver cannot read");
}

/* False: the call has ended with an error, or was sent again. */
static bool is_answer(struct tree_op *op)
{
        if (op->command.status) {
                if (!read_again(op))
                        fail(op, failure(op), op->command.error.text);
                return false;
        }
        enum reply_verdict verdict = rtree_reply_read(op->tree, op->command.reply);
        if (verdict == REPLY_BROKEN)
                fail_broken(op, rtree_reply_span(op->command.reply, 2));
        else if (verdict != REPLY_OK)
                fail_unknown(op);
        return verdict == REPLY_OK;
}

static void get_answered(struct tree_op *op)
{
        struct coord_get *get = (struct coord_get *)op->request;
        const redisReply *reply = op->command.reply;
        if (!is_answer(op))
                return;
        bool is_there = rtree_reply_span(reply, 4).size > 0;
        if (is_there && !rtree_reply_stat(reply, 3, &get->stat)) {
                fail_unknown(op);
                return;
        }
        if (is_there)
                get->data = arena_copy(coord_arena(&get->request), rtree_reply_span(reply, 2));
        struct ended ended = end(op);
        if (is_there)
                coord_finish(ended.request, 0);
        else
                coord_finish_error(ended.request, -ENOENT, "no such node");
        end_watches(&ended, true, false);
}

static void children_answered(struct tree_op *op)
{
        const redisReply *reply = op->command.reply;
        uint64_t is_there = 0;
        if (!is_answer(op))
                return;
        if (reply->elements < 4 || !rtree_reply_number(reply, 3, &is_there)) {
                fail_unknown(op);
                return;
        }
        rtree_reply_names((struct coord_children *)op->request, reply->element[2]);
        struct ended ended = end(op);
        coord_finish(ended.request, 0);
        end_watches(&ended, true, !is_there);
}

/* False: the reply does not fit the request. */
static bool give_made(struct coord_request *request, const redisReply *made)
{
        if (request->op == COORD_OP_CREATE) {
                struct coord_create *create = (struct coord_create *)request;
                struct span path = rtree_reply_span(made->element[0], 0);
                if (!rtree_reply_is_made(path, create->path, create->flags))
                        return false;
                create->made = arena_copy(coord_arena(request), path).data;
                return rtree_reply_stat(made->element[0], 1, &create->stat);
        }
        if (request->op == COORD_OP_SET)
                return rtree_reply_stat(made->element[0], 1, &((struct coord_set *)request)->stat);
        if (request->op != COORD_OP_MULTI)
                return true;
        struct coord_multi *multi = (struct coord_multi *)request;
        for (uint32_t i = 0; i < multi->ops_count; i++)
                if (i >= made->elements || !rtree_reply_stat(made->element[i], 1, &multi->ops[i].stat))
                        return false;
        return true;
}

/* Fails the request with the operation and the reason that the script named. */
static void write_failed(struct tree_op *op)
{
        struct coord_request *request = op->request;
        const redisReply *reply = op->command.reply;
        int status = rtree_reply_errno(rtree_reply_span(reply, 3));
        uint64_t which = UINT64_MAX;
        (void)rtree_reply_number(reply, 2, &which);
        if (request->op == COORD_OP_MULTI && which < ((struct coord_multi *)request)->ops_count)
                ((struct coord_multi *)request)->ops[which].status = status;
        fail(op, status,
                status == -EBADMSG ? "a key of the coordination tree has a value that Quiver does not write"
                                   : strerror(-status));
}

/* The session of the call is over.  If it is our current one, this is how we learn of it. */
static void write_expired(struct tree_op *op)
{
        struct redis_tree *tree = op->tree;
        if (!strcmp(op->number, tree->number)) {
                rtree_expire(tree, "the server says so");
                return;
        }
        fail(op, -EOWNERDEAD, "the session has expired");
}

static void write_answered(struct tree_op *op)
{
        struct redis_tree *tree = op->tree;
        const redisReply *reply = op->command.reply;
        if (op->command.status) {
                fail(op, failure(op), op->command.error.text);
                return;
        }
        enum reply_verdict verdict = rtree_reply_read(tree, reply);
        if (verdict == REPLY_OK && reply->elements > 2 && reply->element[2]->type == REDIS_REPLY_ARRAY &&
                reply->element[2]->elements && give_made(op->request, reply->element[2])) {
                coord_finish(end(op).request, 0);
        } else if (verdict == REPLY_FAILED) {
                write_failed(op);
        } else if (verdict == REPLY_EXPIRED) {
                write_expired(op);
        } else {
                fail_unknown(op);
        }
}
