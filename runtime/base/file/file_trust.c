#include "base/file/file_trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX  40 /* the kernel's own limit */
#define GROUPS_MAX 256

/* A path that is being walked, one name after the other. */
struct walk {
        int dir;             /* descriptor of the folder that the walk has reached */
        char at[PATH_MAX];   /* path of that folder, for messages; "" is the root */
        char rest[PATH_MAX]; /* the part of the path that is left, without a leading slash */
        char name[NAME_MAX + 1];
        unsigned links;
        struct file_trust *trust;
};

enum thing { ON_THE_WAY, A_LINK, THE_FOLDER_ABOVE, THE_THING };

/* --- the verdict --- */

static bool is_our_group(gid_t group)
{
        gid_t groups[GROUPS_MAX];
        if (group == 0)
                return true;
        /* A member of one of root's groups must not become root by writing to our files. */
        if (geteuid() == 0)
                return false;
        if (group == getegid())
                return true;
        int count = getgroups(GROUPS_MAX, groups);
        for (int i = 0; i < count; i++)
                if (groups[i] == group)
                        return true;
        return false;
}

/* `path`, quoted for a shell. */
static const char *quote(const char *path, char *text, size_t size)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@:,";
        if (!path[strspn(path, plain)])
                return path;
        (void)snprintf(text, size, "'%s'", path);
        return text;
}

static void judge(const struct walk *w, const struct stat *st, enum thing thing)
{
        char quoted[PATH_MAX + 2];
        char what[PATH_MAX + 16] = "it";
        const char *path = quote(*w->at ? w->at : "/", quoted, sizeof(quoted));
        bool is_restricted = (thing == ON_THE_WAY || thing == THE_FOLDER_ABOVE) && (st->st_mode & S_ISVTX);
        bool has_mode = thing != A_LINK && !is_restricted;
        bool is_strange_group = has_mode && (st->st_mode & S_IWGRP) && !is_our_group(st->st_gid);
        struct file_trust *t = w->trust;
        if (thing == ON_THE_WAY)
                (void)snprintf(what, sizeof(what), "its folder %s", path);
        /* The worst verdict on the path counts; among equal ones, the first. */
        if (t->verdict < FILE_TRUST_EVERYBODY && has_mode && (st->st_mode & S_IWOTH)) {
                t->verdict = FILE_TRUST_EVERYBODY;
                (void)error_set(&t->why, 0, "everybody on this machine can write to %s; chmod %s %s", what,
                        is_strange_group ? "go-w" : "o-w", path);
        } else if (t->verdict < FILE_TRUST_STRANGER && st->st_uid != 0 && st->st_uid != geteuid()) {
                t->verdict = FILE_TRUST_STRANGER;
                (void)error_set(&t->why, 0, "%s belongs to user %u, who is neither root nor this host's; chown %s%u %s",
                        thing == A_LINK ? "the symbolic link" : what, (unsigned)st->st_uid,
                        thing == A_LINK ? "-h " : "", (unsigned)geteuid(), path);
        } else if (t->verdict < FILE_TRUST_STRANGER && is_strange_group) {
                t->verdict = FILE_TRUST_STRANGER;
                (void)error_set(&t->why, 0, "the members of group %u can write to %s; chmod g-w %s",
                        (unsigned)st->st_gid, what, path);
        }
}

/* --- the walk --- */

/* Moves the next name from `rest` to `name`; false at the end.  `rest` is empty afterwards if it was the last name. */
static bool next_name(struct walk *w)
{
        char *rest = w->rest;
        size_t size = strcspn(rest, "/");
        if (!size || size > NAME_MAX)
                return false;
        memcpy(w->name, rest, size);
        w->name[size] = 0;
        rest += size;
        for (size_t n; (n = strspn(rest, "/")) || (*rest == '.' && (rest[1] == '/' || !rest[1]) && (n = 1));)
                rest += n;
        memmove(w->rest, rest, strlen(rest) + 1);
        return true;
}

/* Puts `path` in front of `rest`. */
static int go_first(struct walk *w, const char *path)
{
        char joined[sizeof(w->rest)];
        path += strspn(path, "/");
        while (path[0] == '.' && (path[1] == '/' || !path[1])) {
                path++;
                path += strspn(path, "/");
        }
        int n = snprintf(joined, sizeof(joined), "%s%s%s", path, *path && *w->rest ? "/" : "", w->rest);
        if (n < 0 || (size_t)n >= sizeof(joined))
                return -ENAMETOOLONG;
        memcpy(w->rest, joined, (size_t)n + 1);
        return 0;
}

