#include "host/lend/borrower.h"

#include <string.h>

#include "base/numbers.h"

/* --- choosing an owner to ask --- */

void borrower_rang(struct borrower *b)
{
        b->is_stale = true;
}

void borrower_listing(struct borrower *b, uint64_t now_ms)
{
        b->is_listing = true;
        b->is_stale = false; /* a ring from now on announces a newer change */
        b->listed_ms = now_ms;
        b->wants_count = 0;
}

void borrower_found(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE], uint64_t tasks)
{
        if (b->wants_count == BORROWER_WANTS)
                return;
        struct borrower_want *want = &b->wants[b->wants_count++];
        *want = (struct borrower_want){ .slot = slot, .tasks = tasks };
        memcpy(want->nonce, nonce, STORE_NONCE_SIZE);
}

void borrower_listed(struct borrower *b, bool is_done)
{
        b->is_listing = false;
        b->is_stale |= !is_done;
}

static struct borrower_want *find_want(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE])
{
        for (uint32_t i = 0; i < b->wants_count; i++)
                if (b->wants[i].slot == slot && !memcmp(b->wants[i].nonce, nonce, STORE_NONCE_SIZE))
                        return &b->wants[i];
        return NULL;
}

static struct borrower_ask *find_ask(const struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE])
{
        for (uint32_t i = 0; i < b->asks_count; i++)
                if (b->asks[i].slot == slot && !memcmp(b->asks[i].nonce, nonce, STORE_NONCE_SIZE))
                        return (struct borrower_ask *)&b->asks[i];
        return NULL;
}

static void drop_ask(struct borrower *b, struct borrower_ask *ask)
{
        *ask = b->asks[--b->asks_count];
}

void borrower_none(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE])
{
        struct borrower_want *want = find_want(b, slot, nonce);
        struct borrower_ask *ask = find_ask(b, slot, nonce);
        if (want)
                want->is_tried = true;
        if (ask)
                drop_ask(b, ask);
}

void borrower_got(struct borrower *b, uint32_t slot, const uint8_t nonce[STORE_NONCE_SIZE])
{
        struct borrower_ask *ask = find_ask(b, slot, nonce);
        if (ask && !--ask->seats)
                drop_ask(b, ask);
}

void borrower_forget(struct borrower *b, uint32_t slot)
{
        for (uint32_t i = b->asks_count; i-- > 0;)
                if (b->asks[i].slot == slot)
                        drop_ask(b, &b->asks[i]);
        for (uint32_t i = b->wants_count; i-- > 0;)
                if (b->wants[i].slot == slot)
                        b->wants[i] = b->wants[--b->wants_count];
}

static void expire_asks(struct borrower *b, uint64_t now_ms)
{
        for (uint32_t i = b->asks_count; i-- > 0;)
                if (now_ms >= b->asks[i].until_ms)
                        borrower_none(b, b->asks[i].slot, b->asks[i].nonce);
}

/* Seats of the handler that are free and have not been offered. */
static uint32_t count_free(const struct borrower *b, const struct borrower_seats *seats)
{
        uint64_t offered = 0;
        for (uint32_t i = 0; i < b->asks_count; i++)
                offered += b->asks[i].slot == seats->slot ? b->asks[i].seats : 0;
        return seats->free > offered ? (uint32_t)(seats->free - offered) : 0;
}

static struct borrower_want *best_want(struct borrower *b, uint32_t slot)
{
        struct borrower_want *best = NULL;
        for (uint32_t i = 0; i < b->wants_count; i++) {
                struct borrower_want *want = &b->wants[i];
                if (want->slot != slot || want->is_tried || find_ask(b, slot, want->nonce))
                        continue;
                if (!best || want->tasks > best->tasks)
                        best = want;
        }
        return best;
}

static bool has_free(const struct borrower *b, const struct borrower_seats *seats, uint32_t seats_count)
{
        for (uint32_t i = 0; i < seats_count; i++)
                if (count_free(b, &seats[i]))
                        return true;
        return false;
}

enum borrower_step borrower_next(struct borrower *b, const struct borrower_seats *seats, uint32_t seats_count,
        uint64_t now_ms, struct borrower_ask *ret_ask)
{
        expire_asks(b, now_ms);
        if (b->is_stale && !b->is_listing && (!b->listed_ms || now_ms >= b->listed_ms + BORROWER_LIST_MS) &&
                has_free(b, seats, seats_count))
                return BORROWER_LIST;
        for (uint32_t i = 0; i < seats_count && b->asks_count < BORROWER_ASKS_MAX; i++) {
                uint32_t count = count_free(b, &seats[i]);
                struct borrower_want *want = count ? best_want(b, seats[i].slot) : NULL;
                if (!want || now_ms < seats[i].since_ms + BORROWER_IDLE_MS)
                        continue;
                struct borrower_ask *ask = &b->asks[b->asks_count++];
                *ask = (struct borrower_ask){ .slot = want->slot,
                        .seats = (uint32_t)min_u64(count, max_u64(want->tasks, 1)),
                        .until_ms = now_ms + BORROWER_ASK_MS };
                memcpy(ask->nonce, want->nonce, STORE_NONCE_SIZE);
                *ret_ask = *ask;
                return BORROWER_ASK;
        }
        return BORROWER_NOTHING;
}

uint64_t borrower_due_ms(const struct borrower *b, const struct borrower_seats *seats, uint32_t seats_count)
{
        uint64_t due_ms = UINT64_MAX;
        for (uint32_t i = 0; i < b->asks_count; i++)
                due_ms = min_u64(due_ms, b->asks[i].until_ms);
        if (!has_free(b, seats, seats_count))
                return due_ms;
        if (b->is_stale && !b->is_listing)
                due_ms = min_u64(due_ms, b->listed_ms + BORROWER_LIST_MS);
        for (uint32_t i = 0; i < seats_count; i++)
                if (count_free(b, &seats[i]) && best_want((struct borrower *)b, seats[i].slot))
                        due_ms = min_u64(due_ms, seats[i].since_ms + BORROWER_IDLE_MS);
        return due_ms;
}

