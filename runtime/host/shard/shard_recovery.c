/* shard_recovery.c: what the shard's last owner had in flight, and what of it may have been running. */
#include <stdlib.h>

#include "host/shard/shard_private.h"

/* Delay of a task after the second host has died with it; each further death makes it four times as long. */
#define DIED_AGAIN_MS UINT64_C(250)

/* A key's tasks start in order, but while one runs others of a higher lane may be claimed. */
static bool is_first_of_lane(const struct claimed *c)
{
        return !c->prev || STORE_SEQ_LANE(c->prev->seq) != STORE_SEQ_LANE(c->seq);
}

/* The previous owner may have started it; with ordered batches, several of a key at once. */
static bool may_have_started(const struct shard *s, const struct claimed *c)
{
        return is_first_of_lane(c) || (c->pool < s->routes->pools && s->routes->per_key[c->pool]);
}

/* The previous owner died, and some of its tasks may have been running.  Hosts run no plugin code, so a task is hardly
 * ever the cause, and most of an in-flight table had not even started; running all of it one by one in fresh processes
 * would turn each death into minutes of standstill.  So the tasks run as usual and only note an interruption, at no
 * cost.
 *
 * At the first death that applies to the tasks that may have been running: the first of their keys in each lane, in
 * order, as many as a host has seats.  From then on their starts are recorded, so that at the next death it is known
 * which of them were about to run.  Those come back after a delay that grows each time, so that neither a killer nor
 * the innocent in a series of kills (a bad deploy, say) meet the next host at once.
 *
 * A task that was there at HOST_DEATHS_MAX deaths in a row is a suspect: it runs alone, so that the next death involves
 * no other task, and after that its delay keeps growing (retry.c).  No crash is charged: nobody saw why the host
 * died. */
static struct pending_outcome *host_died(const struct claimed *c)
{
        bool is_first = c->hosts_died == 1;
        struct pending_outcome *pending =
                pending_outcome_new(is_first ? STORE_INTERRUPTED : STORE_RETRY, COST_INTERRUPTION, HOST_DIED);
        pending->outcome.delay_ms = is_first ? 0 : DIED_AGAIN_MS << 2 * (c->hosts_died - 2);
        return pending;
}

static void note_recovered(struct shard *s, struct claimed **added, uint32_t count, uint64_t now_ms)
{
        for (uint32_t i = 0; i < count; i++) {
                struct claimed *c = added[i];
                if (!c || c->state != CLAIMED_WAITING || !is_first_of_lane(c) || c->trust >= TRUST_SUSPECT)
                        continue;
                bool may_have_run = s->recovered && !c->hosts_died;
                if (c->trust != TRUST_WAS_RUNNING && !may_have_run)
                        continue;
                if (may_have_run)
                        s->recovered--;
                c->hosts_died++;
                shard_end_task(s, c, host_died(c), now_ms);
                if (c->hosts_died > 1)
                        shard_divert_rest(s, c->of, now_ms);
        }
}

/* A task that may have started must not be merged, by us or by a later owner.  So the store records an interruption of
 * each task that could be merged and may have started, also beyond `recovered` (the previous owner may have had more
 * seats) and of those that are diverted. */
static void forbid_merging(struct shard *s, struct claimed **added, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                struct claimed *c = added[i];
                if (!c || !c->may_merge || !may_have_started(s, c))
                        continue;
                c->may_merge = false;
                c->is_unrecorded = true;
        }
}

static void record_start(struct shard *s, struct claimed **added, uint32_t count, uint64_t now_ms)
{
        for (uint32_t i = 0; i < count; i++) {
                struct claimed *c = added[i];
                if (c && c->is_unrecorded && c->state == CLAIMED_WAITING)
                        shard_end_task(s, c,
                                pending_outcome_new(STORE_INTERRUPTED, COST_INTERRUPTION, SHARD_MAY_HAVE_RUN), now_ms);
        }
}

void shard_add_page(struct shard *s, const struct store_page *page, uint64_t now_ms)
{
        struct claimed **added = shard_add_tasks(s, page->tasks, page->tasks_count, now_ms);
        if (s->is_recovery || s->has_lost)
                forbid_merging(s, added, page->tasks_count);
        shard_trim_tasks(s, added, page->tasks, page->tasks_count, now_ms);
        note_recovered(s, added, page->tasks_count, now_ms);
        record_start(s, added, page->tasks_count, now_ms);
        free(added);
        if (page->tasks_count)
                s->after_seq = page->tasks[page->tasks_count - 1].seq;
}
