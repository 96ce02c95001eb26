#include "host/shard/shard_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

void shards_init(struct shards *all, uint32_t calls_max, uint32_t calls_group, uint32_t per_key)
{
        uint32_t count = all->dispatch->shards_count;
        all->list = memory_zero(count, sizeof(*all->list));
        all->renewals = memory_zero(count, sizeof(*all->renewals));
        call_schedule_init(&all->schedule, count, calls_max, calls_group);
        for (; all->count < count; all->count++) {
                struct shard_io *io = &all->list[all->count];
                io->all = all;
                shard_init(&io->shard, all->count, all->limits, &all->dispatch->routes, per_key);
                io->shard.window.blocks = &all->blocks;
                io->shard.done = all->done;
                io->shard.wall_ahead_ms = &all->wall_ahead_ms;
                call_schedule_add(&all->schedule, &io->shard);
                dispatch_add_shard(all->dispatch, &io->shard);
        }
}

void shards_free(struct shards *all)
{
        for (uint32_t i = 0; i < all->count; i++)
                shard_free(&all->list[i].shard);
        call_schedule_free(&all->schedule);
        blocks_free(&all->blocks);
        free(all->list);
        free(all->renewals);
        all->list = NULL;
        all->renewals = NULL;
        all->count = 0;
}

/* --- which are ours --- */

static bool is_ours(const struct shards *all, uint32_t shard)
{
        const struct assignment *a = all->assignment;
        const struct assign_owner *owner = shard < a->shards_count ? assignment_owner(a, shard) : NULL;
        return owner && !all->is_standing_by && !memcmp(owner->nonce, all->nonce, STORE_NONCE_SIZE);
}

static void seek(struct shards *all, uint32_t shard)
{
        const struct assign_slot *slot = &all->assignment->slots[shard];
        shard_assign(&all->list[shard].shard, all->nonce, slot->epoch, slot->is_firm);
}

void shards_assign(struct shards *all, bool is_standing_by, uint64_t now_ms)
{
        all->is_standing_by = is_standing_by;
        for (uint32_t i = 0; i < all->count; i++) {
                if (is_ours(all, i))
                        seek(all, i);
                else
                        shard_unassign(&all->list[i].shard, now_ms);
        }
}

void shards_reconcile(struct shards *all)
{
        for (uint32_t i = 0; i < all->count; i++) {
                const struct shard *s = &all->list[i].shard;
                if (s->state == SHARD_AWAY && is_ours(all, i) && s->stale_epoch < all->assignment->slots[i].epoch)
                        seek(all, i);
        }
}

void shards_leave(struct shards *all, uint64_t now_ms)
{
        for (uint32_t i = 0; i < all->count; i++)
                shard_leave(&all->list[i].shard, now_ms);
}

uint32_t shards_count_held(const struct shards *all)
{
        uint32_t held = 0;
        for (uint32_t i = 0; i < all->count; i++)
                held += all->list[i].shard.state != SHARD_AWAY || all->list[i].shard.is_calling;
        return held;
}

void shards_rang(struct shards *all)
{
        for (uint32_t i = 0; i < all->count; i++)
                shard_rang(&all->list[i].shard);
}

/* --- calls and replies --- */

static uint64_t now(const struct shard_io *io)
{
        return io->all->events->now_ms(io->all->self);
}

static void show_lease(struct shard_io *io)
{
        const struct shard *s = &io->shard;
        uint64_t until_ns = shard_may_be_held(s) ? LEASES_ASKED : shard_is_held(s) ? s->until_ms * NS_PER_MS : 0;
        leases_set(io->all->leases, s->number, s->lease.epoch, until_ns);
}

/* A running task whose lease is lost or no longer renewed, and that was not told to stop yet. */
static struct claimed *find_stale(const struct shard *s)
{
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                for (struct claimed *c = key->first; c; c = c->next)
                        if (c->state == CLAIMED_RUNNING && !c->is_told_to_stop &&
                                (c->lease_number != s->lease_number || (s->is_refused && !c->lent)))
                                return c;
        return NULL;
}

/* The pool stops such tasks and kills them after the grace time.  Each search starts from the beginning, because
 * stopping a task that had not started frees it at once. */
