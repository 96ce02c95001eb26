/* Any bytes as what a runner writes to its standard error and into its answers, and as what the kernel says of
 * processes that a plugin named: lines are cut to their limits, the log stays one line of its form per event, and what
 * is told of a crash has no control characters. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/log/format.h"
#include "base/process/cgroup.h"
#include "base/process/process_stat.h"
#include "base/process/stray_mark.h"
#include "choices.h"
#include "host/pool/line_reader.h"
#include "host/pool/oom.h"
#include "host/pool/stderr_tail.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_clean(const char *text)
{
        for (; *text; text++)
                if ((unsigned char)*text < ' ' || *text == 0x7f)
                        return false;
        return true;
}

/* --- the log ------------------------------------------------------------------------------------------------------ */

/* The JSON has the value that was given, as far as it is UTF-8 and fits. */
static void demand_json_line(const char *line, size_t size, const char *value)
{
        json_t *object = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
        demand(json_is_object(object) && size && line[size - 1] == '\n' && !memchr(line, '\n', size - 1));
        const char *said = json_string_value(json_object_get(object, "text"));
        json_t *as_it_is = json_string(value);
        demand(said && (!as_it_is || strlen(value) > 160 || !strcmp(said, value)));
        json_decref(as_it_is);
        json_decref(object);
}

/* Fields as the journal reads them: NAME=VALUE and a newline, or NAME, a newline, the length, and so many bytes. */
static void demand_journal(const char *data, size_t size)
{
        for (size_t at = 0; at < size;) {
                const char *end = memchr(data + at, '\n', size - at);
                demand(end);
                const char *equals = memchr(data + at, '=', (size_t)(end - (data + at)));
                size_t name = (size_t)((equals ? equals : end) - (data + at));
                demand(name && name <= 64);
                for (size_t i = 0; i < name; i++)
                        demand((data[at + i] >= 'A' && data[at + i] <= 'Z') ||
                                (i && data[at + i] >= '0' && data[at + i] <= '9') || (i && data[at + i] == '_'));
                at = (size_t)(end - data) + 1;
                if (equals)
                        continue;
                uint64_t length = 0;
                demand(size - at > 8);
                for (unsigned i = 0; i < 8; i++)
                        length |= (uint64_t)(unsigned char)data[at + i] << (8 * i);
                demand(length < size - at - 8 && data[at + 8 + length] == '\n');
                at += 8 + length + 1;
        }
}

static void log_one(const char *value)
{
        static char out[LOG_FORMATTED_MAX];
        char pairs[LOG_LINE_MAX], quoted[1024];
        struct log_head head = { "2026-11-16T10:00:00.123Z", LEVEL_WARN, "fuzzed" };
        log_quote(quoted, sizeof(quoted), value);
        demand(is_clean(quoted) && strlen(quoted) < sizeof(quoted));
        (void)snprintf(pairs, sizeof(pairs), "shard=7 text=%s handler=mail", quoted);
        size_t size = log_as_json(out, &head, pairs);
        demand(size < sizeof(out));
        demand_json_line(out, size, value);
        size = log_as_journal(out, &head, pairs);
        demand(size < sizeof(out));
        demand_journal(out, size);
}

/* Pairs that nobody has quoted are still a line and a datagram. */
static void log_pairs(const char *pairs)
{
        static char out[LOG_FORMATTED_MAX];
        struct log_head head = { "2026-11-16T10:00:00.123Z", LEVEL_INFO, "fuzzed" };
        if (strlen(pairs) >= LOG_LINE_MAX)
                return;
        size_t size = log_as_json(out, &head, pairs);
        demand(size && size < sizeof(out) && out[size - 1] == '\n');
        demand(log_as_journal(out, &head, pairs) < sizeof(out));
}

/* --- a runner's output -------------------------------------------------------------------------------------------- */

struct reading {
        struct stderr_tail tail;
        uint64_t now_ms;
        unsigned lines;
};

static void on_line(void *arg, const char *line, uint32_t dropped)
{
        struct reading *r = arg;
        (void)dropped;
        r->lines++;
        demand(strlen(line) <= LINE_READER_MAX + 3 && !strchr(line, '\n'));
        stderr_tail_add(&r->tail, line, r->now_ms);
}

static void read_output(struct choices *c, const char *bytes, size_t size)
{
        struct line_reader reader = { .rate = choose(c, 4) };
        struct reading r = { .now_ms = 1000 };
        while (size) {
                size_t piece = 1 + choose_byte(c) * 16u;
                piece = piece < size ? piece : size;
                line_reader_feed(&reader, bytes, piece, r.now_ms, on_line, &r);
                bytes += piece;
                size -= piece;
                r.now_ms += choose(c, 3) * 400u;
        }
        line_reader_end(&reader, r.now_ms, on_line, &r);
        demand(is_clean(stderr_tail_cause(&r.tail, 0)));
        for (size_t i = 0; i <= STDERR_TAIL_LINES; i++) {
                const char *line = stderr_tail_line(&r.tail, choose(c, 2) ? 0 : r.now_ms, i);
                demand(!line || (i < STDERR_TAIL_LINES && is_clean(line) && strlen(line) <= STDERR_TAIL_BYTES));
        }
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static void read_process(const char *text, size_t size)
{
        struct process_stat stat;
        uint64_t number;
        char path[CGROUP_PATH_MAX], mounts[4096];
        char named[512];
        /* A process's name is its own choice, and the kernel cuts it to 15 bytes. */
        (void)snprintf(
                named, sizeof(named), "12 (%.15s) S 7 12 12 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 4711 1 1", text);
        demand(process_stat_parse(named, &stat) == 0 && stat.parent == 7 && stat.state == 'S' && stat.started == 4711);
        (void)process_stat_parse(text, &stat);
        (void)stray_mark_find(text, size + 1, "0011223344556677", &number);
        (void)oom_parse(text, "oom_kill");
        (void)cgroup_parse_controllers(text);
        (void)snprintf(mounts, sizeof(mounts), "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n%s", text);
        if (cgroup_parse(mounts, text, path) == 0)
                demand(strlen(path) < sizeof(path) && !strstr(path, "/../"));
        (void)snprintf(mounts, sizeof(mounts), "0::/%.1000s\n", text);
        if (cgroup_parse(text, mounts, path) == 0)
                demand(strlen(path) < sizeof(path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        char *text = calloc(1, c.size + 1);
        demand(text != NULL);
        memcpy(text, c.data, c.size);
        log_one(text);
        log_pairs(text);
        read_output(&c, text, c.size);
        read_process(text, strlen(text));
        free(text);
        return 0;
}
