#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log/format.h"
#include "base/log/journal.h"
#include "base/strings.h"

/* Limits a line, with its head, to what a pipe takes in one write. */
#define PAIRS_MAX (LOG_LINE_MAX - 96)

static enum log_level highest = LEVEL_INFO;
static enum log_format form = FORMAT_LOGFMT;
static struct journal journal = { .fd = -1 };
static char *journal_path;
static char *file_path;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER; /* a library's thread may log, too */
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

int log_set_format(enum log_format format, const char *path, struct error *error)
{
        int r = format == FORMAT_JOURNAL ? journal_open(&journal, path, error) : 0;
        if (r < 0)
                return r;
        free(journal_path);
        journal_path = text_copy(format == FORMAT_JOURNAL ? path : NULL);
        form = format;
        return 0;
}

enum log_format log_format_get(void)
{
        return form;
}

const char *log_journal_get(void)
{
        return journal_path;
}

/* A write that fails is ignored: the host goes on working without its log. */
static void write_line(const char *line, size_t size)
{
        ssize_t written = write(STDERR_FILENO, line, size);
        (void)written;
}

static void write_logfmt(const struct log_head *head, const char *pairs)
{
        char line[LOG_LINE_MAX];
        int n = snprintf(line, sizeof(line), "time=%s level=%s event=%s%s%s\n", head->time, names[head->level],
                head->event, *pairs ? " " : "", pairs);
        write_line(line, (size_t)n);
}

/* The number of lines that the journal had no room for is reported with the next line that it takes. */
static int send_to_journal(const struct log_head *head, const char *pairs)
{
        char datagram[LOG_FORMATTED_MAX], lost[128];
        if (journal.dropped) {
                struct log_head about = { head->time, LEVEL_WARN, "log" };
                (void)snprintf(lost, sizeof(lost), "dropped=%" PRIu64 " text=\"the journal had no room for them\"",
                        journal.dropped);
                (void)journal_send(&journal, datagram, log_as_journal(datagram, &about, lost));
        }
        return journal_send(&journal, datagram, log_as_journal(datagram, head, pairs));
}

static void write_journal(const struct log_head *head, const char *pairs)
{
        (void)pthread_mutex_lock(&journal_lock);
        int r = send_to_journal(head, pairs);
        /* A journal that was restarted has another socket by the same name. */
        if (r < 0 && r != -EAGAIN && journal_open(&journal, journal_path, NULL) == 0)
                r = send_to_journal(head, pairs);
        (void)pthread_mutex_unlock(&journal_lock);
        if (r < 0 && r != -EAGAIN)
                write_logfmt(head, pairs);
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
        if (level > highest)
                return;
        char time[32], pairs[PAIRS_MAX] = "", json[LOG_FORMATTED_MAX];
        struct timespec now;
        struct tm utc;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        (void)gmtime_r(&now.tv_sec, &utc);
        size_t n = strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &utc);
        (void)snprintf(time + n, sizeof(time) - n, ".%03ldZ", now.tv_nsec / 1000000);
        va_list args;
        va_start(args, format);
        (void)vsnprintf(pairs, sizeof(pairs), format, args);
        va_end(args);
        struct log_head head = { time, level, event };
        if (form == FORMAT_JSON)
                write_line(json, log_as_json(json, &head, pairs));
        else if (form == FORMAT_JOURNAL)
                write_journal(&head, pairs);
        else
                write_logfmt(&head, pairs);
}

int log_to_file(const char *path, struct error *error)
{
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_set(error, -errno, "cannot open the log file %s: %s", path, strerror(errno));
        int r = dup2(fd, STDERR_FILENO) < 0 ? -errno : 0;
        (void)close(fd);
        if (r < 0)
                return error_set(error, r, "cannot write to the log file %s: %s", path, strerror(-r));
        char *copy = text_copy(path); /* copied, because `path` may come from log_file_get() */
        free(file_path);
        file_path = copy;
        return 0;
}

const char *log_file_get(void)
{
        return file_path;
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
        if (is_plain(value) && !log_is_number(value, strlen(value)) && strlen(value) < size) {
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
