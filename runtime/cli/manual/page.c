#include "cli/manual/page.h"

#include <stdio.h>
#include <string.h>

#include "cli/manual/describe.h"

/* A text in which nothing means anything to scdoc: no signs, and no dash or space at the beginning of a line. */
static void put_plain(const char *text)
{
        bool is_first = true;
        for (const char *c = text; *c; c++) {
                if (is_first && *c == ' ')
                        continue;
                if (strchr("\\*_[]#|<>~`", *c) || (is_first && strchr("-.", *c)))
                        (void)putchar('\\');
                (void)putchar(*c);
                is_first = *c == '\n';
        }
}

static void put_option(const struct option *option)
{
        size_t size;
        const char *name = option_name(option, &size);
        const char *value = option_value_name(option);
        if (option->spelling[1] != '-')
                (void)printf("*-%c*, ", option->spelling[1]);
        (void)printf("*--%.*s*", (int)size, name);
        if (*value) {
                (void)printf(" ");
                put_plain(value);
        }
        (void)printf("\n\t");
        put_plain(option->help);
        (void)printf("\n\n");
}

/* Lines as they are, each with "quiver " before it if `is_usage`. */
static void put_literal(const char *text, bool is_usage)
{
        size_t size = strlen(text);
        (void)printf("```\n%s%s%s```\n\n", is_usage ? "quiver " : "", text, size && text[size - 1] == '\n' ? "" : "\n");
}

static void put_exit_codes(void)
{
        (void)printf(
                "# EXIT STATUS\n\n*0* done, *1* failed, *2* wrong usage, *3* store or coordination unreachable.\n\n");
}

static void put_command(void *self, const struct options *o)
{
        const struct command *command = self;
        (void)printf("quiver-%s(1)\n\n# NAME\n\nquiver-%s - ", command->name, command->name);
        put_plain(command->about);
        (void)printf("\n\n# SYNOPSIS\n\n");
        put_literal(o->usage, true);
        (void)printf("# DESCRIPTION\n\n");
        put_plain(o->about);
        (void)printf("\n\n# OPTIONS\n\n");
        for (size_t i = 0; i < o->table_count; i++)
                put_option(&o->table[i]);
        (void)printf("*-h*, *--help*\n\tshow the help\n\n");
        if (o->examples) {
                (void)printf("# EXAMPLES\n\n");
                put_literal(o->examples, false);
        }
        put_exit_codes();
        (void)printf("# SEE ALSO\n\n*quiver*(1)\n");
}

void page_of_command(const struct command *command)
{
        describe_command(command, put_command, (void *)command);
}

void page_of_all(void)
{
        size_t count;
        const struct command *commands = commands_all(&count);
        (void)printf(
                "quiver(1)\n\n# NAME\n\nquiver - runs handler plugins: every key's tasks in order, one at a time, none "
                "lost\n\n"
                "# SYNOPSIS\n\n*quiver* COMMAND \\[options\\]\n\n"
                "# DESCRIPTION\n\n"
                "A fleet of hosts (*quiver run*) claims tasks from a store and gives each to its handler, a plugin in "
                "a process of "
                "its own. Tasks of one key run one at a time and in order, through crashes, deploys and failovers.\n\n"
                "The settings stand in a file: the one of *-c*, else of $QUIVER\\_CONFIG, else ./etc/runtime.cfg, else "
                "/etc/quiver/runtime.cfg. *quiver check --reference* prints all of them.\n\n"
                "# COMMANDS\n\n");
        for (size_t i = 0; i < count; i++) {
                if (!commands[i].about)
                        continue;
                (void)printf("*quiver-%s*(1)\n\t", commands[i].name);
                put_plain(commands[i].about);
                (void)printf("\n\n");
        }
        put_exit_codes();
        (void)printf("# FILES\n\n_/etc/quiver/runtime.cfg_\n\tthe settings of an installed host\n");
}
