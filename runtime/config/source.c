#include "config/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "config/file.h"
#include "config/lexer.h"
#include "config/structure.h"

/* The files that are being read, outermost first: one that includes itself is found by what it is, not by its name. */
struct open_file {
        const struct open_file *outer;
        dev_t device;
        ino_t inode;
};

struct reading {
        struct source *source;
        struct structure shape;
        struct problems *problems;
        int failed; /* the first negative errno */
};

__attribute__((format(printf, 4, 5))) static void fail(
        struct reading *r, int error, struct config_place place, const char *format, ...)
{
        char text[ERROR_TEXT_MAX];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        problems_error(r->problems, place, "%s", text);
        if (!r->failed)
                r->failed = error;
}

/* Bytes of the valid UTF-8 character at `at`, of `left` bytes; 0 if it is none. */
static size_t utf8_size(const unsigned char *at, size_t left)
{
        size_t size = *at < 0x80                  ? 1
                      : *at >= 0xc2 && *at < 0xe0 ? 2
                      : *at >= 0xe0 && *at < 0xf0 ? 3
                      : *at >= 0xf0 && *at < 0xf5 ? 4
                                                  : 0;
        if (!size || size > left)
                return 0;
        for (size_t i = 1; i < size; i++)
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
        /* Too long, a surrogate, or past U+10FFFF. */
        if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
                (*at == 0xf4 && at[1] > 0x8f))
                return 0;
        return size;
}

/* Without a byte order mark and carriage returns; every line ends in LF.  NULL after it said what is wrong. */
static char *clean_text(struct reading *r, const char *path, const char *text, size_t size)
{
        struct buffer clean = { 0 };
        uint32_t line = 1;
        size_t i = size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
        while (i < size) {
                size_t step = text[i] ? utf8_size((const unsigned char *)text + i, size - i) : 0;
                if (!step) {
                        fail(r, -EINVAL, (struct config_place){ path, line },
                                text[i] ? "not UTF-8" : "a NUL byte: this is not a text file");
                        buffer_free(&clean);
                        return NULL;
                }
                if (text[i] == '\n')
                        line++;
                if (text[i] != '\r' || i + 1 == size || text[i + 1] != '\n')
                        buffer_put(&clean, text + i, step);
                i += step;
        }
        if (clean.size && clean.data[clean.size - 1] != '\n')
                buffer_put(&clean, "\n", 1); /* libconfig wants one after a last comment */
        buffer_put(&clean, "", 1);
        return (char *)clean.data;
}

/* Appends the lines of a file that begin at `from`, which is line `number` of it, and end before `to`. */
static void append_lines(struct source *s, const char *from, const char *to, uint32_t file, uint32_t number)
{
        while (from + strcspn(from, "\n") < to) {
                size_t size = strcspn(from, "\n") + 1;
                buffer_put(&s->text, from, size);
                s->lines = array_grow(s->lines, s->lines_count, sizeof(*s->lines));
                s->lines[s->lines_count++] = (struct source_line){ file, number++ };
                from += size;
        }
}

static void add_text(struct reading *r, const char *path, const char *text, size_t size, const struct open_file *self);

static void add_included(
        struct reading *r, const char *name, const char *path, struct config_place place, const struct open_file *outer)
{
        struct buffer b = { 0 };
        struct error error;
        struct stat st;
        struct trust trust = { .verdict = TRUST_SOUND };
        size_t depth = 1;
        bool is_host = r->problems->reader != READER_ANYBODY;
        int e = file_read(path, SOURCE_BYTES_MAX - r->source->bytes, &b, &st, is_host ? &trust : NULL, &error);
        const struct open_file self = { outer, e ? 0 : st.st_dev, e ? 0 : st.st_ino };
        bool is_loop = false;
        for (const struct open_file *o = outer; o && !e; o = o->outer, depth++)
                is_loop |= o->device == self.device && o->inode == self.inode;
        if (e == -EFBIG)
                fail(r, e, place, "@include \"%s\": the files together are larger than 1 MiB", name);
        else if (e)
                fail(r, e, place, "@include \"%s\": %s: %s", name, path, error.text);
        else if (is_loop)
                fail(r, -ELOOP, place, "@include \"%s\" goes round in a circle: that file is being read already", name);
        else if (depth > SOURCE_INCLUDE_MAX)
                fail(r, -ELOOP, place, "@include \"%s\": more than %d files within files", name, SOURCE_INCLUDE_MAX);
        else
                add_text(r, path, (const char *)b.data, b.size, &self);
        file_judge(r->problems, (struct config_place){ path, 0 }, "", &trust);
        buffer_free(&b);
}

static void include(struct reading *r, const struct token *token, uint32_t file, const struct open_file *outer)
{
        struct config_place place = { r->source->files[file].path, token->line };
        char *name = lexer_include_path(token);
        char *path = file_resolve(r->source->files[file].folder, name);
        add_included(r, name, path, place, outer);
        free(path);
        free(name);
}

