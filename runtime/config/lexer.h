/* lexer.h: splits the text of one configuration file, in libconfig's syntax, into tokens. */
#ifndef QUIVER_CONFIG_LEXER_H
#define QUIVER_CONFIG_LEXER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum token_kind {
        TOKEN_END,
        TOKEN_NAME,
        TOKEN_NUMBER,
        TOKEN_STRING,
        TOKEN_MARK,    /* one of = : ; , { } [ ] ( ) */
        TOKEN_INCLUDE, /* the whole line; the path is between the quotes */
        TOKEN_BAD,     /* a mistake that lexer.error describes; no token follows */
};

struct token {
        enum token_kind kind;
        uint32_t line;
        const char *start;
        size_t size;
};

struct lexer {
        const char *text; /* ends in its only NUL; lines end in LF */
        const char *at;
        uint32_t line;
        struct error error;
};

void lexer_init(struct lexer *l, const char *text);
void lexer_next(struct lexer *l, struct token *ret_token);

/* The path of a TOKEN_INCLUDE; the caller frees it. */
char *lexer_include_path(const struct token *token);

/* Appends the value of a TOKEN_STRING to `b`, escapes resolved. */
void lexer_string(const struct token *token, struct buffer *b);

/* The value of a TOKEN_NUMBER.  An integer has 32 bits unless an L follows it: other readers of the file would cut a
 * larger one silently. */
struct lexer_number {
        enum { LEXER_INT, LEXER_INT64, LEXER_FLOAT } kind;
        long long integer;
        double real;
};

/* 0, or -ERANGE / -EINVAL with the text set. */
int lexer_number(const struct token *token, struct lexer_number *ret_number, struct error *error);

#endif
