#include <errno.h>

#include "internal.h"

static struct lock *find(const struct qv_mock *mock, const char *name)
{
        for (struct lock *lock = mock->locks; lock; lock = lock->next)
                if (!strcmp(lock->name, name))
                        return lock;
        return NULL;
}

static struct lock *find_or_add(struct qv_mock *mock, const char *name)
{
        struct lock *lock = find(mock, name);
        if (lock)
                return lock;
        lock = qv_mock_keep(&mock->kept, sizeof(*lock));
        lock->name = qv_mock_keep_text(&mock->kept, name);
        lock->next = mock->locks;
        mock->locks = lock;
        return lock;
}

static bool is_held(const struct qv_mock *mock, const struct lock *lock)
{
        return mock->now_ms < lock->until_ms;
}

static void hold(struct qv_mock *mock, struct lock *lock, uint64_t ttl_ms)
{
        lock->until_ms = ttl_ms < UINT64_MAX - mock->now_ms ? mock->now_ms + ttl_ms : UINT64_MAX;
}

int32_t qv_mock_lock_take(struct qv_mock *mock, const char *name, uint64_t ttl_ms, uint64_t *ret_token)
{
        struct lock *lock = find_or_add(mock, name);
        bool is_renewal = is_held(mock, lock);
        if (is_renewal && !lock->is_ours)
                return -EBUSY;
        if (!is_renewal) {
                /* A new holder, were it the same seat: whoever still acts on the old token is to be told from it. */
                lock->token = ++mock->last_token;
                lock->is_ours = true;
        }
        hold(mock, lock, ttl_ms);
        *ret_token = lock->token;
        return 0;
}

int32_t qv_mock_lock_give(struct qv_mock *mock, const char *name, uint64_t token)
{
        struct lock *lock = find(mock, name);
        if (!lock || !lock->is_ours || !is_held(mock, lock) || lock->token != token)
                return -ENOENT;
        lock->until_ms = 0;
        return 0;
}

void qv_mock_lock_elsewhere(struct qv_mock *mock, const char *name, uint64_t ttl_ms)
{
        struct lock *lock = find_or_add(mock, name);
        lock->token = ++mock->last_token;
        lock->is_ours = false;
        hold(mock, lock, ttl_ms);
}

uint64_t qv_mock_lock_token(const struct qv_mock *mock, const char *name)
{
        const struct lock *lock = find(mock, name);
        return lock && lock->is_ours && is_held(mock, lock) ? lock->token : 0;
}
