/* Ending the session of a host that is gone: whoever knows its nonce may.
 *
 *         token: NUMBER-NONCE */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coord/redis/redis_tree.h"

struct redis_session_end {
        struct coord_open open; /* a visitor's; first */
        struct coord_end_session *end;
        char number[24];
        char nonce[TREE_NONCE_DIGITS + 1];
        int status;
        struct error error;
};

void rtree_token(const struct coord *coord, char ret_token[COORD_TOKEN_MAX])
{
        const struct redis_tree *tree = (const struct redis_tree *)coord;
        ret_token[0] = 0;
        if (tree->number[0])
                (void)snprintf(ret_token, COORD_TOKEN_MAX, "%s-%s", tree->number, tree->nonce);
}

static bool token_read(const char *token, struct redis_session_end *ending)
{
        size_t digits = strspn(token, "0123456789");
        if (!digits || digits >= sizeof(ending->number) || token[digits] != '-')
                return false;
        const char *nonce = token + digits + 1;
        if (strlen(nonce) != TREE_NONCE_DIGITS || strspn(nonce, "0123456789abcdef") != TREE_NONCE_DIGITS)
                return false;
        memcpy(ending->number, token, digits);
        memcpy(ending->nonce, nonce, TREE_NONCE_DIGITS);
        return true;
}

static void finish(struct redis_session_end *ending, int status, const char *text)
{
        struct coord_request *request = &ending->end->request;
        struct error copy;
        (void)error_set(&copy, 0, "%s", text);
        explicit_bzero(ending, sizeof(*ending));
        free(ending);
        if (status)
                coord_finish_error(request, status, "%s", copy.text);
        else
                coord_finish(request, 0);
}

static void on_closed(void *self)
{
        struct redis_session_end *ending = self;
        finish(ending, ending->status, ending->error.text);
}

static void on_session_ended(struct tree_op *op)
{
        struct redis_session_end *ending = op->self;
        ending->status = op->command.status;
        ending->error = op->command.error;
        struct coord *coord = &op->tree->remote.coord;
        rtree_op_free(op);
        rtree_close(coord, on_closed, ending);
}

static void on_opened(struct coord_request *request)
{
        struct redis_session_end *ending = (struct redis_session_end *)request;
        if (request->status) {
                finish(ending, request->status, request->error.text);
                return;
        }
        struct redis_tree *tree = (struct redis_tree *)ending->open.coord;
        if (!tree->redis) {
                ending->status =
                        error_set(&ending->error, -ETIMEDOUT, "Redis was not reached; the session ends by itself");
                rtree_close(&tree->remote.coord, on_closed, ending);
                return;
        }
        struct tree_op *op = rtree_finish_op(tree, ending->number, ending->nonce, on_session_ended);
        op->self = ending;
        rtree_op_send(op, tree->remote.coord.session_ms);
}

void rtree_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        struct redis_session_end *ending = memory_zero(1, sizeof(*ending));
        ending->end = end;
        ending->open.request.done = on_opened;
        ending->open.request.op = COORD_OP_OPEN;
        ending->open.options = end->options;
        ending->open.options.events = NULL;
        ending->open.request.status = end->request.status;
        ending->open.request.error = end->request.error;
        if (!end->request.status && !token_read(end->token, ending))
                ending->open.request.status =
                        error_set(&ending->open.request.error, -EINVAL, "not the token of a session in Redis");
        uint64_t patience_ms = end->options.session_ms ? end->options.session_ms : REMOTE_SESSION_DEFAULT_MS;
        rtree_make(loop, &ending->open, patience_ms);
}
