#include "coord/lock.h"

#include <stdio.h>

static void on_front(void *self, uint64_t token)
{
        struct lock *lock = self;
        lock->is_try = lock->queue.gives_up = false;
        if (lock->events.acquired)
                lock->events.acquired(lock->events.self, token);
}

/* A holder that lost the lock must learn of it before it waits for the lock again, so it leaves the queue. */
static void on_lost(void *self)
{
        struct lock *lock = self;
        (void)queue_leave(&lock->queue);
        lock->queue.is_leaving = false;
        if (lock->events.lost)
                lock->events.lost(lock->events.self);
}

static void on_behind(void *self)
{
        struct lock *lock = self;
        if (lock->is_try)
                (void)queue_leave(&lock->queue);
}

static void on_left(void *self)
{
        struct lock *lock = self;
        bool was_try = lock->is_try;
        lock->is_try = false;
        if (was_try && lock->events.busy)
                lock->events.busy(lock->events.self);
        else if (!was_try && lock->events.released)
                lock->events.released(lock->events.self);
}

static void on_failed(void *self, int status, const char *text)
{
        struct lock *lock = self;
        if (lock->events.failed)
                lock->events.failed(lock->events.self, status, text);
}

void lock_init(
        struct lock *lock, struct coord *coord, const char *name, const char *nonce, const struct lock_events *events)
{
        struct queue_events queue = { .front = on_front,
                .lost = on_lost,
                .behind = on_behind,
                .left = on_left,
                .failed = on_failed,
                .self = lock };
        char path[COORD_PATH_MAX];
        (void)snprintf(path, sizeof(path), "locks/%.255s", name);
        *lock = (struct lock){ .events = *events };
        queue_init(&lock->queue, coord, path, nonce, &queue);
        lock->queue.removes_empty = true;
}

void lock_set_limit(struct lock *lock, uint32_t limit)
{
        queue_set_limit(&lock->queue, limit);
}

void lock_acquire(struct lock *lock)
{
        lock->is_try = lock->queue.gives_up = false;
        queue_enter(&lock->queue);
}

void lock_try(struct lock *lock)
{
        lock->is_try = lock->queue.gives_up = true;
        queue_enter(&lock->queue);
}

bool lock_release(struct lock *lock)
{
        lock->is_try = false;
        return queue_leave(&lock->queue);
}

bool lock_is_held(const struct lock *lock)
{
        return lock->queue.is_front;
}

bool lock_is_idle(const struct lock *lock)
{
        return queue_is_idle(&lock->queue);
}

void lock_session(struct lock *lock, enum coord_state state, uint64_t session)
{
        queue_session(&lock->queue, state, session);
}

void lock_changed(struct lock *lock, const char *path)
{
        queue_changed(&lock->queue, path);
}

void lock_look(struct lock *lock)
{
        queue_look(&lock->queue);
}
