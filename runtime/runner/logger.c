#include "runner/logger.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include <quiver/plugin.h>

#include "base/buffer.h"
#include "base/log.h"
#include "ring/message.h"

void logger_init(struct logger *l, int fd, uint32_t level_max, uint32_t lines_per_second)
{
        *l = (struct logger){ .fd = fd, .level_max = level_max };
        rate_limit_init(&l->bucket, lines_per_second);
}

static bool is_utf8_continuation(char c)
{
        return ((unsigned char)c & 0xc0) == 0x80;
}

void logger_clean(char *to, size_t size, const char *from)
{
        size_t n = strnlen(from, size);
        if (n == size) {
                n--;
                while (n && is_utf8_continuation(from[n]))
                        n--;
        }
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)from[i];
                to[i] = c < ' ' || c == 0x7f ? ' ' : from[i];
        }
        while (n && to[n - 1] == ' ')
                n--;
        to[n] = 0;
}

static bool send_line(const struct logger *l, const struct runner_log *line)
{
        struct buffer message = { 0 };
        message_put_log(&message, line);
        ssize_t n = send(l->fd, message.data, message.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        buffer_free(&message);
        return n >= 0;
}

void logger_line(struct logger *l, int level, uint32_t seat, uint64_t ticket, const char *text)
{
        if (!text)
                return;
        if (level < LEVEL_ERROR)
                level = LEVEL_ERROR;
        if (level > LEVEL_DEBUG)
                level = LEVEL_DEBUG;
        if ((uint32_t)level > l->level_max)
                return;
        if (!rate_limit_take(&l->bucket, clock_boot_ns())) {
                atomic_fetch_add_explicit(&l->dropped, 1, memory_order_relaxed);
                return;
        }
        char clean[QV_LOG_MAX + 1];
        logger_clean(clean, sizeof(clean), text);
        struct runner_log line = {
                .level = (uint32_t)level,
                .source = LOG_SERVICE,
                .seat = seat,
                .ticket = ticket,
                .dropped = atomic_exchange_explicit(&l->dropped, 0, memory_order_relaxed),
                .text = clean,
        };
        if (!send_line(l, &line))
                atomic_fetch_add_explicit(&l->dropped, line.dropped + 1, memory_order_relaxed);
}