static void cancel_stale(struct shard_io *io)
{
        struct claimed *c;
        while ((c = find_stale(&io->shard))) {
                c->is_told_to_stop = true;
                io->all->events->stop(io->all->self, c);
        }
}

static bool has_lost_share(struct shards *all, struct claimed *c)
{
        return c->state == CLAIMED_RUNNING && !c->is_told_to_stop &&
               limits_stop(all->dispatch->routes.limits, &c->hold);
}

static struct claimed *find_lost(struct shard_io *io)
{
        for (struct window_key *key = window_keys_first(&io->shard.window.keys); key;
                key = window_keys_next(&io->shard.window.keys, key))
                for (struct claimed *c = key->first; c; c = c->next)
                        if (has_lost_share(io->all, c))
                                return c;
        return NULL;
}

void shards_look_at_shares(struct shards *all)
{
        if (!limits_has_lost(all->dispatch->routes.limits))
                return;
        for (uint32_t i = 0; i < all->count; i++) {
                struct claimed *c;
                /* Each search starts from the beginning, as in cancel_stale(). */
                while ((c = find_lost(&all->list[i]))) {
                        c->is_told_to_stop = true;
                        log_event(LEVEL_WARN, "limit-lost", "handler=%s id=%s key=%s limit=%s text=%s", c->handler.data,
                                c->id.data, LOG_QUOTE(c->key.data), c->hold.buckets[0]->of->name,
                                LOG_QUOTE(
                                        "its share of the limit could not be renewed in time, so it is stopped before "
                                        "another host gets that share, and runs again at no cost"));
                        all->events->stop(all->self, c);
                }
        }
}

static void after_reply(struct shard_io *io, uint64_t fenced_before)
{
        struct shard *s = &io->shard;
        show_lease(io);
        if (s->stale_epoch)
                io->all->events->stale(io->all->self);
        if (s->fenced != fenced_before)
                log_event(LEVEL_WARN, "fenced", "shard=%" PRIu32 " epoch=%" PRIu64 " text=%s", s->number,
                        s->lease.epoch,
                        LOG_QUOTE("the store refused a change: the lease of this shard was lost; what runs there is "
                                  "stopped, and runs again on its new owner"));
        if (s->fenced != fenced_before || s->is_refused)
                cancel_stale(io);
}

static bool has_failed(struct shard_io *io, const struct store_request *request)
{
        if (request->status == -ECANCELED)
                return true;
        histogram_add(&io->all->counts.calls[io->shard.last_call], clock_boot_ns() - io->sent_ns);
        if (request->status == 0)
                return false;
        io->all->counts.failed++;
        if (!io->shard.failures)
                io->all->events->failed(io->all->self, &io->shard, request->status, request->error.text);
        shard_failed(&io->shard, now(io));
        return true;
}

static void on_acquired(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        shard_acquired(&io->shard, &io->acquire, now(io));
        bool is_granted = io->acquire.grant == STORE_GRANTED;
        io->all->counts.acquired += is_granted;
        io->all->counts.takeovers += is_granted && io->acquire.is_recovery;
        if (is_granted)
                log_event(LEVEL_DEBUG, "acquired", "shard=%" PRIu32 " epoch=%" PRIu64 " in_flight=%" PRIu32,
                        io->shard.number, io->shard.lease.epoch, io->acquire.page.tasks_count);
        after_reply(io, fenced);
}

static void on_paged(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        shard_paged(&io->shard, &io->page);
        after_reply(io, fenced);
}

/* Carries out a person's control, or passes on a worker's report, about a task that we hold. */
static void obey(struct shard_io *io, const struct store_control *control)
{
        if (control->verb == CONTROL_HEARTBEAT || control->verb == CONTROL_OUTCOME) {
                io->all->events->reported(io->all->self, &io->shard, control);
                return;
        }
        struct claimed *c =
                control->verb == CONTROL_CANCEL ? window_find(&io->shard.window, control->key, control->seq) : NULL;
        if (c && c->state == CLAIMED_RUNNING)
                io->all->events->stop(io->all->self, c);
        else
                shard_obey(&io->shard, control, now(io));
}

