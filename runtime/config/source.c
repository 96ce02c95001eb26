#include "config/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "base/memory.h"
#include "base/strings.h"

/* A file that is being read.  Device and inode reveal a file that includes itself, whatever its name. */
struct open_file {
        struct open_file *outer;
        const struct source_file *file;
        struct lexer lexer;
        dev_t device;
        ino_t inode;
};

__attribute__((format(printf, 4, 5))) static void fail(
        struct source *s, int error, struct config_place place, const char *format, ...)
{
        char text[ERROR_TEXT_MAX];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        problems_error(s->problems, place, "%s", text);
        if (!s->failed)
                s->failed = error;
}

/* A copy of the text without byte order mark and with LF line ends.  NULL after adding a problem. */
static char *clean_text(struct source *s, const char *path, const char *text, size_t size)
{
        struct buffer clean = { 0 };
        uint32_t line = 1;
        size_t i = size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
        while (i < size) {
                size_t step = text[i] ? utf8_size((const unsigned char *)text + i, size - i) : 0;
                if (!step) {
                        fail(s, -EINVAL, (struct config_place){ path, line },
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
        buffer_put(&clean, "", 1);
        return (char *)clean.data;
}

/* `from` identifies the file, to find one that includes itself; NULL for a text from memory. */
static void open_text(struct source *s, const char *path, const char *text, size_t size, const struct stat *from)
{
        s->bytes += size;
        struct source_file *file = memory_zero(1, sizeof(*file));
        struct open_file *open = memory_zero(1, sizeof(*open));
        file->path = text_copy(path);
        file->folder = file_folder(path);
        file->includer = s->open ? s->open->file : NULL;
        *s->files_end = file;
        s->files_end = &file->next;
        file->text = clean_text(s, file->path, text, size);
        if (!file->text) {
                free(open);
                return;
        }
        *open = (struct open_file){ .outer = s->open, .file = file };
        if (from) {
                open->device = from->st_dev;
                open->inode = from->st_ino;
                if (from->st_mtim.tv_sec > 0)
                        file->written_ms =
                                (uint64_t)from->st_mtim.tv_sec * 1000 + (uint64_t)from->st_mtim.tv_nsec / 1000000;
        }
        lexer_init(&open->lexer, file->text);
        s->open = open;
}

static void close_text(struct source *s)
{
        struct open_file *open = s->open;
        s->open = open->outer;
        free(open);
}

static void open_included(struct source *s, const char *name, const char *path, struct config_place place)
{
        struct buffer b = { 0 };
        struct error error;
        struct stat st;
        size_t depth = 0;
        bool is_loop = false;
        struct file_trust trust = { .verdict = FILE_TRUST_SOUND };
        bool is_host = problems_is_host(s->problems);
        int e = file_read(path, SOURCE_BYTES_MAX - s->bytes, &b, &st, is_host ? &trust : NULL, &error);
        for (const struct open_file *o = s->open; o && !e; o = o->outer, depth++)
                is_loop |= o->device == st.st_dev && o->inode == st.st_ino;
        if (e == -EFBIG)
                fail(s, e, place, "@include \"%s\": the files together are larger than 1 MiB", name);
        else if (e)
                fail(s, e, place, "@include \"%s\": %s: %s", name, path, error.text);
        else if (is_loop)
                fail(s, -ELOOP, place,
                        "@include \"%s\": that file is being read already, so the files would include each other "
                        "without end; remove one of the lines",
                        name);
        else if (depth > SOURCE_INCLUDE_MAX)
                fail(s, -ELOOP, place, "@include \"%s\": more than %d files within files", name, SOURCE_INCLUDE_MAX);
        else
                open_text(s, path, (const char *)b.data, b.size, &st);
        problems_judge(s->problems, (struct config_place){ path, 0 }, "", &trust);
        buffer_free(&b);
}

static void include(struct source *s, const struct token *token)
{
        const struct source_file *file = s->open->file;
        char *name = lexer_include_path(token);
        char *path = file_resolve(file->folder, name);
        open_included(s, name, path, (struct config_place){ file->path, token->line });
        free(path);
        free(name);
}

void source_add_command_line(struct source *s, const char *path, const char *text, size_t size)
{
        struct source_file **added = s->files_end;
        open_text(s, path, text, size, NULL);
        (*added)->is_command_line = true;
}

void source_next(struct source *s, struct token *ret_token, const struct source_file **ret_file)
{
        *ret_token = (struct token){ .kind = TOKEN_END };
        while (s->open) {
                lexer_next(&s->open->lexer, ret_token);
                *ret_file = s->open->file;
                if (ret_token->kind == TOKEN_INCLUDE) {
                        include(s, ret_token);
                } else if (ret_token->kind == TOKEN_END) {
                        close_text(s);
                } else {
                        if (ret_token->kind == TOKEN_BAD) {
                                fail(s, -EINVAL, (struct config_place){ (*ret_file)->path, ret_token->line }, "%s",
                                        s->open->lexer.error.text);
                                while (s->open)
                                        close_text(s);
                        }
                        return;
                }
        }
        ret_token->kind = TOKEN_END;
}

int source_open(struct source *s, const char *path, const char *text, size_t size, struct problems *problems)
{
        struct buffer b = { 0 };
        struct error error;
        struct stat st;
        *s = (struct source){ .problems = problems };
        s->files_end = &s->files;
        struct file_trust trust = { .verdict = FILE_TRUST_SOUND };
        bool is_host = problems_is_host(problems);
        int r = text ? 0 : file_read(path, SOURCE_BYTES_MAX, &b, &st, is_host ? &trust : NULL, &error);
        if (text && size > SOURCE_BYTES_MAX)
                r = error_set(&error, -EFBIG, "larger than 1 MiB");
        if (r)
                fail(s, r, (struct config_place){ path, 0 }, "%s", error.text);
        else if (text)
                open_text(s, path, text, size, NULL);
        else
                open_text(s, path, (const char *)b.data, b.size, &st);
        problems_judge(problems, (struct config_place){ path, 0 }, "", &trust);
        buffer_free(&b);
        return s->failed;
}

void source_free(struct source *s)
{
        while (s->open)
                close_text(s);
        while (s->files) {
                struct source_file *file = s->files;
                s->files = file->next;
                free(file->path);
                free(file->folder);
                free(file->text);
                free(file);
        }
}
