#include "host/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "host/shard/shard_private.h"

/* Bytes of payload that cost the store as much as another task. */
#define WORK_BYTES 256u

void shard_init(
        struct shard *s, uint32_t number, const struct shard_limits *limits, struct routes *routes, uint32_t per_key)
{
        *s = (struct shard){
                .number = number, .limits = limits, .routes = routes, .due_ms = STORE_NEVER, .excess_ms = STORE_NEVER
        };
        window_init(&s->window, routes->pools, per_key);
}

void shard_free(struct shard *s)
{
        saves_drop(s);
        lents_drop(s);
        for (struct lent *lent = shard_take_adopted(s), *next; lent; lent = next) {
                next = lent->next;
                lent->claimed->lent = NULL;
                free(lent);
        }
        shard_drop_telling(s);
        shard_names_clear(&s->names);
        shard_drop_schedules(s);
        window_free(&s->window);
}

bool shard_is_quiet(const struct shard *s)
{
        return !s->running && !s->ended && !s->telling && !s->is_calling;
}

/* --- what to do next --- */

/* Whether to read names, or to wake keys if the window has room. */
static enum shard_call names_call(const struct shard *s)
{
        if (s->names.must_read)
                return SHARD_CALL_NAMES;
        return shard_names_next(&s->names) != SHARD_NAME_NONE && shard_wake_max(s) ? SHARD_CALL_WAKE : SHARD_CALL_NONE;
}

/* When schedules have to be read or fired, by the boot clock; STORE_NEVER. */
static uint64_t schedules_due_ms(const struct shard *s)
{
        const struct shard_schedules *all = s->schedules;
        if (!all || !s->wall_ahead_ms)
                return STORE_NEVER;
        if (all->must_list || all->next_ms == STORE_NEVER)
                return all->must_list ? 0 : STORE_NEVER;
        int64_t due_ms = (int64_t)all->next_ms - *s->wall_ahead_ms;
        return due_ms > 0 ? (uint64_t)due_ms : 0;
}

static uint64_t wall_ms(const struct shard *s, uint64_t now_ms)
{
        return (uint64_t)((int64_t)now_ms + *s->wall_ahead_ms);
}

enum shard_call shard_next_call(const struct shard *s, bool can_wait, uint64_t now_ms)
{
        if (s->is_calling || now_ms < s->not_before_ms)
                return SHARD_CALL_NONE;
        /* The unanswered call may have arrived: the store ignores any other call under its number, so it must be
         * repeated unchanged. */
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
                if (now_ms >= schedules_due_ms(s))
                        return s->schedules->must_list ? SHARD_CALL_SCHEDULES : SHARD_CALL_FIRES;
                if (now_ms >= shard_claim_due_ms(s, can_wait))
                        return SHARD_CALL_ADVANCE;
                break;
        case SHARD_LEAVING:
                if (!s->running && !s->ended && !s->starts_waiting)
                        return SHARD_CALL_RELEASE;
                break;
        }
        if (s->saves.waiting || s->starts_waiting || now_ms >= shard_look_due_ms(s))
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
        due_ms = min_u64(shard_look_due_ms(s), due_ms);
        if (s->state == SHARD_OWNED)
                due_ms = min_u64(min_u64(schedules_due_ms(s), s->excess_ms), due_ms);
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
                .want_bytes = want.bytes,
                .calls_again = shard_calls_again(s) };
        memcpy(advance->want, want.tasks, sizeof(want.tasks));
        s->is_unrung = advance->calls_again;
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

void shard_fill_schedules(struct shard *s, struct store_schedule_list *list, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_SCHEDULES, now_ms);
        *list = (struct store_schedule_list){ .shard = s->number };
}

void shard_fill_fires(struct shard *s, struct store_fires *fires, uint64_t now_ms,
        struct claimed *ret_replaced[STORE_CALL_FIRES], uint32_t *ret_replaced_count)
{
        begin_call(s, SHARD_CALL_FIRES, now_ms);
        *ret_replaced_count = 0;
        if (!s->is_repeat)
                shard_schedules_fill(s->schedules, &s->window, wall_ms(s, now_ms), ret_replaced, ret_replaced_count);
        *fires = (struct store_fires){ .lease = s->lease,
                .call = s->call + 1,
                .fires = s->schedules->fires,
                .fires_count = s->schedules->fires_count };
}

void shard_fill_release(struct shard *s, struct store_release *release, uint64_t now_ms)
{
        begin_call(s, SHARD_CALL_RELEASE, now_ms);
        *release = (struct store_release){ .lease = s->lease, .call = s->call + 1, .is_death = s->passes_on };
}

/* --- replies --- */

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

static void end_reading(struct shard *s, uint64_t now_ms)
{
        s->state = SHARD_OWNED;
        shard_merge_all(s, now_ms);
}

