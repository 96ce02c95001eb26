/* ledger: does what its payload says, and writes down every start and end.
 *
 *         config = { path = "/tmp/ledger"; who = "h1"; };
 *         payload: a number for the reader of the ledger, then words, done one after the other:
 *           us:N           take N microseconds
 *           wait:FILE      wait until FILE is there; give up with RETRY when told to stop
 *           deaf:FILE      the same, but do not look at the stop flag
 *           retry:N        say RETRY at the first N attempts
 *           later:N        … and come back after N milliseconds
 *           reject, crash  say REJECT; die of SIGSEGV
 *           regicide       kill the host
 *           down:FILE      say UNAVAILABLE as long as FILE is there
 *           away:FILE      say LATER as long as FILE is there
 *           limited:FILE   say LIMITED as long as FILE is there, for 300 ms
 *           save:TEXT      save a checkpoint
 *           progress:N:M   say that N of M are done
 *           submit:KEY     stage a follow-up for KEY, whose payload is the same number
 *           header:NAME    stage that header's value as the result
 *           pass:KEY:NAME  stage a follow-up for KEY that has that header, and stages it as its result
 *           result         stage the payload as the result
 *           stamp          stage "NUMBER EPOCH.START" as the result: whose it is shows
 *           stamped:KEY    stage a follow-up for KEY whose payload is "NUMBER>EPOCH.START stamp"
 *           tell           stage "lane L attempt A of M crashes C" as the result
 *           crash-once:FILE, hang-once:FILE, lose-once:FILE
 *                          if FILE is not there: make it, and die, hang for ever, or end the runner without a word
 *
 * A line is "start|end NANOSECONDS KEY ID NUMBER ATTEMPT EPOCH START OUTCOME CHECKPOINT BUILD WHO", in one write. BUILD
 * tells versions of this plugin apart, WHO is as configured ("-": it is not).  A batch begins with a line "batch …" of
 * its first task, whose OUTCOME is the number of tasks in it. */
#include <fcntl.h>
#include <inttypes.h>
#include <quiver/plugin.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#ifndef BUILD
#define BUILD   "one"
#define VERSION "1.0"
#else
#define VERSION "2.0"
#endif

struct ledger {
        int file;
        char who[32];
};

static void write_line(const struct ledger *ledger, const struct qv_task *task, const char *what, int32_t outcome)
{
        char line[1024];
        struct timespec now;
        (void)clock_gettime(CLOCK_BOOTTIME, &now);
        int size = snprintf(line, sizeof(line),
                "%s %lld%09ld %s %s %.*s %" PRIu32 " %" PRIu64 " %" PRIu64 " %d %.*s " BUILD " %s\n", what,
                (long long)now.tv_sec, now.tv_nsec, task->key, task->id, (int)strcspn((const char *)task->payload, " "),
                (const char *)task->payload, task->attempt, task->fence_epoch, task->fence_start, (int)outcome,
                task->checkpoint ? (int)task->checkpoint_size : 1,
                task->checkpoint ? (const char *)task->checkpoint : "-", ledger->who);
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

static int number_size(const struct qv_task *task)
{
        return (int)strcspn((const char *)task->payload, " >");
}

static void stamp(const struct qv_task *task)
{
        char text[128];
        int size = snprintf(text, sizeof(text), "%.*s %" PRIu64 ".%" PRIu64,
                (int)strcspn((const char *)task->payload, " "), (const char *)task->payload, task->fence_epoch,
                task->fence_start);
        (void)task->host->result(task->host, task, text, (size_t)size);
}

static void tell(const struct qv_task *task)
{
        char text[128];
        int size = snprintf(text, sizeof(text), "lane %" PRId32 " attempt %" PRIu32 " of %" PRIu32 " crashes %" PRIu32,
                task->lane, task->attempt, task->attempts_max, task->crashes);
        (void)task->host->result(
                task->host, task, task->submitted_ms ? text : "", task->submitted_ms ? (size_t)size : 0);
}

static int32_t stamped_follow_up(const struct qv_task *task, const char *key)
{
        char text[128];
        struct qv_submit submit = QV_SUBMIT_INIT;
        submit.handler = task->handler;
        submit.key = key;
        submit.payload = text;
        submit.payload_size = (size_t)snprintf(text, sizeof(text), "%.*s>%" PRIu64 ".%" PRIu64 " stamp",
                number_size(task), (const char *)task->payload, task->fence_epoch, task->fence_start);
        return task->host->submit(task->host, task, &submit) < 0 ? QV_REJECT : QV_DONE;
}

static int32_t pass_header(const struct qv_task *task, const char *key)
{
        char words[128];
        char to[64];
        const char *name = strchr(key, ':') + 1;
        const struct qv_header2 *header = qv_find_header(task, name);
        struct qv_submit submit = QV_SUBMIT_INIT;
        if (!header)
                return qv_errorf(task, "it has no header %s", name), QV_REJECT;
        (void)snprintf(to, sizeof(to), "%.*s", (int)(name - key - 1), key);
        submit.handler = task->handler;
        submit.key = to;
        submit.payload = words;
        submit.payload_size = (size_t)snprintf(
                words, sizeof(words), "%.*s header:%s", number_size(task), (const char *)task->payload, name);
        submit.headers2 = header;
        submit.headers2_count = 1;
        return task->host->submit(task->host, task, &submit) < 0 ? QV_REJECT : QV_DONE;
}

static int32_t stage_header(const struct qv_task *task, const char *name)
{
        const struct qv_header2 *header = qv_find_header(task, name);
        if (!header)
                return qv_errorf(task, "it has no header %s", name), QV_REJECT;
        return task->host->result(task->host, task, header->value, header->value_size) < 0 ? QV_REJECT : QV_DONE;
}

/* Whether this is the first call that asks, in any process. */
static int is_first(const char *path)
{
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0)
                (void)close(file);
        return file >= 0;
}

