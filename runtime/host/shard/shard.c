#include "host/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "host/shard/shard_private.h"

/* A key whose tasks no handler here serves is looked at again after this long. */
#define UNSERVED_MS 5000
/* A task that two hosts have died with comes back after this long; four times as long for each one more. */
#define DIED_AGAIN_MS UINT64_C(250)

void shard_init(
        struct shard *s, uint32_t number, const struct shard_limits *limits, struct routes *routes, uint32_t per_key)
{
        *s = (struct shard){ .number = number, .limits = limits, .routes = routes, .due_ms = STORE_NEVER };
        window_init(&s->window, routes->pools, per_key);
}

void shard_free(struct shard *s)
{
        saves_drop(s);
        shard_drop_telling(s);
        shard_names_clear(&s->names);
        window_free(&s->window);
}

bool shard_is_quiet(const struct shard *s)
{
        return !s->running && !s->ended && !s->telling && !s->is_calling;
}

/* --- what to do next -------------------------------------------------------------------------------------------------
 */

/* Whether names are to be read, or keys to be woken; as many as there is room for. */
static enum shard_call names_call(const struct shard *s)
{
        if (s->names.must_read)
                return SHARD_CALL_NAMES;
        return shard_names_next(&s->names) != SHARD_NAME_NONE && shard_wake_max(s) ? SHARD_CALL_WAKE : SHARD_CALL_NONE;
}

enum shard_call shard_next_call(const struct shard *s, bool can_wait, uint64_t now_ms)
{
        if (s->is_calling || now_ms < s->not_before_ms)
                return SHARD_CALL_NONE;
        /* Its number is used up if it arrived: under that number the store does nothing else. */
        if (s->is_repeat && s->last_call >= SHARD_CALL_ADVANCE)
                return s->last_call;
        switch (s->state) {
        case SHARD_AWAY:
                return SHARD_CALL_NONE;
        case SHARD_SEEKING:
        case SHARD_PARTING:
                return SHARD_CALL_ACQUIRE;
        case SHARD_READING:
                return SHARD_CALL_PAGE;
        case SHARD_OWNED:
                if (names_call(s) != SHARD_CALL_NONE)
                        return names_call(s);
                if (now_ms >= shard_claim_due_ms(s, can_wait))
                        return SHARD_CALL_ADVANCE;
                break;
        case SHARD_LEAVING:
                if (!s->running && !s->ended)
                        return SHARD_CALL_RELEASE;
                break;
        }
        if (s->saves.waiting)
                return SHARD_CALL_ADVANCE;
        return now_ms >= shard_tell_due_ms(s, can_wait) ? SHARD_CALL_ADVANCE : SHARD_CALL_NONE;
}

uint64_t shard_due_ms(const struct shard *s)
{
        if (s->is_calling || s->state == SHARD_AWAY)
                return STORE_NEVER;
        if (s->not_before_ms)
                return s->not_before_ms;
        if (s->state == SHARD_OWNED && names_call(s) != SHARD_CALL_NONE)
                return 0;
        uint64_t due_ms = shard_claim_due_ms(s, true);
        uint64_t tell_ms = shard_tell_due_ms(s, true);
        due_ms = min_u64(tell_ms, due_ms);
        uint64_t patience_ms = shard_lease_due_ms(s);
        return min_u64(patience_ms, due_ms);
}

static void begin_call(struct shard *s, enum shard_call call, uint64_t now_ms)
{
        shard_stir(s);
        s->is_calling = true;
        s->last_call = call;
        s->not_before_ms = 0;
        s->has_rung = false;
        if (!s->is_repeat)
                s->sent_ms = now_ms;
}

void shard_fill_acquire(struct shard *s, struct store_acquire *acquire, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_ACQUIRE, now_ms);
        s->sent_ms = now_ms;
        *acquire = (struct store_acquire){ .lease = s->lease,
                .is_firm = s->is_firm && s->has_holder,
                .drain_ms = s->limits->drain_ms,
                .page_tasks = STORE_CALL_TASKS };
}

void shard_fill_page(struct shard *s, struct store_in_flight *page, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_PAGE, now_ms);
        if (s->must_reread)
                s->after_seq = 0;
        s->must_reread = false;
        *page = (struct store_in_flight){
                .lease = s->lease, .after_seq = s->after_seq, .page_tasks = STORE_CALL_TASKS
        };
}

