/* command.h: the commands that main.c's table names, one file each in this folder. */
#ifndef QUIVER_CLI_COMMAND_H
#define QUIVER_CLI_COMMAND_H

#include <stddef.h>

struct command {
        const char *name;
        /* argv[0] is the command's name.  Returns an exit code (cli/options.h). */
        int (*run)(int argc, char **argv);
        const char *about; /* one line; NULL hides it from the help */
};

/* All commands in the order of the help; main.c has the table. */
const struct command *commands_all(size_t *ret_count);
/* NULL: there is none of that name, or it is hidden. */
const struct command *command_find(const char *name);
/* The page that `quiver --help` prints. */
void commands_print(void);

int cmd_bench(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_complete(int argc, char **argv);
int cmd_dead(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_elect(int argc, char **argv);
int cmd_envelope(int argc, char **argv);
int cmd_fsck(int argc, char **argv);
int cmd_handler(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_id(int argc, char **argv);
int cmd_init(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_load(int argc, char **argv);
int cmd_lock(int argc, char **argv);
int cmd_members(int argc, char **argv);
int cmd_app(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_page(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_results(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_schedule(int argc, char **argv);
int cmd_limit(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_submit(int argc, char **argv);
int cmd_take(int argc, char **argv);
int cmd_tasks(int argc, char **argv);
int cmd_task(int argc, char **argv);
int cmd_room(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_try(int argc, char **argv);
int cmd_vet(int argc, char **argv);

#endif
