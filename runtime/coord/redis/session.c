/* The session: a lease in the server's time.
 *
 * It is renewed every third of its time, and an answered renewal proves that it is alive as of its sending.  Without
 * proof for its whole time it is over for us, and, by the server's own clock, there soon after: then or when somebody
 * comes by its nodes go. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "coord/redis/redis_tree.h"

#define BEATS_PER_SESSION 3
/* After a renewal that failed at once. */
#define AGAIN_MS 100u
/* Whoever is first past a session's end clears it away; the others come later and find nothing to do. */
#define REAP_SPREAD_MS 50u

static uint64_t beat_every_ms(const struct redis_tree *tree)
{
        uint64_t every_ms = tree->coord.session_ms / BEATS_PER_SESSION;
        return every_ms ? every_ms : 1;
}

void rtree_suspend(struct redis_tree *tree)
{
        if (tree->coord.state == COORD_ALIVE)
                coord_tell(&tree->coord, COORD_SUSPENDED, tree->coord.session);
}

void rtree_beat_soon(struct redis_tree *tree)
{
        tree->next_beat_ms = clock_boot_ms();
        rtree_wake_at(tree, tree->next_beat_ms);
}

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

/* Its nodes need not wait for its time to run out, if the server hears of it. */
static void finish_old(struct redis_tree *tree)
{
        if (tree->redis && !tree->is_closing)
                rtree_op_send(rtree_finish_op(tree, tree->number, tree->nonce, forgotten), tree->coord.session_ms);
}

void rtree_expire(struct redis_tree *tree, const char *why)
{
        bool was_told = tree->coord.state == COORD_ALIVE || tree->coord.state == COORD_SUSPENDED;
        uint64_t session = tree->coord.session;
        size_t count = 0;
        finish_old(tree);
        if (tree->beat)
                rtree_op_forget(tree->beat);
        tree->beat = NULL;
        tree->number[0] = 0;
        rtree_beat_soon(tree);
        if (!was_told)
                return;
        for (const struct coord_request *request = tree->coord.requests; request; request = request->next)
                count++;
        log_event(LEVEL_INFO, "session_expired", "session=%" PRIu64 " why=%s", session, LOG_QUOTE(why));
        coord_tell(&tree->coord, COORD_EXPIRED, session);
        /* What was asked of it ends with it; what those who were just told have asked for is for the next one. */
        for (struct coord_request *request; count && (request = tree->coord.requests); count--) {
                rtree_request_forget(request);
                coord_finish_error(request, -EOWNERDEAD, "the session has expired");
        }
}

/* --- heartbeat --------------------------------------------------------------------------------------------------- */

static void note_server(struct redis_tree *tree)
{
        struct redis_facts facts;
        redis_facts(tree->redis, &facts);
        if (tree->coord.server && !strcmp(tree->coord.server, facts.server))
                return;
        free(tree->coord.server);
        tree->coord.server = strdup(facts.server);
}

static bool has_bell(const struct redis_tree *tree)
{
        struct redis_facts facts;
        redis_facts(tree->redis, &facts);
        return facts.has_tracking;
}

/* `next_end_ms`: when somebody's session ends; UINT64_MAX: nobody knows. */
static void prove(struct redis_tree *tree, uint64_t next_end_ms)
{
        uint64_t now_ms = clock_boot_ms();
        bool is_new = tree->coord.state != COORD_ALIVE && tree->coord.state != COORD_SUSPENDED;
        tree->proof_ms = tree->beat_sent_ms;
        tree->coord.answered_ms = now_ms;
        /* The answer may have lain here while the loop was busy: then it proves nothing any more. */
        if (now_ms - tree->proof_ms > tree->coord.session_ms)
                return;
        tree->next_beat_ms = tree->beat_sent_ms + beat_every_ms(tree);
        if (next_end_ms < tree->coord.session_ms && now_ms + next_end_ms < tree->next_beat_ms)
                tree->next_beat_ms = now_ms + next_end_ms + 1 + (uint64_t)random() % REAP_SPREAD_MS;
        note_server(tree);
        if (tree->coord.state != COORD_ALIVE)
                coord_tell(&tree->coord, COORD_ALIVE, strtoull(tree->number, NULL, 10));
        /* Without a bell everybody looks at every beat. */
        if ((is_new || !has_bell(tree)) && tree->coord.events.look && !tree->is_closing)
                tree->coord.events.look(tree->coord.events.self);
        rtree_request_flush(tree);
}

