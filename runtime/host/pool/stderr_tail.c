#include "host/pool/stderr_tail.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What runtimes write when they give up: C++, sanitizers, assert(), Rust, Go, Java. */
static const char *const causes[] = { "terminate called ", "SUMMARY: ", ": Assertion `", "panicked at ",
        "panic: ", "fatal error: ", "runtime error: ", "Exception in thread " };

static bool names_cause(const char *line)
{
        for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
                if (strstr(line, causes[i]))
                        return true;
        return false;
}

static void copy_plain(char to[STDERR_TAIL_BYTES + 1], const char *line)
{
        size_t n = 0;
        for (; n < STDERR_TAIL_BYTES && line[n]; n++)
                to[n] = (unsigned char)line[n] < ' ' || line[n] == 0x7f ? ' ' : line[n];
        to[n] = 0;
}

void stderr_tail_add(struct stderr_tail *tail, const char *line, uint64_t now_ms)
{
        struct stderr_line ignored = { 0 };
        if (strstr(line, "ERROR: ") && strstr(line, "Sanitizer")) {
                tail->is_report = true;
                tail->count = 0;
        }
        bool is_kept = !tail->is_report || tail->count < STDERR_TAIL_LINES;
        struct stderr_line *to = is_kept ? &tail->lines[tail->count % STDERR_TAIL_LINES] : &ignored;
        bool follows_cause = tail->cause.at_ms && tail->count &&
                             !strcmp(tail->lines[(tail->count - 1) % STDERR_TAIL_LINES].text, tail->cause.text);
        to->at_ms = now_ms;
        copy_plain(to->text, line);
        tail->count += is_kept;
        const char *what = strstr(to->text, "what(): ");
        if (names_cause(to->text)) {
                tail->cause = *to;
        } else if (follows_cause && what) {
                size_t n = strlen(tail->cause.text);
                (void)snprintf(tail->cause.text + n, sizeof(tail->cause.text) - n, ", %.*s",
                        (int)(sizeof(tail->cause.text) - n), what);
        }
}

const char *stderr_tail_cause(const struct stderr_tail *tail, uint64_t since_ms)
{
        return tail->cause.at_ms >= since_ms ? tail->cause.text : "";
}

const char *stderr_tail_line(const struct stderr_tail *tail, uint64_t since_ms, size_t i)
{
        uint64_t first = tail->count > STDERR_TAIL_LINES ? tail->count - STDERR_TAIL_LINES : 0;
        for (uint64_t at = first; at < tail->count; at++) {
                const struct stderr_line *line = &tail->lines[at % STDERR_TAIL_LINES];
                if (line->at_ms >= since_ms && !i--)
                        return line->text;
        }
        return NULL;
}
