/* lock.c: `quiver lock` and `quiver elect`: a command that runs in one place at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/run_while_held.h"

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@%+-"

enum { OPTION_WAIT = OPTION_OWN, OPTION_TRY, OPTION_GRACE, OPTION_BUSY_CODE };

static const struct option_spec lock_specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_TRY, "try", NULL, "do not wait: give up at once if somebody has it" },
        { OPTION_WAIT, "wait", "TIME", "give up after 10s, 5m, 1h (default: wait for ever)" },
        { OPTION_BUSY_CODE, "busy-code", "N", "exit code if it was not had (default: 1)" },
        { OPTION_GRACE, "grace", "TIME", "from SIGTERM to SIGKILL when the command has to end (default: 5s)" },
};
static const struct option_spec elect_specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_GRACE, "grace", "TIME", "from SIGTERM to SIGKILL when the command has to end (default: 5s)" },
};

static bool duration(struct options *o, uint64_t *ret_ms, struct cli_words *w)
{
        struct error error = { "" };
        if (units_duration_ms(o->value, ret_ms, &error) == 0)
                return true;
        w->code = options_wrong(o, "%s", error.text);
        w->is_over = true;
        return false;
}

static bool take_option(int id, struct options *o, struct cli_words *w, struct held *held)
{
        uint64_t number = 0;
        switch (id) {
        case OPTION_TRY:
                held->is_try = true;
                return true;
        case OPTION_WAIT:
                return duration(o, &held->wait_ms, w);
        case OPTION_GRACE:
                return duration(o, &held->grace_ms, w);
        case OPTION_BUSY_CODE:
                if (options_number(o->value, 0, 255, &number)) {
                        held->busy_code = (int)number;
                        return true;
                }
                w->code = options_wrong(o, "--busy-code: a number from 0 to 255");
                w->is_over = true;
                return false;
        default:
                return true;
        }
}

static int check_words(struct options *o, const struct cli_words *w)
{
        if (w->count < 2)
                return options_wrong(o, "a name and, after --, a command are needed");
        size_t size = strlen(w->words[0]);
        if (!size || size > 200 || strspn(w->words[0], NAME_BYTES) != size || w->words[0][0] == '.')
                return options_wrong(o, "a name is 1 to 200 of A-Z a-z 0-9 . _ : @ %% + -, and does not begin with .");
        return EXIT_DONE;
}

static int run(struct options *o, int argc, char **argv, struct held *held)
{
        struct cli_words w = { 0 };
        int id;
        held->grace_ms = 5000;
        held->busy_code = EXIT_FAILED;
        options_start(o, argc, argv);
        while ((id = cli_words_next(&w, o)) != OPTIONS_END)
                if (!take_option(id, o, &w, held))
                        break;
        int code = w.is_over ? w.code : check_words(o, &w);
        if (!w.is_over && code == EXIT_DONE && held->is_try && held->wait_ms)
                code = options_wrong(o, "--try or --wait, not both");
        if (!w.is_over && code == EXIT_DONE) {
                held->argv = calloc(w.count, sizeof(*held->argv));
                if (!held->argv)
                        abort();
                for (size_t i = 1; i < w.count; i++)
                        held->argv[i - 1] = (char *)w.words[i];
                held->name = w.words[0];
                code = held_run(held, argv[0], w.config);
                free(held->argv);
        }
        cli_words_free(&w);
        return code;
}

int cmd_lock(int argc, char **argv)
{
        struct held held = { 0 };
        struct options o = {
                .usage = "lock NAME [--try | --wait TIME] -- COMMAND [ARGUMENT…]",
                .about = "Waits for the lock, in order of arrival, runs the command, and gives the lock back.\n"
                         "QUIVER_TOKEN is a number that grows with every holder: what the command writes to can\n"
                         "refuse older ones. If the lock is lost the command is stopped.\n"
                         "When the command ends, all that it has started is killed before the lock is free, in the\n"
                         "background or not; likewise if this process is killed.\n"
                         "Exit code: the command's; 128 + N after signal N; 1 if the lock was not had, or was lost.",
                .specs = lock_specs,
                .count = sizeof(lock_specs) / sizeof(lock_specs[0]),
                .examples = "  quiver lock nightly -- ./backup.sh\n"
                            "  quiver lock nightly --try --busy-code 75 -- ./backup.sh\n",
        };
        return run(&o, argc, argv, &held);
}

int cmd_elect(int argc, char **argv)
{
        struct held held = { .is_election = true };
        struct options o = {
                .usage = "elect NAME -- COMMAND [ARGUMENT…]",
                .about = "Runs the command while this one leads among all that were started with the same NAME.\n"
                         "If leadership is lost the command is stopped, and started again when it is won again.\n"
                         "Ends when the command ends by itself, with its exit code; the next in line leads then,\n"
                         "once all that the command has started is killed.",
                .specs = elect_specs,
                .count = sizeof(elect_specs) / sizeof(elect_specs[0]),
                .examples = "  quiver elect scheduler -- ./scheduler\n",
        };
        return run(&o, argc, argv, &held);
}
