/* ledger: does what its payload says, and writes down every start and end.
 *
 *         config = { path = "/tmp/ledger"; };
 *         payload: a number for the reader of the ledger, then words, done one after the other:
 *           us:N           take N microseconds
 *           wait:FILE      wait until FILE is there; give up with RETRY when told to stop
 *           deaf:FILE      the same, but do not look at the stop flag
 *           retry:N        say RETRY at the first N attempts
 *           later:N        … and come back after N milliseconds
 *           reject, crash  say REJECT; die of SIGSEGV
 *           down:FILE      say UNAVAILABLE as long as FILE is there
 *           save:TEXT      save a checkpoint
 *           submit:KEY     stage a follow-up for KEY, whose payload is the same number
 *           result         stage the payload as the result
 *
 * A line is "start|end NANOSECONDS KEY ID NUMBER ATTEMPT EPOCH START OUTCOME CHECKPOINT", in one write. */
#include <fcntl.h>
#include <inttypes.h>
#include <quiver/plugin.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

struct ledger {
        int file;
};

static void write_line(const struct ledger *ledger, const struct qv_task *task, const char *what, int32_t outcome)
{
        char line[1024];
        struct timespec now;
        (void)clock_gettime(CLOCK_BOOTTIME, &now);
        int size = snprintf(line, sizeof(line), "%s %lld%09ld %s %s %.*s %" PRIu32 " %" PRIu64 " %" PRIu64 " %d %.*s\n",
                what, (long long)now.tv_sec, now.tv_nsec, task->key, task->id,
                (int)strcspn((const char *)task->payload, " "), (const char *)task->payload, task->attempt,
                task->fence_epoch, task->fence_start, (int)outcome, task->checkpoint ? (int)task->checkpoint_size : 1,
                task->checkpoint ? (const char *)task->checkpoint : "-");
        if (size < 0 || (size_t)size >= sizeof(line) || write(ledger->file, line, (size_t)size) != size)
                abort();
}

static void take_us(long us)
{
        struct timespec rest = { us / 1000000, us % 1000000 * 1000 };
        while (nanosleep(&rest, &rest) < 0)
                ;
}

/* Whether the file appeared. */
static int wait_for(const struct qv_task *task, const char *path, int is_deaf)
{
        while (access(path, F_OK) < 0) {
                if (!is_deaf && qv_stop(task))
                        return 0;
                take_us(1000);
        }
        return 1;
}

static int starts_with(const char *word, const char *name, const char **ret_value)
{
        size_t size = strlen(name);
        *ret_value = word + size;
        return !strncmp(word, name, size);
}

static int32_t follow_up(const struct qv_task *task, const char *key)
{
        struct qv_submit submit = QV_SUBMIT_INIT;
        submit.handler = task->handler;
        submit.key = key;
        submit.payload = task->payload;
        submit.payload_size = strcspn((const char *)task->payload, " ");
        return task->host->submit(task->host, task, &submit) < 0 ? QV_REJECT : QV_DONE;
}

/* Does one word; QV_DONE: go on. */
static int32_t obey(const struct qv_task *task, const char *word)
{
        const char *value;
        if (starts_with(word, "us:", &value))
                take_us(atol(value));
        else if (starts_with(word, "wait:", &value))
                return wait_for(task, value, 0) ? QV_DONE : QV_RETRY;
        else if (starts_with(word, "deaf:", &value))
                (void)wait_for(task, value, 1);
        else if (starts_with(word, "later:", &value))
                (void)task->host->retry_after(task->host, task, (uint64_t)atol(value));
        else if (starts_with(word, "retry:", &value))
                return (long)task->attempt <= atol(value) ? (qv_errorf(task, "not yet"), QV_RETRY) : QV_DONE;
        else if (starts_with(word, "down:", &value))
                return access(value, F_OK) == 0 ? QV_UNAVAILABLE : QV_DONE;
        else if (starts_with(word, "save:", &value))
                (void)task->host->checkpoint(task->host, task, value, strlen(value));
        else if (starts_with(word, "submit:", &value))
                return follow_up(task, value);
        else if (!strcmp(word, "reject"))
                return qv_errorf(task, "no such thing"), QV_REJECT;
        else if (!strcmp(word, "crash"))
                (void)raise(SIGSEGV);
        else if (!strcmp(word, "result"))
                (void)task->host->result(task->host, task, task->payload, task->payload_size);
        else
                return qv_errorf(task, "what is %s?", word), QV_REJECT;
        return QV_DONE;
}

static int32_t ledger_handle(void *self, const struct qv_task *task)
{
        char *words = strdup((const char *)task->payload);
        char *rest = NULL;
        int32_t outcome = QV_DONE;
        if (!words)
                return QV_UNAVAILABLE;
        write_line(self, task, "start", 0);
        (void)strtok_r(words, " ", &rest);
        for (const char *word; outcome == QV_DONE && (word = strtok_r(NULL, " ", &rest));)
                outcome = obey(task, word);
        write_line(self, task, "end", outcome);
        free(words);
        return outcome;
}

static int32_t ledger_init(const struct qv_host *host, void **ret_self)
{
        const char *path = qv_config(host, "path", "");
        struct ledger *ledger = malloc(sizeof(*ledger));
        if (!ledger)
                return qv_init_errorf(host, "out of memory");
        ledger->file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (ledger->file < 0) {
                free(ledger);
                return qv_init_errorf(host, "ledger %s: %s", path, strerror(errno));
        }
        *ret_self = ledger;
        return 0;
}

static void ledger_close(void *self)
{
        struct ledger *ledger = self;
        (void)close(ledger->file);
        free(ledger);
}

QV_PLUGIN("ledger", "1.0", QV_THREADS, ledger_init, ledger_handle, ledger_close, NULL)
