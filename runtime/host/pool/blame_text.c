#include "host/pool/blame_text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FRAMES_BEFORE 3 /* frames of libraries that are shown above the first one of the plugin */
#define NULL_PAGE     UINT64_C(4096)

/* The text so far.  What does not fit is left out. */
struct draft {
        char *text;
        size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct draft *d, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        int n = vsnprintf(d->text + d->used, d->size - d->used, format, args);
        va_end(args);
        d->used = n < 0 ? d->used : d->used + (size_t)n < d->size ? d->used + (size_t)n : d->size - 1;
}

/* --- the last words --- */

static const char *cause_on_stderr(const struct death *death, uint64_t since_ms)
{
        return death->tail ? stderr_tail_cause(death->tail, since_ms) : "";
}

/* Skips lines that the text already has, such as the C library's message from the fault record. */
static void put_stderr(struct draft *d, const struct death *death, uint64_t since_ms)
{
        const char *line;
        for (size_t i = 0; death->tail && (line = stderr_tail_line(death->tail, since_ms, i)); i++) {
                const char *words = line + strspn(line, " ");
                if (*words && !strstr(d->text, words))
                        put(d, "\nstderr: %s", line);
        }
}

/* --- the backtrace --- */

static bool is_plugins(const char *line, size_t size, const char *label)
{
        char mark[300];
        (void)snprintf(mark, sizeof(mark), "(%.255s)", label);
        return memmem(line, size, mark, strlen(mark)) != NULL;
}

/* The number of lines of a trace, and which of them are the plugin's. */
struct trace_shape {
        size_t lines, first, last; /* first and last line of the plugin; `lines`: there is none */
};

static struct trace_shape shape_of(const char *trace, const char *label)
{
        struct trace_shape s = { .first = SIZE_MAX };
        for (const char *line = trace; *line; s.lines++) {
                size_t size = strcspn(line, "\n");
                bool is_again = !strncmp(line, "and again, ", 11) && s.lines && s.last == s.lines - 1;
                if (!label || is_again || is_plugins(line, size, label)) {
                        s.first = s.first == SIZE_MAX ? s.lines : s.first;
                        s.last = s.lines;
                }
                line += size + (line[size] ? 1 : 0);
        }
        if (s.first == SIZE_MAX)
                s = (struct trace_shape){ .lines = s.lines, .last = s.lines };
        return s;
}

static void put_left_out(struct draft *d, size_t count)
{
        if (count)
                put(d, "\n(%zu frame%s of libraries)", count, count == 1 ? "" : "s");
}

/* Shows the plugin's frames and a few above: the library's way from there to abort(), and the frames that called the
 * plugin, are the same in every trace. */
static void put_trace(struct draft *d, const char *trace, const struct death *death)
{
        struct trace_shape s = shape_of(trace, death->label);
        size_t begin = s.first > FRAMES_BEFORE ? s.first - FRAMES_BEFORE : 0;
        put_left_out(d, begin);
        const char *line = trace;
        for (size_t i = 0; *line && i <= s.last; i++) {
                size_t size = strcspn(line, "\n");
                if (i >= begin)
                        put(d, "\n%.*s", (int)size, line);
                line += size + (line[size] ? 1 : 0);
        }
        put_left_out(d, s.last < s.lines ? s.lines - s.last - 1 : 0);
        if (death->trace_note && *death->trace_note && *trace)
                put(d, "\n(%s)", death->trace_note);
        if (death->core_note && *death->core_note)
                put(d, "\n(%s)", death->core_note);
}

/* The backtrace of a seat's record or of thread_fault, readable if possible. */
static const char *trace_of(const struct death *death, const struct ring_fault_view *f)
{
        size_t i = f == death->thread_fault ? death->seats : (size_t)(f - death->faults);
        const char *readable = death->traces ? death->traces[i] : NULL;
        return readable ? readable : f->text + f->cause_size;
}

/* --- what happened --- */

static const char *oom_text(enum oom_finding oom)
{
        switch (oom) {
        case OOM_GROUP:
                return "; the kernel ended a process of this control group for lack of memory (OOM killer): give it "
                       "more "
                       "memory, or let the handler use less (limits.memory)";
        case OOM_MACHINE:
                return "; at that time the kernel ended a process of this machine for lack of memory (OOM killer): see "
                       "dmesg";
        case OOM_NOT:
                return "; neither the host nor the OOM killer did it: the handler itself, or somebody on this machine";
        case OOM_UNKNOWN:
                break;
        }
        return "; the host did not do it: the OOM killer (see dmesg), the handler itself, or somebody on this machine";
}