/* --- a borrowed task --- */

static bool note_start(struct borrower_starts *starts, uint64_t start)
{
        uint8_t *byte = &starts->has_come[start % BORROWER_STARTS / 8];
        uint8_t bit = (uint8_t)(1u << start % 8);
        bool is_new = !(*byte & bit);
        *byte |= bit;
        return is_new;
}

bool borrower_is_new(struct borrower_starts *starts, const struct work_fence *fence)
{
        if (fence->epoch < starts->epoch)
                return false;
        if (fence->epoch > starts->epoch)
                *starts = (struct borrower_starts){ .epoch = fence->epoch, .start = fence->start };
        if (fence->start > starts->start && fence->start - starts->start >= BORROWER_STARTS) {
                memset(starts->has_come, 0, sizeof(starts->has_come));
                starts->start = fence->start;
        }
        /* Clears the bits of the numbers skipped: they still belong to starts BORROWER_STARTS earlier. */
        while (starts->start < fence->start) {
                starts->start++;
                starts->has_come[starts->start % BORROWER_STARTS / 8] &= (uint8_t)(0xffu ^ 1u << starts->start % 8);
        }
        return starts->start - fence->start < BORROWER_STARTS && note_start(starts, fence->start);
}

void borrowed_begin(struct borrowed_time *t, uint64_t ttl_ms, uint64_t now_ms)
{
        *t = (struct borrowed_time){
                .state = BORROWED_CONFIRMING, .ttl_ms = ttl_ms, .came_ms = now_ms, .call_ms = now_ms
        };
}

/* After this time no call to the store is worthwhile: the recorded start has certainly ended. */
static uint64_t hopeless_ms(const struct borrowed_time *t)
{
        return (t->until_ms ? t->until_ms : t->came_ms) + t->ttl_ms;
}

static enum borrowed_step call(struct borrowed_time *t, enum borrowed_step step, uint64_t now_ms)
{
        t->is_calling = true;
        t->sent_ms = now_ms;
        return step;
}

enum borrowed_step borrowed_next(struct borrowed_time *t, uint64_t now_ms)
{
        switch (t->state) {
        case BORROWED_CONFIRMING:
                if (t->is_calling || now_ms < t->call_ms)
                        return BORROWED_WAIT;
                return now_ms >= hopeless_ms(t) ? BORROWED_DROP : call(t, BORROWED_ASK, now_ms);
        case BORROWED_HELD:
                if (now_ms >= t->until_ms && !t->is_told_to_stop) {
                        t->is_told_to_stop = true;
                        return BORROWED_STOP;
                }
                if (t->is_calling || now_ms < t->call_ms || t->is_told_to_stop)
                        return BORROWED_WAIT;
                return call(t, BORROWED_ASK, now_ms);
        case BORROWED_TELLING:
                if (t->is_calling || now_ms < t->call_ms)
                        return BORROWED_WAIT;
                return now_ms >= hopeless_ms(t) ? BORROWED_DROP : call(t, BORROWED_TELL, now_ms);
        case BORROWED_OVER:
                break;
        }
        return t->is_calling ? BORROWED_WAIT : BORROWED_DROP;
}

void borrowed_confirmed(struct borrowed_time *t, uint64_t left_ms)
{
        t->is_calling = false;
        left_ms = min_u64(left_ms, t->ttl_ms);
        /* As for workers, our deadline is before the recorded one, because clocks drift. */
        uint64_t until_ms = t->sent_ms + left_ms - left_ms / 10;
        if (t->state == BORROWED_CONFIRMING)
                t->state = BORROWED_HELD;
        if (t->state != BORROWED_HELD)
                return;
        t->until_ms = until_ms;
        /* Heartbeats are due at a third of the time that one gives, or sooner if less is left. */
        t->call_ms = t->sent_ms + min_u64(t->ttl_ms, left_ms) / 3;
}

void borrowed_failed(struct borrowed_time *t, uint64_t now_ms)
{
        t->is_calling = false;
        t->call_ms = now_ms + BORROWED_RETRY_MS;
}

void borrowed_refused(struct borrowed_time *t)
{
        bool is_held = t->state == BORROWED_HELD && !t->has_ended;
        t->is_calling = false;
        if (is_held)
                t->until_ms = 0; /* it is stopped at once, and the task is over once no seat has it */
        else
                t->state = BORROWED_OVER;
}

bool borrowed_may_start(const struct borrowed_time *t, uint64_t now_ms)
{
        return t->state == BORROWED_HELD && !t->is_told_to_stop && now_ms < t->until_ms;
}

void borrowed_ended(struct borrowed_time *t, uint64_t now_ms)
{
        bool is_lost = t->state == BORROWED_HELD && !t->until_ms;
        t->has_ended = true;
        t->state = is_lost ? BORROWED_OVER : BORROWED_TELLING;
        t->call_ms = now_ms;
}

uint64_t borrowed_due_ms(const struct borrowed_time *t)
{
        uint64_t due_ms = t->is_calling ? UINT64_MAX : t->call_ms;
        if (t->state == BORROWED_OVER)
                return t->is_calling ? UINT64_MAX : 0;
        if (t->state == BORROWED_HELD)
                due_ms = t->is_told_to_stop ? UINT64_MAX : min_u64(due_ms, t->until_ms);
        return due_ms;
}
