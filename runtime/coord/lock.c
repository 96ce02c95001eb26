#include "coord/lock.h"

#include <stdio.h>

static void on_front(void *self, uint64_t token)
{
        struct lock *lock = self;
        lock->is_try = false;
        if (lock->events.acquired)
                lock->events.acquired(lock->events.self, token);
}

/* Who held a lock and lost it must know before it stands in the line again: so it leaves. */
static void on_lost(void *self)
{
        struct lock *lock = self;
        (void)line_leave(&lock->line);
        lock->line.is_leaving = false;
        if (lock->events.lost)
                lock->events.lost(lock->events.self);
}

static void on_behind(void *self)
{
        struct lock *lock = self;
        if (lock->is_try)
                (void)line_leave(&lock->line);
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
        struct line_events line = { .front = on_front,
                .lost = on_lost,
                .behind = on_behind,
                .left = on_left,
                .failed = on_failed,
                .self = lock };
        char path[COORD_PATH_MAX];
        (void)snprintf(path, sizeof(path), "locks/%.255s", name);
        *lock = (struct lock){ .events = *events };
        line_init(&lock->line, coord, path, nonce, &line);
        lock->line.removes_empty = true;
}

void lock_acquire(struct lock *lock)
{
        lock->is_try = false;
        line_enter(&lock->line);
}

void lock_try(struct lock *lock)
{
        lock->is_try = true;
        line_enter(&lock->line);
}

bool lock_release(struct lock *lock)
{
        lock->is_try = false;
        return line_leave(&lock->line);
}

bool lock_is_held(const struct lock *lock)
{
        return lock->line.is_front;
}

void lock_session(struct lock *lock, enum coord_state state, uint64_t session)
{
        line_session(&lock->line, state, session);
}

void lock_changed(struct lock *lock, const char *path)
{
        line_changed(&lock->line, path);
}

void lock_look(struct lock *lock)
{
        line_look(&lock->line);
}
