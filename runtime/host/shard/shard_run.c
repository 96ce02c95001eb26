/* shard_run.c: which tasks of a key run in one call (batch.same_key).
 *
 * A *run* is the first task of a key and some of those right behind it, handed to one call of handle_many() in order.
 * The key is busy until the outcomes of all of them are durable.  The first outcome that is not DONE ends the run: the
 * tasks behind it count as not started, whatever the runner answers for them.
 *
 * If the process dies during a run, it is not known which task did it, and all of them are suspects.  Then the first
 * one runs alone; if it is done, half of the others run, and so on: each death halves the number of suspects, and a
 * death with a single task is charged to it.  A new owner knows only which tasks are suspects, and begins again with
 * the first one alone. */
#include "host/shard/shard_private.h"

#include "base/numbers.h"

uint32_t shard_per_key(const struct shard *s, uint32_t pool)
{
        uint32_t more = pool < s->routes->pools ? s->routes->per_key[pool] : 0;
        return s->window.per_key ? (uint32_t)max_u64(s->window.per_key, more) : 0;
}

static uint32_t count_suspects(const struct claimed *head)
{
        uint32_t count = 1;
        for (const struct claimed *c = head->next; c && c->trust == TRUST_SUSPECT && c->state == CLAIMED_WAITING;
                c = c->next)
                count++;
        return count;
}

uint32_t shard_run_max(const struct claimed *head, uint32_t max)
{
        const struct window_key *key = head->of;
        /* Processes or hosts have died with this task alone: no other task shares its call. */
        if (head->crashes || head->hosts_died)
                return 1;
        if (head->trust == TRUST_FULL)
                return max;
        if (!key->is_halving)
                return 1;
        uint32_t suspected = key->suspected ? key->suspected : count_suspects(head);
        return (uint32_t)min_u64(max, max_u64(suspected / 2, 1));
}

/* Whether `c` may run in the same call right behind `before`. */
static bool may_follow(const struct shard *s, const struct claimed *before, const struct claimed *c, uint64_t now_ms)
{
        if (c->state != CLAIMED_WAITING || c->pool != before->pool ||
                STORE_SEQ_LANE(c->seq) != STORE_SEQ_LANE(before->seq) || c->of->is_barred || c->is_limited ||
                c->is_cancelled || !routes_serves(s->routes, c->pool, c->handler))
                return false;
        if (c->trust != before->trust || c->is_marked || c->crashes || c->hosts_died)
                return false;
        return !shard_is_to_debounce(s, c, now_ms);
}

struct claimed *shard_follow(struct shard *s, const struct claimed *before, uint64_t now_ms)
{
        struct claimed *c = before->next;
        /* Limits count starts, and a follower may not start after all, so tasks under a limit run one per call. */
        if (!c || !may_follow(s, before, c, now_ms) || limits_has(s->routes->limits, c->pool))
                return NULL;
        window_follow(c);
        s->running++;
        c->started_ms = now_ms;
        c->may_merge = false;
        return c;
}

bool shard_refuse_answer(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        bool is_early = c->prev && c->prev->state == CLAIMED_RUNNING;
        if (!c->pool_task.is_follower || (!is_early && !c->of->is_run_over))
                return false;
        /* A person cancelled it: it has not started, so it can end right away. */
        c->is_cancelled |= c->pool_task.why == BLAME_CANCEL;
        shard_again(s, c, now_ms);
        return true;
}

void shard_run_ended(struct claimed *c, const struct store_outcome *outcome)
{
        struct window_key *key = c->of;
        if (outcome->kind == STORE_DONE) {
                key->is_halving = c->trust == TRUST_SUSPECT;
                key->suspected -= key->suspected > 0;
                return;
        }
        if (outcome->kind == STORE_INTERRUPTED && outcome->is_suspect) {
                if (!key->is_run_over)
                        key->suspected = 0;
                key->suspected++;
                key->is_halving &= c->trust == TRUST_SUSPECT;
        } else if (!key->is_run_over) {
                key->suspected = 0;
                key->is_halving = false;
        }
        key->is_run_over = true;
}
