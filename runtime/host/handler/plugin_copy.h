/* plugin_copy.h: a private copy of a plugin's file, so that nothing done to the original reaches a runner.
 *
 * Truncating or overwriting a .so that a process has mapped crashes the process or gives it the old code under the new
 * name.  A runner only opens such a copy, whose name contains a hash of its bytes. */
#ifndef QUIVER_HOST_HANDLER_PLUGIN_COPY_H
#define QUIVER_HOST_HANDLER_PLUGIN_COPY_H

#include <stdint.h>

#include "base/error.h"

#define PLUGIN_FILE_MAX (UINT64_C(512) << 20)

struct plugin_copy {
        char path[4096]; /* of the copy */
        char label[256]; /* the original's file name, for messages */
        uint64_t hash;   /* FNV-1a of the bytes: tells versions apart, but is no proof against forgery */
        uint64_t size_bytes;
};

/* Whom the original file must be safe from. */
enum plugin_copy_source {
        PLUGIN_TRUSTED,  /* refused with -EPERM if another user could have written or replaced it (file_trust.h) */
        PLUGIN_ANYBODYS, /* not checked: for `quiver try` and `vet`, and with reload.world_writable = "allow" */
};
struct config;
enum plugin_copy_source plugin_copy_source_of(const struct config *config);

/* Copies `path` into `folder` (which must exist, and not be mounted noexec) under a unique name.  A file that changes
 * while it is read is refused with -ETXTBSY: an installer that uses cp instead of rename may still be writing.  0 or
 * -errno. */
int plugin_copy_make(const char *path, enum plugin_copy_source source, const char *folder, struct plugin_copy *ret,
        struct error *error);

/* The hash that plugin_copy_make() would give the copy.  Refuses the same files. */
int plugin_copy_hash(const char *path, enum plugin_copy_source source, uint64_t *ret_hash, struct error *error);

/* Removes the copy.  Runners that have it open continue. */
void plugin_copy_remove(const struct plugin_copy *copy);

/* For running a plugin without a host: makes the copy in a new folder in $TMPDIR. */
int plugin_copy_make_temporary(
        const char *path, enum plugin_copy_source source, struct plugin_copy *ret, struct error *error);
/* Removes copy and folder. */
void plugin_copy_remove_temporary(const struct plugin_copy *copy);

#endif