static void forward_outbox(struct shard_io *io);

static void on_forwarded(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, forward.request);
        io->is_forwarding = false;
        /* On failure has_outbox is set again in a later reply. */
        if (request->status == 0 && io->forward.verdict == STORE_OK && io->forward.has_more)
                forward_outbox(io);
}

/* Forwards follow-ups for other shards that the store could not put there itself. */
static void forward_outbox(struct shard_io *io)
{
        if (io->is_forwarding)
                return;
        io->is_forwarding = true;
        io->forward = (struct store_forward){ .request = { .done = on_forwarded }, .lease = io->shard.lease };
        store_forward(io->all->store, &io->forward);
}

static void report_merged(struct shard_io *io)
{
        const struct shard *s = &io->shard;
        for (uint32_t i = 0; i < shard_telling_count(s); i++) {
                const struct claimed *c = s->telling->tasks[i];
                if (c->pending->outcome.merged_count)
                        io->all->events->merged(io->all->self, c, c->pending->outcome.merged_count);
        }
}

static void on_advanced(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        if (io->advance.verdict == STORE_OK && !io->advance.gone)
                report_merged(io);
        shard_advanced(&io->shard, &io->advance, now(io));
        dispatch_told(io->all->dispatch, io->shard.number, io->advance.outcomes_count);
        for (uint32_t i = 0; i < io->advance.controls_count; i++)
                obey(io, &io->advance.controls[i]);
        if (io->advance.verdict == STORE_OK && io->advance.has_outbox)
                forward_outbox(io);
        after_reply(io, fenced);
}

static void on_named(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        shard_named(&io->shard, &io->names);
        after_reply(io, fenced);
}

static void on_woken(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        shard_woken(&io->shard, &io->wake);
        after_reply(io, fenced);
}

/* Skips a schedule that cannot be parsed or whose time zone is not on this machine; the others still fire. */
static void add_schedule(struct shard_io *io, const struct store_schedule *stored)
{
        struct error error = { { 0 } };
        if (stored->state != SCHEDULE_ACTIVE || stored->next_ms == STORE_NEVER)
                return;
        struct schedule *definition = memory_zero(1, sizeof(*definition));
        int r = schedule_parse(definition, stored->definition, &error);
        /* The store would refuse these, and they would be fired again and again. */
        if (r == 0 && shard_of_key(schedule_key(definition, stored->name), io->all->count) != io->shard.number)
                r = error_set(&error, -EINVAL, "its key belongs to another shard");
        if (r == 0 && stored->next_ms % 1000)
                r = error_set(&error, -EINVAL, "its next time is not in whole seconds");
        if (r == 0)
                r = schedule_read_zone(definition, &error);
        if (r == 0) {
                shard_schedules_add(io->shard.schedules, stored, definition);
                return;
        }
        log_event(LEVEL_ERROR, "schedule-unreadable", "schedule=%.*s shard=%" PRIu32 " error=%s text=%s",
                (int)stored->name.size, stored->name.data, io->shard.number, LOG_QUOTE(error.text),
                LOG_QUOTE("it does not fire on this host; set it again, or mend what is missing and pause and resume "
                          "it"));
        schedule_free(definition);
        free(definition);
}

static void on_listed(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (has_failed(io, request))
                return;
        shard_listed(&io->shard);
        /* The shard, and with it the schedules, may have been lost meanwhile. */
        if (!io->shard.schedules)
                return;
        shard_schedules_begin(io->shard.schedules);
        for (uint32_t i = 0; i < io->schedules.schedules_count; i++)
                add_schedule(io, &io->schedules.schedules[i]);
}

