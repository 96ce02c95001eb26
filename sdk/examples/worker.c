/* worker.c: a worker of a handler with plugin = "remote", on a host's own machine: returns payloads in upper case.
 *
 *         cc -o worker worker.c $(pkg-config --cflags --libs quiver-client)
 *         ./worker etc/runtime.cfg mail */
#include <ctype.h>
#include <errno.h>
#include <quiver/client.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MS 1000

/* A task that takes long is kept by a heartbeat every third of its ttl; this one is done in no time. */
static int work_on(struct qv_client *client, const struct qv_client_work *work)
{
        struct qv_client_heartbeat heartbeat = QV_CLIENT_HEARTBEAT_INIT;
        struct qv_client_kept kept = QV_CLIENT_KEPT_INIT;
        struct qv_client_finish finish = QV_CLIENT_FINISH_INIT;
        char *result = malloc(work->payload_size + 1);

        if (!result)
                return -ENOMEM;
        for (size_t i = 0; i < work->payload_size; i++)
                result[i] = (char)toupper(((const unsigned char *)work->payload)[i]);
        heartbeat.has_progress = true;
        heartbeat.progress_done = heartbeat.progress_total = work->payload_size;
        int r = qv_client_heartbeat(client, work, &heartbeat, &kept);
        if (r == 0 && kept.stop) {
                finish.outcome = QV_CLIENT_FINISH_RETRY;
                finish.error = "stopped before it was done";
        } else {
                finish.result = result;
                finish.result_size = work->payload_size;
        }
        if (r == 0)
                r = qv_client_finish(client, work, &finish);
        free(result);
        return r;
}

int main(int argc, char **argv)
{
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client_take take = QV_CLIENT_TAKE_INIT;
        struct qv_client *client = NULL;
        int r = 0;

        if (argc != 3) {
                fprintf(stderr, "usage: worker RUNTIME.CFG HANDLER\n");
                return 2;
        }
        options.config = argv[1];
        take.handler = argv[2];
        take.wait_ms = PATIENCE_MS;
        if (qv_client_open(&options, &client) < 0) {
                fprintf(stderr, "%s\n", qv_client_error());
                return 3;
        }
        while (r == 0) {
                struct qv_client_work *work = NULL;
                r = qv_client_take(client, &take, &work);
                if (r == 0)
                        r = work_on(client, work);
                /* The task is another's by now: what was done for it does not count. */
                if (r == -ESTALE)
                        r = 0;
                qv_client_work_free(work);
        }
        if (r != -EAGAIN)
                fprintf(stderr, "%s\n", qv_client_error());
        qv_client_close(client);
        return r == -EAGAIN ? 0 : 1;
}