/* The words that happen once; 0: it is none of them. */
static int obey_once(const char *word)
{
        const char *path;
        if (starts_with(word, "crash-once:", &path)) {
                if (is_first(path))
                        (void)raise(SIGSEGV);
        } else if (starts_with(word, "lose-once:", &path)) {
                if (is_first(path))
                        _exit(0);
        } else if (starts_with(word, "hang-once:", &path)) {
                while (is_first(path))
                        for (;;)
                                take_us(1000000);
        } else {
                return 0;
        }
        return 1;
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
                return access(value, F_OK) == 0 ? (qv_errorf(task, "it is down"), QV_UNAVAILABLE) : QV_DONE;
        else if (starts_with(word, "away:", &value))
                return access(value, F_OK) == 0 ? (qv_errorf(task, "it is away"), QV_LATER) : QV_DONE;
        else if (starts_with(word, "limited:", &value)) {
                (void)task->host->retry_after(task->host, task, 300);
                return access(value, F_OK) == 0 ? (qv_errorf(task, "too much"), QV_LIMITED) : QV_DONE;
        } else if (starts_with(word, "save:", &value))
                (void)task->host->checkpoint(task->host, task, value, strlen(value));
        else if (starts_with(word, "progress:", &value))
                (void)task->host->progress(
                        task->host, task, strtoull(value, NULL, 10), strtoull(strchr(value, ':') + 1, NULL, 10));
        else if (starts_with(word, "submit:", &value))
                return follow_up(task, value);
        else if (starts_with(word, "header:", &value))
                return stage_header(task, value);
        else if (starts_with(word, "pass:", &value))
                return pass_header(task, value);
        else if (!strcmp(word, "tell"))
                tell(task);
        else if (!strcmp(word, "reject"))
                return qv_errorf(task, "no such thing"), QV_REJECT;
        else if (!strcmp(word, "crash"))
                (void)raise(SIGSEGV);
        else if (!strcmp(word, "regicide"))
                (void)kill(getppid(), SIGKILL), take_us(10000000);
        else if (!strcmp(word, "result"))
                (void)task->host->result(task->host, task, task->payload, task->payload_size);
        else if (!strcmp(word, "stamp"))
                stamp(task);
        else if (starts_with(word, "stamped:", &value))
                return stamped_follow_up(task, value);
        else if (!obey_once(word))
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

static void ledger_handle_many(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        write_line(self, tasks[0], "batch", (int32_t)count);
        for (uint32_t i = 0; i < count; i++)
                if (!qv_is_over(tasks, i, outcomes))
                        outcomes[i] = ledger_handle(self, tasks[i]);
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
        (void)snprintf(ledger->who, sizeof(ledger->who), "%s", qv_config(host, "who", "-"));
        *ret_self = ledger;
        return 0;
}

static void ledger_close(void *self)
{
        struct ledger *ledger = self;
        (void)close(ledger->file);
        free(ledger);
}

QV_PLUGIN("ledger", VERSION, QV_THREADS, ledger_init, ledger_handle, ledger_close, ledger_handle_many)
