#include "cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

void options_start(struct options *o, int argc, char **argv)
{
        o->argc = argc;
        o->argv = argv;
        o->at = 1;
        o->only_words = false;
        o->cluster = NULL;
        o->value = NULL;
}

int options_wrong(const struct options *o, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        (void)fprintf(stderr, "quiver %s: ", o->argv[0]);
        (void)vfprintf(stderr, format, args);
        (void)fprintf(stderr, "\nTry: quiver %s --help\n", o->argv[0]);
        va_end(args);
        return EXIT_USAGE;
}

bool options_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
        uint64_t number = 0;
        if (!*text)
                return false;
        for (; *text; text++) {
                if (*text < '0' || *text > '9' || number > UINT64_MAX / 10 - 1)
                        return false;
                number = number * 10 + (uint64_t)(*text - '0');
        }
        if (number < min || number > max)
                return false;
        *ret_number = number;
        return true;
}

void options_help(const struct options *o)
{
        (void)printf("usage: quiver %s\n\n%s\n", o->usage, o->about);
        if (o->count)
                (void)printf("\noptions:\n");
        for (size_t i = 0; i < o->count; i++) {
                const struct option_spec *s = &o->specs[i];
                char left[64];
                char letter[8] = "    ";
                if (s->id < 256)
                        (void)snprintf(letter, sizeof(letter), "-%c, ", s->id);
                (void)snprintf(left, sizeof(left), "%s--%s%s%s", letter, s->name, s->value ? " " : "",
                        s->value ? s->value : "");
                (void)printf("  %-26s %s\n", left, s->help);
        }
        (void)printf("  %-26s %s\n", "-h, --help", "show this");
        if (o->examples)
                (void)printf("\nexamples:\n%s", o->examples);
}

static int take_value(struct options *o, const struct option_spec *s, const char *attached)
{
        if (!s->value) {
                if (attached) {
                        (void)options_wrong(o, "--%s takes no value", s->name);
                        return OPTIONS_WRONG;
                }
                o->value = NULL;
                return s->id;
        }
        if (!attached) {
                if (o->at >= o->argc) {
                        (void)options_wrong(o, "--%s needs a value: --%s %s", s->name, s->name, s->value);
                        return OPTIONS_WRONG;
                }
                attached = o->argv[o->at++];
        }
        o->value = attached;
        return s->id;
}

static int unknown_long(struct options *o, const char *name)
{
        const char *known[64];
        size_t count = 0;
        for (size_t i = 0; i < o->count && count < 63; i++)
                known[count++] = o->specs[i].name;
        known[count++] = "help";
        const char *nearest = error_nearest(name, known, count);
        if (nearest)
                (void)options_wrong(o, "no option --%s; did you mean --%s?", name, nearest);
        else
                (void)options_wrong(o, "no option --%s", name);
        return OPTIONS_WRONG;
}

static int next_long(struct options *o, const char *word)
{
        char name[64];
        size_t length = strcspn(word, "=");
        if (length >= sizeof(name))
                length = sizeof(name) - 1;
        memcpy(name, word, length);
        name[length] = 0;
        const char *attached = strchr(word, '=');
        if (!strcmp(name, "help")) {
                options_help(o);
                return OPTIONS_HELP;
        }
        for (size_t i = 0; i < o->count; i++)
                if (!strcmp(o->specs[i].name, name))
                        return take_value(o, &o->specs[i], attached ? attached + 1 : NULL);
        return unknown_long(o, name);
}

static int next_short(struct options *o)
{
        char letter = *o->cluster++;
        const char *rest = *o->cluster ? o->cluster : NULL;
        if (!rest)
                o->cluster = NULL;
        if (letter == 'h') {
                options_help(o);
                return OPTIONS_HELP;
        }
        for (size_t i = 0; i < o->count; i++) {
                if (o->specs[i].id != letter)
                        continue;
                if (!o->specs[i].value)
                        return take_value(o, &o->specs[i], NULL);
                o->cluster = NULL;
                return take_value(o, &o->specs[i], rest);
        }
        (void)options_wrong(o, "no option -%c", letter);
        return OPTIONS_WRONG;
}

int options_next(struct options *o)
{
        if (o->cluster)
                return next_short(o);
        if (o->at < o->argc && !o->only_words && !strcmp(o->argv[o->at], "--")) {
                o->only_words = true;
                o->at++;
        }
        if (o->at >= o->argc)
                return OPTIONS_END;
        const char *word = o->argv[o->at++];
        if (o->only_words || word[0] != '-' || !word[1]) {
                o->value = word;
                return OPTIONS_WORD;
        }
        if (word[1] == '-')
                return next_long(o, word + 2);
        o->cluster = word + 1;
        return next_short(o);
}
