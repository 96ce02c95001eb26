#include "config/parse.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/numbers.h"

struct parser {
        struct source *source;
        struct arena_chunk **arena;
        struct token token; /* the current token */
        const struct source_file *file;
        unsigned depth;
};

static struct config_place here(const struct parser *p)
{
        return (struct config_place){ p->file->path, p->token.line };
}

static void advance(struct parser *p)
{
        source_next(p->source, &p->token, &p->file);
}

static char mark_of(const struct parser *p)
{
        return p->token.kind == TOKEN_MARK ? *p->token.start : 0;
}

static bool is_mark(const struct parser *p, const char *marks)
{
        char mark = mark_of(p);
        return mark && strchr(marks, mark);
}

/* A TOKEN_BAD has already added its own problem. */
static int syntax_error(const struct parser *p)
{
        if (p->token.kind == TOKEN_BAD)
                return -EINVAL;
        if (p->token.kind == TOKEN_END)
                problems_error(p->source->problems, here(p), "syntax error: the file ends in the middle of a setting");
        else
                problems_error(p->source->problems, here(p), "syntax error at %.*s; a setting is NAME = VALUE;",
                        (int)min_u64(p->token.size, 40), p->token.start);
        return -EINVAL;
}

/* The innermost open group, list or array, for the message about a misplaced token. */
struct opened {
        char mark; /* 0: the file itself */
        char closing;
        struct config_place place;
};

static int wrong_end(const struct parser *p, const struct opened *opened)
{
        struct problems *problems = p->source->problems;
        if (p->token.kind == TOKEN_END && opened->mark)
                problems_error(problems, opened->place, "the %c that is opened here is never closed", opened->mark);
        else if (is_mark(p, "}])") && !opened->mark)
                problems_error(problems, here(p), "%c closes nothing: nothing is open here", mark_of(p));
        else if (is_mark(p, "}])"))
                problems_error(problems, here(p), "%c does not close the %c of %s:%u; expected %c", mark_of(p),
                        opened->mark, opened->place.file, opened->place.line, opened->closing);
        else
                return syntax_error(p);
        return -EINVAL;
}

/* Adds an empty setting.  NULL after adding a problem. */
static struct config_setting_t *add(struct parser *p, struct config_setting_t *parent, const char *name, int type)
{
        struct setting_place *at = arena_take(p->arena, sizeof(*at));
        *at = (struct setting_place){ p->file, p->token.line, false };
        if (config_setting_length(parent) == PARSE_MEMBERS_MAX) {
                problems_error(
                        p->source->problems, here(p), "more than %d members in one group or list", PARSE_MEMBERS_MAX);
                return NULL;
        }
        struct config_setting_t *setting = config_setting_add(parent, name, type);
        if (setting)
                config_setting_set_hook(setting, at);
        return setting;
}

static int add_number(struct parser *p, struct config_setting_t *parent, const char *name)
{
        struct lexer_number number = { 0 };
        struct error error;
        bool is_bad = lexer_number(&p->token, &number, &error) < 0;
        if (is_bad)
                problems_error(p->source->problems, here(p), "%s", error.text);
        static const int types[] = { CONFIG_TYPE_INT, CONFIG_TYPE_INT64, CONFIG_TYPE_FLOAT };
        struct config_setting_t *s = add(p, parent, name, types[number.kind]);
        if (!s)
                return -EINVAL;
        ((struct setting_place *)config_setting_get_hook(s))->is_bad = is_bad;
        if (number.kind == LEXER_FLOAT)
                (void)config_setting_set_float(s, number.real);
        else if (number.kind == LEXER_INT64)
                (void)config_setting_set_int64(s, number.integer);
        else
                (void)config_setting_set_int(s, (int)number.integer);
        advance(p);
        return 0;
}

/* Consecutive strings form one string. */
static int add_string(struct parser *p, struct config_setting_t *parent, const char *name)
{
        struct config_setting_t *s = add(p, parent, name, CONFIG_TYPE_STRING);
        if (!s)
                return -EINVAL;
        struct buffer text = { 0 };
        for (; p->token.kind == TOKEN_STRING; advance(p))
                lexer_string(&p->token, &text);
        (void)config_setting_set_string(s, buffer_text(&text));
        buffer_free(&text);
        return 0;
}

static bool is_word(const struct token *token, const char *word)
{
        return token->kind == TOKEN_NAME && token->size == strlen(word) &&
               !strncasecmp(token->start, word, token->size);
}

static bool is_bool(const struct token *token)
{
        return is_word(token, "true") || is_word(token, "false");
}

static int add_bool(struct parser *p, struct config_setting_t *parent, const char *name)
{
        struct config_setting_t *s = add(p, parent, name, CONFIG_TYPE_BOOL);
        if (!s)
                return -EINVAL;
        (void)config_setting_set_bool(s, is_word(&p->token, "true"));
        advance(p);
        return 0;
}

static int parse_value(struct parser *p, struct config_setting_t *parent, const char *name);
static int parse_settings(struct parser *p, struct config_setting_t *group, const struct opened *opened);

