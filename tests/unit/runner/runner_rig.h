/* runner_rig.h: one seat on a thread of the test, with the test as its host on the other side of a real ring. */
#ifndef QUIVER_TESTS_RUNNER_RIG_H
#define QUIVER_TESTS_RUNNER_RIG_H

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "ring/host_side.h"
#include "runner/seat.h"

#define RIG_EPOCH    7u
#define RIG_WAIT_MS  20000
#define RIG_MAX_SIZE (64 * 1024)

struct rig {
        struct runner runner; /* the test sets start and plugin before rig_start() */
        struct ring_host host;
        struct leases leases;
        int bell_fd;
        int host_fd; /* the host's end of the control socket */
        struct seat seat;
        pthread_t thread;
        int opened; /* what seat_open() returned */
        struct error error;
};

static inline void rig_init(struct rig *rig, uint32_t batch_max)
{
        int sockets[2];
        struct ring_shape shape = {
                .seats = 1, .entries = 64, .task_bytes_max = RIG_MAX_SIZE, .answer_bytes_max = RIG_MAX_SIZE
        };
        memset(rig, 0, sizeof(*rig));
        assert_int_equal(ring_host_init(&rig->host, &shape), 0);
        assert_int_equal(leases_create(&rig->leases, 4), 0);
        leases_set(&rig->leases, 0, RIG_EPOCH, UINT64_MAX);
        rig->bell_fd = eventfd(0, EFD_NONBLOCK);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
        rig->host_fd = sockets[0];
        struct runner *r = &rig->runner;
        r->start = (struct runner_start){ .handler = "rig",
                .label = "rig.so",
                .seats = 1,
                .batch_max = batch_max,
                .leases = 4,
                .log_level = LEVEL_DEBUG,
                .result_max = 32 * 1024,
                .payload_max = 1024 };
        /* One mapping for both sides: a thread sanitizer goes by addresses. */
        r->ring.map = rig->host.map;
        r->ring.bell_fd = rig->bell_fd;
        r->leases = rig->leases;
        logger_init(&r->logger, sockets[1], LEVEL_DEBUG, 0);
        r->plugin = (struct qv_plugin){ .size = sizeof(r->plugin), .name = "rig", .version = "" };
}

static inline void *rig_thread(void *argument)
{
        struct rig *rig = argument;
        rig->opened = seat_open(&rig->seat, &rig->runner, 0, &rig->error);
        if (rig->opened == 0) {
                seat_serve(&rig->seat);
                seat_close(&rig->seat);
        }
        seat_free(&rig->seat);
        return NULL;
}

static inline void rig_start(struct rig *rig)
{
        settings_init(&rig->runner.settings, rig->runner.start.settings, rig->runner.start.settings_count);
        assert_int_equal(pthread_create(&rig->thread, NULL, rig_thread, rig), 0);
}

/* Retires the seat and waits for it. */
static inline void rig_finish(struct rig *rig)
{
        ring_host_retire(&rig->host);
        assert_int_equal(pthread_join(rig->thread, NULL), 0);
}

static inline void rig_free(struct rig *rig)
{
        settings_free(&rig->runner.settings);
        (void)close(rig->runner.logger.fd);
        (void)close(rig->host_fd);
        (void)close(rig->bell_fd);
        leases_free(&rig->leases);
        ring_host_free(&rig->host);
}

static inline struct ring_task rig_task(const char *id)
{
        return (struct ring_task){ .id = id,
                .key = "key",
                .handler = "rig",
                .attempt = 1,
                .fence_epoch = RIG_EPOCH,
                .fence_start = 3,
                .payload = "payload",
                .payload_size = 7 };
}

static inline uint64_t rig_submit(struct rig *rig, const struct ring_task *tasks, uint32_t count)
{
        void *owners[16] = { 0 };
        uint64_t ticket = 0;
        assert_true(count <= 16);
        assert_int_equal(ring_host_submit(&rig->host, tasks, owners, count, &ticket), 0);
        ring_host_ring(&rig->host);
        return ticket;
}

/* The next answer, within the deadline. */
static inline struct ring_reply rig_answer(struct rig *rig)
{
        struct ring_reply reply;
        void *owner;
        uint64_t until_ms = clock_boot_ms() + RIG_WAIT_MS;
        int r;
        while ((r = ring_host_next(&rig->host, &reply, &owner)) == 0) {
                assert_true(clock_boot_ms() < until_ms);
                if (ring_host_sleep(&rig->host)) {
                        uint64_t count;
                        struct pollfd bell = { .fd = rig->bell_fd, .events = POLLIN };
                        (void)poll(&bell, 1, RIG_WAIT_MS);
                        (void)!read(rig->bell_fd, &count, sizeof(count));
                        ring_host_awake(&rig->host);
                }
        }
        assert_int_equal(r, 1);
        return reply;
}

/* Hands over one task and waits for its answer. */
static inline struct ring_reply rig_run(struct rig *rig, const struct ring_task *task)
{
        uint64_t ticket = rig_submit(rig, task, 1);
        struct ring_reply reply = rig_answer(rig);
        assert_int_equal(reply.ticket, ticket);
        return reply;
}

/* The next log line that has come; false if there is none. */
static inline bool rig_log(struct rig *rig, char bytes[MESSAGE_MAX], struct runner_log *ret)
{
        struct reader reader;
        enum message_kind kind;
        ssize_t n = recv(rig->host_fd, bytes, MESSAGE_MAX, MSG_DONTWAIT);
        if (n <= 0)
                return false;
        assert_int_equal(message_open(&reader, bytes, (size_t)n, &kind), 0);
        assert_int_equal(kind, MESSAGE_LOG);
        assert_int_equal(message_get_log(&reader, ret), 0);
        return true;
}

#endif
