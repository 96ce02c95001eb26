/* my-plugin: counts the words of its payload. */
#include <quiver/plugin.h>

/* One per seat, that is, per thread: it needs no lock. */
struct instance {
        int64_t words_max;
};

/* Read every setting here: what init does not ask for is reported as a likely misspelling. */
static int32_t my_plugin_init(const struct qv_host *host, void **ret_self)
{
        int64_t words_max = qv_config_int(host, "words_max", 1000);
        if (words_max < 1)
                return qv_init_errorf(host, "words_max is %lld; it has to be at least 1", (long long)words_max);
        struct instance *self = malloc(sizeof(*self));
        if (!self)
                return qv_init_errorf(host, "out of memory");
        self->words_max = words_max;
        *ret_self = self;
        return 0;
}

static int64_t count_words(const char *text, size_t size)
{
        int64_t words = 0;
        int is_inside = 0;
        for (size_t i = 0; i < size; i++) {
                int is_space = text[i] == ' ' || text[i] == '\t' || text[i] == '\n';
                words += !is_space && !is_inside;
                is_inside = !is_space;
        }
        return words;
}

/* QV_DONE: finished.  QV_RETRY: later again.  QV_REJECT: never.  QV_UNAVAILABLE: not this task's fault.
 * QV_LATER: neither, and only this key has to wait. */
static int32_t my_plugin_handle(void *instance, const struct qv_task *task)
{
        const struct instance *self = instance;
        char text[32];
        if (!task->payload_size)
                return qv_errorf(task, "the payload is empty"), QV_REJECT;
        int64_t words = count_words(task->payload, task->payload_size);
        if (words > self->words_max)
                return qv_errorf(task, "%lld words are too many", (long long)words), QV_REJECT;
        int size = snprintf(text, sizeof(text), "%lld", (long long)words);
        if (task->host->result(task->host, task, text, (size_t)size) < 0)
                return QV_RETRY;
        return QV_DONE;
}

static void my_plugin_close(void *instance)
{
        free(instance);
}

/* QV_THREADS: there are no globals, so several seats may share a process. */
QV_PLUGIN("my-plugin", "0.1", QV_THREADS, my_plugin_init, my_plugin_handle, my_plugin_close, NULL)
