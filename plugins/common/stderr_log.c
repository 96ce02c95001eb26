#include "stderr_log.h"

#include <unistd.h>

#define CHUNK_SIZE 4096
#define CHUNKS_MAX 16 /* per call, so that a child that writes without end does not block everything else */

void stderr_log_begin(struct stderr_log *l, const struct qv_host *host)
{
        l->host = host;
        l->line_size = l->tail_size = 0;
}

static void drop_oldest_line(struct stderr_log *l)
{
        const char *newline = memchr(l->tail, '\n', l->tail_size);
        size_t size = newline ? (size_t)(newline - l->tail) + 1 : l->tail_size;
        l->tail_size -= size;
        memmove(l->tail, l->tail + size, l->tail_size);
}

static void keep(struct stderr_log *l)
{
        size_t size = l->line_size < sizeof(l->tail) - 1 ? l->line_size : sizeof(l->tail) - 1;
        while (sizeof(l->tail) - l->tail_size < size + 1)
                drop_oldest_line(l);
        memcpy(l->tail + l->tail_size, l->line, size);
        l->tail[l->tail_size + size] = '\n';
        l->tail_size += size + 1;
}

static void emit(struct stderr_log *l)
{
        l->line[l->line_size] = 0;
        if (l->line_size) {
                l->host->log(l->host, QV_LOG_INFO, l->line);
                keep(l);
        }
        l->line_size = 0;
}

static void feed(struct stderr_log *l, const char *data, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                if (data[i] == '\n')
                        emit(l);
                else if (data[i] && l->line_size < sizeof(l->line) - 1)
                        l->line[l->line_size++] = data[i];
        }
}

bool stderr_log_read(struct stderr_log *l, int fd)
{
        char chunk[CHUNK_SIZE];
        for (int i = 0; i < CHUNKS_MAX; i++) {
                ssize_t n = read(fd, chunk, sizeof(chunk));
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR;
                if (n == 0)
                        return false;
                feed(l, chunk, (size_t)n);
        }
        return true;
}

void stderr_log_end(struct stderr_log *l)
{
        emit(l);
}

const char *stderr_log_tail(struct stderr_log *l, char text[STDERR_TAIL_MAX + 2])
{
        size_t used = 0;
        if (!l->tail_size)
                return "";
        text[used++] = ':';
        text[used++] = ' ';
        for (size_t i = 0; i + 1 < l->tail_size; i++)
                text[used++] = l->tail[i] == '\n' ? '|' : l->tail[i];
        text[used] = 0;
        return text;
}