static void on_fired(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (request->status == -EINVAL) {
                log_event(LEVEL_ERROR, "schedule-refused", "shard=%" PRIu32 " error=%s text=%s", io->shard.number,
                        LOG_QUOTE(request->error.text),
                        LOG_QUOTE("what was due there does not fire; set these schedules again"));
                shard_fires_refused(&io->shard);
                return;
        }
        if (has_failed(io, request))
                return;
        uint64_t fenced = io->shard.fenced;
        for (uint32_t i = 0; i < io->fires.fires_count && io->fires.verdict == STORE_OK; i++) {
                const struct store_fire *fire = &io->fires.fires[i];
                if (fire->fired != STORE_FIRE_STALE)
                        log_event(LEVEL_DEBUG, fire->fired == STORE_FIRED ? "schedule-fired" : "schedule-skipped",
                                "schedule=%.*s shard=%" PRIu32 " at_ms=%" PRIu64 " passed=%" PRIu32,
                                (int)fire->name.size, fire->name.data, io->shard.number, fire->expected_ms,
                                fire->passed);
        }
        shard_fired(&io->shard, &io->fires);
        after_reply(io, fenced);
}

static void on_released(struct store_request *request)
{
        struct shard_io *io = container_of(request, struct shard_io, request);
        if (has_failed(io, request))
                return;
        shard_released(&io->shard);
        io->all->counts.released++;
        cancel_stale(io); /* lent tasks are the next owner's to wait for */
        show_lease(io);
}

static void fire(struct shard_io *io, uint64_t now_ms)
{
        struct claimed *replaced[STORE_CALL_FIRES];
        uint32_t replaced_count;
        shard_fill_fires(&io->shard, &io->fires, now_ms, replaced, &replaced_count);
        io->request.done = on_fired;
        store_fires(io->all->store, &io->fires);
        for (uint32_t i = 0; i < replaced_count; i++)
                io->all->events->stop(io->all->self, replaced[i]);
}

static void make_call(struct shard_io *io, enum shard_call call, uint64_t now_ms)
{
        struct store *store = io->all->store;
        io->sent_ns = clock_boot_ns();
        switch (call) {
        case SHARD_CALL_ACQUIRE:
                shard_fill_acquire(&io->shard, &io->acquire, now_ms);
                io->acquire.host = io->all->host ? span_of_text(io->all->host) : (struct span){ 0 };
                /* The last owner is gone, but the lease may still be held by a member that had to give the shard to it:
                 * never force that one. */
                if (assignment_lists(io->all->assignment, io->shard.holder))
                        io->acquire.is_firm = false;
                /* Show the lease before the request is sent: if we die before the answer, our guard releases this one,
                 * too. */
                show_lease(io);
                io->request.done = on_acquired;
                store_acquire(store, &io->acquire);
                break;
        case SHARD_CALL_PAGE:
                shard_fill_page(&io->shard, &io->page, now_ms);
                io->request.done = on_paged;
                store_in_flight(store, &io->page);
                break;
        case SHARD_CALL_ADVANCE:
                shard_fill_advance(&io->shard, &io->advance, now_ms);
                io->request.done = on_advanced;
                store_advance(store, &io->advance);
                break;
        case SHARD_CALL_NAMES:
                shard_fill_names(&io->shard, &io->names, now_ms);
                io->request.done = on_named;
                store_names(store, &io->names);
                break;
        case SHARD_CALL_WAKE:
                shard_fill_wake(&io->shard, &io->wake, now_ms);
                io->request.done = on_woken;
                store_wake(store, &io->wake);
                break;
        case SHARD_CALL_SCHEDULES:
                shard_fill_schedules(&io->shard, &io->schedules, now_ms);
                io->request.done = on_listed;
                store_schedule_list(store, &io->schedules);
                break;
        case SHARD_CALL_FIRES:
                fire(io, now_ms);
                break;
        case SHARD_CALL_RELEASE:
                shard_fill_release(&io->shard, &io->release, now_ms);
                io->request.done = on_released;
                store_release(store, &io->release);
                break;
        case SHARD_CALL_NONE:
                break;
        }
}

static struct claimed *find_handed(const struct shard *s)
{
        for (struct window_key *key = window_keys_first(&s->window.keys); key;
                key = window_keys_next(&s->window.keys, key))
                for (struct claimed *c = key->first; c; c = c->next)
                        if (c->state == CLAIMED_RUNNING && !c->pool_task.is_recalled)
                                return c;
        return NULL;
}

/* Takes tasks back that a pool has but has not started: while we wait for running ones, the next owner could start
 * these sooner.  Each search starts from the beginning, because a task that is taken back is in the window again. */
