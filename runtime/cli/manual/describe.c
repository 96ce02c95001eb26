#include "cli/manual/describe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

void describe_command(const struct command *command, void (*see)(void *self, const struct options *o), void *self)
{
        char name[32];
        char *argv[] = { name, NULL };
        (void)snprintf(name, sizeof(name), "%s", command->name);
        options_visit(see, self);
        (void)command->run(1, argv);
        options_visit(NULL, NULL);
}

/* Behind the bracket that closes the one at `at`. */
static const char *skip_brackets(const char *at)
{
        size_t depth = 0;
        do {
                depth += *at == '[';
                depth -= *at == ']';
                at++;
        } while (*at && depth);
        return at;
}

/* The usage without its first word, without options in brackets, and without the other brackets; alternatives that have
 * a line of their own get " | " before them, as those within a line have. */
static void normalise(const char *usage, struct buffer *out)
{
        size_t name_size = strcspn(usage, " \n");
        for (const char *c = usage + name_size; *c;) {
                const char *again = *c == '\n' ? c + 1 + strspn(c + 1, " ") : NULL;
                if (again && !strncmp(again, "quiver ", 7)) {
                        buffer_printf(out, " | ");
                        c = again + strlen("quiver ") + name_size;
                } else if (*c == '[' && c[1] == '-' && c[2] != ']') {
                        c = skip_brackets(c);
                } else {
                        if (*c != '[' && *c != ']')
                                buffer_printf(out, "%c", *c == '\n' ? ' ' : *c);
                        c++;
                }
        }
}

/* Whether the word of a usage line stands for a value. */
static bool is_value(const char *word)
{
        return isupper((unsigned char)word[0]);
}

/* "a|b" is a or b; "ID…" is an ID. */
static void add_each(struct strings *words, const char *word)
{
        while (*word) {
                size_t size = strcspn(word, "|");
                char *bare = text_copy_part(word, size);
                bare[strcspn(bare, "\xe2")] = 0;
                if (*bare && *bare != '-' && !strings_has(words, bare))
                        strings_add(words, bare);
                free(bare);
                word += size + (word[size] == '|');
        }
}

static bool fits(const char *word, const char *given)
{
        struct strings each = { 0 };
        add_each(&each, word);
        bool is_fit = strings_has(&each, given);
        for (size_t i = 0; i < each.count; i++)
                is_fit = is_fit || is_value(each.items[i]);
        strings_free(&each);
        return is_fit;
}

/* One alternative: if the given words fit, what may stand behind them is added. */
static void follow(char *alternative, char *const *given, size_t count, struct strings *words)
{
        size_t at = 0;
        char *rest = NULL;
        bool is_after_option = false;
        for (char *word = strtok_r(alternative, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
                bool is_option = word[0] == '-' && word[1];
                bool is_its_value = is_after_option && is_value(word);
                is_after_option = is_option;
                if (!strcmp(word, "--"))
                        return; /* what follows is another program's */
                if (is_option || is_its_value)
                        continue;
                if (at == count) {
                        add_each(words, word);
                        return;
                }
                if (!fits(word, given[at++]))
                        return;
        }
}

void describe_next(const char *usage, char *const *given, size_t count, struct strings *ret_words)
{
        struct buffer all = { 0 };
        normalise(usage, &all);
        char *text = text_copy(buffer_text(&all));
        for (char *one = text, *next; one; one = next) {
                next = strstr(one, " | ");
                if (next) {
                        *next = 0;
                        next += strlen(" | ");
                }
                follow(one, given, count, ret_words);
        }
        free(text);
        buffer_free(&all);
}
