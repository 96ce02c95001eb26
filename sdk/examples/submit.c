/* submit.c: submits one task, waits for what its handler returns, and prints it.
 *
 *         cc -o submit submit.c $(pkg-config --cflags --libs quiver-client)
 *         ./submit etc/runtime.cfg echo user-17 world */
#include <errno.h>
#include <quiver/client.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 10000

static int print_outcome(const struct qv_client_outcome *outcome)
{
        if (outcome->state == QV_CLIENT_DEAD) {
                fprintf(stderr, "dead (%s): %s\n", outcome->reason, outcome->error);
                return 1;
        }
        if (outcome->result)
                fwrite(outcome->result, 1, outcome->result_size, stdout);
        putchar('\n');
        return 0;
}

static int submit_and_wait(struct qv_client *client, char **words)
{
        struct qv_client_task task = QV_CLIENT_TASK_INIT;
        struct qv_client_outcome *outcome = NULL;
        char id[QV_CLIENT_ID_SIZE];

        task.handler = words[0];
        task.key = words[1];
        task.payload = words[2];
        task.payload_size = strlen(words[2]);
        task.reply_ms = 60000; /* the outcome is kept a minute, for us to fetch */
        if (qv_client_submit(client, &task, id) < 0) {
                fprintf(stderr, "not submitted: %s\n", qv_client_error());
                return 1;
        }
        fprintf(stderr, "submitted %s\n", id);

        int r = qv_client_wait(client, id, PATIENCE_MS, &outcome);
        if (r == -EAGAIN) {
                fprintf(stderr, "%s; is a host running?\n", qv_client_error());
                return 1;
        }
        if (r < 0) {
                fprintf(stderr, "cannot wait: %s\n", qv_client_error());
                return 1;
        }
        r = print_outcome(outcome);
        qv_client_outcome_free(outcome);
        return r;
}

int main(int argc, char **argv)
{
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;

        if (argc != 5) {
                fprintf(stderr, "usage: submit CONFIG HANDLER KEY PAYLOAD\n");
                return 2;
        }
        options.config = argv[1];
        if (qv_client_open(&options, &client) < 0) {
                fprintf(stderr, "%s\n", qv_client_error());
                return 3;
        }
        int code = submit_and_wait(client, argv + 2);
        qv_client_close(client);
        return code;
}
