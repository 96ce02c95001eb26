/* What a trace costs a host per task, in instructions: run it under callgrind with 0 and with many tasks.
 *
 *         make build/tests/bench/trace_cost
 *         for n in 0 10000; do valgrind --tool=callgrind --callgrind-out-file=/dev/null build/tests/bench/trace_cost
 * off $n; done
 *
 * "bare": without the code for traces; "off": traces are off; "passed": the same, and the task has a traceparent;
 * "unchosen": on, and this trace is not recorded; "recorded": on, and it is.  Each task is offered to a runner, and
 * ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/handler/handler.h"
#include "host/handler/task_trace.h"
#include "host/shard/shard.h"

static struct traces traces = { .app = "bench", .host = "host-a", .instance = "0123456789abcdef" };
static bool is_bare;
static struct shard shard = { .number = 7 };

static void one_task(struct claimed *c, uint64_t number)
{
        struct task_start start = { c, 1763256000, number };
        struct buffer lines = { 0 };
        if (!is_bare && traces_is_on(&traces)) {
                handler_pack_headers(task_trace_headers(&traces, &start, &lines), &c->headers_packed);
                buffer_free(&lines);
        } else {
                handler_pack_headers(c->headers, &c->headers_packed);
        }
        if (!traces_is_on(&traces))
                return;
        struct settled settled = { .outcome = OUTCOME_DONE, .error = "" };
        struct task_attempt attempt = { .shard = &shard,
                .handler = "work",
                .host = "host-a",
                .generation = "1.0",
                .settled = &settled,
                .started_ns = 1000,
                .ended_ns = 2000,
                .wall_ahead_ns = UINT64_C(1763256000000000000) };
        task_trace_record(&traces, &start, &attempt, 1);
        if (traces.export.waiting >= TRACE_BATCH_MAX)
                trace_export_free(&traces.export);
}

int main(int argc, char **argv)
{
        const char *how = argc == 3 ? argv[1] : "";
        uint64_t tasks = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
        is_bare = !strcmp(how, "bare");
        bool is_on = !strcmp(how, "unchosen") || !strcmp(how, "recorded");
        bool has_header = is_on || !strcmp(how, "passed");
        uv_loop_t loop;
        if (!is_on && !has_header && strcmp(how, "off") != 0 && !is_bare) {
                (void)fprintf(stderr, "usage: trace_cost bare|off|passed|unchosen|recorded TASKS\n");
                return 2;
        }
        struct claimed *c = memory_zero(1, sizeof(*c));
        (void)uv_loop_init(&loop);
        traces_open(&traces, &loop);
        traces.export.queue_max = UINT32_MAX;
        traces.url = is_on ? strdup("http://127.0.0.1:4318/v1/traces") : NULL;
        c->id = SPAN_TEXT("9kq2v7d3c0a8x1m5r4t6-12");
        c->key = SPAN_TEXT("user-17");
        c->handler = SPAN_TEXT("work");
        c->submitted_ms = UINT64_C(1763256000000);
        if (has_header)
                c->headers = !strcmp(how, "unchosen")
                                     ? SPAN_TEXT("header.traceparent:00-4bf92f3577b34da6a3ce929d0e0e4736-"
                                                 "00f067aa0ba902b7-00\n")
                                     : SPAN_TEXT("header.traceparent:00-4bf92f3577b34da6a3ce929d0e0e4736-"
                                                 "00f067aa0ba902b7-01\n");
        for (uint64_t i = 0; i < tasks; i++)
                one_task(c, i);
        trace_export_free(&traces.export);
        buffer_free(&c->headers_packed);
        free(c);
        return 0;
}