static void begin_failed(struct redis_tree *tree, const struct tree_op *op)
{
        if (op->command.status == -EACCES) {
                (void)error_set(&tree->refusal, 0, "%s", op->command.error.text);
                log_event(LEVEL_ERROR, "coordination_refused", "error=%s", LOG_QUOTE(op->command.error.text));
                rtree_request_refuse_all(tree, -EACCES, tree->refusal.text);
        }
        tree->next_beat_ms = clock_boot_ms() + AGAIN_MS;
}

static void note_broken(struct redis_tree *tree, struct span why)
{
        struct error text;
        (void)error_set(&text, 0, "no session can begin: %.*s", (int)why.size, why.data ? why.data : "");
        coord_note(&tree->coord, text.text);
}

static void beat_answered(struct tree_op *op)
{
        struct redis_tree *tree = op->tree;
        const redisReply *reply = op->command.reply;
        tree->beat = NULL;
        if (op->command.status) {
                begin_failed(tree, op);
        } else {
                enum reply_verdict verdict = rtree_reply_read(tree, reply);
                uint64_t number = 0, next_end_ms = UINT64_MAX;
                if (verdict == REPLY_OK && rtree_reply_number(reply, 2, &number) && number) {
                        tree->refusal.text[0] = 0;
                        (void)snprintf(tree->number, sizeof(tree->number), "%" PRIu64, number);
                        (void)rtree_reply_number(reply, 3, &next_end_ms);
                        prove(tree, next_end_ms);
                } else if (verdict == REPLY_EXPIRED) {
                        rtree_expire(tree, "the server says so");
                } else {
                        if (verdict == REPLY_BROKEN)
                                note_broken(tree, rtree_reply_span(reply, 2));
                        tree->next_beat_ms = clock_boot_ms() + beat_every_ms(tree);
                }
        }
        rtree_wake_at(tree, tree->next_beat_ms);
        rtree_op_free(op);
}

static void make_nonce(char ret_nonce[TREE_NONCE_DIGITS + 1])
{
        uint8_t bytes[TREE_NONCE_DIGITS / 2];
        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
                abort();
        (void)units_hex(ret_nonce, bytes, sizeof(bytes));
}

static void send_beat(struct redis_tree *tree, uint64_t now_ms)
{
        bool is_new = !tree->number[0];
        struct tree_op *op = rtree_op_new(tree, is_new ? TREE_BEGIN : TREE_RENEW, beat_answered);
        if (is_new)
                make_nonce(tree->nonce);
        else
                rtree_op_text(op, tree->number);
        rtree_op_text(op, tree->nonce);
        rtree_op_number(op, tree->coord.session_ms);
        tree->beat = op;
        tree->beat_sent_ms = now_ms;
        tree->next_beat_ms = now_ms + beat_every_ms(tree);
        rtree_op_send(op, tree->coord.session_ms);
}

uint64_t rtree_session_tick(struct redis_tree *tree, uint64_t now_ms)
{
        if (tree->coord.is_visitor || !tree->redis)
                return UINT64_MAX;
        if (tree->number[0] && now_ms - tree->proof_ms > tree->coord.session_ms)
                rtree_expire(tree, "no answer for a session's time");
        if (now_ms >= tree->next_beat_ms) {
                tree->next_beat_ms = now_ms + beat_every_ms(tree);
                if (tree->beat)
                        rtree_suspend(tree);
                else
                        send_beat(tree, now_ms);
        }
        uint64_t over_ms = tree->proof_ms + tree->coord.session_ms + 1;
        return tree->number[0] && over_ms < tree->next_beat_ms ? over_ms : tree->next_beat_ms;
}
