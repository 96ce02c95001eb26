/* lock.c: `quiver lock` and `quiver elect`: a command that runs in one place at a time, or in n. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/lock/lock_break.h"
#include "cli/lock/lock_look.h"
#include "cli/lock/run_while_held.h"

#define EXIT_NOT_HAD 75 /* EX_TEMPFAIL: try again later */

#define OPT_GRACE(field)                                                                                               \
        OPT_DURATION("--grace TIME", field, 0,                                                                         \
                "from SIGTERM to SIGKILL when the command has to end (default: locks.grace, 5s)")
#define OPT_WAIT(field)                                                                                                \
        OPT_DURATION("--wait TIME", field, 0, "give up after 10s, 5m, 1h (default: locks.wait, for ever)")
#define OPT_TTL(field)                                                                                                 \
        OPT_DURATION("--ttl TIME", field, 1000,                                                                        \
                "how long it outlives a lost machine (default: locks.ttl, coordination.session)")
#define OPT_VERBOSE(field) OPT_FLAG("--verbose", field, "say each step on standard error")

struct lock_request {
        const char *config;
        uint32_t busy_code;
        uint32_t semaphore; /* 0: it is none */
        bool is_shared;
        bool has_json, is_who, is_resign;
        struct held held;
};

static bool is_name(const char *name)
{
        size_t size = strlen(name);
        return size && size <= 200 && strspn(name, LOCK_NAME_BYTES) == size && name[0] != '.';
}

static int refuse_name(const struct options *o)
{
        return options_wrong(o, "a name is 1 to 200 of A-Z a-z 0-9 . _ : @ %% + -, and does not begin with .");
}

static int set_retries(void *self, const char *value, struct error *error)
{
        struct held *held = self;
        uint64_t count;
        held->has_retries = true;
        held->retries = HELD_FOREVER;
        if (!strcmp(value, "forever"))
                return 0;
        if (!options_number(value, 0, 1000000, &count))
                return error_set(error, -EINVAL, "a number up to 1000000, or forever");
        held->retries = (uint32_t)count;
        return 0;
}

/* "50ms,5s" */
static int set_backoff(void *self, const char *value, struct error *error)
{
        struct held *held = self;
        char base[64];
        const char *comma = strchr(value, ',');
        size_t size = comma ? (size_t)(comma - value) : 0;
        (void)snprintf(base, sizeof(base), "%.*s", (int)(size < sizeof(base) ? size : 0), value);
        struct error ignored;
        if (!comma || units_duration_ms(base, &held->backoff_ms, &ignored) < 0 ||
                units_duration_ms(comma + 1, &held->backoff_max_ms, &ignored) < 0 || !held->backoff_ms ||
                held->backoff_ms > held->backoff_max_ms || held->backoff_max_ms > HELD_BACKOFF_MAX_MS)
                return error_set(error, -EINVAL, "two times of at most 1h, the first not the longer one: 50ms,5s");
        return 0;
}

static int run(struct options *o, struct lock_request *q)
{
        struct held *held = &q->held;
        if (o->words_count < 2)
                return options_wrong(o, "a name and a command are needed: NAME -- COMMAND");
        held->name = o->words[0];
        held->argv = o->words + 1;
        if (!is_name(held->name))
                return refuse_name(o);
        if (held->is_try + (held->wait_ms > 0) > 1 || (held->is_try && held->has_retries))
                return options_wrong(o, "--try, or --wait and --retries, not both");
        if (held->ttl_ms > HELD_TTL_MAX_MS)
                return options_wrong(o, "--ttl is from 1s to 5m");
        if (q->is_shared && q->semaphore)
                return options_wrong(o, "--shared or --semaphore, not both");
        if (held->backoff_ms && !held->has_retries)
                return options_wrong(o, "--backoff is for --retries");
        held->limit = q->is_shared ? LOCK_SHARED : q->semaphore ? q->semaphore : 1;
        held->busy_code = (int)q->busy_code;
        return held_run(held, o->command, q->config);
}

/* A lock may be called "list": with -- its command follows. */
static bool has_dashes(int argc, char **argv)
{
        for (int i = 1; i < argc; i++)
                if (!strcmp(argv[i], "--"))
                        return true;
        return false;
}

static const char lock_about[] =
        "Waits for the lock, in order of arrival, runs the command, and gives the lock back.\n"
        "QUIVER_TOKEN is a number that grows with every holder: what the command writes to can\n"
        "refuse older ones. If the lock is lost the command is stopped.\n"
        "When the command ends, all that it has started is killed before the lock is free, in the\n"
        "background or not; likewise if this process is killed.\n"
        "--shared: together with others that share it. --semaphore N: one of N. Of different\n"
        "limits the smallest counts, and nobody overtakes whoever came first.\n"
        "--retries: does not wait in order, but tries, that many times more, after random pauses.\n"
        "list: who holds and who waits. break: takes it from whoever holds it, and notes that\n"
        "down; a command that ran under it is stopped, but the next may begin before it has ended.\n"
        "Exit code: the command's; 128 + N after signal N; 75 if the lock was not had; 1 if it was\n"
        "lost; 3 if the coordination did not answer within --wait (with --try: a session's time).";