void shard_fill_advance(struct shard *s, struct store_advance *advance, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_ADVANCE, now_ms);
        if (!s->is_repeat)
                shard_gather(s);
        struct shard_want want = { 0 };
        if (s->state == SHARD_OWNED)
                want = shard_want(s);
        *advance = (struct store_advance){ .lease = s->lease,
                .call = s->call + 1,
                .outcomes = s->telling ? s->telling->outcomes : NULL,
                .outcomes_count = s->telling ? s->telling->outcomes_count : 0,
                .want_bytes = want.bytes };
        memcpy(advance->want, want.tasks, sizeof(want.tasks));
}

void shard_fill_names(struct shard *s, struct store_names *names, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_NAMES, now_ms);
        *names = (struct store_names){ .lease = s->lease, .after = { s->names.after, strlen(s->names.after) } };
}

void shard_fill_wake(struct shard *s, struct store_wake *wake, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_WAKE, now_ms);
        if (!s->is_repeat)
                s->names.waking = shard_names_next(&s->names);
        const struct shard_name *name = &s->names.list[s->names.waking];
        *wake = (struct store_wake){ .lease = s->lease,
                .call = s->call + 1,
                .name = { name->text, name->size },
                .max = name->is_open ? (uint32_t)min_u64(shard_wake_max(s), name->page) : 1 };
}

void shard_fill_release(struct shard *s, struct store_release *release, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_RELEASE, now_ms);
        *release = (struct store_release){ .lease = s->lease, .call = s->call + 1 };
}

/* --- tasks -----------------------------------------------------------------------------------------------------------
 */

static void end(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms)
{
        c->pending = pending;
        if (pending->outcome.kind == STORE_DIVERT) {
                /* First of all: an end that asks for more of its key must find this where it belongs. */
                window_divert(&s->window, c);
                c->ended_next = s->ended;
                s->ended = c;
                if (!s->ended_last)
                        s->ended_last = c;
        } else {
                window_end(&s->window, c);
                c->ended_next = NULL;
                if (s->ended_last)
                        s->ended_last->ended_next = c;
                else
                        s->ended = c;
                s->ended_last = c;
        }
        if (!s->ended_count++)
                s->ended_ms = now_ms;
        /* A task behind it, a person or a timer waits for this: no point in gathering. */
        if (c->of->live > 0 || pending->outcome.kind != STORE_DONE || c->reply_ms)
                s->is_urgent = true;
}

/* Gives a task back; the key comes back when it asks for it. */
static void divert(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        end(s, c, pending_outcome_new(STORE_DIVERT, COST_NONE, ""), now_ms);
}

/* Its start is recorded, but it will not start now.  A mark that stays behind would be charged to it as a crash. */
static void take_mark_back(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        struct pending_outcome *pending =
                pending_outcome_new(STORE_INTERRUPTED, COST_NONE, "it was about to start, and did not");
        pending->outcome.is_suspect = c->trust >= TRUST_SUSPECT;
        end(s, c, pending, now_ms);
}

static void divert_rest(struct shard *s, struct window_key *key, uint64_t now_ms)
{
        window_bar(&s->window, key);
        for (struct claimed *c = key->first; c; c = c->next)
                if (c->state == CLAIMED_WAITING && c->is_marked)
                        take_mark_back(s, c, now_ms);
                else if (c->state == CLAIMED_WAITING)
                        divert(s, c, now_ms);
}

