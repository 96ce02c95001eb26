#include "secret.h"

#include <fcntl.h>
#include <unistd.h>

#define SECRET_MAX 4096
#define LOOK_MS    1000

static void wipe(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

/* The first line of the file.  NULL: *ret_why says why it cannot be used. */
static char *read_line(int fd, struct stat *ret_seen, const char **ret_why)
{
        char text[SECRET_MAX + 1];
        char *line = NULL;
        *ret_why = NULL;
        if (fstat(fd, ret_seen) < 0)
                *ret_why = strerror(errno);
        else if (!S_ISREG(ret_seen->st_mode))
                *ret_why = "not a file";
        else if (ret_seen->st_mode & 007)
                *ret_why = "every user of this machine can read it; chmod o-rwx";
        if (*ret_why)
                return NULL;
        ssize_t size = read(fd, text, SECRET_MAX);
        if (size < 0) {
                *ret_why = strerror(errno);
                return NULL;
        }
        text[size] = 0;
        text[strcspn(text, "\r\n")] = 0;
        if (!*text || size == SECRET_MAX)
                *ret_why = *text ? "its first line is too long" : "its first line is empty";
        else if (!(line = strdup(text)))
                *ret_why = "out of memory";
        explicit_bzero(text, sizeof(text));
        return line;
}

static char *read_file(const struct secret *s, struct stat *ret_seen, const char **ret_why)
{
        int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) {
                *ret_why = strerror(errno);
                return NULL;
        }
        char *line = read_line(fd, ret_seen, ret_why);
        (void)close(fd);
        return line;
}

int secret_open(struct secret *s, const struct qv_host *host, const char *name, const char *path)
{
        const char *why = NULL;
        *s = (struct secret){ .name = strdup(name), .path = strdup(path) };
        if (!s->name || !s->path)
                return qv_init_errorf(host, "out of memory");
        s->text = read_file(s, &s->seen, &why);
        return s->text ? 0 : qv_init_errorf(host, "%s: %s: %s", name, path, why);
}

void secret_close(struct secret *s)
{
        wipe(s->text);
        free(s->name);
        free(s->path);
        *s = (struct secret){ 0 };
}

static bool is_same(const struct stat *a, const struct stat *b)
{
        return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

const char *secret_get(struct secret *s, const struct qv_host *host, uint64_t now_ms)
{
        struct stat now;
        const char *why = NULL;
        if (now_ms - s->looked_ms < LOOK_MS)
                return s->text;
        s->looked_ms = now_ms;
        if (stat(s->path, &now) == 0 && is_same(&now, &s->seen))
                return s->text;
        char *text = read_file(s, &now, &why);
        if (text) {
                wipe(s->text);
                s->text = text;
                s->seen = now;
        } else if (!s->is_reported) {
                qv_logf(host, QV_LOG_WARN, "%s: %s: %s; what was read from it before is still used", s->name, s->path,
                        why);
        }
        s->is_reported = !text;
        return s->text;
}
