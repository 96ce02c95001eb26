#include "host/notify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int connect_to(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t size = strlen(path);
        if ((*path != '/' && *path != '@') || size >= sizeof(address.sun_path))
                return -1;
        memcpy(address.sun_path, path, size);
        if (*path == '@')
                address.sun_path[0] = 0; /* the abstract name space */
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length) < 0) {
                (void)close(fd);
                fd = -1;
        }
        return fd;
}

/* The manager passes its sockets on from this descriptor; only the first one is used. */
#define LISTEN_FDS_START 3
static int take_socket(void)
{
        const char *pid = getenv("LISTEN_PID");
        const char *count = getenv("LISTEN_FDS");
        bool is_ours = pid && count && strtoull(pid, NULL, 10) == (unsigned long long)getpid() && atoi(count) > 0;
        (void)unsetenv("LISTEN_PID");
        (void)unsetenv("LISTEN_FDS");
        (void)unsetenv("LISTEN_FDNAMES");
        return is_ours && fcntl(LISTEN_FDS_START, F_SETFD, FD_CLOEXEC) == 0 ? LISTEN_FDS_START : -1;
}

void notify_open(struct notify *n)
{
        const char *path = getenv("NOTIFY_SOCKET");
        const char *watchdog = getenv("WATCHDOG_USEC");
        const char *pid = getenv("WATCHDOG_PID");
        *n = (struct notify){
                .fd = path ? connect_to(path) : -1, .beat_at_ms = UINT64_MAX, .listen_fd = take_socket()
        };
        bool is_ours = !pid || strtoull(pid, NULL, 10) == (unsigned long long)getpid();
        if (n->fd >= 0 && watchdog && is_ours)
                n->beat_ms = strtoull(watchdog, NULL, 10) / 2000; /* microseconds to half the interval in ms */
        if (n->beat_ms)
                n->beat_at_ms = 0;
        (void)unsetenv("NOTIFY_SOCKET");
        (void)unsetenv("WATCHDOG_USEC");
        (void)unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *n)
{
        if (n->fd >= 0)
                (void)close(n->fd);
        n->fd = -1;
}

void notify_say(const struct notify *n, const char *format, ...)
{
        char text[512];
        va_list args;
        if (n->fd < 0)
                return;
        va_start(args, format);
        int size = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (size > 0)
                (void)send(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void notify_reloading(const struct notify *n)
{
        struct timespec now;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
        notify_say(n, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=Reloading", us);
}

void notify_beat(struct notify *n, uint64_t now_ms)
{
        if (now_ms < n->beat_at_ms)
                return;
        n->beat_at_ms = now_ms + n->beat_ms;
        notify_say(n, "WATCHDOG=1");
}
