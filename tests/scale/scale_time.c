/* scale_time.c: fake time.  The clock, libuv's timers and the events of the simulation are one queue. */
#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "scale.h"

struct scale_event {
        uint64_t at_ns, number;
        void (*run)(void *arg);
        void *arg;
        uv_timer_t *timer; /* NULL: an event of the simulation */
        uint64_t start_id; /* of the timer: it may have been started anew meanwhile */
};

uint64_t scale_now_ns = 1000 * NS_PER_S;
static struct scale_event *heap;
static size_t heap_count, heap_room;
static uint64_t next_number, next_start = 1, randomness = 1;

static bool is_before(const struct scale_event *a, const struct scale_event *b)
{
        return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void swap(size_t a, size_t b)
{
        struct scale_event kept = heap[a];
        heap[a] = heap[b];
        heap[b] = kept;
}

static void push(struct scale_event event)
{
        if (heap_count == heap_room) {
                heap_room = heap_room ? 2 * heap_room : 1024;
                heap = realloc(heap, heap_room * sizeof(*heap));
                if (!heap)
                        abort();
        }
        event.number = ++next_number;
        size_t i = heap_count++;
        heap[i] = event;
        for (; i && is_before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
                swap(i, (i - 1) / 2);
}

static struct scale_event pop(void)
{
        struct scale_event first = heap[0];
        heap[0] = heap[--heap_count];
        for (size_t i = 0;;) {
                size_t child = 2 * i + 1;
                if (child + 1 < heap_count && is_before(&heap[child + 1], &heap[child]))
                        child++;
                if (child >= heap_count || !is_before(&heap[child], &heap[i]))
                        return first;
                swap(i, child);
                i = child;
        }
}

void scale_at(uint64_t delay_ns, void (*run)(void *arg), void *arg)
{
        push((struct scale_event){ .at_ns = scale_now_ns + delay_ns, .run = run, .arg = arg });
}

void scale_run_until(uint64_t until_ns)
{
        while (heap_count && heap[0].at_ns <= until_ns) {
                struct scale_event event = pop();
                scale_now_ns = event.at_ns;
                if (!event.timer) {
                        event.run(event.arg);
                } else if (event.timer->start_id == event.start_id) {
                        event.timer->start_id = 0;
                        event.timer->timer_cb(event.timer);
                }
        }
        scale_now_ns = until_ns;
}

uint32_t scale_draw(uint32_t below)
{
        randomness = randomness * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)((randomness >> 33) % below);
}

/* --- what the real code asks for, instead of libc and libuv --- */

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
        uint64_t ns = scale_now_ns + (clock == CLOCK_REALTIME ? SCALE_UNIX_S * NS_PER_S : 0);
        *ret_time = (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
        return 0;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
        (void)loop;
        timer->start_id = 0;
        return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat)
{
        (void)repeat;
        uint64_t at_ns = scale_now_ns + timeout * NS_PER_MS;
        /* The membership sets its timer after each event, mostly to the same time. */
        if (timer->start_id && timer->timer_cb == cb && timer->timeout == at_ns)
                return 0;
        timer->timer_cb = cb;
        timer->timeout = at_ns;
        timer->start_id = next_start++;
        push((struct scale_event){ .at_ns = at_ns, .timer = timer, .start_id = timer->start_id });
        return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
        timer->start_id = 0;
        return 0;
}
