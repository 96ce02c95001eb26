#include "store/sqlite/file/same_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const endings[] = { "", "-wal", "-shm" };
#define FILES (sizeof(endings) / sizeof(endings[0]))

static const char *name_of(const struct same_files *same, unsigned file)
{
        return file ? same->real : same->path;
}

static int look(const struct same_files *same, unsigned file, struct stat *ret_st)
{
        char name[4200];
        (void)snprintf(name, sizeof(name), "%s%s", name_of(same, file), endings[file]);
        return stat(name, ret_st) < 0 ? -errno : 0;
}

int same_files_note(struct same_files *same, const char *path, const char *real, struct error *error)
{
        same->path = path;
        same->real = real;
        for (unsigned i = 0; i < FILES; i++) {
                struct stat st;
                int r = look(same, i, &st);
                if (r < 0)
                        return error_set(error, r, "%s%s: %s", name_of(same, i), endings[i], strerror(-r));
                same->files[i].device = st.st_dev;
                same->files[i].inode = st.st_ino;
        }
        return 0;
}

int same_files_check(const struct same_files *same, struct error *error)
{
        for (unsigned i = 0; i < FILES; i++) {
                struct stat st;
                int r = look(same, i, &st);
                if (r == 0 && st.st_dev == same->files[i].device && st.st_ino == same->files[i].inode)
                        continue;
                return error_set(error, -ESTALE,
                        "%s%s was %s while the store is in use, so nothing is written or read any more; stop all that "
                        "use the store, put the right files in place, and start again",
                        name_of(same, i), endings[i], r ? "removed" : "replaced");
        }
        return 0;
}
