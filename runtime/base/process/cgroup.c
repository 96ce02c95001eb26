#include "base/process/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8

/* --- texts --- */

/* Undoes the kernel's escapes, such as \040 for a blank. */
static void unescape(char *text)
{
        char *to = text;
        for (const char *from = text; *from;) {
                bool is_escape = from[0] == '\\' && strspn(from + 1, "01234567") >= 3;
                if (is_escape) {
                        *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
                        from += 4;
                } else {
                        *to++ = *from++;
                }
        }
        *to = 0;
}

/* The group's path in the line "0::/path"; NULL: there is none. */
static const char *find_group(const char *cgroup, size_t *ret_size)
{
        const char *line = !strncmp(cgroup, "0::", 3) ? cgroup : strstr(cgroup, "\n0::");
        line = line ? strchr(line, '/') : NULL;
        *ret_size = line ? strcspn(line, "\n") : 0;
        return line;
}

/* Whether the line of mountinfo is a cgroup2 mount; returns its root and mount point. */
static bool parse_line(const char *line, size_t size, char *root, char *point)
{
        char text[3 * CGROUP_PATH_MAX];
        if (size >= sizeof(text))
                return false;
        memcpy(text, line, size);
        text[size] = 0;
        const char *type = strstr(text, " - ");
        if (!type || strncmp(type, " - cgroup2 ", 11) != 0)
                return false;
        if (sscanf(text, "%*s %*s %*s %1023s %1023s", root, point) != 2)
                return false;
        unescape(root);
        unescape(point);
        return true;
}

/* The part of the group's path below the root of the mount; NULL: the group is not below it. */
static const char *below(const char *group, const char *root)
{
        size_t size = strcmp(root, "/") != 0 ? strlen(root) : 0;
        if (strncmp(group, root, size) != 0 || (size && group[size] && group[size] != '/'))
                return NULL;
        group += size;
        return strcmp(group, "/") != 0 ? group : "";
}

int cgroup_parse(const char *mountinfo, const char *cgroup, char ret_path[CGROUP_PATH_MAX])
{
        char root[CGROUP_PATH_MAX], point[CGROUP_PATH_MAX], group[CGROUP_PATH_MAX];
        size_t size;
        const char *found = find_group(cgroup, &size);
        if (!found)
                return -ENOENT;
        if (size >= sizeof(group))
                return -ENAMETOOLONG;
        memcpy(group, found, size);
        group[size] = 0;
        for (const char *line = mountinfo; *line; line += size, line += *line == '\n') {
                size = strcspn(line, "\n");
                if (!parse_line(line, size, root, point))
                        continue;
                const char *rest = below(group, root);
                /* A path with ".." belongs to a group outside our namespace. */
                if (!rest || strstr(rest, "/.."))
                        continue;
                int n = snprintf(ret_path, CGROUP_PATH_MAX, "%s%s", point, rest);
                return n < CGROUP_PATH_MAX ? 0 : -ENAMETOOLONG;
        }
        return -ENOENT;
}

static const struct {
        const char *word, *name;
        enum cgroup_controller bit;
} controllers_known[] = { { "memory", "memory", CGROUP_MEMORY }, { "pids", "processes", CGROUP_PIDS },
        { "cpu", "cpu", CGROUP_CPU } };

#define KNOWN (sizeof(controllers_known) / sizeof(controllers_known[0]))

unsigned cgroup_parse_controllers(const char *text)
{
        unsigned found = 0;
        for (size_t size; *(text += strspn(text, " \n")); text += size) {
                size = strcspn(text, " \n");
                for (size_t i = 0; i < KNOWN; i++)
                        if (size == strlen(controllers_known[i].word) &&
                                !strncmp(text, controllers_known[i].word, size))
                                found |= controllers_known[i].bit;
        }
        return found;
}

const char *cgroup_controllers_text(unsigned controllers, char *text, size_t size)
{
        size_t used = 0;
        *text = 0;
        for (size_t i = 0; i < KNOWN; i++)
                if (controllers & controllers_known[i].bit && used < size)
                        used += (size_t)snprintf(
                                text + used, size - used, "%s%s", used ? ", " : "", controllers_known[i].name);
        return used ? text : "none";
}

/* --- files --- */

/* The kernel's files report no size, so this reads to the end. */
static int read_path(const char *path, char *text, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t used = 0;
        ssize_t n = 0;
        *text = 0;
        if (fd < 0)
                return -errno;
        while (used + 1 < size && (n = read(fd, text + used, size - used - 1)) > 0)
                used += (size_t)n;
        int r = n < 0 ? -errno : 0;
        text[used] = 0;
        (void)close(fd);
        return r;
}

int cgroup_find_own(char ret_path[CGROUP_PATH_MAX])
{
        char *mounts = malloc(CGROUP_TEXT_MAX);
        char *group = malloc(CGROUP_TEXT_MAX);
        int r = mounts && group ? 0 : -ENOMEM;
        if (r == 0)
                r = read_path("/proc/self/mountinfo", mounts, CGROUP_TEXT_MAX);
        if (r == 0)
                r = read_path("/proc/self/cgroup", group, CGROUP_TEXT_MAX);
        if (r == 0)
                r = cgroup_parse(mounts, group, ret_path);
        free(mounts);
        free(group);
        return r;
}

static int path_of(const char *group, const char *file, char *path, size_t size)
{
        int n = snprintf(path, size, "%s/%s", group, file);
        return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

int cgroup_read(const char *group, const char *file, char *text, size_t size)
{
        char path[CGROUP_PATH_MAX + 64];
        int r = path_of(group, file, path, sizeof(path));
        *text = 0;
        return r < 0 ? r : read_path(path, text, size);
}

int cgroup_write(const char *group, const char *file, const char *text)
{
        char path[CGROUP_PATH_MAX + 64];
        int r = path_of(group, file, path, sizeof(path));
        if (r < 0)
                return r;
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (write(fd, text, strlen(text)) < 0)
                r = -errno;
        (void)close(fd);
        return r;
}

int cgroup_kill(const char *group)
{
        return cgroup_write(group, "cgroup.kill", "1");
}

bool cgroup_is_populated(const char *group)
{
        char text[256];
        return cgroup_read(group, "cgroup.events", text, sizeof(text)) == 0 && strstr(text, "populated 1");
}

static int remove_below(int folder_fd, const char *name, unsigned depth)
{
        int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        if (!folder) {
                int r = -errno;
                if (fd >= 0)
                        (void)close(fd);
                return r;
        }
        for (const struct dirent *entry; (entry = readdir(folder));)
                if (depth && entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
                        strcmp(entry->d_name, "..") != 0)
                        (void)remove_below(dirfd(folder), entry->d_name, depth - 1);
        (void)closedir(folder);
        return unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int cgroup_remove(const char *group)
{
        return remove_below(AT_FDCWD, group, DEPTH_MAX);
}
