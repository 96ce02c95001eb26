#include "host/generation.h"

#include <assert.h>

/* After the grace for its tasks, a generation's processes get this much longer to be gone. */
#define REAP_MS 1000
/* More crashes than one for so many tasks done are the version's fault. */
#define DONE_PER_CRASH 10

static void act(struct lineage_actions *actions, enum lineage_action_kind kind, struct generation *g)
{
        assert(actions->count < LINEAGE_ACTIONS_MAX);
        actions->list[actions->count++] = (struct lineage_action){ .kind = kind, .generation = g };
}

static void tell(
        struct lineage_actions *actions, struct generation *g, enum lineage_news news, const struct generation *other)
{
        act(actions, LINEAGE_TELL, g);
        actions->list[actions->count - 1].news = news;
        actions->list[actions->count - 1].other = other;
}

static void enter(struct generation *g, enum generation_state state, uint64_t now_ms)
{
        g->state = state;
        g->since_ms = now_ms;
}

static void add(struct lineage *l, struct generation *g)
{
        g->number = ++l->numbers;
        g->older = l->newest;
        l->newest = g;
}

static void forget(struct lineage *l, struct generation *g, struct lineage_actions *actions)
{
        struct generation **at = &l->newest;
        while (*at && *at != g)
                at = &(*at)->older;
        assert(*at);
        *at = g->older;
        if (l->fallback == g)
                l->fallback = NULL;
        act(actions, LINEAGE_FORGET, g);
}

static bool is_live(const struct generation *g)
{
        return g->state != GENERATION_WAITING && g->state != GENERATION_RESTING;
}

static bool is_on_probation(const struct generation *g)
{
        return g->state == GENERATION_CURRENT && g->watched_until_ms;
}

static struct generation *find_waiting(const struct lineage *l)
{
        struct generation *g = l->newest;
        while (g && g->state != GENERATION_WAITING)
                g = g->older;
        return g;
}

/* --- from one to the next --- */

static void drain(struct generation *g, uint64_t now_ms, struct lineage_actions *actions)
{
        enter(g, GENERATION_DRAINING, now_ms);
        g->watched_until_ms = 0;
        act(actions, LINEAGE_RETREAT, g);
}

static void kill_now(struct generation *g, uint64_t now_ms, struct lineage_actions *actions)
{
        enter(g, GENERATION_ENDING, now_ms);
        act(actions, LINEAGE_KILL, g);
}

/* Nobody needs to come back to the one before. */
static void drop_fallback(struct lineage *l, struct lineage_actions *actions)
{
        struct generation *g = l->fallback;
        l->fallback = NULL;
        if (g && g->state == GENERATION_RESTING)
                forget(l, g, actions);
}

/* The current one has proved itself, or nobody looks. */
static void trust(struct lineage *l, struct lineage_actions *actions)
{
        l->current->watched_until_ms = 0;
        drop_fallback(l, actions);
}

static void promote(struct lineage *l, uint64_t now_ms, struct lineage_actions *actions)
{
        struct generation *g = l->candidate;
        struct generation *old = l->current;
        l->candidate = NULL;
        l->current = g;
        if (old && !old->watched_until_ms) {
                drop_fallback(l, actions);
                l->fallback = old;
        }
        if (old)
                drain(old, now_ms, actions);
        enter(g, GENERATION_CURRENT, now_ms);
        act(actions, LINEAGE_SERVE, g);
        tell(actions, g, NEWS_PROMOTED, old);
        if (l->fallback && l->policy.probation_ms)
                g->watched_until_ms = now_ms + l->policy.probation_ms;
        else
                trust(l, actions);
}

static void roll_back(struct lineage *l, uint64_t now_ms, struct lineage_actions *actions)
{
        struct generation *bad = l->current;
        struct generation *good = l->fallback;
        l->has_bad = true;
        l->bad = bad->id;
        l->fallback = NULL;
        l->current = good;
        drain(bad, now_ms, actions);
        enter(good, GENERATION_CURRENT, now_ms);
        act(actions, LINEAGE_SERVE, good);
        tell(actions, bad, NEWS_ROLLED_BACK, good);
}

