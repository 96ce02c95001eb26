/* limit_io.h: a host's limits and the store: defines them as the configuration and people say, and makes the calls that
 * they want.  Everything is on the loop's thread. */
#ifndef QUIVER_HOST_LIMIT_LIMIT_IO_H
#define QUIVER_HOST_LIMIT_LIMIT_IO_H

#include "host/limit/limit.h"
#include "store/admin.h"
#include "store/limit_override.h"

struct limit_setting {
        char name[NAME_HANDLER_MAX + 1];
        struct limit_override override;
};

/* Zero-initialised is empty. */
struct limits_io {
        struct limits limits;
        struct store *store;         /* set by the caller before the first call */
        const uint8_t *nonce;        /* the same: who takes shares */
        const struct config *config; /* as last defined */
        struct limit_setting *settings;
        uint32_t settings_count;
        uint64_t change_ms; /* by the wall clock: what a person has set ends then; UINT64_MAX: nothing */
        uint32_t calls;     /* under way */
        bool is_failing;    /* the log knows that calls fail */
};

/* There is another configuration, or the first. */
void limits_io_define(struct limits_io *io, const struct config *config, uint64_t wall_ms);
/* What people want, as the store has it now. */
void limits_io_desired(struct limits_io *io, const struct store_desired *items, size_t count, uint64_t wall_ms);
/* Makes the calls that are due. */
void limits_io_call(struct limits_io *io, uint64_t now_ms, uint64_t wall_ms);
uint64_t limits_io_due_ms(const struct limits_io *io, uint64_t now_ms, uint64_t wall_ms);
/* After the loop: no call is under way any more. */
void limits_io_free(struct limits_io *io);

#endif
