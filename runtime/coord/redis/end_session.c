/* end_session.c: ends the session of a host that is gone; knowing its nonce is the permission.
 *
 *         token: NUMBER-NONCE */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coord/redis/redis_tree.h"
#include "coord/session_end.h"

struct redis_session_end {
        struct session_end base; /* must be first */
        char number[24];
        char nonce[REMOTE_NONCE_DIGITS + 1];
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
        if (strlen(nonce) != REMOTE_NONCE_DIGITS || strspn(nonce, "0123456789abcdef") != REMOTE_NONCE_DIGITS)
                return false;
        memcpy(ending->number, token, digits);
        memcpy(ending->nonce, nonce, REMOTE_NONCE_DIGITS);
        return true;
}

static void on_session_ended(struct tree_op *op)
{
        struct redis_session_end *ending = op->self;
        int status = op->command.status;
        struct error error = op->command.error;
        rtree_op_free(op);
        session_end_close(&ending->base, status, error.text);
}

static void ask(struct session_end *base)
{
        struct redis_session_end *ending = (struct redis_session_end *)base;
        struct redis_tree *tree = (struct redis_tree *)base->open.coord;
        if (!tree->redis) {
                session_end_close(base, -ETIMEDOUT, "Redis was not reached; the session ends by itself");
                return;
        }
        struct tree_op *op = rtree_finish_op(tree, ending->number, ending->nonce, on_session_ended);
        op->self = ending;
        rtree_op_send(op, tree->remote.coord.session_ms);
}

static void on_ended_through(struct tree_op *op)
{
        struct coord_end_session *end = op->self;
        int status = op->command.status;
        struct error error = op->command.error;
        rtree_op_free(op);
        if (status)
                coord_finish_error(&end->request, status, "%s", error.text);
        else
                coord_finish(&end->request, 0);
}

/* Uses an open connection: a new one would cost time, while the tasks of the dead host wait. */
static void ask_through(struct redis_tree *tree, const struct redis_session_end *ending, struct coord_end_session *end)
{
        struct tree_op *op = rtree_finish_op(tree, ending->number, ending->nonce, on_ended_through);
        op->self = end;
        rtree_op_send(op, tree->remote.coord.session_ms);
}

void rtree_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        struct redis_tree *through = (struct redis_tree *)end->through;
        struct redis_session_end *ending = session_end_new(end, sizeof(*ending), ask);
        bool is_read = !end->request.status && token_read(end->token, ending);
        if (is_read && through && through->redis) {
                ask_through(through, ending, end);
                explicit_bzero(ending, sizeof(*ending));
                free(ending);
                return;
        }
        if (!end->request.status && !is_read)
                session_end_refuse(&ending->base, "not the token of a session in Redis");
        uint64_t patience_ms = end->options.session_ms ? end->options.session_ms : REMOTE_SESSION_DEFAULT_MS;
        rtree_make(loop, &ending->base.open, patience_ms);
}
