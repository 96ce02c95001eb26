#include "host/lend/lender.h"

#include "base/numbers.h"

bool lender_look(struct lender *l, bool is_short, uint64_t now_ms)
{
        if (!is_short) {
                l->short_ms = l->look_ms = 0;
                l->count = 0;
                return false;
        }
        if (!l->short_ms) {
                l->short_ms = now_ms;
                l->look_ms = now_ms + LENDER_AFTER_MS;
        }
        return now_ms >= l->look_ms;
}

void lender_counted(struct lender *l, uint32_t count, uint64_t now_ms)
{
        bool is_said = count && l->is_told && !l->is_in_vain;
        l->count = count;
        l->look_ms = now_ms + (is_said ? LENDER_REST_MS : LENDER_LOOK_MS);
}

void lender_asked_in_vain(struct lender *l)
{
        l->is_in_vain = true;
        l->look_ms = 0;
}

bool lender_wants_to_tell(const struct lender *l, uint64_t paced_ms, uint64_t now_ms, uint32_t *ret_tasks)
{
        bool is_wanting = l->count > 0;
        if (l->is_telling || now_ms < paced_ms)
                return false;
        bool is_news = is_wanting != l->is_told || (is_wanting && l->is_in_vain);
        bool is_old = is_wanting && now_ms >= l->told_ms + LENDER_KEEP_MS / 2;
        *ret_tasks = l->count;
        return is_news || is_old;
}

void lender_telling(struct lender *l, uint32_t tasks, uint64_t now_ms)
{
        l->is_telling = true;
        l->is_telling_of = tasks > 0;
        l->is_in_vain = false;
        l->told_ms = now_ms;
}

void lender_told(struct lender *l, bool is_done)
{
        l->is_telling = false;
        /* After a failure the record's content is unknown, so it is written again. */
        l->is_told = is_done ? l->is_telling_of : !l->is_telling_of;
}

uint64_t lender_due_ms(const struct lender *l, uint64_t paced_ms)
{
        uint32_t tasks;
        if (l->is_telling)
                return UINT64_MAX;
        if (lender_wants_to_tell(l, 0, l->told_ms, &tasks))
                return paced_ms;
        uint64_t due_ms = l->short_ms ? l->look_ms : UINT64_MAX;
        return l->count ? min_u64(due_ms, l->told_ms + LENDER_KEEP_MS / 2) : due_ms;
}
