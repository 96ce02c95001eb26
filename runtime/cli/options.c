#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/units.h"

int options_wrong(const struct options *o, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        (void)fprintf(stderr, "quiver %s: ", o->command);
        (void)vfprintf(stderr, format, args);
        (void)fprintf(stderr, "\nTry: quiver %s --help\n", o->command);
        va_end(args);
        return EXIT_USAGE;
}

/* --- one option --- */

const char *option_name(const struct option *option, size_t *ret_size)
{
        const char *name = strstr(option->spelling, "--") + 2;
        *ret_size = strcspn(name, " ");
        return name;
}

const char *option_value_name(const struct option *option)
{
        size_t size;
        const char *name = option_name(option, &size);
        return name[size] ? name + size + 1 : "";
}

bool option_is(const struct option *option, const char *name, size_t size)
{
        size_t own_size;
        const char *own = option_name(option, &own_size);
        return own_size == size && !memcmp(own, name, size);
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

static int set_number(const struct option *option, const char *value, struct error *error)
{
        uint64_t number = 0;
        unsigned long long min = option->min;
        unsigned long long max = option->max;
        if (!options_number(value, min, max, &number))
                return max < UINT32_MAX
                               ? error_set(error, -EINVAL, "\"%s\" is not a number from %llu to %llu", value, min, max)
                               : error_set(error, -EINVAL, "\"%s\" is not a number from %llu", value, min);
        if (option->kind == OPTION_U32)
                *option->to.u32 = (uint32_t)number;
        else
                *option->to.u64 = number;
        return 0;
}

static int set_duration(const struct option *option, const char *value, struct error *error)
{
        uint64_t ms = 0;
        if (units_duration_ms(value, &ms, error) < 0)
                return -EINVAL;
        if (ms < option->min)
                return error_set(error, -EINVAL, "\"%s\" is too short; at least %llu ms", value,
                        (unsigned long long)option->min);
        *option->to.u64 = ms;
        return 0;
}

static int set_choice(const struct option *option, const char *value, struct error *error)
{
        struct buffer names = { 0 };
        for (const struct option_choice *c = option->choices; c->name; c++) {
                if (!strcmp(c->name, value)) {
                        *option->to.i32 = c->value;
                        buffer_free(&names);
                        return 0;
                }
                buffer_printf(&names, "%s%s", names.size ? ", " : "", c->name);
        }
        (void)error_set(error, -EINVAL, "\"%s\" is none of %s", value, buffer_text(&names));
        buffer_free(&names);
        return -EINVAL;
}

int option_set(const struct option *option, const char *value, struct error *error)
{
        switch (option->kind) {
        case OPTION_FLAG:
                *option->to.flag = true;
                return 0;
        case OPTION_TEXT:
                *option->to.text = value;
                return 0;
        case OPTION_U32:
        case OPTION_U64:
                return set_number(option, value, error);
        case OPTION_DURATION:
                return set_duration(option, value, error);
        case OPTION_SIZE:
                return units_size_bytes(value, option->to.u64, error) < 0 ? -EINVAL : 0;
        case OPTION_CHOICE:
                return set_choice(option, value, error);
        case OPTION_LIST:
                strings_add(option->to.list, value);
                return 0;
        case OPTION_CALL:
                return option->call(option->to.self, value, error);
        }
        return -EINVAL;
}

/* --- help --- */

void options_print(const struct options *o)
{
        (void)printf("usage: quiver %s\n\n%s\n\noptions:\n", o->usage, o->about);
        for (size_t i = 0; i < o->table_count; i++) {
                const struct option *option = &o->table[i];
                bool has_letter = option->spelling[1] != '-';
                (void)printf("  %s%-*s %s\n", has_letter ? "" : "    ", has_letter ? 26 : 22, option->spelling,
                        option->help);
        }
        (void)printf("  %-26s %s\n", "-h, --help", "show this");
        if (o->examples)
                (void)printf("\nexamples:\n%s", o->examples);
}

/* --- all words --- */

/* Where the reading is. */
struct option_reader {
        struct options *o;
        int argc, at;
        char **argv;
        int code; /* of what ended it */
};

/* `attached`: what stood in the same word as the option; NULL: nothing. */
static bool take(struct option_reader *r, const struct option *option, const char *attached)
{
        struct error error = { "" };
        size_t size;
        const char *name = option_name(option, &size);
        if (option->kind == OPTION_FLAG && attached) {
                r->code = options_wrong(r->o, "--%s takes no value", name);
                return false;
        }
        if (option->kind != OPTION_FLAG && !attached) {
                if (r->at == r->argc) {
                        r->code = options_wrong(r->o, "--%.*s needs a value: --%s", (int)size, name, name);
                        return false;
                }
                attached = r->argv[r->at++];
        }
        if (option_set(option, attached, &error) == 0)
                return true;
        r->code = options_wrong(r->o, "--%.*s: %s", (int)size, name, error.text);
        return false;
}

static bool show_help(struct option_reader *r)
{
        options_print(r->o);
        r->code = EXIT_DONE;
        return false;
}

static bool refuse_long(struct option_reader *r, const char *name, size_t size)
{
        struct strings known = { 0 };
        char *asked = text_copy_part(name, size < 64 ? size : 63);
        char own[64];
        for (size_t i = 0; i < r->o->table_count; i++) {
                const char *at = option_name(&r->o->table[i], &size);
                (void)snprintf(own, sizeof(own), "%.*s", (int)size, at);
                strings_add(&known, own);
        }
        strings_add(&known, "help");
        const char *nearest = error_nearest(asked, (const char *const *)known.items, known.count);
        r->code = nearest ? options_wrong(r->o, "no option --%s; did you mean --%s?", asked, nearest)
                          : options_wrong(r->o, "no option --%s", asked);
        free(asked);
        strings_free(&known);
        return false;
}

static bool take_long(struct option_reader *r, const char *word)
{
        size_t size = strcspn(word, "=");
        for (size_t i = 0; i < r->o->table_count; i++)
                if (option_is(&r->o->table[i], word, size))
                        return take(r, &r->o->table[i], word[size] ? word + size + 1 : NULL);
        return size == 4 && !memcmp(word, "help", 4) ? show_help(r) : refuse_long(r, word, size);
}

/* -v, -qv, -cFILE, -c FILE */
static bool take_cluster(struct option_reader *r, const char *letters)
{
        for (; *letters; letters++) {
                const struct option *option = NULL;
                for (size_t i = 0; i < r->o->table_count && !option; i++)
                        if (r->o->table[i].spelling[1] == *letters)
                                option = &r->o->table[i];
                if (*letters == 'h')
                        return show_help(r);
                if (!option || *letters == '-') {
                        r->code = options_wrong(r->o, "no option -%c", *letters);
                        return false;
                }
                if (option->kind != OPTION_FLAG)
                        return take(r, option, letters[1] ? letters + 1 : NULL);
                if (!take(r, option, NULL))
                        return false;
        }
        return true;
}

static void (*visitor)(void *self, const struct options *o);
static void *visitor_self;

void options_visit(void (*visit)(void *self, const struct options *o), void *self)
{
        visitor = visit;
        visitor_self = self;
}

bool options_read(struct options *o, int argc, char **argv, int *ret_code)
{
        if (visitor) {
                o->command = argv[0];
                visitor(visitor_self, o);
                *ret_code = EXIT_DONE;
                return false;
        }
        struct option_reader r = { .o = o, .argc = argc, .argv = argv, .at = 1 };
        bool only_words = false;
        bool is_well = true;
        o->command = argv[0];
        o->words = argv + 1;
        o->words_count = 0;
        while (is_well && r.at < argc) {
                char *word = argv[r.at++];
                if (only_words || word[0] != '-' || !word[1])
                        o->words[o->words_count++] = word; /* where one stood that has been read */
                else if (!strcmp(word, "--"))
                        only_words = true;
                else
                        is_well = word[1] == '-' ? take_long(&r, word + 2) : take_cluster(&r, word + 1);
        }
        if (is_well && o->words_count > o->words_max) {
                r.code = options_wrong(o, "unexpected argument %s%s%s", o->words[o->words_max], o->hint ? "; " : "",
                        o->hint ? o->hint : "");
                is_well = false;
        }
        if (is_well)
                o->words[o->words_count] = NULL;
        else
                *ret_code = r.code;
        return is_well;
}
