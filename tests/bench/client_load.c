/* Submits to a store through the client library, as a program in C would, and says how many seconds that took. bench.py
 * calls it.
 *
 *         client_load CONFIG push TASKS KEYS [AVOID]     a thousand in one step; no key of the shard that AVOID is in
 *         client_load CONFIG hot KEY TASKS               all of one key
 *         client_load CONFIG singles COUNT               one at a time, 2 ms apart, the time of submission as payload
 */
#include <quiver/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "task/id.h"

#define STEP    1000u
#define PAYLOAD 100u
#define GAP_US  2000

static void die(const char *what, const char *why)
{
        (void)fprintf(stderr, "client_load: %s: %s\n", what, why);
        exit(1);
}

static struct qv_client *open_store(const char *config)
{
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        options.config = config;
        if (qv_client_open(&options, &client))
                die(config, qv_client_error());
        return client;
}

struct load {
        unsigned tasks;
        unsigned keys;
        const char *hot;   /* the only key */
        const char *avoid; /* … whose shard gets nothing */
        unsigned shards;
};

static unsigned shard_of(const struct load *load, const char *key)
{
        return shard_of_key((struct span){ key, strlen(key) }, load->shards);
}

static void choose_key(const struct load *load, unsigned number, char ret_key[16])
{
        if (load->hot) {
                (void)snprintf(ret_key, 16, "%s", load->hot);
                return;
        }
        do
                (void)snprintf(ret_key, 16, "key-%u", (unsigned)(number++ * UINT64_C(7919) % load->keys));
        while (load->avoid && shard_of(load, ret_key) == shard_of(load, load->avoid));
}

static void push(struct qv_client *client, const struct load *load)
{
        static struct qv_client_task tasks[STEP];
        static struct qv_client_submitted submitted[STEP];
        static char keys[STEP][16];
        static const char payload[PAYLOAD] = "0";
        for (unsigned sent = 0; sent < load->tasks;) {
                unsigned count = load->tasks - sent < STEP ? load->tasks - sent : STEP;
                for (unsigned i = 0; i < count; i++) {
                        choose_key(load, sent++, keys[i]);
                        tasks[i] = (struct qv_client_task)QV_CLIENT_TASK_INIT;
                        tasks[i].handler = "noop";
                        tasks[i].key = keys[i];
                        tasks[i].payload = payload;
                        tasks[i].payload_size = PAYLOAD;
                }
                if (qv_client_submit_many(client, tasks, count, submitted))
                        die("submit", qv_client_error());
        }
}

static void singles(struct qv_client *client, unsigned count)
{
        char id[QV_CLIENT_ID_SIZE];
        while (count--) {
                struct timespec now;
                char payload[32];
                struct qv_client_task task = QV_CLIENT_TASK_INIT;
                (void)usleep(GAP_US);
                (void)clock_gettime(CLOCK_MONOTONIC, &now);
                task.handler = "noop";
                task.payload = payload;
                task.payload_size = (size_t)snprintf(
                        payload, sizeof(payload), "%lld", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
                if (qv_client_submit(client, &task, id))
                        die("submit", qv_client_error());
        }
}

int main(int argc, char **argv)
{
        const char *what = argc > 3 ? argv[2] : "";
        struct qv_client_info info = QV_CLIENT_INFO_INIT;
        if (!*what)
                die("usage", "client_load CONFIG push|hot|singles …: see its source");
        struct qv_client *client = open_store(argv[1]);
        if (qv_client_info(client, &info))
                die("store", qv_client_error());
        struct load load = { .shards = info.shards, .keys = 1 };
        uint64_t start_ns = clock_boot_ns();
        if (!strcmp(what, "push") && argc > 4) {
                load.tasks = (unsigned)strtoul(argv[3], NULL, 10);
                load.keys = (unsigned)strtoul(argv[4], NULL, 10);
                if (!load.keys)
                        die(argv[4], "is no number of keys");
                load.avoid = argc > 5 ? argv[5] : NULL;
                push(client, &load);
        } else if (!strcmp(what, "hot") && argc > 4) {
                load.hot = argv[3];
                load.tasks = (unsigned)strtoul(argv[4], NULL, 10);
                push(client, &load);
        } else if (!strcmp(what, "singles")) {
                singles(client, (unsigned)strtoul(argv[3], NULL, 10));
        } else {
                die(what, "is no command of client_load, or lacks a number");
        }
        (void)printf("%.6f\n", (double)(clock_boot_ns() - start_ns) / (double)NS_PER_S);
        qv_client_close(client);
        return 0;
}
