#include "cli/try/try_services.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers.h"

/* The lock of that name, a free place for it, or NULL if there is none left. */
static struct try_lock *ensure(struct try_services *s, const char *name, uint64_t now_ms)
{
        struct try_lock *place = NULL;
        for (uint32_t i = 0; i < TRY_LOCKS_MAX; i++) {
                struct try_lock *lock = &s->locks[i];
                if (lock->token && now_ms >= lock->until_ms)
                        lock->token = 0;
                if (lock->token && !strcmp(lock->name, name))
                        return lock;
                if (!lock->token)
                        place = lock;
        }
        if (place)
                (void)snprintf(place->name, sizeof(place->name), "%s", name);
        return place;
}

/* Of slot 0, as long as this try takes. */
static int give_ids(struct try_services *s, uint64_t want, uint64_t ret_numbers[2])
{
        struct id_layout layout = id_layout_standard(ID_SNOWFLAKE);
        struct id_block block = { 0 };
        uint64_t now_ms = clock_wall_ms();
        if (!s->has_ids) {
                id_generator_init(&s->ids, &layout);
                id_generator_grant(&s->ids, 0, now_ms, UINT64_MAX);
        }
        s->has_ids = true;
        enum id_verdict verdict = id_generator_take(
                &s->ids, now_ms * NS_PER_MS, (uint32_t)min_u64(max_u64(want, 1), RING_IDS_MAX), &block);
        ret_numbers[0] = block.first;
        ret_numbers[1] = RING_IDS(block.count, block.step);
        return verdict == ID_GIVEN ? 0 : -ETIMEDOUT;
}

/* The entry itself is dropped: only its number can be seen. */
static int append(struct try_services *s, const char *name, uint64_t ret_numbers[2])
{
        for (const char *c = name; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 127)
                        return -EINVAL;
        for (uint32_t i = 0; *name && i < TRY_ROOMS_MAX; i++) {
                struct try_room *room = &s->rooms[i];
                if (*room->name && strcmp(room->name, name) != 0)
                        continue;
                (void)snprintf(room->name, sizeof(room->name), "%s", name);
                ret_numbers[0] = ++room->last;
                return 0;
        }
        return *name ? -E2BIG : -EINVAL;
}

int try_services_answer(struct try_services *s, enum ring_service service, uint64_t process, uint64_t ticket,
        const char *name, uint64_t number, uint64_t now_ms, uint64_t ret_numbers[2])
{
        if (service == SERVICE_NEXT_ID)
                return give_ids(s, number, ret_numbers);
        if (service == SERVICE_ROOM_APPEND)
                return append(s, name, ret_numbers);
        if (service != SERVICE_TRYLOCK && service != SERVICE_UNLOCK)
                return -ENOTSUP;
        if (strlen(name) > QV_LOCK_NAME_MAX)
                return -EINVAL;
        struct try_lock *lock = ensure(s, name, now_ms);
        if (!lock)
                return -EAGAIN;
        bool is_ours = lock->token && lock->process == process && lock->ticket == ticket;
        if (service == SERVICE_UNLOCK) {
                if (!is_ours || lock->token != number)
                        return -ENOENT;
                lock->token = 0;
                return 0;
        }
        if (lock->token && !is_ours)
                return -EBUSY;
        if (!lock->token)
                lock->token = ++s->last_token;
        lock->process = process;
        lock->ticket = ticket;
        lock->until_ms = now_ms + number;
        ret_numbers[0] = lock->token;
        return 0;
}

void try_services_serve(struct try_services *s, struct ring_host *ring, uint64_t process, uint64_t now_ms)
{
        struct ring_call_view call;
        if (!ring_host_has_attention(ring))
                return;
        for (uint32_t seat = 0; seat < ring->map.shape.seats; seat++) {
                uint64_t numbers[2] = { 0 };
                if (!ring_host_call(ring, seat, 0, &call))
                        continue;
                int status = -ENOTSUP;
                if (call.service < RING_SERVICES)
                        status = try_services_answer(s, (enum ring_service)call.service, process, call.ticket,
                                call.name, call.number, now_ms, numbers);
                (void)ring_host_reply(ring, seat, call.word, status, numbers);
        }
}

void try_services_ended(struct try_services *s, uint64_t process, uint64_t ticket)
{
        for (uint32_t i = 0; i < TRY_LOCKS_MAX; i++)
                if (s->locks[i].process == process && s->locks[i].ticket == ticket)
                        s->locks[i].token = 0;
}