/* The one that waits gets its turn, if there is one. */
static void try_next(struct lineage *l, uint64_t now_ms, struct lineage_actions *actions)
{
        struct generation *g = find_waiting(l);
        uint32_t live = 0;
        for (const struct generation *i = l->newest; i; i = i->older)
                live += is_live(i);
        if (!g || l->candidate || live >= l->policy.live_max)
                return;
        if (l->current && generation_is_same(&g->id, &l->current->id)) {
                /* Changed and changed back, while another was tried. */
                tell(actions, g, NEWS_SUPERSEDED, l->current);
                forget(l, g, actions);
                return;
        }
        l->candidate = g;
        enter(g, GENERATION_CANDIDATE, now_ms);
        act(actions, LINEAGE_START, g);
}

/* --- events --- */

static void on_proposed(struct lineage *l, struct generation *g, uint64_t now_ms, struct lineage_actions *actions)
{
        struct generation *waiting = find_waiting(l);
        add(l, g);
        enter(g, GENERATION_WAITING, now_ms);
        if (waiting) {
                tell(actions, waiting, NEWS_SUPERSEDED, g);
                forget(l, waiting, actions);
        }
}

static void on_ready(struct lineage *l, struct generation *g, uint64_t now_ms, struct lineage_actions *actions)
{
        if (g->state == GENERATION_CANDIDATE && ++g->runners_ready >= g->runners_wanted)
                promote(l, now_ms, actions);
}

/* More crashes than a few unlucky tasks explain; or nothing but failures. */
static bool is_hopeless(const struct lineage_policy *p, const struct generation *g)
{
        if (p->crashes_max && g->crashed >= p->crashes_max && g->crashed > g->done / DONE_PER_CRASH)
                return true;
        return p->failures_max && g->failed >= p->failures_max && !g->done;
}

static void on_failed(
        struct lineage *l, struct generation *g, bool is_stuck, uint64_t now_ms, struct lineage_actions *actions)
{
        if (g->state == GENERATION_CANDIDATE) {
                l->candidate = NULL;
                tell(actions, g, NEWS_REFUSED, l->current);
                kill_now(g, now_ms, actions);
        } else if (is_on_probation(g)) {
                g->crashed++;
                if (is_stuck || is_hopeless(&l->policy, g))
                        roll_back(l, now_ms, actions);
        }
}

static void on_ended(
        struct lineage *l, const struct lineage_event *event, uint64_t now_ms, struct lineage_actions *actions)
{
        struct generation *g = event->generation;
        if (!is_on_probation(g))
                return;
        g->done += event->outcome == OUTCOME_DONE;
        g->unavailable += event->outcome == OUTCOME_UNAVAILABLE;
        g->rejected += event->outcome == OUTCOME_REJECT;
        g->crashed += event->outcome == OUTCOME_CRASHED || event->outcome == OUTCOME_TIMED_OUT;
        g->failed += event->outcome == OUTCOME_REJECT || event->outcome == OUTCOME_RETRY ||
                     event->outcome == OUTCOME_CRASHED || event->outcome == OUTCOME_TIMED_OUT;
        if (is_hopeless(&l->policy, g)) {
                roll_back(l, now_ms, actions);
        } else if (l->policy.probation_tasks && g->done >= l->policy.probation_tasks) {
                tell(actions, g, NEWS_GOOD, NULL);
                trust(l, actions);
        }
}

static void on_empty(struct lineage *l, struct generation *g, uint64_t now_ms, struct lineage_actions *actions)
{
        if (g->state == GENERATION_CURRENT)
                return; /* called back in the meantime */
        if (g == l->fallback)
                enter(g, GENERATION_RESTING, now_ms);
        else
                forget(l, g, actions);
}

static void on_withdrawn(struct lineage *l, bool is_urgent, uint64_t now_ms, struct lineage_actions *actions)
{
        if (l->current)
                tell(actions, l->current, NEWS_WITHDRAWN, NULL);
        l->current = l->candidate = NULL;
        drop_fallback(l, actions);
        for (struct generation *g = l->newest, *older; g; g = older) {
                older = g->older;
                if (g->state == GENERATION_WAITING)
                        forget(l, g, actions);
                else if (g->state == GENERATION_CANDIDATE || is_urgent)
                        kill_now(g, now_ms, actions);
                else if (g->state == GENERATION_CURRENT)
                        drain(g, now_ms, actions);
        }
}