/* No handler here serves it: it waits in the store, and so does all that stands behind it. */
static void divert_unserved(struct shard *s, struct claimed *unserved, uint64_t now_ms)
{
        char reason[128] = "its handler is paused or down";
        char name[STORE_NAME_MAX + 1];
        bool needs = unserved->needs.size;
        if (needs)
                (void)snprintf(reason, sizeof(reason), "needs a newer Quiver: this host does not know !%.64s",
                        unserved->needs.data);
        else if (unserved->pool == WINDOW_NO_POOL)
                (void)snprintf(reason, sizeof(reason), "no handler %.64s on this host", unserved->handler.data);
        (void)snprintf(name, sizeof(name), needs ? "needs:%.128s" : "handler:%.128s",
                needs ? unserved->needs.data : unserved->handler.data);
        bool is_good = store_name_is_good((struct span){ name, strlen(name) });
        for (struct claimed *c = unserved; c; c = c->next) {
                if (c->state != CLAIMED_WAITING)
                        continue;
                if (c->is_marked) {
                        take_mark_back(s, c, now_ms);
                        continue;
                }
                struct pending_outcome *pending = pending_outcome_divert(reason, is_good ? name : "");
                pending->outcome.delay_ms = is_good ? 0 : UNSERVED_MS;
                end(s, c, pending, now_ms);
        }
}

static void cancel(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        struct pending_outcome *pending = pending_outcome_new(STORE_DEAD, COST_NONE, "cancelled before it started");
        pending->outcome.reason = SPAN_TEXT("cancelled");
        end(s, c, pending, now_ms);
}

/* It is to run (again), unless somebody has decided otherwise meanwhile. */
static void put_back(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        window_put_back(&s->window, c);
        c->is_told_to_stop = false; /* that was about its last run */
        if (c->is_cancelled)
                cancel(s, c, now_ms);
        else if (c->is_marked && (c->of->is_barred || s->state == SHARD_LEAVING))
                take_mark_back(s, c, now_ms);
        else if (c->of->is_barred)
                divert(s, c, now_ms);
}

void shard_take_marks_back(struct shard *s, uint64_t now_ms)
{
        for (struct window_key *key = s->window.keys; key; key = key->hh.next)
                if (key->first && key->first->state == CLAIMED_WAITING && key->first->is_marked)
                        take_mark_back(s, key->first, now_ms);
}

/* It ran under a lease that was lost since: what it did is for its next owner to find out.  If that is us again, the
 * store still has it in flight: read the table once more. */
static void forget_stale(struct shard *s, struct claimed *c)
{
        window_drop(&s->window, c);
        window_prune(&s->window);
        if (!shard_is_held(s))
                return;
        s->must_reread = true;
        if (s->state == SHARD_OWNED)
                s->state = SHARD_READING;
}

void shard_ended(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms)
{
        shard_stir(s);
        enum store_outcome_kind kind = pending->outcome.kind;
        uint64_t started_ms = c->started_ms;
        s->running--;
        saves_stop(s, c);
        shard_pace_ended(s, c, now_ms);
        if (c->lease_number != s->lease_number) {
                pending_outcome_free(pending);
                forget_stale(s, c);
                return;
        }
        end(s, c, pending, now_ms);
        if (kind == STORE_RETRY || kind == STORE_HOLD)
                divert_rest(s, c->of, now_ms);
        shard_lease_call_ended(s, started_ms, now_ms);
}

void shard_return_pool(struct shard *s, uint32_t pool, uint64_t now_ms)
{
        shard_stir(s);
        for (struct window_key *key = s->window.keys; key; key = key->hh.next) {
                struct claimed *c = key->first;
                while (c && !(c->pool == pool && c->state == CLAIMED_WAITING))
                        c = c->next;
                if (c)
                        divert_unserved(s, c, now_ms);
        }
}

/* The pool that is to run such tasks; WINDOW_NO_POOL (also for what only a newer Quiver understands), or
 * WINDOW_SHUT_POOL if it takes none of this shard's now. */
static uint32_t pool_of(const struct shard *s, struct span handler, struct span needs)
{
        if (needs.size)
                return WINDOW_NO_POOL;
        uint32_t pool = routes_find(s->routes, handler);
        if (pool == ROUTES_NONE)
                return WINDOW_NO_POOL;
        switch (s->routes->states[pool]) {
        case ROUTE_OPEN:
                return pool;
        case ROUTE_DOWN:
                return s->window.count < s->limits->window_tasks / 2 ? pool : WINDOW_SHUT_POOL;
        case ROUTE_SHUT:
                break;
        }
        return WINDOW_SHUT_POOL;
}

void shard_look_at_names(struct shard *s)
{
        if (shard_names_look(&s->names, s->routes))
                shard_stir(s);
}

