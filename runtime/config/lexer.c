#include "config/lexer.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

void lexer_init(struct lexer *l, const char *text)
{
        *l = (struct lexer){ .text = text, .at = text, .line = 1 };
}

static bool is_name_char(char c)
{
        return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '*';
}

static void skip(struct lexer *l, const char *to)
{
        for (; l->at < to; l->at++)
                if (*l->at == '\n')
                        l->line++;
}

/* Skips white space and comments.  False if a comment does not end. */
static bool skip_space(struct lexer *l)
{
        for (;;) {
                if (*l->at && strchr(" \t\r\f\n", *l->at)) {
                        skip(l, l->at + 1);
                } else if (*l->at == '#' || !strncmp(l->at, "//", 2)) {
                        l->at += strcspn(l->at, "\n");
                } else if (!strncmp(l->at, "/*", 2)) {
                        const char *end = strstr(l->at + 2, "*/");
                        if (!end)
                                return false;
                        skip(l, end + 2);
                } else {
                        return true;
                }
        }
}

static void bad(struct lexer *l, struct token *token, const char *text)
{
        token->kind = TOKEN_BAD;
        (void)error_set(&l->error, 0, "%s", text);
}

/* Escapes are \n \r \t \f \\ \" and \xHH; any other backslash stays as it is. */
static const char *string_end(const char *at, const char **ret_problem)
{
        for (at++; *at != '"'; at++) {
                if (!*at) {
                        *ret_problem = "the text that begins here has no closing quote";
                        return NULL;
                }
                if (*at != '\\')
                        continue;
                at++;
                if ((*at == 'x' || *at == 'X') && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2])) {
                        char digits[3] = { at[1], at[2], 0 };
                        long value = strtol(digits, NULL, 16);
                        if (value < 1 || value > 0x7f) {
                                *ret_problem = "\\x takes 01 to 7f: a text cannot hold a NUL, and other characters "
                                               "are written as they are, in UTF-8";
                                return NULL;
                        }
                } else if (!*at) {
                        at--; /* lets the loop see the NUL */
                }
        }
        return at + 1;
}

static void next_string(struct lexer *l, struct token *token)
{
        const char *problem = NULL;
        const char *end = string_end(l->at, &problem);
        if (!end) {
                bad(l, token, problem);
                return;
        }
        token->kind = TOKEN_STRING;
        skip(l, end);
}

static void next_number(struct lexer *l, struct token *token)
{
        bool is_hex = l->at[0] == '0' && (l->at[1] == 'x' || l->at[1] == 'X');
        token->kind = TOKEN_NUMBER;
        if (*l->at == '+' || *l->at == '-')
                l->at++;
        while (isalnum((unsigned char)*l->at) || *l->at == '.') {
                bool has_exponent = !is_hex && (*l->at == 'e' || *l->at == 'E');
                l->at++;
                if (has_exponent && (*l->at == '+' || *l->at == '-'))
                        l->at++;
        }
}

/* An include stands alone on its line; only a comment may follow it. */
static void next_include(struct lexer *l, struct token *token)
{
        static const char word[] = "@include";
        static const char usage[] = "expected @include \"FILE\" on a line of its own";
        for (const char *c = l->at; c > l->text && c[-1] != '\n'; c--)
                if (c[-1] != ' ' && c[-1] != '\t') {
                        bad(l, token, usage);
                        return;
                }
        const char *at = l->at + strlen(word);
        if (strncmp(l->at, word, strlen(word)) != 0 || (*at != ' ' && *at != '\t')) {
                bad(l, token, usage);
                return;
        }
        at += strspn(at, " \t");
        size_t size = *at == '"' ? strcspn(at + 1, "\"\n") : 0;
        if (!size || at[size + 1] != '"') {
                bad(l, token, usage);
                return;
        }
        at += size + 2;
        at += strspn(at, " \t\r");
        if (*at && *at != '\n' && *at != '#' && strncmp(at, "//", 2) != 0) {
                bad(l, token, usage);
                return;
        }
        l->at = at + strcspn(at, "\n");
        token->kind = TOKEN_INCLUDE;
}

