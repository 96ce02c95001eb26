#include "cli/control_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "cli/options.h"
#include "host/control_socket.h"

#define REPLY_MAX    (1024u * 1024u)
#define BUSY_WAIT_MS 10

/* Waits until the descriptor is ready or the time is over. */
static int wait_for(int fd, short events, uint64_t end_ms)
{
        for (;;) {
                uint64_t now_ms = clock_boot_ms();
                if (now_ms >= end_ms)
                        return -ETIMEDOUT;
                struct pollfd look = { .fd = fd, .events = events };
                uint64_t left_ms = end_ms - now_ms;
                int n = poll(&look, 1, (int)min_u64(left_ms, 60000));
                if (n > 0)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
}

static int connect_to(int folder_fd, const char *file, uint64_t end_ms)
{
        int fd;
        /* Poll: nothing reports when a full backlog has room again. */
        while ((fd = control_socket_connect(folder_fd, file)) == -EAGAIN && clock_boot_ms() < end_ms)
                (void)poll(NULL, 0, BUSY_WAIT_MS);
        return fd == -EAGAIN ? -ETIMEDOUT : fd;
}

static int send_all(int fd, const char *text, size_t size, uint64_t end_ms)
{
        while (size) {
                ssize_t n = send(fd, text, size, MSG_NOSIGNAL);
                /* A host may answer before it has read everything: read that answer. */
                if (n < 0 && errno == EPIPE)
                        return 0;
                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return -errno;
                if (n < 0) {
                        int r = wait_for(fd, POLLOUT, end_ms);
                        if (r < 0)
                                return r;
                        continue;
                }
                text += n;
                size -= (size_t)n;
        }
        return 0;
}

/* Receives one line, or the rest before the end of file. */
static int receive_line(int fd, struct buffer *line, uint64_t end_ms)
{
        for (;;) {
                uint8_t *to = buffer_reserve(line, 4096);
                ssize_t n = recv(fd, to, 4096, 0);
                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return line->size ? 0 : -ECONNRESET;
                if (n < 0) {
                        int r = wait_for(fd, POLLIN, end_ms);
                        if (r < 0)
                                return r;
                        continue;
                }
                line->size += (size_t)n;
                if (memchr(to, '\n', (size_t)n))
                        return 0;
                if (line->size > REPLY_MAX)
                        return -EMSGSIZE;
        }
}

static int read_reply(const struct buffer *line, const char *file, json_t **ret_reply, struct error *error)
{
        json_t *reply = json_loadb((const char *)line->data, line->size, JSON_DISABLE_EOF_CHECK, NULL);
        if (!json_is_object(reply)) {
                json_decref(reply);
                return error_set(error, -EBADMSG,
                        "host %s: its answer is not a JSON object; does another program listen there?", file);
        }
        if (!json_is_true(json_object_get(reply, "ok"))) {
                const char *why = json_string_value(json_object_get(reply, "error"));
                (void)error_set(error, -EREMOTEIO, "host %s: %s", file,
                        why ? why : "it refused and gave no reason; see its log");
                json_decref(reply);
                return -EREMOTEIO;
        }
        *ret_reply = reply;
        return 0;
}

static int exchange(int folder_fd, const char *file, const char *text, uint64_t timeout_ms, struct buffer *line,
        struct error *error)
{
        uint64_t end_ms = clock_boot_ms() + timeout_ms;
        int fd = connect_to(folder_fd, file, end_ms);
        if (fd == -ENOENT || fd == -ECONNREFUSED)
                return error_set(error, -ENOENT, "no host runs under %s: nobody listens; start one: quiver run", file);
        if (fd == -EACCES)
                return error_set(error, fd, "host %s is another user's; ask as that user, or as root", file);
        int r = fd < 0 ? fd : send_all(fd, text, strlen(text), end_ms);
        if (r == 0)
                r = receive_line(fd, line, end_ms);
        if (fd >= 0)
                (void)close(fd);
        if (r == -ETIMEDOUT)
                return error_set(
                        error, r, "host %s gave no answer within %llu ms", file, (unsigned long long)timeout_ms);
        return r < 0 ? error_set(error, r, "host %s: %s", file, strerror(-r)) : 0;
}

int control_ask(const char *folder, const char *name, json_t *request, uint64_t timeout_ms, json_t **ret_reply,
        struct error *error)
{
        char file[256];
        struct buffer line = { 0 };
        char *dumped = json_dumps(request, JSON_COMPACT);
        struct buffer text = { 0 };
        buffer_printf(&text, "%s\n", dumped ? dumped : "");
        free(dumped);
        json_decref(request);
        int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = 0;
        if (folder_fd < 0)
                r = error_set(error, -ENOENT,
                        "no host runs here: there is no folder %s; start one: quiver run, or name its file with -c",
                        folder);
        else if (snprintf(file, sizeof(file), "%s%s", name, CONTROL_SUFFIX) >= (int)sizeof(file))
                r = error_set(error, -ENOENT, "no host has the name %s: it is too long", name);
        if (r == 0)
                r = exchange(folder_fd, file, buffer_text(&text), timeout_ms, &line, error);
        if (r == 0)
                r = read_reply(&line, file, ret_reply, error);
        if (folder_fd >= 0)
                (void)close(folder_fd);
        buffer_free(&line);
        buffer_free(&text);
        return r;
}

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void control_names(const char *folder, struct strings *ret_names)
{
        DIR *dir = opendir(folder);
        for (const struct dirent *entry; dir && (entry = readdir(dir));) {
                if (!control_socket_is_name(entry->d_name))
                        continue;
                char *name = text_copy_part(entry->d_name, strlen(entry->d_name) - strlen(CONTROL_SUFFIX));
                strings_add(ret_names, name);
                free(name);
        }
        if (dir)
                (void)closedir(dir);
        if (ret_names->count)
                qsort(ret_names->items, ret_names->count, sizeof(*ret_names->items), compare);
}

int control_fail(const char *command, int r, const struct error *error)
{
        (void)fprintf(stderr, "quiver %s: %s\n", command, error->text);
        return r == -EREMOTEIO ? EXIT_FAILED : EXIT_UNREACHABLE;
}
