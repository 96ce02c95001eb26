/* try_services.h: what a plugin that is tried without a host gets from the services of one: locks, ids and rooms are of
 * this try alone. */
#ifndef QUIVER_CLI_TRY_TRY_SERVICES_H
#define QUIVER_CLI_TRY_TRY_SERVICES_H

#include "id/generator.h"
#include "ring/host_side.h"

#define TRY_SERVICES  (1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK | 1u << SERVICE_NEXT_ID | 1u << SERVICE_ROOM_APPEND)
#define TRY_LOCKS_MAX 64u
#define TRY_ROOMS_MAX 64u

struct try_lock {
        char name[QV_LOCK_NAME_MAX + 1];
        uint64_t process, ticket; /* the holder */
        uint64_t token;           /* 0: it is free */
        uint64_t until_ms;
};

struct try_room {
        char name[RING_CALL_NAME_MAX + 1]; /* "": none yet */
        uint64_t last;
};

struct try_services {
        struct try_room rooms[TRY_ROOMS_MAX];
        struct id_generator ids;
        bool has_ids;
        struct try_lock locks[TRY_LOCKS_MAX];
        uint64_t last_token;
};

/* Who asks is the runner `process` for its task `ticket`.  Returns what the seat gets: 0 or -errno, and the numbers. */
int try_services_answer(struct try_services *s, enum ring_service service, uint64_t process, uint64_t ticket,
        const char *name, uint64_t number, uint64_t now_ms, uint64_t ret_numbers[2]);
/* Answers what the seats of that ring ask. */
void try_services_serve(struct try_services *s, struct ring_host *ring, uint64_t process, uint64_t now_ms);
/* The task has ended: what it held is free. */
void try_services_ended(struct try_services *s, uint64_t process, uint64_t ticket);

#endif