static void recall(struct shards *all)
{
        const struct shard_set *changed = &all->schedule.changed;
        for (uint32_t i = 0; (i = shard_set_from(changed, i)) != SHARD_SET_NONE; i++) {
                struct shard *s = &all->list[i].shard;
                struct claimed *c;
                if (!s->must_recall)
                        continue;
                s->must_recall = false;
                while ((s->state == SHARD_LEAVING || s->is_to_leave) && (c = find_handed(s))) {
                        c->pool_task.is_recalled = true;
                        all->events->recall(all->self, c);
                }
        }
}

void shards_see_clock(struct shards *all, uint64_t wall_ms, uint64_t now_ms)
{
        int64_t ahead_ms = (int64_t)wall_ms - (int64_t)now_ms;
        int64_t moved_ms = ahead_ms - all->wall_ahead_ms;
        /* Small differences are normal: the clocks are read one after the other, and the wall clock is slewed. */
        if (moved_ms > -2 && moved_ms < 2)
                return;
        all->wall_ahead_ms = ahead_ms;
        for (uint32_t i = 0; i < all->count; i++)
                if (all->list[i].shard.schedules)
                        shard_stir(&all->list[i].shard);
}

void shards_call(struct shards *all, uint64_t now_ms)
{
        struct shard *shard;
        enum shard_call call;
        recall(all);
        call_schedule_look(&all->schedule, now_ms);
        while ((shard = call_schedule_next(&all->schedule, now_ms, &call)))
                make_call(&all->list[shard->number], call, now_ms);
}

/* --- renewal --- */

static void on_renewed(struct store_request *request)
{
        struct shards *all = container_of(request, struct shards, renew.request);
        all->is_renewing = false;
        if (request->status == -ECANCELED)
                return;
        histogram_add(&all->counts.renewals, clock_boot_ns() - all->renew_sent_ns);
        all->counts.failed += request->status < 0;
        all->events->renewed(all->self, request->status < 0 ? request->error.text : NULL, all->renew.desired_version);
        for (uint32_t i = 0; request->status == 0 && i < all->renew.items_count; i++) {
                const struct store_renewal *renewal = &all->renewals[i];
                struct shard_io *io = &all->list[renewal->lease.shard];
                uint64_t fenced = io->shard.fenced;
                if (io->shard.lease.epoch == renewal->lease.epoch)
                        shard_renewed(&io->shard, renewal, all->renew_sent_ms, now(io));
                after_reply(io, fenced);
        }
}

void shards_renew(struct shards *all, uint64_t now_ms)
{
        if (all->is_renewing)
                return;
        uint32_t count = 0;
        for (uint32_t i = 0; i < all->count; i++) {
                const struct shard *s = &all->list[i].shard;
                if (shard_is_held(s))
                        all->renewals[count++] = (struct store_renewal){ .lease = s->lease };
        }
        /* Renew even with no leases: the answer proves that the store is reachable, and carries the desired state's
         * version. */
        all->renew = (struct store_renew){ .items = all->renewals, .items_count = count };
        all->renew.request.done = on_renewed;
        all->renew_sent_ms = now_ms;
        all->renew_sent_ns = clock_boot_ns();
        all->is_renewing = true;
        store_renew(all->store, &all->renew);
}

/* --- load --- */

/* Hosts publish their loads every few seconds at most, so shorter intervals have no use. */
#define LOAD_SAMPLE_MS 3000u

bool shards_sample_load(struct shards *all, uint64_t now_ms, struct load_summary *ret_load)
{
        struct load_summary load = { 0 };
        if (now_ms < all->sampled_ms + LOAD_SAMPLE_MS)
                return false;
        for (uint32_t i = 0; i < all->count; i++) {
                struct shard *s = &all->list[i].shard;
                shard_load_sample(&s->load, now_ms - all->sampled_ms, shard_is_held(s));
                if (s->load.mean)
                        load_summary_add(&load, i, s->load.mean);
        }
        load_summary_end(&load);
        all->sampled_ms = now_ms;
        *ret_load = load;
        return true;
}
