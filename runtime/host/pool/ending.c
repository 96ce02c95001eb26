#include "host/pool/ending.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backtrace/backtrace.h"
#include "base/memory.h"
#include "base/strings.h"

/* Notes where the kernel puts a core dump, if the runner was allowed one.  Whether one was written is only in the wait
 * status, which libuv does not pass on. */
static void note_core(struct ending *e, const struct process *p, const struct runner_start *start)
{
        char pattern[160] = "";
        if (!start->core_max || !p->term_signal || p->term_signal == SIGKILL)
                return;
        FILE *file = fopen("/proc/sys/kernel/core_pattern", "re");
        if (file && !fgets(pattern, sizeof(pattern), file))
                *pattern = 0;
        if (file)
                (void)fclose(file);
        pattern[strcspn(pattern, "\n")] = 0;
        (void)snprintf(e->core_note, sizeof(e->core_note), "a core dump may be there: pid %d, kernel.core_pattern = %s",
                (int)p->handle.pid, pattern);
}

struct ending *ending_new(const struct process *p, uint32_t seats, const struct runner_start *start)
{
        struct ending *e = memory_zero(1, sizeof(*e));
        e->faults = memory_zero((size_t)seats + 1, sizeof(*e->faults));
        e->traces = memory_zero((size_t)seats + 1, sizeof(*e->traces));
        for (uint32_t i = 0; i < seats; i++)
                ring_host_fault(&p->ring, i, &e->faults[i]);
        ring_host_fault(&p->ring, RING_NO_SEAT, &e->faults[seats]);
        e->tail = p->tail;
        e->death = (struct death){ .exit_status = (int)p->exit_status,
                .signal = p->term_signal,
                .seats = seats,
                .faults = e->faults,
                .thread_fault = &e->faults[seats],
                .traces = (const char *const *)e->traces,
                .tail = &e->tail,
                .label = start->label,
                .core_note = e->core_note,
                .oom = p->oom };
        note_core(e, p, start);
        return e;
}

void ending_free(struct ending *e)
{
        for (size_t i = 0; i <= e->death.seats; i++)
                free(e->traces[i]);
        for (size_t i = 0; i < e->tasks_count; i++)
                buffer_free(&e->tasks[i].checkpoint);
        free(e->tasks);
        free(e->traces);
        free(e->trace_note);
        free(e->faults);
        free(e);
}

struct ending_task *ending_add_task(struct ending *e)
{
        e->tasks = memory_resize(e->tasks, (e->tasks_count + 1) * sizeof(*e->tasks));
        struct ending_task *task = &e->tasks[e->tasks_count++];
        *task = (struct ending_task){ 0 };
        return task;
}

static const char *trace_text(const struct ring_fault_view *f)
{
        return f->kind == FAULT_NONE ? "" : f->text + f->cause_size;
}

static size_t count_lines(const char *text)
{
        size_t lines = 0;
        for (; *text; text++)
                lines += *text == '\n' || !text[1];
        return lines;
}

bool ending_put_request(struct ending *e, const char *plugin, struct buffer *request)
{
        if (!backtrace_begin(request, plugin))
                return false;
        while (e->traces_asked <= e->death.seats) {
                const struct ring_fault_view *f = &e->faults[e->traces_asked];
                if (!backtrace_add(request, &e->lines_asked, trace_text(f), f->places, RING_FAULT_LINES))
                        break;
                e->traces_asked++;
        }
        return e->lines_asked > 0;
}

/* Replaces control characters: the names come from the runner, and terminals and logs show them. */
static void put_plain(struct buffer *to, const char *text)
{
        for (; *text; text++) {
                bool is_plain = (unsigned char)*text >= ' ' && *text != 0x7f;
                buffer_put(to, is_plain || *text == '\n' ? text : "?", 1);
        }
}

static size_t count_texts(struct span answer)
{
        size_t count = 0;
        while (backtrace_next(&answer))
                count++;
        return count;
}

void ending_explain(struct ending *e, struct span answer)
{
        if (count_texts(answer) != e->lines_asked + 1)
                return;
        for (size_t i = 0; i < e->traces_asked; i++) {
                struct buffer trace = { 0 };
                for (size_t lines = count_lines(trace_text(&e->faults[i])); lines; lines--) {
                        put_plain(&trace, backtrace_next(&answer));
                        buffer_put(&trace, "\n", 1);
                }
                if (trace.size)
                        e->traces[i] = text_copy(buffer_text(&trace));
                buffer_free(&trace);
        }
        struct buffer note = { 0 };
        put_plain(&note, backtrace_next(&answer));
        e->trace_note = text_copy(buffer_text(&note));
        e->death.trace_note = e->trace_note;
        buffer_free(&note);
}
