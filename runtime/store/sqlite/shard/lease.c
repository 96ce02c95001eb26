/* Leases: acquire, in-flight pages, renew, release.  See "The lease" in ../README.md. */
#include <errno.h>
#include <string.h>

#include "base/numbers.h"
#include "store/sqlite/sqlite.h"

static bool is_nonce(const uint8_t a[STORE_NONCE_SIZE], const uint8_t b[STORE_NONCE_SIZE])
{
        return !memcmp(a, b, STORE_NONCE_SIZE);
}

bool lease_is_ours(const struct sqlite_shard_row *shard, const struct store_lease *lease)
{
        return shard->is_held && shard->epoch == lease->epoch && is_nonce(shard->holder, lease->nonce);
}

enum fence fence_check(const struct sqlite_shard_row *shard, const struct store_lease *lease, uint64_t call)
{
        if (!lease_is_ours(shard, lease))
                return FENCE_FENCED;
        if (call == shard->call + 1)
                return FENCE_OK;
        return call == shard->call ? FENCE_REPEAT : FENCE_FENCED;
}

/* Remaining time of a lease.  A lease from another boot has expired; one that ends further away than its ttl is cut to
 * the ttl, because the clock must have been stepped back. */
uint64_t lease_left_ms(struct sqlite_store *s, const struct sqlite_shard_row *shard)
{
        if (!shard->is_held || shard->boot != s->boot || shard->until_ms <= s->now_ms)
                return 0;
        uint64_t left = shard->until_ms - s->now_ms;
        return min_u64(left, shard->ttl_ms);
}

static bool is_wanted(struct sqlite_store *s, const struct sqlite_shard_row *shard)
{
        return shard->want_epoch > shard->epoch && shard->want_until_ms > s->now_ms;
}

enum store_wanted lease_wanted(struct sqlite_store *s, const struct sqlite_shard_row *shard)
{
        if (!is_wanted(s, shard))
                return STORE_NOT_WANTED;
        return shard->want_firm_ms ? STORE_WANTED_FIRM : STORE_WANTED_PATIENT;
}

bool lease_extend(struct sqlite_store *s, struct sqlite_shard_row *shard, uint64_t ttl_ms)
{
        if (is_wanted(s, shard) && shard->want_firm_ms && s->now_ms >= shard->want_firm_ms + shard->want_drain_ms)
                return true;
        shard->ttl_ms = ttl_ms;
        shard->until_ms = s->now_ms + ttl_ms;
        shard->boot = s->boot;
        return false;
}

static uint64_t first_number(struct query *q)
{
        uint64_t value = query_row(q) ? column_number(q, 0) : UINT64_MAX;
        query_end(q);
        return value;
}

uint64_t shard_next_due_ms(struct sqlite_store *s, const struct sqlite_shard_row *shard, uint64_t keys_from_ms)
{
        uint64_t delayed = UINT64_MAX;
        uint64_t key = UINT64_MAX;
        if (shard->delayed) {
                struct query q = query(&s->db, STATEMENT_DELAYED_NEXT_DUE);
                bind_number(&q, shard->shard);
                delayed = first_number(&q);
        }
        if (shard->keys) {
                struct query q = query(&s->db, STATEMENT_KEY_NEXT_DUE);
                bind_number(&q, shard->shard);
                bind_number(&q, keys_from_ms);
                key = first_number(&q);
        }
        uint64_t due = min_u64(delayed, key);
        if (due == UINT64_MAX)
                return STORE_NEVER;
        return due > s->now_ms ? due - s->now_ms : 0;
}

bool shard_has_work(struct sqlite_store *s, const struct sqlite_shard_row *shard)
{
        return shard_queued(shard) || shard->controls || shard_next_due_ms(s, shard, 0) == 0;
}

/* --- acquire --- */

