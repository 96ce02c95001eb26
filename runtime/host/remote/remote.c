#include "host/remote/remote.h"

#include "base/numbers.h"
#include "ring/pack.h"

/* A worker polls again soon after its answer, so it counts as present for this long. */
#define SERVED_MS UINT64_C(5000)

#define PAUSE_MS     UINT64_C(1000)
#define PAUSE_MAX_MS UINT64_C(30000)

uint32_t remote_room(const struct remote_handler *remote, uint32_t concurrency, uint64_t now_ms)
{
        if (now_ms < remote->paused_ms)
                return 0;
        uint32_t places = concurrency > remote->lent ? concurrency - remote->lent : 0;
        return (uint32_t)min_u64(remote->polls_count, places);
}

bool remote_is_served(const struct remote_handler *remote, uint64_t now_ms)
{
        return remote->polls || remote->lent || (remote->seen_ms && now_ms < remote->seen_ms + SERVED_MS);
}

uint32_t remote_own_polls(const struct remote_handler *remote)
{
        uint32_t count = 0;
        for (const struct work_poll *poll = remote->polls; poll; poll = poll->next)
                count += !poll->lent && !poll->is_foreign;
        return count;
}

const char *remote_first_worker(const struct remote_handler *remote)
{
        for (const struct work_poll *poll = remote->polls; poll; poll = poll->next)
                if (!poll->lent && !poll->is_foreign)
                        return poll->worker;
        return "";
}

void remote_pause(struct remote_handler *remote, const struct work_report *report, uint64_t now_ms)
{
        if (report->outcome != OUTCOME_UNAVAILABLE) {
                remote->pauses = 0;
                return;
        }
        uint64_t pause_ms = min_u64(PAUSE_MS << min_u64(remote->pauses, 5), PAUSE_MAX_MS);
        if (report->has_retry_after)
                pause_ms = report->retry_after_ms;
        else
                remote->pauses++;
        remote->paused_ms = max_u64(remote->paused_ms, now_ms + pause_ms);
}

uint64_t lent_give_ms(const struct lent *lent, uint64_t ttl_ms, uint64_t timeout_ms, uint64_t now_ms)
{
        if (!timeout_ms)
                return ttl_ms;
        uint64_t end_ms = lent->started_ms + timeout_ms;
        return end_ms > now_ms ? min_u64(ttl_ms, end_ms - now_ms) : 0;
}

uint64_t lent_remaining_ms(const struct lent *lent, uint64_t now_ms)
{
        uint64_t end_ms = lent->sent_ms + lent->told_for_ms - lent->told_for_ms / 10;
        return lent->told_ms && end_ms > now_ms ? end_ms - now_ms : 0;
}

uint64_t lent_due_ms(const struct lent *lent)
{
        /* A heartbeat came in time, and the store has it or is about to: the store's answer sets the new deadline. */
        if (!lent->told_ms || lent->is_to_tell || lent->is_telling || lent->is_ended || !lent->claimed)
                return UINT64_MAX;
        return lent->told_ms + lent->told_for_ms;
}

bool lent_wants_more(const struct lent *lent, uint64_t ttl_ms, uint64_t now_ms)
{
        return !lent->is_to_tell && !lent->is_telling &&
               now_ms + ttl_ms - ttl_ms / 3 >= lent->sent_ms + lent->told_for_ms;
}

enum outcome lent_silence(const struct lent *lent, bool is_timeout)
{
        if (lent->is_seat)
                return OUTCOME_INTERRUPTED; /* a silent host never blames the handler */
        if (is_timeout)
                return OUTCOME_TIMED_OUT;
        return lent->claimed->silences >= REMOTE_SILENCES_FREE ? OUTCOME_CRASHED : OUTCOME_INTERRUPTED;
}