int cmd_lock(int argc, char **argv)
{
        struct lock_request q = { .busy_code = EXIT_NOT_HAD, .held.grace_ms = HELD_UNSET };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--shared", &q.is_shared, "hold it together with others that share it"),
                OPT_NUMBER("--semaphore N", &q.semaphore, 1, QUEUE_LIMIT_MAX, "hold one of N places"),
                OPT_FLAG("--try", &q.held.is_try, "do not wait: give up at once if somebody has it"),
                OPT_WAIT(&q.held.wait_ms),
                OPT_CALL(
                        "--retries N|forever", set_retries, &q.held, "try again so often, instead of waiting in order"),
                OPT_CALL("--backoff BASE,CAP", set_backoff, &q.held,
                        "pauses between tries (default: locks.backoff, 50ms,5s)"),
                OPT_TTL(&q.held.ttl_ms),
                OPT_NUMBER("--busy-code N", &q.busy_code, 0, 255, "exit code if it was not had (default: 75)"),
                OPT_GRACE(&q.held.grace_ms),
                OPT_VERBOSE(&q.held.is_verbose),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "lock NAME [--shared | --semaphore N] [--try | --wait TIME] -- COMMAND [ARGUMENT…]\n"
                         "       quiver lock list [--json]\n"
                         "       quiver lock break NAME",
                .about = lock_about,
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver lock nightly -- ./backup.sh\n"
                            "  quiver lock nightly --try -- ./backup.sh || test $? = 75\n"
                            "  quiver lock render --semaphore 3 --wait 10m -- ./render.sh\n"
                            "  quiver lock list\n",
        };
        int code;
        bool is_command = has_dashes(argc, argv);
        if (!options_read(&o, argc, argv, &code))
                return code;
        const char *verb = is_command || !o.words_count ? "" : o.words[0];
        if (!strcmp(verb, "list"))
                return o.words_count == 1 ? lock_list(o.command, q.config, q.has_json)
                                          : options_wrong(&o, "what is %s?", o.words[1]);
        if (!strcmp(verb, "break")) {
                if (o.words_count != 2)
                        return options_wrong(&o, "break needs the name of one lock");
                return is_name(o.words[1]) ? lock_break(o.command, q.config, o.words[1]) : refuse_name(&o);
        }
        if (q.has_json)
                return options_wrong(&o, "--json is for list");
        return run(&o, &q);
}

int cmd_elect(int argc, char **argv)
{
        struct lock_request q = { .busy_code = EXIT_NOT_HAD, .held = { .is_election = true, .grace_ms = HELD_UNSET } };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_WAIT(&q.held.wait_ms),
                OPT_TTL(&q.held.ttl_ms),
                OPT_GRACE(&q.held.grace_ms),
                OPT_VERBOSE(&q.held.is_verbose),
                OPT_FLAG("--who", &q.is_who, "say who leads; exit code 1: nobody"),
                OPT_FLAG("--resign", &q.is_resign, "ask whoever leads to let the next one lead"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "elect NAME [--wait TIME] -- COMMAND [ARGUMENT…]\n"
                         "       quiver elect NAME --who [--json]\n"
                         "       quiver elect NAME --resign",
                .about = "Runs the command while this one leads among all that were started with the same NAME.\n"
                         "If leadership is lost the command is stopped, and started again when it is won again.\n"
                         "Ends when the command ends by itself, with its exit code; the next in line leads then,\n"
                         "once all that the command has started is killed. With --wait: 75 if it did not lead in\n"
                         "time, 3 if the coordination did not answer.\n"
                         "--resign: the leader ends its command, lets the next in line lead, and stands again.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver elect scheduler -- ./scheduler\n"
                            "  quiver elect scheduler --who\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (q.is_who && q.is_resign)
                return options_wrong(&o, "--who or --resign, not both");
        if (q.has_json && !q.is_who)
                return options_wrong(&o, "--json is for --who");
        if (!q.is_who && !q.is_resign)
                return run(&o, &q);
        if (o.words_count != 1)
                return options_wrong(&o, "the name of one election is needed");
        if (!is_name(o.words[0]))
                return refuse_name(&o);
        return q.is_who ? elect_who(o.command, q.config, o.words[0], q.has_json)
                        : elect_resign(o.command, q.config, o.words[0]);
}
