/* stage.h: a private copy of a plugin's file, so that whatever is done to the original cannot reach a runner.
 *
 * A renamed, truncated or overwritten .so under a process that has it mapped is a crash or, worse, the old code under
 * the new name.  A runner only ever opens a staged copy, whose name carries a hash of its bytes. */
#ifndef QUIVER_HOST_STAGE_H
#define QUIVER_HOST_STAGE_H

#include <stdint.h>

#include "base/error.h"

#define STAGE_FILE_MAX (UINT64_C(512) << 20)

struct staged {
        char path[4096]; /* of the copy */
        char label[256]; /* the original's file name, for messages */
        uint64_t hash;   /* FNV-1a of the bytes: tells versions apart, proves nothing */
        uint64_t size_bytes;
};

/* Whose file is copied. */
enum stage_source {
        STAGE_TRUSTED,  /* a host's: refused with -EPERM if somebody else could have written or replaced it (trust.h) */
        STAGE_ANYBODYS, /* taken as it is, by those who try their own, and with reload.world_writable = "allow" */
};
struct config;
enum stage_source stage_source_of(const struct config *config);

/* Copies `path` into `folder` (which must exist, and not be mounted noexec), under a name that no other copy has.  A
 * file that changes while it is read is refused with -ETXTBSY: whoever installs with cp instead of rename may still be
 * writing.  0 or -errno. */
int stage_copy(const char *path, enum stage_source source, const char *folder, struct staged *ret, struct error *error);

/* The hash that a copy made now would have.  Refuses what stage_copy() refuses. */
int stage_hash(const char *path, enum stage_source source, uint64_t *ret_hash, struct error *error);

/* Removes the copy.  Runners that have it open go on. */
void stage_remove(const struct staged *staged);

/* The same for those who run a plugin without a host: the copy stands alone in a new folder in $TMPDIR. */
int stage_temporary(const char *path, enum stage_source source, struct staged *ret, struct error *error);
/* Removes copy and folder. */
void stage_remove_temporary(const struct staged *staged);

#endif