static void put_end(struct draft *d, const struct death *death, uint64_t since_ms)
{
        const char *name = sigabbrev_np(death->signal);
        const char *cause = cause_on_stderr(death, since_ms);
        if (name)
                put(d, "killed by SIG%s", name);
        else if (death->signal)
                put(d, "killed by signal %d", death->signal);
        else
                put(d, "the process ended with exit status %d", death->exit_status);
        if (*cause)
                put(d, ": %s", cause);
        else if (death->signal == SIGKILL)
                put(d, "%s", oom_text(death->oom));
        else if (death->signal == SIGSEGV || death->signal == SIGBUS)
                put(d, ", and no record: a thread that the plugin started ran off its stack, or the plugin has a "
                       "signal "
                       "handler of its own");
        else if (!death->signal)
                put(d, ", not by exit(): by _exit(), or by a library that gave up");
}

/* Puts the signal or exit, and the first line of the record's cause on the same line. */
static void put_fault(struct draft *d, const struct ring_fault_view *f, const struct death *death, uint64_t since_ms)
{
        int first = (int)strcspn(f->text, "\n");
        if ((size_t)first > f->cause_size)
                first = (int)f->cause_size;
        const char *thread = f == death->thread_fault ? " in a thread that the plugin started" : "";
        if (f->kind == FAULT_EXIT) {
                put(d, "%.*s%s, exit status %d", first, f->text, thread, death->exit_status);
                return;
        }
        const char *name = f->signal > 0 && f->signal < 65 ? sigabbrev_np(f->signal) : NULL;
        put(d, "SIG%s", name ? name : "?");
        /* A signal that a process sends itself, as abort() does, has no address. */
        if (f->code > 0)
                put(d, " at address 0x%" PRIx64 "%s", f->address,
                        f->signal == SIGSEGV && f->address < NULL_PAGE && !first ? " (a null pointer)" : "");
        put(d, "%s", thread);
        const char *cause = cause_on_stderr(death, since_ms);
        if (first)
                put(d, ": %.*s", first, f->text);
        else if (f->signal == SIGABRT && *cause)
                put(d, ": %s", cause);
}

/* The seat's fault record, or else that of a plugin's own thread; NULL: neither exists. */
static const struct ring_fault_view *fault_for(const struct death *death, uint32_t seat)
{
        if (seat < death->seats && death->faults[seat].kind != FAULT_NONE)
                return &death->faults[seat];
        return death->thread_fault && death->thread_fault->kind != FAULT_NONE ? death->thread_fault : NULL;
}

static void put_death(struct draft *d, uint32_t seat, uint64_t since_ms, const struct death *death, const char *after)
{
        const struct ring_fault_view *f = fault_for(death, seat);
        if (f && blame_was_told(f))
                put(d, "it did not stop when told");
        else if (f)
                put_fault(d, f, death, since_ms);
        else
                put_end(d, death, since_ms);
        put(d, "%s", after);
        put_stderr(d, death, since_ms);
        if (f)
                put_trace(d, trace_of(death, f), death);
}

/* Adds the backtrace that the seat wrote on the host's SIGABRT. */
static void put_last_stand(struct draft *d, uint32_t seat, uint64_t since_ms, const struct death *death)
{
        if (!death)
                return;
        put_stderr(d, death, since_ms);
        if (seat < death->seats && blame_was_told(&death->faults[seat]))
                put_trace(d, trace_of(death, &death->faults[seat]), death);
}

static const char *plain_text(enum blame_why why)
{
        switch (why) {
        case BLAME_SCRIBBLE:
                return "crashed: the handler wrote over the memory shared with the host";
        case BLAME_NEIGHBOUR:
                return "interrupted: another task of the same process crashed or hung";
        case BLAME_SHUTDOWN:
                return "interrupted: the host ended the process";
        case BLAME_CANCEL:
                return "interrupted: cancelled";
        case BLAME_INIT:
                return "init did not return in time";
        case BLAME_CRASH:
        case BLAME_TIMEOUT:
        case BLAME_STALL:
        case BLAME_UNSURE:
        case BLAME_NOTHING:
                break;
        }
        return "";
}

const char *blame_text(
        char *text, size_t size, enum blame_why why, uint32_t seat, uint64_t since_ms, const struct death *death)
{
        struct draft d = { .text = text, .size = size };
        *text = 0;
        switch (why) {
        case BLAME_CRASH:
                put(&d, death ? "crashed: " : "crashed");
                if (death)
                        put_death(&d, seat, since_ms, death, "");
                break;
        case BLAME_UNSURE:
                put(&d, "interrupted: the process died%s", death ? ": " : "");
                if (death)
                        put_death(&d, seat, since_ms, death,
                                "; which of its tasks caused it is unknown: this one runs alone next");
                break;
        case BLAME_TIMEOUT:
                put(&d, "timed out: it ran past its timeout and did not stop when told");
                put_last_stand(&d, seat, since_ms, death);
                break;
        case BLAME_STALL:
                put(&d, "timed out: no progress for too long, and it did not stop when told");
                put_last_stand(&d, seat, since_ms, death);
                break;
        default:
                put(&d, "%s", plain_text(why));
        }
        return text;
}
