/* shard_lease.c: a shard's lease: acquiring, renewing, leaving and losing it. */
#include <string.h>

#include "base/numbers.h"
#include "host/shard/shard_private.h"

/* Delay between acquires while another host holds the lease: short at first, because most handovers are short. */
#define BUSY_MIN_MS 10
#define BUSY_MAX_MS 200

/* Safety margin of our own deadline, for clock drift and late threads. */
static uint64_t margin_ms(uint64_t ttl_ms)
{
        return ttl_ms / 10 > 250 ? ttl_ms / 10 : ttl_ms < 1000 ? ttl_ms / 4 : 250;
}

bool shard_is_held(const struct shard *s)
{
        return s->state == SHARD_OWNED || s->state == SHARD_READING || s->state == SHARD_LEAVING;
}

void shard_rang(struct shard *s)
{
        shard_stir(s);
        s->has_work = s->has_rung = true;
        if (s->state == SHARD_SEEKING && !s->is_repeat)
                s->not_before_ms = 0;
}

bool shard_is_move_pending(const struct shard *s)
{
        return s->is_moving && shard_is_held(s);
}

/* --- coming --- */

static void seek(struct shard *s, const uint8_t nonce[STORE_NONCE_SIZE], uint64_t epoch)
{
        struct store_lease lease = { .shard = s->number, .epoch = epoch, .ttl_ms = s->limits->ttl_ms };
        memcpy(lease.nonce, nonce, STORE_NONCE_SIZE); /* `nonce` may point into s->lease */
        s->lease = lease;
        s->state = SHARD_SEEKING;
        s->not_before_ms = 0;
        s->busy_count = 0;
        s->has_holder = false;
}

/* Whether a call of that kind is under way, or its answer was lost. */
static bool is_open(const struct shard *s, enum shard_call call)
{
        return s->last_call == call && (s->is_calling || s->is_repeat);
}

bool shard_may_be_held(const struct shard *s)
{
        return !shard_is_held(s) && is_open(s, SHARD_CALL_ACQUIRE);
}

/* Goes back from LEAVING to owning the shard; the window still has its waiting tasks. */
static void stay(struct shard *s)
{
        s->is_moving = s->is_to_leave = s->is_forced = false;
        s->state = s->must_reread ? SHARD_READING : SHARD_OWNED;
}

void shard_assign(struct shard *s, const uint8_t nonce[STORE_NONCE_SIZE], uint64_t epoch, bool is_firm)
{
        shard_stir(s);
        s->is_firm = is_firm;
        s->epoch = epoch;
        switch (s->state) {
        case SHARD_AWAY:
                s->stale_epoch = 0;
                seek(s, nonce, epoch);
                break;
        case SHARD_SEEKING:
        case SHARD_PARTING:
                /* The reply to an acquire under way names the epoch that it was granted under. */
                if (epoch > s->lease.epoch)
                        seek(s, nonce, epoch);
                s->state = SHARD_SEEKING;
                break;
        case SHARD_READING:
        case SHARD_OWNED:
                s->is_moving = s->is_to_leave = false;
                break;
        case SHARD_LEAVING:
                if (is_open(s, SHARD_CALL_RELEASE))
                        s->next_epoch = epoch;
                else
                        stay(s);
                break;
        }
}

bool shard_lease_answered(struct shard *s, const struct store_acquire *acquire, uint64_t now_ms)
{
        bool is_parting = s->state == SHARD_PARTING;
        if (acquire->grant != STORE_GRANTED && is_parting) {
                s->state = SHARD_AWAY;
                return false;
        }
        if (acquire->grant == STORE_BUSY) {
                uint64_t delay_ms = BUSY_MIN_MS << min_u64(s->busy_count, 5);
                delay_ms = min_u64(delay_ms, BUSY_MAX_MS);
                s->busy_count++;
                s->has_holder = true;
                memcpy(s->holder, acquire->holder, STORE_NONCE_SIZE);
                s->not_before_ms = now_ms + (acquire->busy_ms < delay_ms ? acquire->busy_ms + 1 : delay_ms);
                return false;
        }
        if (acquire->grant == STORE_STALE) {
                /* Only coordination gives out epochs: it learns of the store's epoch and assigns a higher one. */
                if (acquire->lease.epoch == s->lease.epoch) {
                        s->stale_epoch = acquire->stored_epoch;
                        s->state = SHARD_AWAY;
                }
                return false;
        }
        s->lease = acquire->lease;
        s->is_refused = s->is_forced = s->is_moving = s->is_to_leave = false;
        s->stale_epoch = 0;
        shard_lease_renewed(s, s->sent_ms, acquire->left_ms);
        s->state = is_parting ? SHARD_LEAVING : SHARD_READING;
        s->must_reread = is_parting; /* in case the shard stays: there may be more than the first page */
        s->leave_ms = now_ms;
        return true;
}

/* --- staying --- */

void shard_lease_renewed(struct shard *s, uint64_t sent_ms, uint64_t left_ms)
{
        uint64_t ttl_ms = s->limits->ttl_ms;
        if (left_ms)
                s->until_ms = sent_ms + min_u64(left_ms, ttl_ms) - margin_ms(ttl_ms);
}

void shard_renewed(struct shard *s, const struct store_renewal *renewal, uint64_t sent_ms, uint64_t now_ms)
{
        shard_stir(s);
        if (!shard_is_held(s))
                return;
        if (renewal->verdict == STORE_FENCED) {
                /* The reply to a call under way will be FENCED, too; the loss is handled there. */
                if (!s->is_calling)
                        shard_lease_lost(s);
                return;
        }
        shard_lease_renewed(s, sent_ms, renewal->left_ms);
        s->has_work |= renewal->has_work;
        shard_lease_wanted(s, renewal->wanted, renewal->is_refused, now_ms);
}

