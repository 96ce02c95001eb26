/* plugin_copy.h: a private copy of a plugin's file, so that whatever is done to the original cannot reach a runner.
 *
 * A renamed, truncated or overwritten .so under a process that has it mapped is a crash or, worse, the old code under
 * the new name.  A runner only ever opens such a copy, whose name carries a hash of its bytes. */
#ifndef QUIVER_HOST_HANDLER_PLUGIN_COPY_H
#define QUIVER_HOST_HANDLER_PLUGIN_COPY_H

#include <stdint.h>

#include "base/error.h"

#define PLUGIN_FILE_MAX (UINT64_C(512) << 20)

struct plugin_copy {
        char path[4096]; /* of the copy */
        char label[256]; /* the original's file name, for messages */
        uint64_t hash;   /* FNV-1a of the bytes: tells versions apart, proves nothing */
        uint64_t size_bytes;
};

/* Whose file is copied. */
enum plugin_copy_source {
        PLUGIN_TRUSTED,  /* a host's: refused with -EPERM if somebody else could have written or replaced it
                            (file_trust.h) */
        PLUGIN_ANYBODYS, /* taken as it is, by those who try their own, and with reload.world_writable = "allow" */
};
struct config;
enum plugin_copy_source plugin_copy_source_of(const struct config *config);

/* Copies `path` into `folder` (which must exist, and not be mounted noexec), under a name that no other copy has.  A
 * file that changes while it is read is refused with -ETXTBSY: whoever installs with cp instead of rename may still be
 * writing.  0 or -errno. */
int plugin_copy_make(const char *path, enum plugin_copy_source source, const char *folder, struct plugin_copy *ret,
        struct error *error);

/* The hash that a copy made now would have.  Refuses what plugin_copy_make() refuses. */
int plugin_copy_hash(const char *path, enum plugin_copy_source source, uint64_t *ret_hash, struct error *error);

/* Removes the copy.  Runners that have it open go on. */
void plugin_copy_remove(const struct plugin_copy *copy);

/* The same for those who run a plugin without a host: the copy stands alone in a new folder in $TMPDIR. */
int plugin_copy_make_temporary(
        const char *path, enum plugin_copy_source source, struct plugin_copy *ret, struct error *error);
/* Removes copy and folder. */
void plugin_copy_remove_temporary(const struct plugin_copy *copy);

#endif
