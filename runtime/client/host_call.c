#include "client/host_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"

#define SUFFIX       ".http"
#define READ_SIZE    65536u
#define BUSY_WAIT_MS 10

/* Waits until the descriptor is ready, or until end_ms. */
static int wait_for(int fd, short events, uint64_t end_ms)
{
        for (;;) {
                uint64_t now_ms = clock_boot_ms();
                if (now_ms >= end_ms)
                        return -ETIMEDOUT;
                struct pollfd look = { .fd = fd, .events = events };
                int n = poll(&look, 1, (int)min_u64(end_ms - now_ms, 60000));
                if (n > 0)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
}

/* Connects through the folder's descriptor, because a socket's address is short and the folder's path may be long. */
static int connect_once(int folder_fd, const char *name)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int n = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s" SUFFIX, folder_fd, name);
        if (n < 0 || (size_t)n >= sizeof(address.sun_path))
                return -ENOENT;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
                return fd;
        int r = -errno;
        (void)close(fd);
        return r;
}

static int connect_to(const char *state, const char *name, uint64_t end_ms)
{
        int folder_fd = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder_fd < 0)
                return -errno;
        int fd;
        /* There is no event for a backlog that has room again, so this polls. */
        while ((fd = connect_once(folder_fd, name)) == -EAGAIN && clock_boot_ms() < end_ms)
                (void)poll(NULL, 0, BUSY_WAIT_MS);
        (void)close(folder_fd);
        return fd == -EAGAIN ? -ETIMEDOUT : fd;
}

static int send_all(int fd, struct span bytes, uint64_t end_ms)
{
        while (bytes.size) {
                ssize_t n = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);
                /* A host that refuses a request before it has read all of it has already answered. */
                if (n < 0 && errno == EPIPE)
                        return 0;
                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return -errno;
                int r = n < 0 ? wait_for(fd, POLLOUT, end_ms) : 0;
                if (r < 0)
                        return r;
                if (n > 0)
                        bytes = (struct span){ bytes.data + n, bytes.size - (size_t)n };
        }
        return 0;
}

static int receive(int fd, struct http_answer *answer, uint64_t end_ms)
{
        char *piece = memory_alloc(READ_SIZE);
        int r = 0;
        while (r == 0) {
                ssize_t n = recv(fd, piece, READ_SIZE, 0);
                if (n > 0)
                        r = http_answer_feed(answer, (struct span){ piece, (size_t)n });
                else if (n == 0)
                        r = -ECONNRESET;
                else if (errno == EAGAIN || errno == EINTR)
                        r = wait_for(fd, POLLIN, end_ms);
                else
                        r = -errno;
        }
        free(piece);
        return r < 0 ? r : 0;
}

static void put_request(struct buffer *to, const char *path, const json_t *body)
{
        char *text = body ? memory_or_abort(json_dumps(body, JSON_COMPACT)) : NULL;
        size_t size = text ? strlen(text) : 0;
        buffer_printf(to,
                "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                "Connection: close\r\n\r\n",
                path, size);
        buffer_put(to, text ? text : "", size);
        free(text);
}

int host_call(const char *state, const char *name, const char *path, const json_t *body, uint64_t timeout_ms,
        struct http_answer *ret_answer, struct error *error)
{
        struct buffer request = { 0 };
        struct http_answer answer = { 0 };
        uint64_t end_ms = clock_boot_ms() + timeout_ms;
        int fd = connect_to(state, name, end_ms);
        if (fd == -ENOENT || fd == -ECONNREFUSED || fd == -ENOTDIR)
                return error_set(error, -ECONNREFUSED,
                        "no host %s runs here: nobody listens on %s/%s" SUFFIX "; start one: quiver run", name, state,
                        name);
        if (fd == -EACCES || fd == -EPERM)
                return error_set(error, -EACCES, "host %s is another user's; ask as that user, or as root", name);
        put_request(&request, path, body);
        int r = fd < 0 ? fd : send_all(fd, (struct span){ (const char *)request.data, request.size }, end_ms);
        if (r == 0)
                r = receive(fd, &answer, end_ms);
        if (fd >= 0)
                (void)close(fd);
        buffer_free(&request);
        if (r == 0) {
                *ret_answer = answer;
                return 0;
        }
        http_answer_free(&answer);
        if (r == -ETIMEDOUT)
                return error_set(error, r, "host %s gave no answer within %llu ms; see its log", name,
                        (unsigned long long)timeout_ms);
        if (r == -EBADMSG || r == -EMSGSIZE)
                return error_set(error, -EBADMSG,
                        "host %s: what answers is no host (%s); does another program listen on %s/%s" SUFFIX "?", name,
                        r == -EMSGSIZE ? "the answer is too large" : "it is no HTTP answer", state, name);
        return error_set(error, r == -EPIPE ? -ECONNRESET : r, "host %s: %s", name, strerror(-r));
}

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void host_call_names(const char *state, struct strings *ret_names)
{
        DIR *dir = opendir(state);
        for (const struct dirent *entry; dir && (entry = readdir(dir));) {
                size_t size = strlen(entry->d_name);
                size_t suffix = strlen(SUFFIX);
                if (size <= suffix || strcmp(entry->d_name + size - suffix, SUFFIX) != 0)
                        continue;
                char *name = text_copy_part(entry->d_name, size - suffix);
                strings_add(ret_names, name);
                free(name);
        }
        if (dir)
                (void)closedir(dir);
        if (ret_names->count)
                qsort(ret_names->items, ret_names->count, sizeof(*ret_names->items), compare);
}
