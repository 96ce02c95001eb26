/* ring_fixture.h: both ends of a ring in one process.
 *
 * They share one mapping, so that TSan sees what passes between them. */
#ifndef QUIVER_TESTS_RING_FIXTURE_H
#define QUIVER_TESTS_RING_FIXTURE_H

#include "check.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/eventfd.h>

#include "ring/host_side.h"
#include "ring/runner_side.h"

struct both {
        struct ring_host host;
        struct ring_runner runner;
        int bell_fd;
};

static inline void both_open(struct both *b, const struct ring_shape *shape)
{
        *b = (struct both){ .bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
        assert_true(b->bell_fd >= 0);
        assert_int_equal(ring_host_init(&b->host, shape), 0);
        b->runner.map = b->host.map;
        b->runner.bell_fd = b->bell_fd;
}

static inline void both_close(struct both *b)
{
        ring_host_free(&b->host);
        (void)close(b->bell_fd);
}

/* A task that names itself by its payload. */
static inline struct ring_task task_with(const void *payload, size_t size)
{
        return (struct ring_task){ .id = "t-1", .key = "k", .handler = "h", .payload = payload, .payload_size = size };
}

/* Hands over one task and expects that there is room; its ticket. */
static inline uint64_t submit_one(struct both *b, const char *payload, void *owner)
{
        struct ring_task task = task_with(payload, strlen(payload));
        uint64_t ticket = 0;
        assert_int_equal(ring_host_submit(&b->host, &task, &owner, 1, &ticket), 0);
        return ticket;
}

static inline uint64_t submit_batch(struct both *b, const char *const *payloads, uint32_t count)
{
        struct ring_task tasks[16];
        void *owners[16];
        uint64_t ticket = 0;
        for (uint32_t i = 0; i < count; i++) {
                tasks[i] = task_with(payloads[i], strlen(payloads[i]));
                owners[i] = (void *)(uintptr_t)payloads[i];
        }
        assert_int_equal(ring_host_submit(&b->host, tasks, owners, count, &ticket), 0);
        return ticket;
}

static inline struct ring_reply reply_done(uint64_t ticket)
{
        return (struct ring_reply){ .ticket = ticket, .outcome = OUTCOME_DONE, .error = "" };
}

static inline int answer_done(struct both *b, const struct ring_taken *taken)
{
        struct ring_reply reply = reply_done(taken->ticket);
        return ring_answer(&b->runner, taken, &reply);
}

/* Whether a seat would find something: ring_take() would wait. */
static inline bool has_waiting(struct both *b)
{
        return atomic_load(&b->host.map.header->submit_next) < atomic_load(&b->host.map.header->submit_tail);
}

/* Waits until the runner rings; false if it has not within `timeout_ms`. */
static inline bool wait_for_bell_fd(struct both *b, int timeout_ms)
{
        struct pollfd p = { .fd = b->bell_fd, .events = POLLIN };
        uint64_t count;
        return poll(&p, 1, timeout_ms) == 1 && read(b->bell_fd, &count, sizeof(count)) == sizeof(count);
}

#endif