/* --- leaving --- */

static bool has_long_call(const struct shard *s, uint64_t now_ms)
{
        for (const struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                for (const struct claimed *c = key->first; c; c = c->next)
                        if (c->state == CLAIMED_RUNNING && !c->lent && now_ms >= c->started_ms + s->limits->drain_ms)
                                return true;
        return false;
}

static void begin_leaving(struct shard *s, uint64_t now_ms)
{
        /* If the shard stays after all, the rest of the in-flight table must be read. */
        s->must_reread |= s->state == SHARD_READING;
        s->state = SHARD_LEAVING;
        s->is_to_leave = false;
        s->leave_ms = now_ms;
        s->must_recall = true;
        shard_take_marks_back(s, now_ms);
}

/* Whether one of the calls that ran at leave_ms still runs. */
static bool has_awaited_call(const struct shard *s)
{
        for (const struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                for (const struct claimed *c = key->first; c; c = c->next)
                        if (c->state == CLAIMED_RUNNING && !c->lent && c->started_ms <= s->leave_ms)
                                return true;
        return false;
}

/* Begins a planned move.  No key's task can start from when we start nothing more until our last call has ended.  So
 * until the calls that run now have ended, tasks of pools with short calls still start.  Such a call may turn out long;
 * then its keys wait as they would have at any other time. */
static void begin_move(struct shard *s, uint64_t now_ms)
{
        if (s->is_to_leave || has_long_call(s, now_ms))
                return;
        s->leave_ms = now_ms;
        if (s->state != SHARD_OWNED || !routes_has_short(s->routes) || !has_awaited_call(s)) {
                begin_leaving(s, now_ms);
                return;
        }
        s->is_to_leave = true;
        s->must_recall = true;
        shard_take_marks_back(s, now_ms);
}

/* Stops acquiring a shard. */
static void stop_seeking(struct shard *s)
{
        /* An unanswered acquire may have been granted. */
        s->state = is_open(s, SHARD_CALL_ACQUIRE) ? SHARD_PARTING : SHARD_AWAY;
}

void shard_unassign(struct shard *s, uint64_t now_ms)
{
        shard_stir(s);
        s->epoch = s->next_epoch = s->stale_epoch = 0;
        if (s->state == SHARD_SEEKING)
                stop_seeking(s);
        if (s->state != SHARD_READING && s->state != SHARD_OWNED)
                return;
        s->is_moving = true;
        begin_move(s, now_ms);
}

void shard_leave(struct shard *s, uint64_t now_ms)
{
        shard_stir(s);
        s->epoch = s->next_epoch = s->stale_epoch = 0;
        s->is_forced = true;
        if (s->state == SHARD_SEEKING)
                stop_seeking(s);
        else if (s->state == SHARD_READING || s->state == SHARD_OWNED)
                begin_leaving(s, now_ms);
}

void shard_lease_wanted(struct shard *s, enum store_wanted wanted, bool is_refused, uint64_t now_ms)
{
        s->is_refused |= is_refused;
        if (wanted == STORE_WANTED_FIRM)
                shard_leave(s, now_ms);
        else if (wanted == STORE_WANTED_PATIENT && !s->is_moving)
                shard_unassign(s, now_ms);
}

uint64_t shard_lease_due_ms(const struct shard *s)
{
        bool waits = s->state == SHARD_LEAVING && !s->is_forced && s->running;
        return waits || s->is_to_leave ? s->leave_ms + s->limits->drain_ms : STORE_NEVER;
}

void shard_tick(struct shard *s, uint64_t now_ms)
{
        shard_excess_tick(s, now_ms);
        if (now_ms < shard_lease_due_ms(s))
                return;
        if (s->is_to_leave) {
                s->is_to_leave = false;
                return;
        }
        stay(s);
        s->is_moving = true;
}

void shard_lease_call_ended(struct shard *s, uint64_t started_ms, uint64_t now_ms)
{
        if (!s->is_moving || (s->state != SHARD_OWNED && s->state != SHARD_READING))
                return;
        if (!s->is_to_leave)
                begin_move(s, now_ms);
        else if (started_ms <= s->leave_ms && !has_awaited_call(s))
                begin_leaving(s, now_ms);
}

/* --- losing --- */

void shard_lease_let_go(struct shard *s, enum shard_state state)
{
        s->lease_number++;
        s->until_ms = 0;
        s->state = state;
        s->is_repeat = s->must_reread = false;
        s->is_moving = s->is_to_leave = s->is_forced = s->is_refused = false;
        s->ended = s->ended_last = NULL;
        s->ended_count = 0;
        s->is_urgent = false;
        saves_drop(s);
        lents_drop(s);
        shard_names_clear(&s->names);
        shard_drop_schedules(s);
        shard_drop_telling(s);
        window_drop_idle(&s->window);
        if (state == SHARD_AWAY && s->next_epoch)
                seek(s, s->lease.nonce, s->next_epoch);
        s->next_epoch = 0;
}

void shard_lease_lost(struct shard *s)
{
        bool is_to_stay = s->state != SHARD_LEAVING && !s->is_moving;
        s->fenced++;
        s->has_lost |= s->starts > 0;
        shard_lease_let_go(s, SHARD_AWAY);
        /* Seek again under the latest assigned epoch: the lost lease's epoch may be too old by now. */
        if (is_to_stay && s->state == SHARD_AWAY)
                seek(s, s->lease.nonce, max_u64(s->epoch, s->lease.epoch));
}