void shard_acquired(struct shard *s, const struct store_acquire *acquire, uint64_t now_ms)
{
        answered(s);
        if (!shard_lease_answered(s, acquire, now_ms))
                return;
        s->call = acquire->call;
        s->is_unrung = false;
        s->has_work = acquire->has_work || s->has_rung;
        memset(s->has_more, 0, sizeof(s->has_more));
        s->names.must_read = acquire->has_names;
        s->names.has_woken = false;
        s->names.after[0] = 0;
        shard_drop_schedules(s);
        if (acquire->next_schedule_ms != STORE_NEVER)
                shard_schedules_changed(s);
        s->due_ms = acquire->next_due_ms == STORE_NEVER ? STORE_NEVER : now_ms + acquire->next_due_ms;
        if (!s->window.first_epoch)
                s->window.first_epoch = s->lease.epoch;
        s->is_recovery = acquire->is_recovery;
        s->passes_on = (s->is_recovery || s->has_lost) && s->state == SHARD_LEAVING;
        s->recovered = s->is_recovery && s->state != SHARD_LEAVING ? s->limits->seats : 0;
        shard_add_page(s, &acquire->page, now_ms);
        if (s->state == SHARD_READING && !acquire->page.has_more)
                end_reading(s, now_ms);
}

void shard_paged(struct shard *s, const struct store_in_flight *page)
{
        answered(s);
        if (page->verdict == STORE_FENCED) {
                shard_lease_lost(s);
                return;
        }
        shard_add_page(s, &page->page, s->sent_ms);
        if (!page->page.has_more && !s->must_reread && s->state == SHARD_READING)
                end_reading(s, s->sent_ms);
}

static void remember_done(struct done_tasks *done, const struct claimed *c, uint64_t now_ms)
{
        const struct store_outcome *outcome = &c->pending->outcome;
        struct done_task *task = done_tasks_add(done);
        if (!task)
                return;
        task->at_ms = (int64_t)now_ms;
        task->ran_ms = c->ran_ms;
        task->attempt = c->attempts + 1;
        task->generation = c->generation;
        task->hash = c->file_hash;
        task->pid = c->pool_task.pid;
        task->has_result = outcome->has_result;
        task->result_bytes = (uint32_t)outcome->result.size;
        done_task_name(task, c->id, c->handler);
        done_task_set_worker(
                task, c->lent ? span_of_text(c->lent->worker) : (struct span){ 0 }, c->lent && c->lent->is_seat);
}

/* The outcomes in s->telling are durable now.  `is_sure`: the store still had all tasks that merges named. */
static void told(struct shard *s, bool is_sure, uint64_t now_ms)
{
        lents_told(s, now_ms);
        for (uint32_t i = 0; i < shard_telling_count(s); i++) {
                struct claimed *c = s->telling->tasks[i];
                enum store_outcome_kind kind = c->pending->outcome.kind;
                if (kind == STORE_DONE && s->done)
                        remember_done(s->done, c, now_ms);
                if (kind == STORE_DIVERT && c->pending->outcome.name.size)
                        shard_names_add(&s->names, s->routes, c->pending->outcome.name);
                if (kind == STORE_DONE || kind == STORE_DEAD)
                        routes_task_finished(s->routes, c->pool, kind == STORE_DONE, c->pending->outcome.reason);
                lent_detach(c, true);
                if (kind == STORE_MERGE) {
                        shard_merged(s, c, is_sure, now_ms);
                        continue;
                }
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
                shard_put_back(s, c, now_ms);
        }
        shard_drop_telling(s);
}

/* What the claimed tasks are for the store: a large one is as much as several. */
static uint64_t work_of(const struct store_advance *advance)
{
        uint64_t work = advance->tasks_count;
        for (uint32_t i = 0; i < advance->tasks_count; i++)
                work += advance->tasks[i].envelope.payload.size / WORK_BYTES;
        return work;
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
        /* First drop the told tasks, then add the new ones: the same reply may hand out a task that was given back. */
        told(s, !advance->gone, now_ms);
        struct claimed **added = shard_add_tasks(s, advance->tasks, advance->tasks_count, now_ms);
        window_prune(&s->window);
        /* Merge before trimming: merged tasks no longer exceed their key's share. */
        shard_merge_tasks(s, added, advance->tasks_count, now_ms);
        shard_trim_tasks(s, added, advance->tasks, advance->tasks_count, now_ms);
        free(added);
        s->has_work = s->has_rung;
        s->names.has_woken = advance->has_due_waiting;
        memcpy(s->has_more, advance->has_more, sizeof(s->has_more));
        s->is_costly = advance->is_costly;
        s->brought += work_of(advance);
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
        /* The answer to the first try may have been lost after it had woken keys. */
        shard_names_woken(&s->names, s->routes, was_repeat ? 1 : wake->woken, wake->has_more);
        s->has_work |= s->names.has_woken;
}

void shard_listed(struct shard *s)
{
        answered(s);
}

void shard_fired(struct shard *s, const struct store_fires *fires)
{
        answered(s);
        if (fires->verdict == STORE_FENCED) {
                shard_lease_lost(s);
                return;
        }
        s->call++;
        shard_schedules_fired(s->schedules);
        s->has_work = true;
}

void shard_fires_refused(struct shard *s)
{
        answered(s);
        shard_schedules_drop_due(s->schedules);
}

void shard_schedules_changed(struct shard *s)
{
        shard_stir(s);
        if (!s->schedules) {
                s->schedules = memory_zero(1, sizeof(*s->schedules));
                shard_schedules_clear(s->schedules);
        }
        s->schedules->must_list = true;
}

void shard_drop_schedules(struct shard *s)
{
        if (s->schedules)
                shard_schedules_clear(s->schedules);
        free(s->schedules);
        s->schedules = NULL;
}

void shard_released(struct shard *s)
{
        answered(s);
        shard_lease_let_go(s, SHARD_AWAY);
}
