/* session.c: the session: a lease in the server's time.
 *
 * It is renewed every third of its time, and an answered renewal proves that it was alive when the renewal was sent.
 * Without proof for its whole time it is over for us.  By the server's own clock it ends soon after, and the next
 * script that anybody runs removes its nodes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "coord/redis/redis_tree.h"

/* Pause after a renewal that failed at once. */
#define AGAIN_MS 100u
/* Every host comes to remove an ended session.  Spread over this time, the first one does it, and the others have
 * nothing to do. */
#define REAP_SPREAD_MS 50u

/* --- the end ----------------------------------------------------------------------------------------------------- */

struct tree_op *rtree_finish_op(
        struct redis_tree *tree, const char *number, const char *nonce, void (*answered)(struct tree_op *))
{
        struct tree_op *op = rtree_op_new(tree, TREE_FINISH, answered);
        rtree_op_text(op, number);
        rtree_op_text(op, nonce);
        return op;
}

static void forgotten(struct tree_op *op)
{
        rtree_op_free(op);
}

/* Ends the session at the server, if it can be reached, so that its nodes are deleted before it expires. */
static void finish_old(struct redis_tree *tree)
{
        if (tree->redis && !tree->remote.is_closing)
                rtree_op_send(
                        rtree_finish_op(tree, tree->number, tree->nonce, forgotten), tree->remote.coord.session_ms);
}

void rtree_expire(struct redis_tree *tree, const char *why)
{
        finish_old(tree);
        tree->number[0] = 0;
        remote_beat_soon(&tree->remote);
        remote_expired(&tree->remote, why);
}

/* --- heartbeat --------------------------------------------------------------------------------------------------- */

static void note_server(struct redis_tree *tree, const char *server)
{
        struct coord *coord = &tree->remote.coord;
        if (coord->server && !strcmp(coord->server, server))
                return;
        free(coord->server);
        coord->server = text_copy(server);
}

/* `next_end_ms`: when the next session of any host ends; UINT64_MAX: unknown. */
static void prove(struct redis_tree *tree, uint64_t next_end_ms)
{
        struct remote *remote = &tree->remote;
        struct redis_facts facts;
        redis_facts(tree->redis, &facts);
        note_server(tree, facts.server);
        /* Without key tracking the owner reads everything again at every heartbeat. */
        if (!remote_prove(remote, strtoull(tree->number, NULL, 10), !facts.has_tracking))
                return;
        uint64_t now_ms = remote->coord.answered_ms;
        remote->next_beat_ms = remote->beat_sent_ms + remote_beat_every_ms(remote);
        if (next_end_ms < remote->coord.session_ms && now_ms + next_end_ms < remote->next_beat_ms)
                remote->next_beat_ms = now_ms + next_end_ms + 1 + (uint64_t)random() % REAP_SPREAD_MS;
}

static bool is_refused(const struct tree_op *op)
{
        return op->command.status == -EACCES || op->command.status == -EPERM;
}

static void beat_failed(struct redis_tree *tree, const struct tree_op *op)
{
        /* Missing rights do not come back by themselves, and each refusal is an entry in the server's ACL log. */
        uint64_t pause_ms = is_refused(op) ? remote_beat_every_ms(&tree->remote) : AGAIN_MS;
        tree->remote.next_beat_ms = clock_boot_ms() + pause_ms;
        if (is_refused(op))
                rtree_refuse(tree, -EACCES, op->command.error.text);
}

static void note_broken(struct redis_tree *tree, struct span why)
{
        struct error text;
        (void)error_set(&text, 0, "no session can begin: %.*s", (int)why.size, why.data ? why.data : "");
        coord_note(&tree->remote.coord, text.text);
}

static void beat_answered(struct tree_op *op)
{
        struct redis_tree *tree = op->tree;
        const redisReply *reply = op->command.reply;
        tree->remote.beat = NULL;
        if (tree->remote.opening && !is_refused(op)) {
                remote_tell_opened(&tree->remote);
                if (tree->remote.is_closing) { /* the owner closed the tree in a callback */
                        rtree_op_free(op);
                        return;
                }
        }
        if (op->command.status) {
                beat_failed(tree, op);
        } else {
                enum reply_verdict verdict = rtree_reply_read(tree, reply);
                uint64_t number = 0, next_end_ms = UINT64_MAX;
                if (verdict == REPLY_OK && rtree_reply_number(reply, 2, &number) && number) {
                        tree->remote.refusal.text[0] = 0;
                        tree->remote.has_session = true;
                        (void)snprintf(tree->number, sizeof(tree->number), "%" PRIu64, number);
                        (void)rtree_reply_number(reply, 3, &next_end_ms);
                        prove(tree, next_end_ms);
                } else if (verdict == REPLY_EXPIRED) {
                        rtree_expire(tree, "the server says so");
                } else {
                        if (verdict == REPLY_BROKEN)
                                note_broken(tree, rtree_reply_span(reply, 2));
                        tree->remote.next_beat_ms = clock_boot_ms() + remote_beat_every_ms(&tree->remote);
                }
        }
        remote_wake_at(&tree->remote, tree->remote.next_beat_ms);
        rtree_op_free(op);
}

void *rtree_beat(struct remote *remote)
{
        struct redis_tree *tree = (struct redis_tree *)remote;
        bool is_new = !tree->number[0];
        struct tree_op *op = rtree_op_new(tree, is_new ? TREE_BEGIN : TREE_RENEW, beat_answered);
        if (is_new)
                remote_make_nonce(tree->nonce);
        else
                rtree_op_text(op, tree->number);
        rtree_op_text(op, tree->nonce);
        rtree_op_number(op, remote->coord.session_ms);
        rtree_op_send(op, remote->coord.session_ms);
        return op;
}

uint64_t rtree_session_tick(struct redis_tree *tree, uint64_t now_ms)
{
        if (tree->remote.coord.is_visitor || !tree->redis)
                return UINT64_MAX;
        if (remote_is_over(&tree->remote, now_ms))
                rtree_expire(tree, "no answer for a session's time");
        return remote_beat_tick(&tree->remote, now_ms);
}
