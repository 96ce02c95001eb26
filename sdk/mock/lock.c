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
        lock = qv_mock_keep(&mock->shared_kept, sizeof(*lock));
        lock->name = qv_mock_keep_text(&mock->shared_kept, name);
        lock->next = mock->locks;
        mock->locks = lock;
        return lock;
}

static bool is_held(const struct qv_mock *mock, const struct lock *lock)
{
        return qv_mock_now_ms(mock) < lock->until_ms;
}

static void hold(const struct qv_mock *mock, struct lock *lock, uint64_t ttl_ms)
{
        uint64_t now_ms = qv_mock_now_ms(mock);
        lock->until_ms = ttl_ms < UINT64_MAX - now_ms ? now_ms + ttl_ms : UINT64_MAX;
}

static int32_t take(
        struct qv_mock *shared, const struct qv_mock *seat, const char *name, uint64_t ttl_ms, uint64_t *ret_token)
{
        struct lock *lock = find_or_add(shared, name);
        bool is_renewal = is_held(shared, lock);
        if (is_renewal && lock->holder != seat)
                return -EBUSY;
        if (!is_renewal) {
                /* A new holder, were it the same seat: whoever still acts on the old token is to be told from it. */
                lock->token = ++shared->last_token;
                lock->holder = seat;
                lock->is_tasks = seat->running_count > 0;
        }
        hold(shared, lock, ttl_ms);
        *ret_token = lock->token;
        return 0;
}

int32_t qv_mock_lock_take(struct qv_mock *mock, const char *name, uint64_t ttl_ms, uint64_t *ret_token)
{
        (void)pthread_mutex_lock(&mock->first->shared_lock);
        int32_t r = take(mock->first, mock, name, ttl_ms, ret_token);
        (void)pthread_mutex_unlock(&mock->first->shared_lock);
        return r;
}

int32_t qv_mock_lock_give(struct qv_mock *mock, const char *name, uint64_t token)
{
        (void)pthread_mutex_lock(&mock->first->shared_lock);
        struct lock *lock = find(mock->first, name);
        bool is_ours = lock && lock->holder == mock && is_held(mock, lock) && lock->token == token;
        if (is_ours)
                lock->until_ms = 0;
        (void)pthread_mutex_unlock(&mock->first->shared_lock);
        return is_ours ? 0 : -ENOENT;
}

void qv_mock_lock_end(struct qv_mock *mock)
{
        (void)pthread_mutex_lock(&mock->first->shared_lock);
        for (struct lock *lock = mock->first->locks; lock; lock = lock->next)
                if (lock->holder == mock && lock->is_tasks)
                        lock->until_ms = 0;
        (void)pthread_mutex_unlock(&mock->first->shared_lock);
}

void qv_mock_lock_elsewhere(struct qv_mock *mock, const char *name, uint64_t ttl_ms)
{
        (void)pthread_mutex_lock(&mock->first->shared_lock);
        struct lock *lock = find_or_add(mock->first, name);
        lock->token = ++mock->first->last_token;
        lock->holder = NULL;
        hold(mock, lock, ttl_ms);
        (void)pthread_mutex_unlock(&mock->first->shared_lock);
}

uint64_t qv_mock_lock_token(const struct qv_mock *mock, const char *name)
{
        (void)pthread_mutex_lock(&mock->first->shared_lock);
        const struct lock *lock = find(mock->first, name);
        uint64_t token = lock && lock->holder == mock && is_held(mock, lock) ? lock->token : 0;
        (void)pthread_mutex_unlock(&mock->first->shared_lock);
        return token;
}
