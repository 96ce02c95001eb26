/* take.c: `quiver take`: a worker on a host's own machine, for tasks of handlers with plugin = "remote". */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "cli/take/say.h"
#include "cli/take/work_command.h"
#include "client/take.h"
#include "view/json.h"

#define AGAIN_MS     1000
#define SAY_AGAIN_MS 200

struct take_request {
        const char *config;
        struct qv_client_take take;
        uint32_t count; /* 0: not said */
        bool has_json;
        char **argv; /* argv[0] is NULL: print the task, and leave it to who reads it */
        const char *state;
        const struct config *settings;
        bool had_contact, has_said_gone, has_unrecorded;
};

static void block_signals(int how)
{
        sigset_t set;
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        (void)sigprocmask(how, &set, NULL);
}

/* No host here has such a handler: what the settings say about that name. */
static void explain_handler(const struct config *config, const char *name, struct error *error)
{
        struct strings remote = { 0 };
        for (size_t i = 0; i < config->handlers_count; i++) {
                const struct handler_config *handler = &config->handlers[i];
                if (handler_is_remote(handler))
                        strings_add(&remote, handler->name);
                else if (!strcmp(handler->name, name))
                        (void)error_set(error, 0,
                                "handler %s has plugin = \"%s\", so runners of the host do its tasks; workers take "
                                "tasks of "
                                "handlers with plugin = \"remote\" (%s:%u)",
                                name, handler->plugin, handler->file, handler->line);
        }
        const char *nearest = error_nearest(name, (const char *const *)remote.items, remote.count);
        if (nearest && strcmp(nearest, name) != 0) {
                struct error said = *error;
                (void)error_set(error, 0, "%.500s; did you mean %s?", said.text, nearest);
        }
        strings_free(&remote);
}

static int fail(const struct take_request *q, int r, struct error *error)
{
        if (r == -ENOENT)
                explain_handler(q->settings, q->take.handler, error);
        (void)fprintf(stderr, "quiver take: %s\n", error->text);
        return take_exit_code(r);
}

/* Nobody answers, but somebody may soon: a host that is started again is the same to a worker. */
static bool is_gone(int r)
{
        return r == -ECONNREFUSED || r == -EBUSY || r == -ETIMEDOUT || r == -ECONNRESET;
}

/* A host that is not there at the first question is the user's mistake; later it is waited for. */
static int take_patiently(
        struct take_request *q, struct qv_client_work **ret_work, json_t **ret_object, struct error *error)
{
        struct qv_client_take take = q->take;
        uint64_t now_ms = clock_boot_ms();
        uint64_t until_ms = take.wait_ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + take.wait_ms;
        for (;;) {
                now_ms = clock_boot_ms();
                if (take.wait_ms != UINT64_MAX)
                        take.wait_ms = until_ms > now_ms ? until_ms - now_ms : 0;
                int r = take_work(q->state, &take, ret_work, ret_object, error);
                bool was_there = q->had_contact;
                q->had_contact = q->had_contact || r == 0 || r == -EAGAIN || (is_gone(r) && r != -ECONNREFUSED);
                if (!is_gone(r) || !(was_there || q->had_contact) || clock_boot_ms() >= until_ms) {
                        q->has_said_gone = false;
                        return r;
                }
                if (!q->has_said_gone)
                        (void)fprintf(stderr, "quiver take: %s; asking again until it is back\n", error->text);
                q->has_said_gone = true;
                (void)poll(NULL, 0, AGAIN_MS);
        }
}

/* --- with a command ----------------------------------------------------------------------------------------------- */

static int finish_once(const struct take_request *q, const struct qv_client_work *work, const struct worked *worked,
        struct error *error)
{
        struct buffer text = { 0 };
        struct qv_client_finish finish = QV_CLIENT_FINISH_INIT;
        finish.outcome = worked->outcome;
        if (worked->outcome == QV_CLIENT_FINISH_DONE && worked->result.size) {
                finish.result = worked->result.data;
                finish.result_size = worked->result.size;
        }
        buffer_put(&text, worked->error.data, worked->error.size);
        if (text.size)
                finish.error = buffer_text(&text);
        finish.retry_after_ms = worked->retry_after_ms;
        int r = finish_work(q->state, work, &finish, error);
        buffer_free(&text);
        return r;
}

/* Says it until it was heard, or the task is another's. */
static int finish(
        const struct take_request *q, const struct qv_client_work *work, struct worked *worked, struct error *error)
{
        for (;;) {
                int r = finish_once(q, work, worked, error);
                if (r == -EMSGSIZE && worked->outcome == QV_CLIENT_FINISH_DONE) {
                        buffer_printf(&worked->error, "result of %zu bytes refused: %.400s", worked->result.size,
                                error->text);
                        worked->outcome = QV_CLIENT_FINISH_REJECT;
                        continue;
                }
                if (!is_gone(r) || clock_boot_ms() >= worked->deadline_ms)
                        return r;
                (void)poll(NULL, 0, SAY_AGAIN_MS);
        }
}

static void print_outcome(const struct take_request *q, const struct qv_client_work *work, struct worked *worked)
{
        if (q->has_json) {
                json_t *o = json_object();
                view_json_set_text(o, "id", work->id);
                view_json_set_text(o, "key", work->key);
                view_json_number(o, "attempt", work->attempt);
                view_json_set_text(o, "outcome", take_outcomes[worked->outcome]);
                if (worked->error.size)
                        view_json_set_text(o, "error", buffer_text(&worked->error));
                cli_json_print(o);
        } else {
                (void)printf("%s %s%s%s\n", work->id, take_outcomes[worked->outcome], worked->error.size ? ": " : "",
                        worked->error.size ? buffer_text(&worked->error) : "");
        }
        (void)fflush(stdout);
}

