#include "client/http_answer.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/numbers.h"

void http_answer_free(struct http_answer *a)
{
        buffer_free(&a->body);
        buffer_free(&a->line);
        *a = (struct http_answer){ 0 };
}

/* The text without surrounding blanks. */
static struct span trim(struct span s)
{
        while (s.size && (s.data[0] == ' ' || s.data[0] == '\t'))
                s = (struct span){ s.data + 1, s.size - 1 };
        while (s.size && (s.data[s.size - 1] == ' ' || s.data[s.size - 1] == '\t'))
                s.size--;
        return s;
}

static int digit_value(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        char lower = (char)tolower((unsigned char)c);
        return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
}

/* A whole number in that base, digits only.  0, -EBADMSG, or -EMSGSIZE if it exceeds the largest body. */
static int read_number(struct span text, unsigned base, uint64_t *ret_number)
{
        uint64_t number = 0;
        if (!text.size)
                return -EBADMSG;
        for (size_t i = 0; i < text.size; i++) {
                unsigned digit = (unsigned)digit_value(text.data[i]);
                if (digit >= base)
                        return -EBADMSG;
                number = number * base + digit;
                if (number > HTTP_ANSWER_BODY_MAX)
                        return -EMSGSIZE;
        }
        *ret_number = number;
        return 0;
}

static bool is_word(struct span a, const char *word)
{
        return a.size == strlen(word) && !strncasecmp(a.data, word, a.size);
}

/* "HTTP/1.1 200 OK" */
static int take_status(struct http_answer *a, struct span line)
{
        static const char version[] = "HTTP/1.1 ";
        size_t at = sizeof(version) - 1;
        uint64_t status;
        if (line.size < at + 3 || memcmp(line.data, version, at) != 0 ||
                (line.size > at + 3 && line.data[at + 3] != ' '))
                return -EBADMSG;
        if (read_number((struct span){ line.data + at, 3 }, 10, &status) < 0 || status < 100 || status > 599)
                return -EBADMSG;
        a->status = (unsigned)status;
        a->part = ANSWER_FIELDS;
        return 0;
}

/* The head is complete: chooses what follows. */
static int begin_body(struct http_answer *a)
{
        if (a->status < 200) {
                /* An interim answer: the real one follows. */
                a->part = ANSWER_STATUS;
                return a->has_length || a->is_chunked ? -EBADMSG : 0;
        }
        if (a->status == 204 && !a->is_chunked && !a->left)
                a->part = ANSWER_WHOLE;
        else if (a->is_chunked)
                a->part = ANSWER_CHUNK;
        else if (a->has_length)
                a->part = a->left ? ANSWER_BODY : ANSWER_WHOLE;
        else
                return -EBADMSG;
        return 0;
}

static int take_field(struct http_answer *a, struct span line)
{
        if (!line.size)
                return begin_body(a);
        const char *colon = memchr(line.data, ':', line.size);
        /* A name with a blank in or before it is a folded line, or is parsed differently by others. */
        if (!colon || colon == line.data || memchr(line.data, ' ', (size_t)(colon - line.data)) ||
                memchr(line.data, '\t', (size_t)(colon - line.data)))
                return -EBADMSG;
        struct span name = { line.data, (size_t)(colon - line.data) };
        struct span value = trim((struct span){ colon + 1, line.size - name.size - 1 });
        if (is_word(name, "Content-Length")) {
                if (a->has_length || a->is_chunked)
                        return -EBADMSG;
                a->has_length = true;
                return read_number(value, 10, &a->left);
        }
        if (is_word(name, "Transfer-Encoding")) {
                if (a->has_length || a->is_chunked || !is_word(value, "chunked"))
                        return -EBADMSG;
                a->is_chunked = true;
        }
        return 0;
}

/* "1a; extension" */
static int take_chunk_size(struct http_answer *a, struct span line)
{
        const char *semicolon = memchr(line.data, ';', line.size);
        if (semicolon)
                line.size = (size_t)(semicolon - line.data);
        int r = read_number(trim(line), 16, &a->left);
        if (r < 0)
                return r;
        if (a->left > HTTP_ANSWER_BODY_MAX - a->body.size)
                return -EMSGSIZE;
        a->part = a->left ? ANSWER_BODY : ANSWER_TRAILERS;
        return 0;
}

static int take_line(struct http_answer *a, struct span line)
{
        if (memchr(line.data, 0, line.size) || memchr(line.data, '\r', line.size))
                return -EBADMSG;
        switch (a->part) {
        case ANSWER_STATUS:
                return take_status(a, line);
        case ANSWER_FIELDS:
                return take_field(a, line);
        case ANSWER_CHUNK:
                return take_chunk_size(a, line);
        case ANSWER_CHUNK_END:
                a->part = ANSWER_CHUNK;
                return line.size ? -EBADMSG : 0;
        default:
                if (!line.size)
                        a->part = ANSWER_WHOLE;
                return 0;
        }
}

/* Feeds bytes up to the end of the line, if it is there. */
static int feed_line(struct http_answer *a, struct span *bytes)
{
        const char *end = memchr(bytes->data, '\n', bytes->size);
        size_t size = end ? (size_t)(end - bytes->data) + 1 : bytes->size;
        /* The lines between chunks do not count towards the head: a large body has many. */
        bool is_counted = a->part != ANSWER_CHUNK && a->part != ANSWER_CHUNK_END;
        if (a->line.size + size > HTTP_ANSWER_HEAD_MAX || (is_counted && a->head_bytes + size > HTTP_ANSWER_HEAD_MAX))
                return -EMSGSIZE;
        a->head_bytes += is_counted ? size : 0;
        buffer_put(&a->line, bytes->data, size);
        *bytes = (struct span){ bytes->data + size, bytes->size - size };
        if (!end)
                return 0;
        if (a->line.size < 2 || a->line.data[a->line.size - 2] != '\r')
                return -EBADMSG;
        int r = take_line(a, (struct span){ (const char *)a->line.data, a->line.size - 2 });
        buffer_clear(&a->line);
        return r;
}

static void feed_body(struct http_answer *a, struct span *bytes)
{
        size_t size = (size_t)min_u64(a->left, bytes->size);
        buffer_put(&a->body, bytes->data, size);
        *bytes = (struct span){ bytes->data + size, bytes->size - size };
        a->left -= size;
        if (!a->left)
                a->part = a->is_chunked ? ANSWER_CHUNK_END : ANSWER_WHOLE;
}

int http_answer_feed(struct http_answer *a, struct span bytes)
{
        while (bytes.size && a->part != ANSWER_WHOLE) {
                if (a->part == ANSWER_BODY) {
                        feed_body(a, &bytes);
                        continue;
                }
                int r = feed_line(a, &bytes);
                if (r < 0)
                        return r;
        }
        return a->part == ANSWER_WHOLE;
}
