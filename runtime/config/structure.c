#include "config/structure.h"

#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

void structure_init(struct structure *s, struct problems *problems)
{
        *s = (struct structure){ .problems = problems };
}

static struct structure_frame *top(struct structure *s)
{
        return &s->frames[s->depth];
}

static char closing(char mark)
{
        return mark == '{' ? '}' : mark == '[' ? ']' : ')';
}

static void open_frame(struct structure *s, char mark, struct config_place place)
{
        if (s->depth == STRUCTURE_DEPTH_MAX) {
                problems_error(s->problems, place, "nested deeper than %d groups and lists", STRUCTURE_DEPTH_MAX);
                s->is_broken = true;
                return;
        }
        s->depth++;
        *top(s) = (struct structure_frame){ .mark = mark, .opened = place, .names_from = s->names_count };
}

static void close_frame(struct structure *s, char mark, struct config_place place)
{
        const struct structure_frame *frame = top(s);
        if (!s->depth) {
                problems_error(s->problems, place, "%c closes nothing: nothing is open here", mark);
                s->is_broken = true;
                return;
        }
        if (closing(frame->mark) != mark) {
                problems_error(s->problems, place, "%c does not close the %c of %s:%u; expected %c", mark, frame->mark,
                        frame->opened.file, frame->opened.line, closing(frame->mark));
                s->is_broken = true;
                return;
        }
        s->names_count = frame->names_from;
        s->depth--;
}

static uint32_t hash_name(const char *start, size_t size)
{
        uint32_t hash = 2166136261U; /* FNV-1a */
        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (unsigned char)start[i]) * 16777619U;
        return hash;
}

static void add_member(struct structure *s, struct config_place place)
{
        if (++top(s)->members != STRUCTURE_MEMBERS_MAX + 1)
                return;
        problems_error(s->problems, place, "more than %d members in one group or list", STRUCTURE_MEMBERS_MAX);
        s->is_broken = true;
}

static void add_name(struct structure *s, const struct token *token, struct config_place place)
{
        struct structure_name name = { token->start, token->size, hash_name(token->start, token->size), place };
        for (size_t i = top(s)->names_from; i < s->names_count; i++) {
                const struct structure_name *known = &s->names[i];
                if (known->hash != name.hash || known->size != name.size ||
                        memcmp(known->start, name.start, name.size) != 0)
                        continue;
                problems_error(s->problems, place, "duplicate setting \"%.*s\": already set at %s:%u", (int)name.size,
                        name.start, known->place.file, known->place.line);
                s->is_broken = true;
                return;
        }
        s->names = array_grow(s->names, s->names_count, sizeof(*s->names));
        s->names[s->names_count++] = name;
}

static bool is_bool(const struct token *token)
{
        return (token->size == 4 && !strncasecmp(token->start, "true", 4)) ||
               (token->size == 5 && !strncasecmp(token->start, "false", 5));
}

void structure_token(struct structure *s, const struct token *token, struct config_place place)
{
        if (s->is_broken)
                return;
        bool is_group = !top(s)->mark || top(s)->mark == '{';
        char mark = token->kind == TOKEN_MARK ? *token->start : 0;
        if (mark && strchr("{[(", mark)) {
                if (!is_group)
                        add_member(s, place);
                open_frame(s, mark, place);
        } else if (mark && strchr("}])", mark)) {
                close_frame(s, mark, place);
        } else if (is_group && token->kind == TOKEN_NAME && !is_bool(token)) {
                add_member(s, place);
                add_name(s, token, place);
        } else if (!is_group && !mark) {
                add_member(s, place);
        }
}

void structure_end(struct structure *s)
{
        if (s->is_broken || !s->depth)
                return;
        problems_error(s->problems, top(s)->opened, "the %c that is opened here is never closed", top(s)->mark);
        s->is_broken = true;
}

void structure_free(struct structure *s)
{
        free(s->names);
        s->names = NULL;
}
