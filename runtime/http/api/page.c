/* page.c: GET / and its files: the page for browsers. */
#include "http/api/page.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/version.h"
#include "http/api/endpoints.h"

/* The page loads nothing from elsewhere, evaluates no text as code, and cannot be framed. */
#define PAGE_POLICY                                                                                                    \
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "       \
        "'none'; "                                                                                                     \
        "form-action 'none'; frame-ancestors 'none'"

static const char *type_of(const char *name)
{
        static const struct {
                const char *ending, *type;
        } types[] = { { ".html", "text/html; charset=utf-8" }, { ".css", "text/css; charset=utf-8" },
                { ".js", "text/javascript; charset=utf-8" }, { ".svg", "image/svg+xml" } };
        const char *ending = strrchr(name, '.');
        for (size_t i = 0; ending && i < sizeof(types) / sizeof(types[0]); i++)
                if (!strcmp(types[i].ending, ending))
                        return types[i].type;
        return "application/octet-stream";
}

static bool has_word(const struct span *value, const char *word)
{
        return value && memmem(value->data, value->size, word, strlen(word));
}

/* For a client without gzip, such as curl without --compressed. */
static void answer_plain(struct http_exchange *x, const struct page_file *file)
{
        char *plain = memory_zero(1, file->plain_size + 1);
        z_stream stream = { .next_in = (unsigned char *)file->bytes,
                .avail_in = (unsigned)file->size,
                .next_out = (unsigned char *)plain,
                .avail_out = (unsigned)file->plain_size };
        bool is_good = inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK && inflate(&stream, Z_FINISH) == Z_STREAM_END;
        (void)inflateEnd(&stream);
        if (is_good)
                http_answer(x, 200, type_of(file->name), (struct span){ plain, file->plain_size });
        else
                http_answer_problem(x, 500, "%s cannot be unpacked", file->name);
        free(plain);
}

static void answer_file(struct http_exchange *x, const struct page_file *file)
{
        const struct span *known = http_head_field(x->head, "if-none-match");
        x->is_cacheable = true;
        http_answer_field(x, "ETag", file->etag);
        http_answer_field(x, "Vary", "Accept-Encoding");
        http_answer_field(x, "Content-Security-Policy", PAGE_POLICY);
        http_answer_field(x, "Referrer-Policy", "no-referrer");
        if (has_word(known, file->etag)) {
                http_answer(x, 304, type_of(file->name), (struct span){ 0 });
                return;
        }
        if (!has_word(http_head_field(x->head, "accept-encoding"), "gzip")) {
                answer_plain(x, file);
                return;
        }
        http_answer_field(x, "Content-Encoding", "gzip");
        http_answer(x, 200, type_of(file->name), (struct span){ (const char *)file->bytes, file->size });
}

void http_get_page(struct http_exchange *x)
{
        const char *name = http_parameter(x, "file");
        if (!name)
                name = "index.html";
        for (const struct page_file *file = page_files; file->name; file++)
                if (!strcmp(file->name, name)) {
                        answer_file(x, file);
                        return;
                }
        http_answer_problem(x, 404, "the page has no file of that name");
}

/* Which host and app the page shows, and what its user may do. */
void http_get_me(struct http_exchange *x)
{
        const struct config *config = x->services->config(x->services->self);
        json_t *roles = json_array();
        for (unsigned role = ROLE_READ; role <= ROLE_CONSUME; role <<= 1)
                if (x->who.roles & role)
                        json_array_append_new(roles, json_string(http_role_name(role)));
        http_answer_json(x, 200,
                json_pack("{s:s, s:s, s:s, s:s, s:o}", "app", config->app, "host", config->host.name, "version",
                        QUIVER_VERSION, "name", x->who.name, "roles", roles));
}