static void want(struct sqlite_store *s, struct sqlite_shard_row *shard, const struct store_acquire *acquire)
{
        const struct store_lease *lease = &acquire->lease;
        bool is_same = is_wanted(s, shard) && shard->want_epoch == lease->epoch;
        if (is_wanted(s, shard) && shard->want_epoch > lease->epoch)
                return;
        shard->want_epoch = lease->epoch;
        memcpy(shard->want_nonce, lease->nonce, STORE_NONCE_SIZE);
        shard->want_until_ms = s->now_ms + lease->ttl_ms;
        shard->want_drain_ms = acquire->drain_ms;
        if (!acquire->is_firm)
                shard->want_firm_ms = 0;
        else if (!is_same || !shard->want_firm_ms)
                shard->want_firm_ms = s->now_ms;
        ring_holder(s, shard);
}

/* Writes the holder's host name, which is only for people and not part of the row in memory. */
static void name_holder(
        struct sqlite_store *s, const struct sqlite_shard_row *shard, const struct store_acquire *acquire)
{
        if (!acquire->host.size && is_nonce(shard->holder, acquire->lease.nonce))
                return;
        struct query q = query(&s->db, STATEMENT_SHARD_HOST_SET);
        bind_number(&q, shard->shard);
        bind_text(&q, acquire->host);
        (void)query_run(&q);
}

static void grant(struct sqlite_store *s, struct sqlite_shard_row *shard, struct store_acquire *acquire)
{
        const struct store_lease *lease = &acquire->lease;
        acquire->grant = STORE_GRANTED;
        acquire->is_recovery = shard->is_held && !is_nonce(shard->holder, lease->nonce);
        name_holder(s, shard, acquire);
        shard->epoch = lease->epoch;
        memcpy(shard->holder, lease->nonce, STORE_NONCE_SIZE);
        shard->is_held = true;
        /* Earlier calls have the number call (its answer was lost) or call + 1 (still on its way); now neither
         * matches. */
        shard->call += 2;
        shard->last_count = 0;
        control_return(s, shard);
        (void)lease_extend(s, shard, lease->ttl_ms);
        acquire->call = shard->call;
        acquire->left_ms = lease_left_ms(s, shard);
}

static enum store_grant decide(
        struct sqlite_store *s, const struct sqlite_shard_row *shard, const struct store_lease *lease)
{
        bool is_same_nonce = is_nonce(shard->holder, lease->nonce);
        if (lease->epoch < shard->epoch)
                return STORE_STALE;
        if (lease->epoch == shard->epoch)
                return is_same_nonce ? STORE_GRANTED : STORE_STALE;
        if (!shard->is_held || is_same_nonce || !lease_left_ms(s, shard))
                return STORE_GRANTED;
        return STORE_BUSY;
}

void strays_bury(struct sqlite_store *s, struct sqlite_shard_row *shard, struct arena_chunk **arena)
{
        /* Ranges beyond each lane's current segment, and ids without a valid lane. */
        uint64_t ranges[STRAY_RANGES][2];
        log_stray_ranges(&s->shards, &s->db, ranges);
        for (unsigned i = 0; i < STRAY_RANGES; i++) {
                struct stray strays[STRAYS_MAX];
                uint32_t count = 0;
                struct query q = query(&s->db, STATEMENT_LOG_STRAYS);
                bind_number(&q, ranges[i][0]);
                bind_number(&q, ranges[i][1]);
                bind_number(&q, shard->shard);
                bind_number(&q, STRAYS_MAX);
                while (query_row(&q))
                        strays[count++] = (struct stray){ .seq = log_seq(column_number(&q, 0)),
                                .why = -EBADMSG,
                                .error = { "the log had it under a number that was never given" },
                                .task = arena_copy(arena, column_span(&q, 1)),
                                .note = arena_copy(arena, column_span(&q, 2)) };
                query_end(&q);
                /* These rows were not counted as tasks of the shard so far. */
                shard->submitted += count;
                shard->in_flight += count;
                for (uint32_t n = 0; n < count; n++)
                        flight_bury(s, shard, &strays[n]);
        }
}

/* An owner's window bounds what is in flight.  Above this number only the next tasks are searched, in order. */
#define FLIGHT_LISTED 8192u