bool shard_probe(struct shard *s, uint32_t pool)
{
        if (s->state != SHARD_OWNED || !shard_names_probe(&s->names, s->routes, pool))
                return false;
        shard_stir(s);
        return true;
}

void shard_reroute(struct shard *s, uint64_t now_ms)
{
        shard_stir(s);
        shard_look_at_names(s);
        for (struct window_key *key = s->window.keys; key; key = key->hh.next)
                for (struct claimed *c = key->first; c; c = c->next) {
                        uint32_t pool = c->state == CLAIMED_WAITING ? pool_of(s, c->handler, c->needs) : c->pool;
                        if (pool == c->pool)
                                continue;
                        /* A mark is counted where it was made: first back with it, then elsewhere. */
                        if (c->has_mark)
                                take_mark_back(s, c, now_ms);
                        else
                                window_move(&s->window, c, pool);
                        if (c->state == CLAIMED_WAITING && pool >= s->window.pools)
                                divert_unserved(s, c, now_ms);
                }
}

void shard_obey(struct shard *s, const struct store_control *control, uint64_t now_ms)
{
        shard_stir(s);
        if (control->verb == CONTROL_HOLD) {
                struct window_key *key = window_key(&s->window, control->key);
                if (key)
                        divert_rest(s, key, now_ms);
                return;
        }
        struct claimed *c =
                control->verb == CONTROL_CANCEL ? window_find(&s->window, control->key, control->seq) : NULL;
        if (!c)
                return;
        if (c->state == CLAIMED_WAITING)
                cancel(s, c, now_ms);
        else if (c->state == CLAIMED_ENDED)
                c->is_cancelled = true;
}

void shard_again(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        shard_stir(s);
        uint64_t started_ms = c->started_ms;
        s->running--;
        saves_stop(s, c);
        if (c->lease_number != s->lease_number)
                forget_stale(s, c);
        else if (c->is_marked)
                take_mark_back(s, c, now_ms);
        else
                put_back(s, c, now_ms);
        shard_lease_call_ended(s, started_ms, now_ms);
}

static void holder_name(const struct shard *s, char to[2 * STORE_NONCE_SIZE + 1])
{
        for (unsigned i = 0; i < STORE_NONCE_SIZE; i++)
                (void)snprintf(to + 2 * i, 3, "%02x", s->lease.nonce[i]);
}

/* Its start is recorded before it runs here. */
static void mark(struct shard *s, struct claimed *c, uint64_t now_ms)
{
        char holder[2 * STORE_NONCE_SIZE + 1];
        holder_name(s, holder);
        end(s, c, pending_outcome_start(holder), now_ms);
}

/* Somebody else may be running it: a worker, or another host's seat. */
static bool is_busy_elsewhere(const struct shard *s, const struct store_task *task)
{
        char own[2 * STORE_NONCE_SIZE + 1];
        if (!task->busy_ms)
                return false;
        holder_name(s, own);
        return !span_is(task->note.holder, (struct span){ own, strlen(own) });
}

/* It waits in the store until nobody else can be running it, and so does all that stands behind it. */
static void divert_busy(struct shard *s, struct claimed *busy, uint64_t busy_ms, uint64_t now_ms)
{
        for (struct claimed *c = busy; c; c = c->next) {
                if (c->state != CLAIMED_WAITING)
                        continue;
                struct pending_outcome *pending =
                        pending_outcome_divert("started elsewhere, and may still run there", "");
                pending->outcome.delay_ms = busy_ms;
                end(s, c, pending, now_ms);
        }
}

struct claimed *shard_next(struct shard *s, uint32_t pool, uint64_t now_ms)
{
        if (s->state != SHARD_OWNED || now_ms >= s->until_ms)
                return NULL;
        if (s->is_to_leave && !routes_is_short(s->routes, pool))
                return NULL;
        struct claimed *c;
        while ((c = window_next(&s->window, pool))) {
                shard_stir(s);
                if (!c->hosts_died || c->is_marked || c->trust == TRUST_DIED_ALONE) {
                        s->running++;
                        c->started_ms = now_ms;
                        return c;
                }
                mark(s, c, now_ms);
        }
        return NULL;
}