/* -1: go on with the next one; or an exit code. */
static int work_on(struct take_request *q, const struct qv_client_work *work, uint64_t taken_ms)
{
        struct worked worked;
        struct error error = { "" };
        int code = -1;
        work_command(q->state, q->argv, work, taken_ms + work->remaining_ms, &worked);
        int r = worked.is_over ? error_set(&error, -ESTALE,
                                         "its start is over: its time was over, or somebody else ended it; the command "
                                         "was killed")
                               : finish(q, work, &worked, &error);
        q->has_unrecorded = q->has_unrecorded || r < 0;
        if (r < 0)
                (void)fprintf(stderr, "quiver take: task %s: its outcome (%s) was not recorded: %s\n", work->id,
                        take_outcomes[worked.outcome], error.text);
        else
                print_outcome(q, work, &worked);
        if (worked.cannot_start) {
                (void)fprintf(stderr, "quiver take: %s\n", buffer_text(&worked.error));
                code = EXIT_FAILED;
        }
        if (worked.stopped_by_signal)
                code = 128 + worked.stopped_by_signal;
        worked_free(&worked);
        return code;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static int hand_over(struct take_request *q, const struct qv_client_work *work, json_t *object, uint64_t taken_ms)
{
        if (*q->argv)
                return work_on(q, work, taken_ms);
        view_json_set_text(object, "host", work->host);
        if (q->has_json)
                cli_json_print(json_incref(object));
        else
                cli_json_print_wide(json_incref(object));
        return -1;
}

static int take_tasks(struct take_request *q)
{
        uint32_t count = q->count ? q->count : *q->argv ? UINT32_MAX : 1;
        for (uint32_t taken = 0; taken < count; taken++) {
                struct error error = { "" };
                struct qv_client_work *work = NULL;
                json_t *object = NULL;
                int r = take_patiently(q, &work, &object, &error);
                uint64_t taken_ms = clock_boot_ms();
                if (r == -EAGAIN && *q->argv && !q->count)
                        break;
                if (r < 0)
                        return fail(q, r, &error);
                /* While a task is held, a signal ends the command and gives the task back. */
                block_signals(SIG_BLOCK);
                int code = hand_over(q, work, object, taken_ms);
                qv_client_work_free(work);
                json_decref(object);
                block_signals(SIG_UNBLOCK);
                if (code >= 0)
                        return code;
        }
        return q->has_unrecorded ? EXIT_FAILED : EXIT_DONE;
}

static int run_take(int argc, char **argv)
{
        struct take_request q = { .take = QV_CLIENT_TAKE_INIT };
        struct cli_store s = { 0 };
        uint64_t wait_ms = UINT64_MAX;
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_DURATION("--wait TIME", &wait_ms, 0,
                        "wait so long for a task (default: with a command for ever, else not at all)"),
                OPT_NUMBER("-n, --count N", &q.count, 1, UINT32_MAX,
                        "take so many (default: with a command as many as there are, else one)"),
                OPT_TEXT("--worker NAME", &q.take.worker,
                        "this worker's name, as quiver task shows it (default: HOST-PID)"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "take HANDLER [--wait TIME] [-n N] [-- COMMAND [ARGUMENT…]]\n"
                         "       quiver take heartbeat HANDLER ID --fence FENCE\n"
                         "       quiver take finish HANDLER ID --fence FENCE "
                         "done|retry|later|reject|unavailable|limited "
                         "[TEXT|-]",
                .about = "Takes tasks of a handler with plugin = \"remote\" from the hosts of this machine, as their "
                         "user "
                         "or as root.\n"
                         "With a command, runs it for each task: the payload on standard input, QUIVER_ID, QUIVER_KEY "
                         "and "
                         "so on as\n"
                         "from the exec plugin; its output is the result. Exit 0 is done, 65 rejects, 69 pauses the "
                         "handler, "
                         "79 is later,\n"
                         "75 and all others retry. Keeps the task by heartbeats; ends the command when the task is "
                         "cancelled or its time\n"
                         "is over. Prints a line for each task.\n"
                         "Without one, prints the task as JSON: it is yours for remaining_ms, or longer by heartbeat, "
                         "until "
                         "finish.\n"
                         "Exit code: 0; 1 if fewer tasks came than asked for, or an outcome was not recorded; 3 if no "
                         "host runs here.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver take mail -- ./send-mail\n"
                            "  quiver take mail --wait 1s -- sh -c 'tr a-z A-Z'     # until none is left\n"
                            "  quiver take mail --wait 10s --json\n"
                            "  quiver take finish mail 1m7mbn8tr7ppbrg3637w-1 --fence 1794905906.1.281474976711680 "
                            "done sent\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (!o.words_count)
                return options_wrong(&o, "which handler? quiver take HANDLER -- COMMAND");
        q.take.handler = o.words[0];
        q.argv = o.words + 1;
        q.take.wait_ms = wait_ms == UINT64_MAX && !*q.argv ? 0 : wait_ms;
        if (*q.argv && !work_command_is_there(*q.argv))
                return options_wrong(&o, "there is no program %s that may be run; no task was taken", *q.argv);
        code = cli_load(&s, "take", q.config, READER_COMMAND);
        q.state = s.config.state;
        q.settings = &s.config;
        if (code == EXIT_DONE)
                code = take_tasks(&q);
        cli_close(&s);
        return code;
}

int cmd_take(int argc, char **argv)
{
        if (argc > 1 && !strcmp(argv[1], "finish"))
                return take_finish(argc - 1, argv + 1);
        if (argc > 1 && !strcmp(argv[1], "heartbeat"))
                return take_heartbeat(argc - 1, argv + 1);
        return run_take(argc, argv);
}
