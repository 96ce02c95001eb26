#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum log_level highest = LEVEL_INFO;
static const char *const names[] = { "error", "warn", "info", "debug" };

void log_set_level(enum log_level level)
{
        highest = level;
}

enum log_level log_level_get(void)
{
        return highest;
}

const char *log_level_name(int level)
{
        return level >= LEVEL_ERROR && level <= LEVEL_DEBUG ? names[level] : "unknown";
}

bool log_level_parse(const char *name, enum log_level *ret_level)
{
        for (int i = LEVEL_ERROR; i <= LEVEL_DEBUG; i++) {
                if (!strcmp(name, names[i])) {
                        *ret_level = (enum log_level)i;
                        return true;
                }
        }
        return false;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
        if (level > highest)
                return;
        char line[LOG_LINE_MAX];
        struct timespec now;
        struct tm utc;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        (void)gmtime_r(&now.tv_sec, &utc);
        size_t n = strftime(line, sizeof(line), "time=%Y-%m-%dT%H:%M:%S", &utc);
        n += (size_t)snprintf(
                line + n, sizeof(line) - n, ".%03ldZ level=%s event=%s", now.tv_nsec / 1000000, names[level], event);
        if (*format) {
                line[n++] = ' ';
                va_list args;
                va_start(args, format);
                int m = vsnprintf(line + n, sizeof(line) - n - 1, format, args);
                va_end(args);
                if (m > 0)
                        n += (size_t)m < sizeof(line) - n - 1 ? (size_t)m : sizeof(line) - n - 2;
        }
        line[n++] = '\n';
        /* A write that fails is ignored: the host goes on working without its log. */
        ssize_t written = write(STDERR_FILENO, line, n);
        (void)written;
}

int log_to_file(const char *path, struct error *error)
{
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_set(error, -errno, "cannot open the log file %s: %s", path, strerror(errno));
        int r = dup2(fd, STDERR_FILENO) < 0 ? -errno : 0;
        (void)close(fd);
        return r < 0 ? error_set(error, r, "cannot write to the log file %s: %s", path, strerror(-r)) : 0;
}

static bool is_plain(const char *value)
{
        if (!*value)
                return false;
        for (const unsigned char *c = (const unsigned char *)value; *c; c++)
                if (*c <= ' ' || *c == '"' || *c == '=' || *c == '\\' || *c == 0x7f)
                        return false;
        return true;
}

const char *log_quote(char *text, size_t size, const char *value)
{
        if (is_plain(value) && strlen(value) < size) {
                memcpy(text, value, strlen(value) + 1);
                return text;
        }
        size_t n = 0;
        text[n++] = '"';
        for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
                /* There must be room for the longest escape and, after it, for dots, quote and NUL. */
                if (n + 9 > size) {
                        memcpy(text + n, "...", 3);
                        n += 3;
                        break;
                }
                if (*c == '"' || *c == '\\') {
                        text[n++] = '\\';
                        text[n++] = (char)*c;
                } else if (*c == '\n') {
                        text[n++] = '\\';
                        text[n++] = 'n';
                } else if (*c == '\t') {
                        text[n++] = '\\';
                        text[n++] = 't';
                } else if (*c < ' ' || *c == 0x7f) {
                        n += (size_t)snprintf(text + n, size - n, "\\x%02x", *c);
                } else {
                        text[n++] = (char)*c;
                }
        }
        text[n++] = '"';
        text[n] = 0;
        return text;
}
