/* Submits to a store through the client library, as a program in C would, and says how many seconds that took. bench.py
 * calls it.
 *
 *         client_load CONFIG push [OPTIONS]     those of load/load.h; --step 1: one by one, each answered in turn */
#include <quiver/client.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "load/load.h"

#define STEP 1000u

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
        options.config = argv[1];
        if (qv_client_open(&options, &client) || qv_client_info(client, &info))
                load_die(argv[1], qv_client_error());
        load.shards = info.shards;
        uint64_t start_ns = clock_boot_ns();
        for (unsigned sent = 0, count; sent < load.tasks && (count = load_due(&load, sent, start_ns)); sent += count)
                submit(client, &load, sent, count);
        (void)printf("%.6f\n", load_seconds_since(start_ns));
        qv_client_close(client);
        return 0;
}