static int go_to_root(struct walk *w)
{
        struct stat st;
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (w->dir >= 0)
                (void)close(w->dir);
        w->dir = fd;
        *w->at = 0;
        if (fstat(fd, &st) < 0)
                return -errno;
        judge(w, &st, ON_THE_WAY);
        return 0;
}

/* Appends `name` to `at`, so that the text follows the descriptor. */
static int append_name(struct walk *w)
{
        size_t size = strlen(w->at);
        if (!strcmp(w->name, "."))
                return 0;
        if (!strcmp(w->name, "..")) {
                char *slash = strrchr(w->at, '/');
                if (slash)
                        *slash = 0;
                return 0;
        }
        int n = snprintf(w->at + size, sizeof(w->at) - size, "/%s", w->name);
        return n < 0 || (size_t)n >= sizeof(w->at) - size ? -ENAMETOOLONG : 0;
}

/* Continues with the target of a symbolic link.  `fd` is open on the link itself. */
static int follow(struct walk *w, int fd)
{
        char target[PATH_MAX];
        ssize_t size = readlinkat(fd, "", target, sizeof(target));
        if (size < 0)
                return -errno;
        if (++w->links > LINKS_MAX)
                return -ELOOP;
        if (!size || (size_t)size == sizeof(target))
                return size ? -ENAMETOOLONG : -ENOENT;
        target[size] = 0;
        /* A relative target starts at the folder that holds the link. */
        *strrchr(w->at, '/') = 0;
        int r = *target == '/' ? go_to_root(w) : 0;
        return r < 0 ? r : go_first(w, target);
}

/* Enters the folder `name`, or follows it if it is a symbolic link.  0 or -errno. */
static int step(struct walk *w)
{
        struct stat st;
        int fd = openat(w->dir, w->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = fstat(fd, &st) < 0 ? -errno : append_name(w);
        if (r == 0 && S_ISLNK(st.st_mode)) {
                judge(w, &st, A_LINK);
                r = follow(w, fd);
        } else if (r == 0 && !S_ISDIR(st.st_mode)) {
                r = -ENOTDIR;
        } else if (r == 0) {
                judge(w, &st, ON_THE_WAY);
                (void)close(w->dir);
                w->dir = fd;
                return 0;
        }
        (void)close(fd);
        return r;
}

/* Opens the last name.  Returns the descriptor; -ELOOP if it is a symbolic link; or another -errno. */
static int open_last(struct walk *w, enum file_trust_kind kind)
{
        struct stat st;
        if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
                return -ELOOP;
        /* Without O_NONBLOCK, opening a pipe would block until it has a writer. */
        int how = kind == FILE_TRUST_OF_FILE ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
        int fd = openat(w->dir, w->name, how | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = fstat(fd, &st) < 0 ? -errno : append_name(w);
        if (r < 0) {
                (void)close(fd);
                return r;
        }
        judge(w, &st, kind == FILE_TRUST_FOLDER_ABOVE ? THE_FOLDER_ABOVE : THE_THING);
        return fd;
}

static int go(struct walk *w, const char *path, enum file_trust_kind kind)
{
        char here[PATH_MAX];
        int r = go_to_root(w);
        if (r == 0)
                r = go_first(w, path);
        if (r == 0 && *path != '/')
                r = getcwd(here, sizeof(here)) ? go_first(w, here) : -errno;
        while (r == 0 && next_name(w)) {
                bool is_last = !*w->rest;
                int fd = is_last ? open_last(w, kind) : -ELOOP;
                if (fd != -ELOOP)
                        return fd;
                r = step(w);
        }
        if (r == 0 && *w->rest)
                r = -ENAMETOOLONG;
        /* The path was only slashes, or ended in a link to "." or to the root: it names the folder reached. */
        if (r == 0)
                (void)snprintf(w->name, sizeof(w->name), ".");
        return r < 0 ? r : open_last(w, kind);
}

int file_trust_open(const char *path, enum file_trust_kind kind, struct file_trust *ret, struct error *error)
{
        struct walk w = { .dir = -1, .trust = ret };
        *ret = (struct file_trust){ .verdict = FILE_TRUST_SOUND };
        int fd = go(&w, path, kind);
        if (w.dir >= 0)
                (void)close(w.dir);
        return fd < 0 ? error_set(error, fd, "cannot open: %s", strerror(-fd)) : fd;
}
