/* lock.c: `quiver lock` and `quiver elect`: a command that runs in one place at a time. */
#include <string.h>

#include "cli/command.h"
#include "cli/lock/run_while_held.h"

#define GRACE_MS 5000

#define OPT_GRACE(field)                                                                                               \
        OPT_DURATION("--grace TIME", field, 0, "from SIGTERM to SIGKILL when the command has to end (default: 5s)")

#define OPT_WAIT(field) OPT_DURATION("--wait TIME", field, 0, "give up after 10s, 5m, 1h (default: wait for ever)")

struct lock_request {
        const char *config;
        uint32_t busy_code;
        struct held held;
};

static int run(struct options *o, struct lock_request *q, int argc, char **argv)
{
        struct held *held = &q->held;
        int code;
        o->words_max = WORDS_ANY;
        if (!options_read(o, argc, argv, &code))
                return code;
        if (o->words_count < 2)
                return options_wrong(o, "a name and a command are needed: NAME -- COMMAND");
        held->name = o->words[0];
        held->argv = o->words + 1;
        size_t size = strlen(held->name);
        if (!size || size > 200 || strspn(held->name, LOCK_NAME_BYTES) != size || held->name[0] == '.')
                return options_wrong(o, "a name is 1 to 200 of A-Z a-z 0-9 . _ : @ %% + -, and does not begin with .");
        if (held->is_try && held->wait_ms)
                return options_wrong(o, "--try or --wait, not both");
        held->busy_code = (int)q->busy_code;
        return held_run(held, o->command, q->config);
}

int cmd_lock(int argc, char **argv)
{
        struct lock_request q = { .busy_code = EXIT_FAILED, .held.grace_ms = GRACE_MS };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--try", &q.held.is_try, "do not wait: give up at once if somebody has it"),
                OPT_WAIT(&q.held.wait_ms),
                OPT_NUMBER("--busy-code N", &q.busy_code, 0, 255, "exit code if it was not had (default: 1)"),
                OPT_GRACE(&q.held.grace_ms),
        };
        struct options o = {
                .usage = "lock NAME [--try | --wait TIME] -- COMMAND [ARGUMENT…]",
                .about = "Waits for the lock, in order of arrival, runs the command, and gives the lock back.\n"
                         "QUIVER_TOKEN is a number that grows with every holder: what the command writes to can\n"
                         "refuse older ones. If the lock is lost the command is stopped.\n"
                         "When the command ends, all that it has started is killed before the lock is free, in the\n"
                         "background or not; likewise if this process is killed.\n"
                         "Exit code: the command's; 128 + N after signal N; 1 if the lock was not had, or was lost;\n"
                         "3 if the coordination did not answer within --wait (with --try: a session's time).",
                OPTIONS_TABLE(table),
                .examples = "  quiver lock nightly -- ./backup.sh\n"
                            "  quiver lock nightly --try --busy-code 75 -- ./backup.sh\n",
        };
        return run(&o, &q, argc, argv);
}

int cmd_elect(int argc, char **argv)
{
        struct lock_request q = { .busy_code = EXIT_FAILED, .held = { .is_election = true, .grace_ms = GRACE_MS } };
        const struct option table[] = { OPT_CONFIG(&q.config), OPT_WAIT(&q.held.wait_ms), OPT_GRACE(&q.held.grace_ms) };
        struct options o = {
                .usage = "elect NAME [--wait TIME] -- COMMAND [ARGUMENT…]",
                .about = "Runs the command while this one leads among all that were started with the same NAME.\n"
                         "If leadership is lost the command is stopped, and started again when it is won again.\n"
                         "Ends when the command ends by itself, with its exit code; the next in line leads then,\n"
                         "once all that the command has started is killed. With --wait: 1 if it did not lead in time,\n"
                         "3 if the coordination did not answer.",
                OPTIONS_TABLE(table),
                .examples = "  quiver elect scheduler -- ./scheduler\n",
        };
        return run(&o, &q, argc, argv);
}
