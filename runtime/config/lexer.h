/* lexer.h: the words of one configuration file.
 *
 * libconfig does the parsing; this looks at the same text first, for what libconfig 1.5 lets pass or reports poorly:
 * integers that it cuts, strings and comments that never end, includes. */
#ifndef QUIVER_CONFIG_LEXER_H
#define QUIVER_CONFIG_LEXER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum token_kind {
        TOKEN_END,
        TOKEN_NAME,
        TOKEN_NUMBER,
        TOKEN_STRING,
        TOKEN_MARK,    /* one of = : ; , { } [ ] ( ) */
        TOKEN_INCLUDE, /* the whole line; the path is between the quotes */
        TOKEN_BAD,     /* lexer.error says why; nothing follows */
};

struct token {
        enum token_kind kind;
        uint32_t line;
        const char *start;
        size_t size;
};

struct lexer {
        const char *text; /* NUL-terminated, no other NUL, lines end in LF */
        const char *at;
        uint32_t line;
        struct error error;
};

void lexer_init(struct lexer *l, const char *text);
void lexer_next(struct lexer *l, struct token *ret_token);

/* The path of a TOKEN_INCLUDE; free(). */
char *lexer_include_path(const struct token *token);

/* Whether libconfig reads this TOKEN_NUMBER as what it says: 0, or -ERANGE / -EINVAL with the text set. */
int lexer_check_number(const struct token *token, struct error *error);

#endif
