/* main.c: the table of commands; argv[1] chooses one. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backtrace/backtrace_command.h"
#include "base/error.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/options.h"
#include "guard/guard.h"
#include "runner/runner.h"

static const struct command commands[] = {
        { "run", cmd_run, "run a host in the foreground" },
        { "check", cmd_check, "check the configuration, and say all that is wrong with it" },
        { "reload", cmd_reload, "take up changed settings and plugins while the host runs" },
        { "submit", cmd_submit, "submit one task, or one per line of standard input" },
        { "status", cmd_status, "what waits, what runs, who owns it" },
        { "top", cmd_top, "a live view in the terminal: what is wrong, handlers, keys, shards, dead tasks" },
        { "page", cmd_page, "the address of the page in the browser, with a token" },
        { "members", cmd_members, "the hosts: who owns what, who leads, what moved; drain one" },
        { "app", cmd_app, "what all hosts agree on: look, change it, switch features on" },
        { "tasks", cmd_tasks, "list tasks: what waits and why, what runs where; by handler, key, host, age" },
        { "task", cmd_task, "where a task is and what happened to it; cancel it" },
        { "dead", cmd_dead, "list, requeue or drop tasks that were given up" },
        { "key", cmd_key, "what a key waits for; hold, unhold, retry or skip" },
        { "pause", cmd_pause, "start no more tasks, of one handler or of all" },
        { "resume", cmd_resume, "start tasks again, of one handler or of all" },
        { "results", cmd_results, "take results and print them" },
        { "take", cmd_take, "take tasks of a remote handler, and run a command for each" },
        { "schedule", cmd_schedule, "tasks that are submitted at given times" },
        { "id", cmd_id, "unique 64-bit ids; what is in one" },
        { "room", cmd_room, "a log of messages in the store: append, read, follow, truncate" },
        { "limit", cmd_limit, "how much the whole app may start or run at once" },
        { "lock", cmd_lock, "run a command while holding a lock that all hosts share" },
        { "elect", cmd_elect, "run a command on one host at a time: the one that leads" },
        { "bench", cmd_bench, "measure a lock on the coordination: shares, waits, rate" },
        { "doctor", cmd_doctor, "look at servers, hosts, files and this machine, and say what to do" },
        { "fsck", cmd_fsck, "prove that the store has every task in exactly one place" },
        { "dump", cmd_dump, "write all tasks of a store that no host works on to a file" },
        { "load", cmd_load, "load a dump into another store, of whatever kind" },
        { "envelope", cmd_envelope, "read or write a task as the bytes that a store holds" },
        { "init", cmd_init, "make a folder with settings, plugins and state, ready for quiver run" },
        { "handler", cmd_handler, "name a plugin in the settings" },
        { "new", cmd_new, "make a folder with a new plugin, its test and its Makefile" },
        { "try", cmd_try, "run tasks through a plugin, in a real runner, with no server" },
        { "vet", cmd_vet, "find what would make a plugin trouble in production" },
        { "help", cmd_help, "a command's help, its page of the manual, or the completion of a shell" },
        { "complete", cmd_complete, NULL }, /* started by a shell's completion */
        { "runner", cmd_runner, NULL },     /* started by a host only */
        { "guard", cmd_guard, NULL },       /* started by a host only */
        { "trace", cmd_trace, NULL },       /* started by whoever watches a runner */
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct command *commands_all(size_t *ret_count)
{
        *ret_count = COMMANDS;
        return commands;
}

const struct command *command_find(const char *name)
{
        for (size_t i = 0; i < COMMANDS; i++)
                if (commands[i].about && !strcmp(commands[i].name, name))
                        return &commands[i];
        return NULL;
}

void commands_print(void)
{
        (void)printf("usage: quiver COMMAND [options]\n\n"
                     "Quiver runs handler plugins: every key's tasks in order, one at a time, none lost.\n\n"
                     "commands:\n");
        for (size_t i = 0; i < COMMANDS; i++)
                if (commands[i].about)
                        (void)printf("  %-10s %s\n", commands[i].name, commands[i].about);
        (void)printf("\n  quiver COMMAND --help      the command's options, with examples\n"
                     "  quiver --version           the version, and the plugin ABI it speaks\n\n"
                     "exit codes: 0 done, 1 failed, 2 wrong usage, 3 store or coordination unreachable\n");
}

static int unknown(const char *name)
{
        const char *known[COMMANDS];
        size_t count = 0;
        for (size_t i = 0; i < COMMANDS; i++)
                if (commands[i].about)
                        known[count++] = commands[i].name;
        const char *nearest = error_nearest(name, known, count);
        if (nearest)
                (void)fprintf(stderr, "quiver: no command %s; did you mean %s?\n", name, nearest);
        else
                (void)fprintf(stderr, "quiver: no command %s\n", name);
        (void)fprintf(stderr, "Try: quiver --help\n");
        return EXIT_USAGE;
}

int main(int argc, char **argv)
{
        /* A write to a closed connection returns EPIPE instead of killing the process. */
        (void)signal(SIGPIPE, SIG_IGN);
        if (argc < 2) {
                commands_print();
                return EXIT_USAGE;
        }
        const char *name = argv[1];
        if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
                commands_print();
                return EXIT_DONE;
        }
        if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
                (void)printf("quiver %s (plugin abi %u.%u)\n", QUIVER_VERSION, QUIVER_ABI_MAJOR, QUIVER_ABI_MINOR);
                return EXIT_DONE;
        }
        for (size_t i = 0; i < COMMANDS; i++)
                if (!strcmp(commands[i].name, name))
                        return commands[i].run(argc - 1, argv + 1);
        return unknown(name);
}
