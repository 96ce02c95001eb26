/* complete.c: quiver complete -- WORD…: what may stand in place of the last word, for a shell; one a line, with what it
 * means behind a tab. */
#include <stdio.h>
#include <string.h>

#include "cli/manual/describe.h"
#include "cli/manual/values.h"

/* The words behind the command's name, the last of which is being written. */
struct completion {
        const struct command *command;
        char **words;
        size_t count;
};

static const char *last_word(const struct completion *q)
{
        return q->words[q->count - 1];
}

static void offer(const char *word, const char *begin, const char *about)
{
        if (!strncmp(word, begin, strlen(begin)))
                (void)printf("%s%s%s\n", word, about ? "\t" : "", about ? about : "");
}

static void offer_values(const struct strings *values, const char *begin)
{
        for (size_t i = 0; i < values->count; i++)
                offer(values->items[i], strcmp(values->items[i], VALUES_FILES) ? begin : "", NULL);
}

static const struct option *find(const struct options *o, const char *word)
{
        for (size_t i = 0; o->table && i < o->table_count; i++) {
                const struct option *option = &o->table[i];
                bool is_letter = word[0] == '-' && word[1] && !word[2] && option->spelling[1] == word[1];
                if (is_letter || (!strncmp(word, "--", 2) && option_is(option, word + 2, strlen(word + 2))))
                        return option;
        }
        return NULL;
}

/* What was said before the cursor. */
struct said {
        char *words[16]; /* those that are no options */
        size_t count;
        const struct option *waits; /* the option whose value is being written */
        const char *config;
        bool is_over; /* behind "--": another program's words */
};

static void hear(const struct completion *q, const struct options *o, struct said *said)
{
        for (size_t i = 0; i + 1 < q->count; i++) {
                char *word = q->words[i];
                const struct option *option = find(o, word);
                if (said->waits) {
                        if (option_is(said->waits, "config", strlen("config")))
                                said->config = word;
                        said->waits = NULL;
                } else if (!strcmp(word, "--")) {
                        said->is_over = true;
                        return;
                } else if (option && option->kind != OPTION_FLAG) {
                        said->waits = option;
                } else if (word[0] != '-' && said->count < sizeof(said->words) / sizeof(said->words[0])) {
                        said->words[said->count++] = word;
                }
        }
}

static void offer_value(const struct completion *q, const struct said *said)
{
        const struct option *option = said->waits;
        struct strings values = { 0 };
        char name[64];
        size_t size;
        const char *at = option_name(option, &size);
        (void)snprintf(name, sizeof(name), "%.*s", (int)size, at);
        for (const struct option_choice *c = option->choices; c && c->name; c++)
                strings_add(&values, c->name);
        if (!option->choices)
                values_of(q->command->name, name, option_value_name(option), said->config, &values);
        offer_values(&values, last_word(q));
        strings_free(&values);
}

static void offer_options(const struct completion *q, const struct options *o)
{
        for (size_t i = 0; i < o->table_count; i++) {
                char word[64];
                size_t size;
                const char *name = option_name(&o->table[i], &size);
                (void)snprintf(word, sizeof(word), "--%.*s", (int)size, name);
                offer(word, last_word(q), o->table[i].help);
        }
        offer("--help", last_word(q), "show the help");
}

static void offer_words(const struct completion *q, const struct options *o, const struct said *said)
{
        struct strings words = { 0 };
        struct strings values = { 0 };
        describe_next(o->usage, said->words, said->count, &words);
        for (size_t i = 0; i < words.count; i++) {
                if (words.items[i][0] >= 'A' && words.items[i][0] <= 'Z')
                        values_of(q->command->name, NULL, words.items[i], said->config, &values);
                else
                        strings_add(&values, words.items[i]);
        }
        offer_values(&values, last_word(q));
        strings_free(&words);
        strings_free(&values);
}

static void answer(void *self, const struct options *o)
{
        const struct completion *q = self;
        struct said said = { .count = 0 };
        hear(q, o, &said);
        if (said.is_over)
                (void)printf("%s\n", VALUES_FILES);
        else if (said.waits)
                offer_value(q, &said);
        else if (last_word(q)[0] == '-')
                offer_options(q, o);
        else
                offer_words(q, o, &said);
}

static void offer_commands(const char *begin)
{
        size_t count;
        const struct command *commands = commands_all(&count);
        for (size_t i = 0; i < count; i++)
                if (commands[i].about)
                        offer(commands[i].name, begin, commands[i].about);
}

int cmd_complete(int argc, char **argv)
{
        if (argc < 3 || strcmp(argv[1], "--") != 0) {
                (void)fprintf(
                        stderr, "quiver complete: only a shell's completion starts this command: quiver help --help\n");
                return EXIT_USAGE;
        }
        if (argc == 3) {
                offer_commands(argv[2]);
                return EXIT_DONE;
        }
        struct completion q = { .command = command_find(argv[2]), .words = argv + 3, .count = (size_t)argc - 3 };
        if (q.command)
                describe_command(q.command, answer, &q);
        return EXIT_DONE;
}
