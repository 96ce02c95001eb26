/* file_trust.h: opens what a host is about to believe in, and says who else on this machine could have put it there.
 *
 * The one check of owner and mode that there is: for the state folder, plugins, the configuration and password files.
 * It goes along the path by descriptors, one name after the other, symbolic links included, and looks at each thing
 * through the descriptor that it then uses.  So what was looked at is what is opened.
 *
 * A thing is sound if it and every folder on the way belong to root or to our user, and nobody else can write to them:
 * not everybody, and no group but root's and those that we are in.  In a folder like /tmp, where only owners may
 * replace what is theirs, it is enough that the entry belongs to root or us. */
#ifndef QUIVER_BASE_FILE_TRUST_H
#define QUIVER_BASE_FILE_TRUST_H

#include "base/error.h"

enum file_trust_verdict {
        FILE_TRUST_SOUND,
        FILE_TRUST_STRANGER,  /* a user or a group that is not ours and not root's; to another user it may be sound */
        FILE_TRUST_EVERYBODY, /* everybody on this machine can write to it, or replace it */
};

struct file_trust {
        enum file_trust_verdict verdict;
        struct error why; /* if it is not sound: who can do what, and the command that mends it */
};

enum file_trust_kind {
        FILE_TRUST_OF_FILE,
        FILE_TRUST_FOLDER,       /* one that we write in: nobody else may, even where only owners may replace */
        FILE_TRUST_FOLDER_ABOVE, /* one in which only an entry of our own counts, as in those on the way */
};

/* Opens `path`: a file for reading, not blocking, a folder as a place (O_PATH).  Returns the descriptor, whatever the
 * verdict is, and fills *ret; or -errno with the text set. */
int file_trust_open(const char *path, enum file_trust_kind kind, struct file_trust *ret, struct error *error);

#endif
