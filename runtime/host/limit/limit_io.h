/* limit_io.h: a host's limits and the store: defines the limits from the configuration and the desired state, and makes
 * their calls.  Used on the loop's thread only. */
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
        const uint8_t *nonce;        /* set by the caller, too: our nonce, the holder of the shares */
        const struct config *config; /* the one that the limits were last defined from */
        struct limit_setting *settings;
        uint32_t settings_count;
        uint64_t change_ms; /* wall time at which a person's setting expires; UINT64_MAX: never */
        uint32_t calls;     /* calls under way */
        bool is_failing;    /* the log already says that calls fail */
};

/* Defines the limits from a new configuration, or the first one. */
void limits_io_define(struct limits_io *io, const struct config *config, uint64_t wall_ms);
/* Carries out the desired state as just read. */
void limits_io_desired(struct limits_io *io, const struct store_desired *items, size_t count, uint64_t wall_ms);
/* Makes the calls that are due. */
void limits_io_call(struct limits_io *io, uint64_t now_ms, uint64_t wall_ms);
uint64_t limits_io_due_ms(const struct limits_io *io, uint64_t now_ms, uint64_t wall_ms);
/* Call after the loop has ended: no call may be under way. */
void limits_io_free(struct limits_io *io);

#endif
