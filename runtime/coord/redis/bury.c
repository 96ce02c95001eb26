/* Ending the session of a host that is gone: whoever knows its nonce may.
 *
 *         token: NUMBER-NONCE */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coord/redis/redis_tree.h"

struct burial {
        struct coord_open open; /* a visitor's; first */
        struct coord_bury *bury;
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

static bool token_read(const char *token, struct burial *burial)
{
        size_t digits = strspn(token, "0123456789");
        if (!digits || digits >= sizeof(burial->number) || token[digits] != '-')
                return false;
        const char *nonce = token + digits + 1;
        if (strlen(nonce) != TREE_NONCE_DIGITS || strspn(nonce, "0123456789abcdef") != TREE_NONCE_DIGITS)
                return false;
        memcpy(burial->number, token, digits);
        memcpy(burial->nonce, nonce, TREE_NONCE_DIGITS);
        return true;
}

static void finish(struct burial *burial, int status, const char *text)
{
        struct coord_request *request = &burial->bury->request;
        struct error copy;
        (void)error_set(&copy, 0, "%s", text);
        explicit_bzero(burial, sizeof(*burial));
        free(burial);
        if (status)
                coord_finish_error(request, status, "%s", copy.text);
        else
                coord_finish(request, 0);
}

static void on_closed(void *self)
{
        struct burial *burial = self;
        finish(burial, burial->status, burial->error.text);
}

static void on_buried(struct op *op)
{
        struct burial *burial = op->self;
        burial->status = op->command.status;
        burial->error = op->command.error;
        struct coord *coord = &op->tree->coord;
        rtree_op_free(op);
        rtree_close(coord, on_closed, burial);
}

static void on_opened(struct coord_request *request)
{
        struct burial *burial = (struct burial *)request;
        if (request->status) {
                finish(burial, request->status, request->error.text);
                return;
        }
        struct redis_tree *tree = (struct redis_tree *)burial->open.coord;
        if (!tree->redis) {
                burial->status =
                        error_set(&burial->error, -ETIMEDOUT, "Redis was not reached; the session ends by itself");
                rtree_close(&tree->coord, on_closed, burial);
                return;
        }
        struct op *op = rtree_finish_op(tree, burial->number, burial->nonce, on_buried);
        op->self = burial;
        rtree_op_send(op, tree->coord.session_ms);
}

void rtree_bury(struct uv_loop_s *loop, struct coord_bury *bury)
{
        struct burial *burial = calloc(1, sizeof(*burial));
        if (!burial)
                abort();
        burial->bury = bury;
        burial->open.request.done = on_opened;
        burial->open.request.op = COORD_OP_OPEN;
        burial->open.options = bury->options;
        burial->open.options.events = NULL;
        burial->open.request.status = bury->request.status;
        burial->open.request.error = bury->request.error;
        if (!bury->request.status && !token_read(bury->token, burial))
                burial->open.request.status =
                        error_set(&burial->open.request.error, -EINVAL, "not the token of a session in Redis");
        uint64_t patience_ms = bury->options.session_ms ? bury->options.session_ms : TREE_SESSION_DEFAULT_MS;
        rtree_make(loop, &burial->open, patience_ms);
}