bool shard_mark_next(struct shard *s, uint32_t pool, uint64_t now_ms)
{
        shard_stir(s);
        if (s->state != SHARD_OWNED || s->is_to_leave || now_ms >= s->until_ms)
                return false;
        struct claimed *c = window_mark_next(&s->window, pool);
        if (c)
                mark(s, c, now_ms);
        return c;
}

/* Takes what the store handed out.  Returns it in the same order, NULL where it was here already; the caller frees the
 * list.  What is too much is given back by trim(), once outcomes are dropped. */
static struct claimed **add(struct shard *s, const struct store_task *tasks, uint32_t count, uint64_t now_ms)
{
        struct claimed **added = memory_alloc((count + 1) * sizeof(struct claimed *));
        for (uint32_t i = 0; i < count; i++) {
                const struct envelope *e = &tasks[i].envelope;
                added[i] = window_add(&s->window, &tasks[i], pool_of(s, e->handler, envelope_needs(e)));
                if (added[i]) {
                        added[i]->lease_number = s->lease_number;
                        added[i]->claimed_ms = now_ms;
                }
        }
        return added;
}

static void trim(
        struct shard *s, struct claimed **added, const struct store_task *tasks, uint32_t count, uint64_t now_ms)
{
        /* From the last: a key gives back its newest. */
        for (uint32_t i = count; i-- > 0;) {
                struct claimed *c = added[i];
                if (!c || c->state != CLAIMED_WAITING)
                        continue;
                if (tasks[i].is_key_waiting)
                        divert_rest(s, c->of, now_ms);
                else if (is_busy_elsewhere(s, &tasks[i]))
                        divert_busy(s, c, tasks[i].busy_ms, now_ms);
                else if (c->pool >= s->window.pools)
                        divert_unserved(s, c, now_ms);
                else if (window_is_excess(&s->window, c))
                        divert(s, c, now_ms);
        }
}

/* The owner before us died, and some of its tasks may have been running.  A host runs no plugin code, so hardly ever is
 * its death a task's doing; and most of an in-flight table had not even started.  To run all of it one by one in fresh
 * processes would turn each death of a host into minutes of standstill.  So the tasks run as always, and only note an
 * interruption, at no cost.  At first those that may have run: the first of their keys, in order, as many as a host has
 * seats.  From then on their starts are recorded, so that at the next death it is known which of them were about to
 * run; and these come back after a while, longer each time, so that neither a killer nor the innocent in a series of
 * kills (a bad deploy, say) meet the next host at once.  One that was there at HOST_DEATHS_MAX deaths in a row is a
 * suspect: it runs alone, so that the next death is no other's, and after that one it waits ever longer (retry.c).  It
 * is not charged for it: nobody saw what the host died of. */
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
                if (!c || c->state != CLAIMED_WAITING || c->of->first != c || c->trust >= TRUST_SUSPECT)
                        continue;
                bool may_have_run = s->recovered && !c->hosts_died;
                if (c->trust != TRUST_WAS_RUNNING && !may_have_run)
                        continue;
                if (may_have_run)
                        s->recovered--;
                c->hosts_died++;
                end(s, c, host_died(c), now_ms);
                if (c->hosts_died > 1)
                        divert_rest(s, c->of, now_ms);
        }
}

/* One page of the in-flight table. */
static void add_page(struct shard *s, const struct store_page *page, uint64_t now_ms)
{
        struct claimed **added = add(s, page->tasks, page->tasks_count, now_ms);
        trim(s, added, page->tasks, page->tasks_count, now_ms);
        note_recovered(s, added, page->tasks_count, now_ms);
        free(added);
        if (page->tasks_count)
                s->after_seq = page->tasks[page->tasks_count - 1].seq;
}

/* --- replies ---------------------------------------------------------------------------------------------------------
 */

static void answered(struct shard *s)
{
        shard_stir(s);
        s->is_calling = false;
        s->is_repeat = false;
        s->failures = 0;
        s->not_before_ms = 0;
}

void shard_failed(struct shard *s, uint64_t now_ms)
{
        shard_stir(s);
        s->is_calling = false;
        s->is_repeat = true;
        uint64_t delay_ms = UINT64_C(10) << min_u64(s->failures, 8);
        s->failures++;
        s->not_before_ms = now_ms + delay_ms;
}

