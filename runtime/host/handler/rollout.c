#include "host/handler/rollout.h"

#include <assert.h>

#include "base/numbers.h"

/* A generation's processes get this much time to end after `grace`. */
#define REAP_MS 1000
/* More than one crash per this many done tasks is blamed on the version. */
#define DONE_PER_CRASH 10

static void act(struct rollout_actions *actions, enum rollout_action_kind kind, struct rollout_version *g)
{
        assert(actions->count < ROLLOUT_ACTIONS_MAX);
        actions->list[actions->count++] = (struct rollout_action){ .kind = kind, .version = g };
}

static void tell(struct rollout_actions *actions, struct rollout_version *g, enum rollout_news news,
        const struct rollout_version *other)
{
        act(actions, ROLLOUT_TELL, g);
        actions->list[actions->count - 1].news = news;
        actions->list[actions->count - 1].other = other;
}

static void enter(struct rollout_version *g, enum generation_state state, uint64_t now_ms)
{
        g->state = state;
        g->since_ms = now_ms;
}

static void add(struct rollout *r, struct rollout_version *g)
{
        g->number = ++r->numbers;
        g->older = r->newest;
        r->newest = g;
}

static void forget(struct rollout *r, struct rollout_version *g, struct rollout_actions *actions)
{
        struct rollout_version **at = &r->newest;
        while (*at && *at != g)
                at = &(*at)->older;
        assert(*at);
        *at = g->older;
        if (r->fallback == g)
                r->fallback = NULL;
        act(actions, ROLLOUT_FORGET, g);
}

static bool is_live(const struct rollout_version *g)
{
        return g->state != GENERATION_WAITING && g->state != GENERATION_RESTING;
}

bool rollout_is_on_probation(const struct rollout_version *g)
{
        return g->state == GENERATION_CURRENT && g->watched_until_ms;
}

static struct rollout_version *find_waiting(const struct rollout *r)
{
        struct rollout_version *g = r->newest;
        while (g && g->state != GENERATION_WAITING)
                g = g->older;
        return g;
}

/* --- from one version to the next --- */

static void drain(struct rollout_version *g, uint64_t now_ms, struct rollout_actions *actions)
{
        enter(g, GENERATION_DRAINING, now_ms);
        g->watched_until_ms = 0;
        act(actions, ROLLOUT_RETREAT, g);
}

static void kill_now(struct rollout_version *g, uint64_t now_ms, struct rollout_actions *actions)
{
        enter(g, GENERATION_ENDING, now_ms);
        act(actions, ROLLOUT_KILL, g);
}

/* The version before is no longer needed for a rollback. */
static void drop_fallback(struct rollout *r, struct rollout_actions *actions)
{
        struct rollout_version *g = r->fallback;
        r->fallback = NULL;
        if (g && g->state == GENERATION_RESTING)
                forget(r, g, actions);
}

/* The current version has proved itself, or has no probation. */
static void trust(struct rollout *r, struct rollout_actions *actions)
{
        r->current->watched_until_ms = 0;
        drop_fallback(r, actions);
}

static void promote(struct rollout *r, uint64_t now_ms, struct rollout_actions *actions)
{
        struct rollout_version *g = r->candidate;
        struct rollout_version *old = r->current;
        r->candidate = NULL;
        r->current = g;
        if (old && !old->watched_until_ms) {
                drop_fallback(r, actions);
                r->fallback = old;
        }
        if (old)
                drain(old, now_ms, actions);
        enter(g, GENERATION_CURRENT, now_ms);
        act(actions, ROLLOUT_SERVE, g);
        tell(actions, g, NEWS_PROMOTED, old);
        if (r->fallback && r->policy.probation_ms)
                g->watched_until_ms = now_ms + r->policy.probation_ms;
        else
                trust(r, actions);
}

static void roll_back(struct rollout *r, uint64_t now_ms, struct rollout_actions *actions)
{
        struct rollout_version *bad = r->current;
        struct rollout_version *good = r->fallback;
        r->has_bad = true;
        r->bad = bad->id;
        r->fallback = NULL;
        r->current = good;
        drain(bad, now_ms, actions);
        enter(good, GENERATION_CURRENT, now_ms);
        act(actions, ROLLOUT_SERVE, good);
        tell(actions, bad, NEWS_ROLLED_BACK, good);
}