void lexer_next(struct lexer *l, struct token *ret_token)
{
        bool has_more = skip_space(l);
        *ret_token = (struct token){ .line = l->line, .start = l->at };
        if (!has_more)
                bad(l, ret_token, "the comment that begins here is never closed");
        else if (!*l->at)
                ret_token->kind = TOKEN_END;
        else if (*l->at == '"')
                next_string(l, ret_token);
        else if (*l->at == '@')
                next_include(l, ret_token);
        else if (isdigit((unsigned char)*l->at) || strchr("+-.", *l->at))
                next_number(l, ret_token);
        else if (isalpha((unsigned char)*l->at) || *l->at == '*') {
                ret_token->kind = TOKEN_NAME;
                while (is_name_char(*l->at))
                        l->at++;
        } else if (strchr("=:;,{}[]()", *l->at)) {
                ret_token->kind = TOKEN_MARK;
                l->at++;
        } else {
                bad(l, ret_token, "a character that has no meaning here; texts stand in double quotes");
        }
        ret_token->size = (size_t)(l->at - ret_token->start);
}

char *lexer_include_path(const struct token *token)
{
        const char *start = memchr(token->start, '"', token->size);
        return text_copy_part(start + 1, strcspn(start + 1, "\""));
}

static size_t span_digits(const char *text, bool is_hex)
{
        return strspn(text, is_hex ? "0123456789abcdefABCDEF" : "0123456789");
}

/* [digits][.digits][e[sign]digits], with a point or an exponent. */
static bool is_float(const char *text)
{
        text += *text == '+' || *text == '-';
        size_t digits = span_digits(text, false);
        text += digits;
        if (*text == '.') {
                size_t more = span_digits(++text, false);
                digits += more;
                text += more;
        }
        if (*text == 'e' || *text == 'E') {
                text++;
                text += *text == '+' || *text == '-';
                size_t exponent = span_digits(text, false);
                if (!exponent)
                        return false;
                text += exponent;
        }
        return digits && !*text;
}

static int read_number(const char *text, struct lexer_number *ret_number, struct error *error)
{
        bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
        const char *digits = text + (is_hex ? 2 : *text == '+' || *text == '-' ? 1 : 0);
        size_t count = span_digits(digits, is_hex);
        const char *suffix = digits + count;
        bool is_long = !strcmp(suffix, "L") || !strcmp(suffix, "LL");
        if (!count || (*suffix && !is_long)) {
                if (is_hex || !is_float(text))
                        return error_set(error, -EINVAL, "%s is not a number", text);
                *ret_number = (struct lexer_number){ .kind = LEXER_FLOAT, .real = strtod(text, NULL) };
                return 0;
        }
        errno = 0;
        long long value = strtoll(text, NULL, is_hex ? 16 : 10);
        if (errno == ERANGE)
                return error_set(error, -ERANGE, "%s does not fit into 64 bits", text);
        if (!is_long && (value < INT_MIN || value > INT_MAX))
                return error_set(error, -ERANGE,
                        "%s does not fit into 32 bits and would be cut; write %sL, or a size or duration as a text "
                        "with its unit",
                        text, text);
        *ret_number = (struct lexer_number){ .kind = is_long ? LEXER_INT64 : LEXER_INT, .integer = value };
        return 0;
}

int lexer_number(const struct token *token, struct lexer_number *ret_number, struct error *error)
{
        char text[64];
        if (token->size >= sizeof(text))
                return error_set(
                        error, -ERANGE, "a number of %zu characters is longer than any number may be", token->size);
        memcpy(text, token->start, token->size);
        text[token->size] = 0;
        return read_number(text, ret_number, error);
}

void lexer_string(const struct token *token, struct buffer *b)
{
        static const char letters[] = "nrtf\\\"";
        static const char meant[] = "\n\r\t\f\\\"";
        const char *end = token->start + token->size - 1;
        for (const char *at = token->start + 1; at < end; at++) {
                const char *letter = *at == '\\' && at[1] ? strchr(letters, at[1]) : NULL;
                if (letter) {
                        buffer_put(b, &meant[letter - letters], 1);
                        at++;
                } else if (*at == '\\' && (at[1] == 'x' || at[1] == 'X') && isxdigit((unsigned char)at[2]) &&
                           isxdigit((unsigned char)at[3])) {
                        char code[3] = { at[2], at[3], 0 };
                        char c = (char)strtol(code, NULL, 16);
                        buffer_put(b, &c, 1);
                        at += 3;
                } else {
                        buffer_put(b, at, 1);
                }
        }
}
