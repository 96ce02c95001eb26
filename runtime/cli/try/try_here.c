/* try_here.c: `quiver try --here`: the plugin in this very process, for gdb and valgrind.
 *
 * The main thread is the seat and runs nothing but plugin code and the runner's own; a second thread plays the host at
 * the other end of the same ring: it takes the answers, shows them, and raises stop at --timeout.  No sandbox, no
 * limits, no fault handler: a crash is the debugger's. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/options.h"
#include "cli/try/try.h"
#include "cli/try/try_services.h"
#include "runner/load.h"
#include "runner/seat.h"

#define TICK_MS 10 /* between looks at the time of the running task */

struct here {
        const struct try_request *request;
        struct try_source *source;
        struct ring_host ring;
        struct leases leases;
        struct runner runner;
        struct seat seat;
        int control[2]; /* log lines: [1] is the runner's end */
        int bell;
        struct try_services services;
        struct try_counts counts;
        bool has_failed;
        uint64_t begun_ns;
};

static void show_logs(struct here *h)
{
        static uint8_t packet[MESSAGE_MAX];
        ssize_t n;
        while ((n = recv(h->control[0], packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
                struct reader r;
                enum message_kind kind;
                struct runner_log log;
                if (message_open(&r, packet, (size_t)n, &kind) == 0 && kind == MESSAGE_LOG &&
                        message_get_log(&r, &log) == 0)
                        try_show_log(h->request, &log, NULL);
        }
}

/* Shows the answers that are there. */
static void take_answers(struct here *h)
{
        struct ring_reply reply;
        void *owner;
        while (ring_host_next(&h->ring, &reply, &owner) > 0) {
                struct try_task *task = owner;
                struct settled settled = { .outcome = (enum outcome)reply.outcome,
                        .error = reply.error,
                        .reply = &reply,
                        .checkpoint = reply.has_checkpoint ? reply.checkpoint : NULL,
                        .checkpoint_size = reply.checkpoint_size };
                try_services_ended(&h->services, 0, reply.ticket);
                h->has_failed |= reply.outcome != OUTCOME_DONE;
                show_logs(h);
                try_show_settled(h->request, &h->counts, task, &settled);
                try_task_free(task);
        }
}

/* Hands over what fits, as batches of the asked size.  False once nothing is left to come. */
static bool hand_over(struct here *h)
{
        struct ring_task tasks[TRY_BATCH_MAX];
        void *owners[TRY_BATCH_MAX];
        struct error error = { "" };
        while (ring_host_has_room(&h->ring, h->request->batch, 0) && h->ring.free_spills) {
                uint32_t count = 0;
                struct try_task *task = NULL;
                while (count < h->request->batch && (task = try_source_next(h->source, &error))) {
                        tasks[count] = task->pool.task;
                        owners[count++] = task;
                        /* A large one uses one of a few spills: alone is simplest. */
                        if (ring_task_size(&task->pool.task) > RING_SLOT / 2)
                                break;
                }
                uint64_t ticket;
                if (count && ring_host_submit(&h->ring, tasks, owners, count, &ticket) < 0)
                        (void)error_set(&error, -EMSGSIZE,
                                "a task is too large for the shared memory; give it a smaller payload");
                if (*error.text) {
                        try_show_error(h->request, error.text);
                        h->has_failed = true;
                }
                if (!task)
                        return false;
        }
        return true;
}

/* Raises stop for a task, or a batch, that has run for its timeout. */
static void stop_late(struct here *h)
{
        struct ring_seat_view seat;
        if (!h->request->timeout_ms)
                return;
        ring_host_seat(&h->ring, 0, &seat);
        if (seat.ticket && clock_boot_ns() >= seat.started_ns + h->request->timeout_ms * NS_PER_MS)
                ring_host_stop(&h->ring, 0, seat.ticket);
}

/* The host's thread. */
static void *play_host(void *arg)
{
        struct here *h = arg;
        bool has_more = true;
        while (has_more || h->ring.in_flight) {
                try_services_serve(&h->services, &h->ring, 0, clock_boot_ms());
                take_answers(h);
                if (has_more)
                        has_more = hand_over(h);
                ring_host_ring(&h->ring);
                show_logs(h);
                if (!ring_host_sleep(&h->ring))
                        continue;
                struct pollfd fds[2] = { { .fd = h->bell, .events = POLLIN },
                        { .fd = h->control[0], .events = POLLIN } };
                if (has_more || h->ring.in_flight)
                        (void)poll(fds, 2, h->request->timeout_ms ? TICK_MS : -1);
                stop_late(h);
                uint64_t count;
                ssize_t n = read(h->bell, &count, sizeof(count));
                (void)n;
                ring_host_awake(&h->ring);
        }
        ring_host_retire(&h->ring);
        return NULL;
}

static int open_shared(struct here *h, struct error *error)
{
        const struct try_request *q = h->request;
        struct ring_shape shape = { .seats = 1,
                .entries = 256,
                .task_bytes_max = q->payload_max + 16384,
                .answer_bytes_max = 2 * q->payload_max + 16384 };
        int r = ring_host_init(&h->ring, &shape);
        h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (r == 0 && (h->bell < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, h->control) < 0))
                r = -errno;
        if (r == 0)
                r = ring_attach(&h->runner.ring, h->ring.fd, h->bell);
        if (r == 0)
                r = leases_create(&h->leases, 1);
        if (r < 0)
                return error_set(error, r, "cannot make the shared memory: %s", strerror(-r));
        leases_set(&h->leases, 0, 1, UINT64_MAX);
        return 0;
}

static int open_runner(struct here *h, struct error *error)
{
        const struct try_request *q = h->request;
        const char *slash = strrchr(q->args.plugin, '/');
        struct runner *r = &h->runner;
        r->start = (struct runner_start){ .handler = q->args.handler,
                .plugin = q->args.plugin,
                .label = slash ? slash + 1 : q->args.plugin,
                .seats = 1,
                .batch_max = q->batch,
                .leases = 1,
                .log_level = LEVEL_DEBUG,
                .result_max = q->payload_max,
                .payload_max = q->payload_max,
                .can_call = TRY_SERVICES,
                .settings = q->args.settings.items,
                .settings_count = q->args.settings.count };
        r->leases = h->leases;
        logger_init(&r->logger, h->control[1], LEVEL_DEBUG, 10000);
        settings_init(&r->settings, q->args.settings.items, q->args.settings.count);
        int status = load_plugin(q->args.plugin, r->start.label, 1, &r->plugin, error);
        return status < 0 ? status : seat_load(r, error);
}

static void close_here(struct here *h)
{
        settings_free(&h->runner.settings);
        ring_detach(&h->runner.ring);
        ring_host_free(&h->ring);
        leases_free(&h->leases);
        (void)close(h->bell);
        (void)close(h->control[0]);
        (void)close(h->control[1]);
}

int try_here(const struct try_request *request, struct try_source *source)
{
        struct here h = { .request = request, .source = source, .control = { -1, -1 } };
        struct error error = { "" };
        pthread_t host = 0;
        source->is_patient = true;
        int r = open_shared(&h, &error);
        if (r == 0)
                r = open_runner(&h, &error);
        if (r == 0)
                r = seat_open(&h.seat, &h.runner, 0, &error);
        if (r == 0)
                r = -pthread_create(&host, NULL, play_host, &h);
        if (r < 0) {
                show_logs(&h);
                try_show_error(request, *error.text ? error.text : strerror(-r));
                close_here(&h);
                return EXIT_FAILED;
        }
        h.begun_ns = clock_boot_ns();
        seat_serve(&h.seat);
        (void)pthread_join(host, NULL);
        uint64_t elapsed_ns = clock_boot_ns() - h.begun_ns;
        seat_close(&h.seat);
        seat_free(&h.seat);
        seat_unload(&h.runner);
        show_logs(&h);
        struct try_bench bench = { .tasks = h.counts.total, .elapsed_ns = elapsed_ns };
        try_show_end(request, &h.counts, h.has_failed ? NULL : &bench);
        close_here(&h);
        return h.has_failed ? EXIT_FAILED : EXIT_DONE;
}