void shard_acquired(struct shard *s, const struct store_acquire *acquire, uint64_t now_ms)
{
        answered(s);
        if (!shard_lease_answered(s, acquire, now_ms))
                return;
        s->call = acquire->call;
        s->has_work = acquire->has_work || s->has_rung;
        memset(s->has_more, 0, sizeof(s->has_more));
        s->names.must_read = acquire->has_names;
        s->names.has_woken = false;
        s->names.after[0] = 0;
        s->due_ms = acquire->next_due_ms == STORE_NEVER ? STORE_NEVER : now_ms + acquire->next_due_ms;
        if (!s->window.first_epoch)
                s->window.first_epoch = s->lease.epoch;
        s->recovered = acquire->is_recovery && s->state != SHARD_LEAVING ? s->limits->seats : 0;
        add_page(s, &acquire->page, now_ms);
        if (s->state == SHARD_READING && !acquire->page.has_more)
                s->state = SHARD_OWNED;
}

void shard_paged(struct shard *s, const struct store_in_flight *page)
{
        answered(s);
        if (page->verdict == STORE_FENCED) {
                shard_lease_lost(s);
                return;
        }
        add_page(s, &page->page, s->sent_ms);
        if (!page->page.has_more && !s->must_reread && s->state == SHARD_READING)
                s->state = SHARD_OWNED;
}

/* What the call said is durable now. */
static void told(struct shard *s, uint64_t now_ms)
{
        for (uint32_t i = 0; i < shard_telling_count(s); i++) {
                struct claimed *c = s->telling->tasks[i];
                enum store_outcome_kind kind = c->pending->outcome.kind;
                if (kind == STORE_DIVERT && c->pending->outcome.name.size)
                        shard_names_add(&s->names, s->routes, c->pending->outcome.name);
                if (kind != STORE_START && kind != STORE_INTERRUPTED) {
                        window_drop(&s->window, c);
                        continue;
                }
                if (kind == STORE_START)
                        c->is_marked = true;
                else
                        window_unmark(&s->window, c);
                if (c->pending->outcome.is_suspect && c->trust < TRUST_SUSPECT)
                        c->trust = TRUST_SUSPECT;
                pending_outcome_free(c->pending);
                c->pending = NULL;
                put_back(s, c, now_ms);
        }
        shard_drop_telling(s);
}

void shard_advanced(struct shard *s, const struct store_advance *advance, uint64_t now_ms)
{
        uint64_t sent_ms = s->sent_ms;
        answered(s);
        if (advance->verdict == STORE_FENCED) {
                shard_lease_lost(s);
                return;
        }
        s->call++;
        shard_lease_renewed(s, sent_ms, advance->left_ms);
        /* First out, then in: what was given back may be handed out again by the same call. */
        told(s, now_ms);
        struct claimed **added = add(s, advance->tasks, advance->tasks_count, now_ms);
        window_prune(&s->window);
        trim(s, added, advance->tasks, advance->tasks_count, now_ms);
        free(added);
        s->has_work = s->has_rung;
        s->names.has_woken = advance->has_due_waiting;
        memcpy(s->has_more, advance->has_more, sizeof(s->has_more));
        shard_pace_claimed(s, advance->tasks_count, store_has_more(advance));
        s->due_ms = advance->next_due_ms == STORE_NEVER ? STORE_NEVER : now_ms + advance->next_due_ms;
        shard_lease_wanted(s, advance->wanted, advance->is_refused, now_ms);
}

void shard_named(struct shard *s, const struct store_names *names)
{
        answered(s);
        if (names->verdict == STORE_FENCED)
                shard_lease_lost(s);
        else
                shard_names_read(&s->names, s->routes, names);
}

void shard_woken(struct shard *s, const struct store_wake *wake)
{
        bool was_repeat = s->is_repeat;
        answered(s);
        if (wake->verdict == STORE_FENCED) {
                shard_lease_lost(s);
                return;
        }
        s->call++;
        /* The answer to the first may have been lost: it may have woken some. */
        shard_names_woken(&s->names, was_repeat ? 1 : wake->woken, wake->has_more);
        s->has_work |= s->names.has_woken;
}

void shard_released(struct shard *s)
{
        answered(s);
        shard_lease_let_go(s, SHARD_AWAY);
}
