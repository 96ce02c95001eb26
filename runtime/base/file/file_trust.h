/* file_trust.h: opens a file or folder that a host relies on, and reports who else on this machine could have written
 * it.
 *
 * This is the only check of owner and mode: the state folder, plugins, the configuration and password files all go
 * through it.  It walks the path by descriptors, one name after the other, symbolic links included, and checks each
 * file or folder through the descriptor that it goes on to use, so what was checked is what is opened.
 *
 * A path is sound if its target and every folder on the way belong to root or to our user, and nobody else can write
 * to them: neither everybody nor a group, except root's and, unless we are root, those that we are in.  In a folder
 * with the sticky bit, such as /tmp, where only owners may replace their entries, it is enough that the entry belongs
 * to root or to us. */
#ifndef QUIVER_BASE_FILE_FILE_TRUST_H
#define QUIVER_BASE_FILE_FILE_TRUST_H

#include "base/error.h"

enum file_trust_verdict {
        FILE_TRUST_SOUND,
        FILE_TRUST_STRANGER,  /* a user or group that is neither ours nor root's can write to it */
        FILE_TRUST_EVERYBODY, /* everybody on this machine can write to it or replace it */
};

struct file_trust {
        enum file_trust_verdict verdict;
        struct error why; /* if it is not sound: who can write, and the command that corrects it */
};

enum file_trust_kind {
        FILE_TRUST_OF_FILE,
        FILE_TRUST_FOLDER,       /* a folder that we write in: nobody else may write to it, sticky bit or not */
        FILE_TRUST_FOLDER_ABOVE, /* the parent of our entry: the sticky bit is enough, as for every folder above */
};

/* Opens `path`: a file for reading and without blocking, a folder with O_PATH.  Returns the descriptor, whatever the
 * verdict in *ret is; or -errno with the text set. */
int file_trust_open(const char *path, enum file_trust_kind kind, struct file_trust *ret, struct error *error);

#endif
