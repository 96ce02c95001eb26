#include "config/edit.h"

#include <stdbool.h>
#include <string.h>

#include "config/lexer.h"

static bool is_mark(const struct token *token, char mark)
{
        return token->kind == TOKEN_MARK && *token->start == mark;
}

/* The brace that closes the file's group `handlers`; NULL if there is none. */
static const char *find_closing(const char *text)
{
        static const char name[] = "handlers";
        struct lexer lexer;
        struct token token;
        unsigned depth = 0;
        unsigned named = 0; /* tokens of `handlers = {` matched so far */
        bool is_inside = false;
        lexer_init(&lexer, text);
        for (lexer_next(&lexer, &token); token.kind != TOKEN_END && token.kind != TOKEN_BAD;
                lexer_next(&lexer, &token)) {
                bool is_name = token.kind == TOKEN_NAME && token.size == strlen(name) &&
                               !memcmp(token.start, name, token.size);
                bool is_equal = named == 1 && (is_mark(&token, '=') || is_mark(&token, ':'));
                is_inside |= named == 2 && is_mark(&token, '{');
                named = depth == 0 && is_name ? 1 : is_equal ? 2 : 0;
                depth += is_mark(&token, '{');
                if (!is_mark(&token, '}') || !depth)
                        continue;
                if (--depth == 0 && is_inside)
                        return token.start;
        }
        return NULL;
}

static uint32_t line_at(const char *text, const char *at)
{
        uint32_t line = 1;
        for (; text < at; text++)
                line += *text == '\n';
        return line;
}

void edit_add_handler(const char *text, const char *line, struct buffer *ret_text, uint32_t *ret_line)
{
        const char *closing = find_closing(text);
        const char *end = text + strlen(text);
        if (!closing) {
                bool is_ended = end == text || end[-1] == '\n';
                buffer_printf(ret_text, "%s%s\nhandlers = {\n  ", text, is_ended ? "" : "\n");
                *ret_line = line_at(buffer_text(ret_text), (const char *)ret_text->data + ret_text->size);
                buffer_printf(ret_text, "%s\n};\n", line);
                return;
        }
        /* A brace that stands alone on its line stays on a line of its own. */
        const char *at = closing;
        while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
                at--;
        bool is_alone = at == text || at[-1] == '\n';
        if (!is_alone)
                at = closing;
        buffer_put(ret_text, text, (size_t)(at - text));
        buffer_printf(ret_text, "%s  ", is_alone ? "" : "\n");
        *ret_line = line_at(buffer_text(ret_text), (const char *)ret_text->data + ret_text->size);
        buffer_printf(ret_text, "%s\n%s", line, at);
}
