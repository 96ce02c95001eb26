/* Submits to a store through the client library, as a program in C would, and says how many seconds that took. bench.py
 * calls it.
 *
 *         client_load CONFIG push [OPTIONS]     those of load/load.h; --step 1: one by one, each answered in turn;
 *                                               --threads N: the same by so many threads that share one handle */
#include <pthread.h>
#include <quiver/client.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "load/load.h"

#define STEP        1000u
#define THREADS_MAX 256u

static void submit(struct qv_client *client, const struct load *load, unsigned first, unsigned count)
{
        static struct qv_client_task tasks[STEP];
        static struct qv_client_submitted submitted[STEP];
        static char keys[STEP][LOAD_KEY_SIZE];
        for (unsigned i = 0; i < count; i++) {
                uint32_t shard;
                (void)load_key(load, first + i, keys[i], &shard);
                tasks[i] = (struct qv_client_task)QV_CLIENT_TASK_INIT;
                tasks[i].handler = "noop";
                tasks[i].key = keys[i];
                tasks[i].payload = load_payload(load, first + i);
                tasks[i].payload_size = load->payload_bytes;
        }
        if (load->step == 1 ? qv_client_submit(client, tasks, submitted->id)
                            : qv_client_submit_many(client, tasks, count, submitted))
                load_die("submit", qv_client_error());
}

/* --- many threads ------------------------------------------------------------------------------------------------- */

struct singles {
        struct qv_client *client;
        const struct load *load;
        _Atomic unsigned next;
};

static void *submit_singles(void *self)
{
        struct singles *all = self;
        unsigned number;
        while ((number = atomic_fetch_add(&all->next, 1)) < all->load->tasks) {
                struct qv_client_task task = QV_CLIENT_TASK_INIT;
                char key[LOAD_KEY_SIZE], id[QV_CLIENT_ID_SIZE];
                uint32_t shard;
                (void)load_key(all->load, number, key, &shard);
                task.handler = "noop";
                task.key = key;
                task.payload = load_payload(all->load, number);
                task.payload_size = all->load->payload_bytes;
                if (qv_client_submit(all->client, &task, id))
                        load_die("submit", qv_client_error());
        }
        return NULL;
}

static void submit_by_threads(struct qv_client *client, const struct load *load)
{
        struct singles all = { .client = client, .load = load };
        pthread_t threads[THREADS_MAX];
        (void)load_payload(load, 0); /* made by the first who asks */
        for (unsigned i = 0; i < load->threads; i++)
                if (pthread_create(&threads[i], NULL, submit_singles, &all))
                        load_die("--threads", "cannot start a thread");
        for (unsigned i = 0; i < load->threads; i++)
                (void)pthread_join(threads[i], NULL);
}

static void submit_in_steps(struct qv_client *client, const struct load *load)
{
        uint64_t start_ns = clock_boot_ns();
        for (unsigned sent = 0, count; sent < load->tasks && (count = load_due(load, sent, start_ns)); sent += count)
                submit(client, load, sent, count);
}

int main(int argc, char **argv)
{
        struct qv_client_info info = QV_CLIENT_INFO_INIT;
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        struct load load = { .tasks = 1, .keys = 10000, .shards = 1, .payload_bytes = 100, .step = STEP };
        if (argc < 3 || strcmp(argv[2], "push") != 0)
                load_die("usage", "client_load CONFIG push [OPTIONS]: see its source");
        load_options(argc - 2, argv + 2, &load);
        if (load.step > STEP)
                load_die("--step", "is at most 1000");
        if (load.threads > THREADS_MAX || (load.threads && (load.stamp || load.rate || load.feed)))
                load_die("--threads", "are at most 256, and submit without --stamp, --rate and --feed");
        options.config = argv[1];
        if (qv_client_open(&options, &client) || qv_client_info(client, &info))
                load_die(argv[1], qv_client_error());
        load.shards = info.shards;
        uint64_t start_ns = clock_boot_ns();
        if (load.threads)
                submit_by_threads(client, &load);
        else
                submit_in_steps(client, &load);
        (void)printf("%.6f\n", load_seconds_since(start_ns));
        qv_client_close(client);
        return 0;
}
