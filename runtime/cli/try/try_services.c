#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/try/try.h"

struct held_lock {
        struct held_lock *next;
        uint64_t holder;
        uint64_t token;
        uint64_t until_ms;
        char name[];
};

struct try_services {
        struct held_lock *locks;
        uint64_t last_id;
        uint64_t last_token;
};

struct try_services *try_services_new(void)
{
        struct try_services *s = calloc(1, sizeof(*s));
        if (!s)
                abort();
        return s;
}

void try_services_free(struct try_services *s)
{
        if (!s)
                return;
        while (s->locks) {
                struct held_lock *lock = s->locks;
                s->locks = lock->next;
                free(lock);
        }
        free(s);
}

/* Where the lock of that name hangs; *result is NULL if nobody holds it.  Forgets those that ran out on the way. */
static struct held_lock **find(struct try_services *s, const char *name)
{
        struct held_lock **at = &s->locks;
        uint64_t now_ms = clock_boot_ms();
        while (*at) {
                if ((*at)->until_ms <= now_ms) {
                        struct held_lock *expired = *at;
                        *at = expired->next;
                        free(expired);
                        continue;
                }
                if (!strcmp((*at)->name, name))
                        break;
                at = &(*at)->next;
        }
        return at;
}

/* *number is the time to live, then the token. */
static int trylock(struct try_services *s, uint64_t holder, const char *name, uint64_t *number)
{
        struct held_lock *held = *find(s, name);
        if (held && held->holder != holder)
                return -EBUSY;
        if (held) {
                held->until_ms = clock_boot_ms() + *number;
                *number = held->token;
                return 0;
        }
        struct held_lock *lock = malloc(sizeof(*lock) + strlen(name) + 1);
        if (!lock)
                return -ENOMEM;
        memcpy(lock->name, name, strlen(name) + 1);
        lock->holder = holder;
        lock->token = ++s->last_token;
        lock->until_ms = clock_boot_ms() + *number;
        lock->next = s->locks;
        s->locks = lock;
        *number = lock->token;
        return 0;
}

static int unlock(struct try_services *s, const char *name, uint64_t token)
{
        struct held_lock **at = find(s, name);
        if (!*at || (*at)->token != token)
                return -ENOENT;
        struct held_lock *lock = *at;
        *at = lock->next;
        free(lock);
        return 0;
}

int try_services_call(
        struct try_services *s, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        switch (service) {
        case SERVICE_NEXT_ID:
                *number = ++s->last_id;
                return 0;
        case SERVICE_TRYLOCK:
                return trylock(s, holder, name, number);
        case SERVICE_UNLOCK:
                return unlock(s, name, *number);
        }
        return -ENOTSUP;
}