/* Starts the waiting version, if there is one and the limit of live generations allows it. */
static void try_next(struct rollout *r, uint64_t now_ms, struct rollout_actions *actions)
{
        struct rollout_version *g = find_waiting(r);
        uint32_t live = 0;
        for (const struct rollout_version *i = r->newest; i; i = i->older)
                live += is_live(i);
        if (!g || r->candidate || live >= r->policy.live_max)
                return;
        if (r->current && generation_is_same(&g->id, &r->current->id)) {
                /* The change was undone while another version was tried. */
                tell(actions, g, NEWS_SUPERSEDED, r->current);
                forget(r, g, actions);
                return;
        }
        r->candidate = g;
        enter(g, GENERATION_CANDIDATE, now_ms);
        act(actions, ROLLOUT_START, g);
}

/* --- events --- */

static void on_proposed(struct rollout *r, struct rollout_version *g, uint64_t now_ms, struct rollout_actions *actions)
{
        struct rollout_version *waiting = find_waiting(r);
        add(r, g);
        enter(g, GENERATION_WAITING, now_ms);
        if (waiting) {
                tell(actions, waiting, NEWS_SUPERSEDED, g);
                forget(r, waiting, actions);
        }
}

static void on_ready(struct rollout *r, struct rollout_version *g, uint64_t now_ms, struct rollout_actions *actions)
{
        if (g->state == GENERATION_CANDIDATE && ++g->runners_ready >= g->runners_wanted)
                promote(r, now_ms, actions);
}

/* More crashes than a few bad tasks explain, or failures only. */
static bool is_hopeless(const struct rollout_policy *p, const struct rollout_version *g)
{
        if (p->crashes_max && g->crashed >= p->crashes_max && g->crashed > g->done / DONE_PER_CRASH)
                return true;
        return p->failures_max && g->failed >= p->failures_max && !g->done;
}

static void on_failed(
        struct rollout *r, struct rollout_version *g, bool is_stuck, uint64_t now_ms, struct rollout_actions *actions)
{
        if (g->state == GENERATION_CANDIDATE) {
                r->candidate = NULL;
                tell(actions, g, NEWS_REFUSED, r->current);
                kill_now(g, now_ms, actions);
        } else if (rollout_is_on_probation(g)) {
                g->crashed++;
                if (is_stuck || is_hopeless(&r->policy, g))
                        roll_back(r, now_ms, actions);
        }
}

static void on_ended(
        struct rollout *r, const struct rollout_event *event, uint64_t now_ms, struct rollout_actions *actions)
{
        struct rollout_version *g = event->version;
        if (!rollout_is_on_probation(g))
                return;
        g->done += event->outcome == OUTCOME_DONE;
        g->unavailable += event->outcome == OUTCOME_UNAVAILABLE;
        g->rejected += event->outcome == OUTCOME_REJECT;
        g->crashed += event->outcome == OUTCOME_CRASHED || event->outcome == OUTCOME_TIMED_OUT;
        g->failed += event->outcome == OUTCOME_REJECT || event->outcome == OUTCOME_RETRY ||
                     event->outcome == OUTCOME_CRASHED || event->outcome == OUTCOME_TIMED_OUT;
        if (is_hopeless(&r->policy, g)) {
                roll_back(r, now_ms, actions);
        } else if (r->policy.probation_tasks && g->done >= r->policy.probation_tasks) {
                tell(actions, g, NEWS_GOOD, NULL);
                trust(r, actions);
        }
}

static void on_empty(struct rollout *r, struct rollout_version *g, uint64_t now_ms, struct rollout_actions *actions)
{
        if (g->state == GENERATION_CURRENT)
                return; /* the generation was put back by a rollback meanwhile */
        if (g == r->fallback)
                enter(g, GENERATION_RESTING, now_ms);
        else
                forget(r, g, actions);
}

static void on_withdrawn(struct rollout *r, bool is_urgent, uint64_t now_ms, struct rollout_actions *actions)
{
        if (r->current)
                tell(actions, r->current, NEWS_WITHDRAWN, NULL);
        r->current = r->candidate = NULL;
        drop_fallback(r, actions);
        for (struct rollout_version *g = r->newest, *older; g; g = older) {
                older = g->older;
                if (g->state == GENERATION_WAITING)
                        forget(r, g, actions);
                else if (g->state == GENERATION_CANDIDATE || is_urgent)
                        kill_now(g, now_ms, actions);
                else if (g->state == GENERATION_CURRENT)
                        drain(g, now_ms, actions);
        }
}