/* The seqs in flight behind `after_seq`, in order: all of them, or at least `max` if there are that many. */
static uint64_t *flight_list(struct sqlite_store *s, struct arena_chunk **arena, const struct sqlite_shard_row *shard,
        uint64_t after_seq, uint32_t max, uint32_t *ret_count)
{
        uint32_t room = shard->in_flight <= FLIGHT_LISTED ? (uint32_t)shard->in_flight : max;
        uint64_t *seqs = arena_take(arena, room * sizeof(*seqs));
        uint32_t count = 0;
        *ret_count = 0;
        if (shard->in_flight <= FLIGHT_LISTED) {
                static const uint64_t none[LANES];
                count = log_both_ways(&s->db, shard->shard, none, shard->taken, LOG_ANY_LOOKS, seqs, room);
                uint32_t first = 0;
                while (first < count && seqs[first] <= after_seq)
                        first++;
                *ret_count = count - first;
                return seqs + first;
        }
        for (unsigned lane = 0; lane < LANES; lane++) {
                uint64_t after = max_u64(after_seq, lane_seq((enum lane)lane, 0));
                if (after >= lane_seq((enum lane)lane, shard->taken[lane]))
                        continue;
                struct log_scan scan =
                        log_scan(&s->db, shard->shard, (enum lane)lane, seq_number(after), shard->taken[lane]);
                while (count < room && log_scan_next(&scan))
                        seqs[count++] = lane_seq((enum lane)lane, scan.number);
                log_scan_end(&scan);
        }
        *ret_count = count;
        return seqs;
}

static void page_read(struct sqlite_store *s, struct store_request *request, struct sqlite_shard_row *shard,
        uint64_t after_seq, uint32_t max, struct store_page *ret_page)
{
        struct claim claim;
        struct stray strays[STRAYS_MAX];
        uint32_t bad = 0;
        uint32_t count = 0;
        claim_init(&claim, request_arena(request), max);
        *ret_page = (struct store_page){ 0 };
        const uint64_t *seqs =
                max ? flight_list(s, request_arena(request), shard, after_seq, max + STRAYS_MAX, &count) : NULL;
        for (uint32_t i = 0; i < count && !s->db.failure; i++) {
                if (claim.count == max || bad == STRAYS_MAX || (claim.count && claim.bytes >= STORE_CALL_BYTES)) {
                        ret_page->has_more = true;
                        break;
                }
                struct stray *stray = &strays[bad];
                struct query q = query(&s->db, STATEMENT_LOG_GET);
                bind_number(&q, log_id(shard->shard, seqs[i]));
                *stray = (struct stray){ .seq = seqs[i] };
                bool is_there = query_row(&q);
                if (is_there)
                        stray->why = claim_add(
                                s, &claim, shard, stray->seq, column_span(&q, 0), column_span(&q, 1), &stray->error);
                if (stray->why) {
                        stray->task = arena_copy(claim.arena, column_span(&q, 0));
                        stray->note = arena_copy(claim.arena, column_span(&q, 1));
                        bad++;
                }
                query_end(&q);
        }
        /* Malformed tasks become dead: in flight nobody would ever meet them again. */
        for (uint32_t i = 0; i < bad; i++)
                flight_bury(s, shard, &strays[i]);
        for (uint32_t i = 0; i < claim.count && shard->keys; i++) {
                struct key key;
                claim.tasks[i].is_key_waiting = key_get(s, shard, claim.tasks[i].key, &key) &&
                                                (key.state >= KEY_PARKED || side_first(s, &key) < claim.tasks[i].seq);
        }
        ret_page->tasks = claim.tasks;
        ret_page->tasks_count = claim.count;
}

