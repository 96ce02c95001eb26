/* echo: returns its payload with a greeting.  The plugin to read first.
 *
 *         config = { greeting = "hello"; };           payload "world" → result "hello, world" */
#include <quiver/plugin.h>

/* One instance per seat.  All calls with it come from that seat's thread, one after the other, so it needs no lock. */
struct echo {
        const char *greeting; /* borrowed from the host, valid until close returns */
        size_t greeting_size;
};

static int32_t echo_init(const struct qv_host *host, void **ret_self)
{
        struct echo *echo = malloc(sizeof(*echo));
        if (!echo)
                return qv_init_errorf(host, "out of memory");
        echo->greeting = qv_config(host, "greeting", "hello");
        echo->greeting_size = strlen(echo->greeting);
        *ret_self = echo;
        return 0;
}

static int32_t echo_handle(void *self, const struct qv_task *task)
{
        const struct echo *echo = self;
        size_t size = echo->greeting_size + 2 + task->payload_size;
        char *text = malloc(size);
        if (!text)
                return QV_UNAVAILABLE; /* not the task's fault, so it costs no attempt */
        memcpy(text, echo->greeting, echo->greeting_size);
        text[echo->greeting_size] = ',';
        text[echo->greeting_size + 1] = ' ';
        memcpy(text + echo->greeting_size + 2, task->payload, task->payload_size);
        int32_t r = task->host->result(task->host, task, text, size);
        free(text); /* the host has copied it */
        if (r < 0)
                return qv_errorf(task, "result of %zu bytes refused: %s", size, strerror(-r)), QV_REJECT;
        return QV_DONE;
}

/* A batch is useful if its tasks share a cost, such as a database transaction; here it only saves calls. */
static void echo_handle_many(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        for (uint32_t i = 0; i < count; i++)
                if (!qv_is_over(tasks, i, outcomes))
                        outcomes[i] = echo_handle(self, tasks[i]);
}

static void echo_close(void *self)
{
        free(self);
}

/* QV_THREADS: there are no globals, so seats may share a process. */
QV_PLUGIN("echo", "1.0", QV_THREADS, echo_init, echo_handle, echo_close, echo_handle_many)
