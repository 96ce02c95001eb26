/* help.c: quiver help: a command's help, the pages of the manual, and the scripts that complete words in a shell. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/manual/describe.h"
#include "cli/manual/page.h"
#include "cli/manual/shells.h"
#include "cli/options.h"

static void print(void *self, const struct options *o)
{
        (void)self;
        options_print(o);
}

static int unknown(const struct options *o, const char *name)
{
        return options_wrong(o, "no command %s; quiver --help lists them", name);
}

int cmd_help(int argc, char **argv)
{
        bool is_man = false;
        const char *shell = NULL;
        const struct option table[] = {
                OPT_FLAG("--man", &is_man,
                        "print the page of the manual, for scdoc; of quiver itself without a command"),
                OPT_TEXT("--completion SHELL", &shell, "print the completion for bash, zsh or fish"),
        };
        struct options o = {
                .usage = "help [COMMAND] [--man] | --completion SHELL",
                .about = "Prints a command's help, a page of the manual, or a script with which a shell completes "
                         "commands,\n"
                         "options and values; handlers, hosts and keys are asked from the store and its hosts.",
                .examples = "  quiver help submit\n"
                            "  quiver help submit --man | scdoc | man -l -\n"
                            "  source <(quiver help --completion bash)\n"
                            "  quiver help --completion fish > ~/.config/fish/completions/quiver.fish\n",
                OPTIONS_TABLE(table),
                .words_max = 1,
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (shell)
                return shell_print(shell) ? EXIT_DONE
                                          : options_wrong(&o, "no completion for %s: bash, zsh, fish", shell);
        const struct command *command = o.words_count ? command_find(o.words[0]) : NULL;
        if (o.words_count && !command)
                return unknown(&o, o.words[0]);
        if (is_man && command)
                page_of_command(command);
        else if (is_man)
                page_of_all();
        else if (command)
                describe_command(command, print, NULL);
        else
                commands_print();
        return EXIT_DONE;
}
