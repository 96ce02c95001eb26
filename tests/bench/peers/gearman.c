/* The same work on Gearman: background jobs, a hundred in one step, and workers in C, each with a connection of its
 * own: every job is a round trip.  Prints seconds.
 *
 *         gearman PORT TASKS */
#include <libgearman/gearman.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define PAYLOAD  100
#define PIPELINE 100u
#define WORKERS  8u

static in_port_t port;
static unsigned tasks;
static unsigned done;

static void die(const char *what, const char *why)
{
        (void)fprintf(stderr, "gearman: %s: %s\n", what, why);
        exit(1);
}

static void *produce(void *unused)
{
        char payload[PAYLOAD];
        gearman_client_st *client = gearman_client_create(NULL);
        memset(payload, '0', sizeof(payload));
        if (!client || gearman_client_add_server(client, "127.0.0.1", port) != GEARMAN_SUCCESS)
                die("client", "cannot be made");
        for (unsigned sent = 0; sent < tasks; sent += PIPELINE) {
                gearman_return_t r;
                for (unsigned i = 0; i < PIPELINE; i++)
                        (void)gearman_client_add_task_background(
                                client, NULL, NULL, "noop", NULL, payload, sizeof(payload), &r);
                if (gearman_client_run_tasks(client) != GEARMAN_SUCCESS)
                        die("submit", gearman_client_error(client));
                gearman_client_task_free_all(client);
        }
        gearman_client_free(client);
        return unused;
}

static gearman_return_t handle(gearman_job_st *job, void *context)
{
        (void)job;
        (void)context;
        (void)__atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
        return GEARMAN_SUCCESS;
}

static void *work(void *unused)
{
        gearman_worker_st *worker = gearman_worker_create(NULL);
        gearman_worker_set_timeout(worker, 60000);
        if (gearman_worker_add_server(worker, "127.0.0.1", port) != GEARMAN_SUCCESS ||
                gearman_worker_define_function(worker, "noop", 4, gearman_function_create(handle), 0, NULL) !=
                        GEARMAN_SUCCESS)
                die("worker", gearman_worker_error(worker));
        for (;;)
                if (gearman_worker_work(worker) != GEARMAN_SUCCESS)
                        die("work", gearman_worker_error(worker));
        return unused;
}

int main(int argc, char **argv)
{
        pthread_t producer;
        if (argc != 3)
                return 2;
        port = (in_port_t)atoi(argv[1]);
        tasks = (unsigned)atoi(argv[2]) / PIPELINE * PIPELINE;
        pthread_t worker;
        uint64_t start_ns = clock_boot_ns();
        for (unsigned i = 0; i < WORKERS; i++)
                (void)pthread_create(&worker, NULL, work, NULL);
        (void)pthread_create(&producer, NULL, produce, NULL);
        while (__atomic_load_n(&done, __ATOMIC_RELAXED) < tasks)
                (void)usleep(1000);
        (void)printf("%.6f\n", (double)(clock_boot_ns() - start_ns) / (double)NS_PER_S);
        (void)pthread_join(producer, NULL);
        return 0; /* and the workers with us */
}