static void check_number(struct reading *r, const struct token *token, uint32_t file)
{
        struct source *s = r->source;
        struct error error;
        if (!lexer_check_number(token, &error))
                return;
        problems_error(r->problems, (struct config_place){ s->files[file].path, token->line }, "%s", error.text);
        s->bad = array_grow(s->bad, s->bad_count, sizeof(*s->bad));
        s->bad[s->bad_count++] = (struct source_line){ file, token->line };
}

/* Looks at every word, and copies the lines with the included files in their places. */
static void add_words(struct reading *r, uint32_t file, const struct open_file *self)
{
        struct source *s = r->source;
        const char *path = s->files[file].path;
        const char *copied = s->files[file].text;
        uint32_t copied_line = 1;
        struct lexer lexer;
        struct token token;
        lexer_init(&lexer, copied);
        for (lexer_next(&lexer, &token); token.kind != TOKEN_END; lexer_next(&lexer, &token)) {
                if (token.kind == TOKEN_BAD) {
                        fail(r, -EINVAL, (struct config_place){ path, token.line }, "%s", lexer.error.text);
                        return;
                }
                if (token.kind == TOKEN_INCLUDE) {
                        append_lines(s, copied, token.start, file, copied_line);
                        include(r, &token, file, self);
                        copied = lexer.at + 1;
                        copied_line = token.line + 1;
                        continue;
                }
                if (token.kind == TOKEN_NUMBER)
                        check_number(r, &token, file);
                structure_token(&r->shape, &token, (struct config_place){ path, token.line });
        }
        append_lines(s, copied, lexer.at, file, copied_line);
}

static void add_text(struct reading *r, const char *path, const char *text, size_t size, const struct open_file *self)
{
        struct source *s = r->source;
        s->bytes += size;
        char *clean = clean_text(r, path, text, size);
        if (!clean)
                return;
        s->files = array_grow(s->files, s->files_count, sizeof(*s->files));
        s->files[s->files_count++] =
                (struct source_file){ .path = text_copy(path), .folder = file_folder(path), .text = clean };
        add_words(r, (uint32_t)s->files_count - 1, self);
}

static int read_source(struct source *s, const char *path, const char *text, size_t size, const struct open_file *self,
        struct problems *problems)
{
        struct reading r = { .source = s, .problems = problems };
        structure_init(&r.shape, problems);
        add_text(&r, path, text, size, self);
        if (!r.failed)
                structure_end(&r.shape);
        structure_free(&r.shape);
        if (!r.failed && r.shape.is_broken)
                r.failed = -EINVAL;
        return r.failed;
}

int source_read(struct source *s, const char *path, struct problems *problems)
{
        struct buffer b = { 0 };
        struct error error;
        struct stat st;
        struct trust trust = { .verdict = TRUST_SOUND };
        bool is_host = problems->reader != READER_ANYBODY;
        int r = file_read(path, SOURCE_BYTES_MAX, &b, &st, is_host ? &trust : NULL, &error);
        if (r) {
                problems_error(problems, (struct config_place){ path, 0 }, "%s", error.text);
        } else {
                const struct open_file self = { NULL, st.st_dev, st.st_ino };
                file_judge(problems, (struct config_place){ path, 0 }, "", &trust);
                r = read_source(s, path, (const char *)b.data, b.size, &self, problems);
        }
        buffer_free(&b);
        return r;
}

int source_read_text(struct source *s, const char *path, const char *text, size_t size, struct problems *problems)
{
        if (size > SOURCE_BYTES_MAX) {
                problems_error(problems, (struct config_place){ path, 0 }, "larger than 1 MiB");
                return -EFBIG;
        }
        return read_source(s, path, text, size, NULL, problems);
}

static const struct source_line *line_get(const struct source *s, unsigned int line)
{
        static const struct source_line none;
        if (!s->lines_count)
                return &none;
        if (line < 1)
                line = 1;
        return &s->lines[line <= s->lines_count ? line - 1 : s->lines_count - 1];
}

struct config_place source_whole(const struct source *s)
{
        return (struct config_place){ s->files[0].path, 0 };
}

const char *source_main_folder(const struct source *s)
{
        return s->files[0].folder;
}

struct config_place source_place(const struct source *s, unsigned int line)
{
        const struct source_line *l = line_get(s, line);
        return (struct config_place){ s->files[l->file].path, l->number };
}

const char *source_folder(const struct source *s, unsigned int line)
{
        return s->files[line_get(s, line)->file].folder;
}

bool source_line_is_bad(const struct source *s, unsigned int line)
{
        const struct source_line *l = line_get(s, line);
        for (size_t i = 0; i < s->bad_count; i++)
                if (s->bad[i].file == l->file && s->bad[i].number == l->number)
                        return true;
        return false;
}

void source_free(struct source *s)
{
        for (size_t i = 0; i < s->files_count; i++) {
                free(s->files[i].path);
                free(s->files[i].folder);
                free(s->files[i].text);
        }
        free(s->files);
        free(s->lines);
        free(s->bad);
        buffer_free(&s->text);
        *s = (struct source){ 0 };
}
