/* folder.h: the folder in which the processes of one app meet.
 *
 *         FOLDER/coord-APP/        0700, the user's own
 *                 log-N            the tree (log.h)
 *                 session-NONCE    locked by a living process, which writes its heartbeat into it (session.h)
 *                 bell-NONCE       wakes that process when the log has grown (bell.h)
 *                 identity         identifies the folder (identity.h) */
#ifndef QUIVER_COORD_LOCAL_FOLDER_H
#define QUIVER_COORD_LOCAL_FOLDER_H

#include <stdbool.h>

#include "base/error.h"
#include "coord/local/tree.h"

#define FOLDER_PATH_MAX 4096u
#define FOLDER_NAME_MAX 48u

struct folder {
        char path[FOLDER_PATH_MAX]; /* of coord-APP, absolute */
        int fd;                     /* -1: not open */
};

/* Makes the folder and its parent if they are missing.  -EACCES: it belongs to another user, or others can write to
 * it. */
int folder_open(struct folder *folder, const char *where, const char *app, struct error *error);
void folder_close(struct folder *folder);
/* Whether an error of folder_open() or of a log is permanent. */
bool folder_is_hopeless(int status);

/* "session-0123…" */
void folder_name(char name[FOLDER_NAME_MAX], const char *what, const uint8_t nonce[TREE_NONCE_SIZE]);
/* Removes the files of a session that has ended. */
void folder_sweep(const struct folder *folder, const uint8_t nonce[TREE_NONCE_SIZE]);

/* "local:FOLDER?machine=MACHINE&id=ID", as recorded in the store: the same path on another machine is another place,
 * and a folder with the same id (identity.h) is the same one. */
void folder_url(const struct folder *folder, const char *where, char *ret_url, size_t size);

#endif