void sqlite_acquire(struct sqlite_store *s, struct store_request *request)
{
        struct store_acquire *acquire = (struct store_acquire *)request;
        const struct store_lease *lease = &acquire->lease;
        struct sqlite_shard_row *shard = shard_write(s, lease->shard);
        acquire->grant = decide(s, shard, lease);
        acquire->stored_epoch = shard->epoch;
        acquire->busy_ms = 0;
        acquire->page = (struct store_page){ 0 };
        if (acquire->grant == STORE_BUSY) {
                acquire->busy_ms = lease_left_ms(s, shard);
                memcpy(acquire->holder, shard->holder, STORE_NONCE_SIZE);
                /* Store the cut, otherwise it would start anew with every acquire. */
                shard->until_ms = s->now_ms + acquire->busy_ms;
                want(s, shard, acquire);
        } else if (acquire->grant == STORE_GRANTED) {
                grant(s, shard, acquire);
                strays_bury(s, shard, request_arena(request));
                page_read(s, request, shard, 0, acquire->page_tasks, &acquire->page);
                acquire->has_work = shard_has_work(s, shard);
                acquire->has_names = shard_has_names(s, shard);
                acquire->next_due_ms = shard_next_due_ms(s, shard, 0);
                acquire->next_schedule_ms = shard_next_schedule_ms(s, lease->shard);
                acquire->stored_epoch = shard->epoch;
        }
}

void sqlite_in_flight(struct sqlite_store *s, struct store_request *request)
{
        struct store_in_flight *in_flight = (struct store_in_flight *)request;
        struct sqlite_shard_row *shard = shard_write(s, in_flight->lease.shard);
        in_flight->page = (struct store_page){ 0 };
        in_flight->verdict = lease_is_ours(shard, &in_flight->lease) ? STORE_OK : STORE_FENCED;
        if (in_flight->verdict == STORE_OK)
                page_read(s, request, shard, in_flight->after_seq, in_flight->page_tasks, &in_flight->page);
}

/* --- renew, release, forward --- */

static void renew_one(struct sqlite_store *s, struct store_renewal *renewal)
{
        const struct store_lease *lease = &renewal->lease;
        *renewal = (struct store_renewal){ .lease = *lease, .verdict = STORE_FENCED, .next_due_ms = STORE_NEVER };
        /* A bad row of one shard must not cost us the other leases. */
        if (shard_is_bad(&s->shards, &s->db, lease->shard))
                return;
        if (!lease_is_ours(shard_read(s, lease->shard), lease))
                return;
        struct sqlite_shard_row *shard = shard_write(s, lease->shard);
        renewal->verdict = STORE_OK;
        renewal->is_refused = lease_extend(s, shard, lease->ttl_ms);
        renewal->wanted = lease_wanted(s, shard);
        renewal->has_work = shard_has_work(s, shard);
        renewal->next_due_ms = shard_next_due_ms(s, shard, 0);
        renewal->left_ms = lease_left_ms(s, shard);
}

void sqlite_renew(struct sqlite_store *s, struct store_request *request)
{
        struct store_renew *renew = (struct store_renew *)request;
        for (uint32_t i = 0; i < renew->items_count; i++)
                renew_one(s, &renew->items[i]);
        struct query q = query(&s->db, STATEMENT_META_GET);
        bind_text(&q, SPAN_TEXT("desired_version"));
        renew->desired_version = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
}

void sqlite_release(struct sqlite_store *s, struct store_request *request)
{
        struct store_release *release = (struct store_release *)request;
        const struct store_lease *lease = &release->lease;
        struct sqlite_shard_row *shard = shard_write(s, lease->shard);
        bool is_repeat = !shard->is_held && shard->epoch == lease->epoch && shard->call == release->call &&
                         is_nonce(shard->holder, lease->nonce);
        release->verdict = STORE_OK;
        if (is_repeat)
                return;
        if (fence_check(shard, lease, release->call) != FENCE_OK) {
                release->verdict = STORE_FENCED;
                return;
        }
        shard->is_held = release->is_death;
        shard->until_ms = 0;
        shard->call = release->call;
        shard->last_count = 0;
        /* Rings the host that wants the shard, so that it need not wait for its next acquire. */
        if (is_wanted(s, shard))
                doorbells_add(&s->bells, shard->want_nonce, shard->shard);
}

/* Advance puts follow-ups into their shards itself: one file holds them all. */
void sqlite_forward(struct sqlite_store *s, struct store_request *request)
{
        struct store_forward *forward = (struct store_forward *)request;
        const struct sqlite_shard_row *shard = shard_read(s, forward->lease.shard);
        forward->verdict = lease_is_ours(shard, &forward->lease) ? STORE_OK : STORE_FENCED;
        forward->has_more = false;
}