static void on_tick(struct lineage *l, uint64_t now_ms, struct lineage_actions *actions)
{
        for (struct generation *g = l->newest; g; g = g->older) {
                if (g->state == GENERATION_DRAINING && now_ms >= g->since_ms + l->policy.drain_ms) {
                        enter(g, GENERATION_STOPPING, now_ms);
                        act(actions, LINEAGE_INTERRUPT, g);
                } else if (g->state == GENERATION_STOPPING && now_ms >= g->since_ms + l->policy.grace_ms + REAP_MS) {
                        kill_now(g, now_ms, actions);
                }
        }
        struct generation *current = l->current;
        if (!current || !is_on_probation(current) || now_ms < current->watched_until_ms)
                return;
        /* What it rejected it may have rejected rightly. */
        bool only_failed = !current->done && (current->failed > current->rejected || current->unavailable);
        if (only_failed) {
                roll_back(l, now_ms, actions);
                return;
        }
        tell(actions, current, NEWS_GOOD, NULL);
        trust(l, actions);
}

void lineage_step(
        struct lineage *l, const struct lineage_event *event, uint64_t now_ms, struct lineage_actions *actions)
{
        actions->count = 0;
        switch (event->kind) {
        case LINEAGE_PROPOSED:
                on_proposed(l, event->generation, now_ms, actions);
                break;
        case LINEAGE_READY:
                on_ready(l, event->generation, now_ms, actions);
                break;
        case LINEAGE_FAILED:
        case LINEAGE_STUCK:
                on_failed(l, event->generation, event->kind == LINEAGE_STUCK, now_ms, actions);
                break;
        case LINEAGE_ENDED:
                on_ended(l, event, now_ms, actions);
                break;
        case LINEAGE_EMPTY:
                on_empty(l, event->generation, now_ms, actions);
                break;
        case LINEAGE_WITHDRAWN:
        case LINEAGE_CUT:
                on_withdrawn(l, event->kind == LINEAGE_CUT, now_ms, actions);
                break;
        case LINEAGE_TICK:
                on_tick(l, now_ms, actions);
                break;
        }
        try_next(l, now_ms, actions);
}

void lineage_found(struct lineage *l, struct generation *generation, uint64_t now_ms)
{
        add(l, generation);
        l->current = generation;
        enter(generation, GENERATION_CURRENT, now_ms);
}

/* --- questions --- */

uint64_t lineage_due_ms(const struct lineage *l)
{
        uint64_t due_ms = UINT64_MAX;
        for (const struct generation *g = l->newest; g; g = g->older) {
                uint64_t at_ms = UINT64_MAX;
                if (g->state == GENERATION_DRAINING)
                        at_ms = g->since_ms + l->policy.drain_ms;
                else if (g->state == GENERATION_STOPPING)
                        at_ms = g->since_ms + l->policy.grace_ms + REAP_MS;
                else if (is_on_probation(g))
                        at_ms = g->watched_until_ms;
                due_ms = at_ms < due_ms ? at_ms : due_ms;
        }
        return due_ms;
}

const struct generation *lineage_target(const struct lineage *l)
{
        const struct generation *waiting = find_waiting(l);
        return waiting ? waiting : l->candidate ? l->candidate : l->current;
}

bool lineage_is_bad(const struct lineage *l, const struct generation_id *id)
{
        return l->has_bad && generation_is_same(&l->bad, id);
}

bool lineage_is_settled(const struct lineage *l)
{
        return !l->candidate && !find_waiting(l) && !(l->current && is_on_probation(l->current));
}

bool lineage_excuses(const struct lineage *l, const struct generation *generation, enum outcome outcome)
{
        bool is_failure = outcome == OUTCOME_RETRY || outcome == OUTCOME_CRASHED || outcome == OUTCOME_TIMED_OUT;
        if (generation != l->current)
                return is_failure && lineage_is_bad(l, &generation->id);
        return is_failure && is_on_probation(generation) && !generation->done;
}

bool generation_is_same(const struct generation_id *a, const struct generation_id *b)
{
        return a->file_hash == b->file_hash && a->settings_hash == b->settings_hash;
}

const char *generation_state_name(enum generation_state state)
{
        static const char *const names[] = { "waiting", "candidate", "current", "draining", "stopping", "ending",
                "resting" };
        return names[state];
}