/* All elements of an array must have one type. */
static int check_element(const struct parser *p, const struct config_setting_t *list, struct config_place place)
{
        const struct config_setting_t *last =
                config_setting_get_elem(list, (unsigned int)config_setting_length(list) - 1);
        if (!config_setting_is_array(list))
                return 0;
        if (config_setting_is_scalar(last) &&
                config_setting_type(last) == config_setting_type(config_setting_get_elem(list, 0)))
                return 0;
        problems_error(p->source->problems, place, "the elements of [ … ] have to be of one type");
        return -EINVAL;
}

static int parse_elements(struct parser *p, struct config_setting_t *list, const struct opened *opened)
{
        while (mark_of(p) != opened->closing) {
                struct config_place place = p->token.kind == TOKEN_END ? opened->place : here(p);
                if (config_setting_length(list)) {
                        if (mark_of(p) != ',')
                                return wrong_end(p, opened);
                        advance(p);
                        place = p->token.kind == TOKEN_END ? opened->place : here(p);
                }
                if (p->token.kind == TOKEN_END || is_mark(p, "}])"))
                        return wrong_end(p, opened);
                int r = parse_value(p, list, NULL);
                if (r == 0)
                        r = check_element(p, list, place);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int parse_aggregate(struct parser *p, struct config_setting_t *parent, const char *name)
{
        struct opened opened = { .mark = mark_of(p), .place = here(p) };
        opened.closing = opened.mark == '{' ? '}' : opened.mark == '[' ? ']' : ')';
        int type = opened.mark == '{' ? CONFIG_TYPE_GROUP : opened.mark == '[' ? CONFIG_TYPE_ARRAY : CONFIG_TYPE_LIST;
        if (p->depth == PARSE_DEPTH_MAX) {
                problems_error(p->source->problems, here(p), "nested deeper than %d groups and lists", PARSE_DEPTH_MAX);
                return -EINVAL;
        }
        struct config_setting_t *s = add(p, parent, name, type);
        if (!s)
                return -EINVAL;
        p->depth++;
        advance(p);
        int r = type == CONFIG_TYPE_GROUP ? parse_settings(p, s, &opened) : parse_elements(p, s, &opened);
        p->depth--;
        if (r == 0)
                advance(p);
        return r;
}

static int parse_value(struct parser *p, struct config_setting_t *parent, const char *name)
{
        if (is_mark(p, "{[("))
                return parse_aggregate(p, parent, name);
        if (p->token.kind == TOKEN_NUMBER)
                return add_number(p, parent, name);
        if (p->token.kind == TOKEN_STRING)
                return add_string(p, parent, name);
        if (is_bool(&p->token))
                return add_bool(p, parent, name);
        return syntax_error(p);
}

/* Whether a setting in `file` replaces an earlier one in `other`. */
static bool may_override(const struct source_file *file, const struct source_file *other)
{
        if (file->is_command_line)
                return true;
        while (other && other != file)
                other = other->includer;
        return other != NULL;
}

/* A group that is given again is merged member by member; it keeps its place. */
static int parse_over(struct parser *p, struct config_setting_t *group)
{
        struct opened opened = { .mark = '{', .closing = '}', .place = here(p) };
        advance(p);
        int r = parse_settings(p, group, &opened);
        if (r == 0)
                advance(p);
        return r;
}

/* Parses NAME = VALUE and the optional semicolon or comma after it. */
static int parse_setting(struct parser *p, struct config_setting_t *group)
{
        char name[256];
        const struct source_file *file = p->file;
        struct config_place place = here(p);
        if (p->token.size >= sizeof(name)) {
                problems_error(p->source->problems, place, "a name of %zu characters", p->token.size);
                return -EINVAL;
        }
        memcpy(name, p->token.start, p->token.size);
        name[p->token.size] = 0;
        struct config_setting_t *known = config_setting_get_member(group, name);
        const struct setting_place *at = known ? config_setting_get_hook(known) : NULL;
        if (known && (at->file == file || !may_override(file, at->file))) {
                problems_error(p->source->problems, place, "duplicate setting \"%s\": already set at %s:%u", name,
                        at->file->path, at->line);
                return -EINVAL;
        }
        advance(p);
        if (!is_mark(p, "=:"))
                return syntax_error(p);
        advance(p);
        bool is_merged = known && config_setting_is_group(known) && mark_of(p) == '{';
        if (known && !is_merged)
                (void)config_setting_remove(group, name);
        int r = is_merged ? parse_over(p, known) : parse_value(p, group, name);
        if (r < 0)
                return r;
        if (!is_merged) {
                struct setting_place *added = config_setting_get_hook(config_setting_get_member(group, name));
                added->file = file;
                added->line = place.line;
        }
        if (is_mark(p, ";,"))
                advance(p);
        return 0;
}

static int parse_settings(struct parser *p, struct config_setting_t *group, const struct opened *opened)
{
        while (p->token.kind == TOKEN_NAME && !is_bool(&p->token)) {
                int r = parse_setting(p, group);
                if (r < 0)
                        return r;
        }
        bool is_end = opened->mark ? mark_of(p) == opened->closing : p->token.kind == TOKEN_END;
        return is_end ? 0 : wrong_end(p, opened);
}

int config_parse_words(struct source *source, struct config_setting_t *root, struct arena_chunk **arena)
{
        struct parser p = { .source = source, .arena = arena, .file = source->files };
        advance(&p);
        return parse_settings(&p, root, &(struct opened){ 0 });
}