static void on_tick(struct rollout *r, uint64_t now_ms, struct rollout_actions *actions)
{
        for (struct rollout_version *g = r->newest; g; g = g->older) {
                if (g->state == GENERATION_DRAINING && now_ms >= g->since_ms + r->policy.drain_ms) {
                        enter(g, GENERATION_STOPPING, now_ms);
                        act(actions, ROLLOUT_INTERRUPT, g);
                } else if (g->state == GENERATION_STOPPING && now_ms >= g->since_ms + r->policy.grace_ms + REAP_MS) {
                        kill_now(g, now_ms, actions);
                }
        }
        struct rollout_version *current = r->current;
        if (!current || !rollout_is_on_probation(current) || now_ms < current->watched_until_ms)
                return;
        /* Rejections alone do not count against a version: the tasks may be bad. */
        bool only_failed = !current->done && (current->failed > current->rejected || current->unavailable);
        if (only_failed) {
                roll_back(r, now_ms, actions);
                return;
        }
        bool has_served = current->done || current->failed || current->unavailable;
        tell(actions, current, has_served ? NEWS_GOOD : NEWS_UNPROVEN, NULL);
        trust(r, actions);
}

void rollout_step(
        struct rollout *r, const struct rollout_event *event, uint64_t now_ms, struct rollout_actions *actions)
{
        actions->count = 0;
        switch (event->kind) {
        case ROLLOUT_PROPOSED:
                on_proposed(r, event->version, now_ms, actions);
                break;
        case ROLLOUT_READY:
                on_ready(r, event->version, now_ms, actions);
                break;
        case ROLLOUT_FAILED:
        case ROLLOUT_STUCK:
                on_failed(r, event->version, event->kind == ROLLOUT_STUCK, now_ms, actions);
                break;
        case ROLLOUT_ENDED:
                on_ended(r, event, now_ms, actions);
                break;
        case ROLLOUT_EMPTY:
                on_empty(r, event->version, now_ms, actions);
                break;
        case ROLLOUT_WITHDRAWN:
        case ROLLOUT_CUT:
                on_withdrawn(r, event->kind == ROLLOUT_CUT, now_ms, actions);
                break;
        case ROLLOUT_TICK:
                on_tick(r, now_ms, actions);
                break;
        }
        try_next(r, now_ms, actions);
}

void rollout_found(struct rollout *r, struct rollout_version *version, uint64_t now_ms)
{
        add(r, version);
        r->current = version;
        enter(version, GENERATION_CURRENT, now_ms);
}

/* --- questions --- */

uint64_t rollout_due_ms(const struct rollout *r)
{
        uint64_t due_ms = UINT64_MAX;
        for (const struct rollout_version *g = r->newest; g; g = g->older) {
                uint64_t at_ms = UINT64_MAX;
                if (g->state == GENERATION_DRAINING)
                        at_ms = g->since_ms + r->policy.drain_ms;
                else if (g->state == GENERATION_STOPPING)
                        at_ms = g->since_ms + r->policy.grace_ms + REAP_MS;
                else if (rollout_is_on_probation(g))
                        at_ms = g->watched_until_ms;
                due_ms = min_u64(at_ms, due_ms);
        }
        return due_ms;
}

const struct rollout_version *rollout_target(const struct rollout *r)
{
        const struct rollout_version *waiting = find_waiting(r);
        return waiting ? waiting : r->candidate ? r->candidate : r->current;
}

bool rollout_is_bad(const struct rollout *r, const struct generation_id *id)
{
        return r->has_bad && generation_is_same(&r->bad, id);
}

bool rollout_is_decided(const struct rollout *r, uint32_t number)
{
        for (const struct rollout_version *g = r->newest; g; g = g->older)
                if (g->number == number)
                        return g->state != GENERATION_WAITING && g->state != GENERATION_CANDIDATE &&
                               !rollout_is_on_probation(g);
        return true;
}

bool rollout_excuses(const struct rollout *r, const struct rollout_version *version, enum outcome outcome)
{
        bool is_failure = outcome == OUTCOME_RETRY || outcome == OUTCOME_CRASHED || outcome == OUTCOME_TIMED_OUT;
        if (version != r->current)
                return is_failure && rollout_is_bad(r, &version->id);
        return is_failure && rollout_is_on_probation(version) && !version->done;
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
