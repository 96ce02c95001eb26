#include "host/membership/word_doc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "config/names.h"

int word_doc_bad(struct word_doc *doc, const char *format, ...)
{
        char what[256];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        (void)error_set(doc->error, -EBADMSG, "%s document, line %" PRIu32 ": %s", doc->kind, doc->line, what);
        return -EBADMSG;
}

bool word_doc_line(struct word_doc *doc)
{
        const char *newline = doc->rest.size ? memchr(doc->rest.data, '\n', doc->rest.size) : NULL;
        if (!newline)
                return false;
        doc->words = (struct span){ doc->rest.data, (size_t)(newline - doc->rest.data) };
        doc->rest.data += doc->words.size + 1;
        doc->rest.size -= doc->words.size + 1;
        doc->line++;
        return true;
}

int word_doc_end(struct word_doc *doc)
{
        if (!doc->rest.size)
                return 0;
        doc->line++;
        return word_doc_bad(doc, "%s", memchr(doc->rest.data, '\n', doc->rest.size) ? "too much" : "cut off");
}

int word_doc_open(struct word_doc *doc, const char *kind, uint32_t version, struct span text, size_t size_max,
        struct error *error)
{
        char magic[64];
        struct span word = { 0 };
        uint64_t found = 0;
        *doc = (struct word_doc){ .kind = kind, .rest = text, .error = error };
        if (text.size > size_max)
                return word_doc_bad(doc, "%zu bytes, at most %zu are possible", text.size, size_max);
        (void)snprintf(magic, sizeof(magic), "quiver-%s", kind);
        if (!word_doc_line(doc) || word_doc_word(doc, &word) || !span_is(word, (struct span){ magic, strlen(magic) }) ||
                word_doc_number(doc, UINT32_MAX, &found) || !found)
                return word_doc_bad(doc, "not \"%s\" and a version", magic);
        /* The rest of the line is not checked: a newer version may add words to it. */
        if (found > version)
                return error_set(error, -EPROTO,
                        "%s document: format %" PRIu64 ", this host reads up to %" PRIu32
                        "; it stands by until it is upgraded",
                        kind, found, version);
        return word_doc_line_end(doc);
}

int word_doc_word(struct word_doc *doc, struct span *ret_word)
{
        struct span *words = &doc->words;
        const char *space = words->size ? memchr(words->data, ' ', words->size) : NULL;
        struct span word = { words->data, space ? (size_t)(space - words->data) : words->size };
        if (!word.size || (space && word.size + 1 == words->size)) {
                (void)word_doc_bad(doc, "a word is missing");
                return -EBADMSG;
        }
        words->data += word.size + (space ? 1 : 0);
        words->size -= word.size + (space ? 1 : 0);
        *ret_word = word;
        return 0;
}

bool word_doc_parse_number(struct span text, uint64_t max, uint64_t *ret_number)
{
        uint64_t number = 0;
        if (!text.size || (text.data[0] == '0' && text.size > 1))
                return false;
        for (size_t i = 0; i < text.size; i++) {
                if (!isdigit((unsigned char)text.data[i]))
                        return false;
                number = number * 10 + (uint64_t)(text.data[i] - '0');
                if (number > max)
                        return false;
        }
        *ret_number = number;
        return true;
}

int word_doc_number(struct word_doc *doc, uint64_t max, uint64_t *ret_number)
{
        struct span word = { 0 };
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        return word_doc_parse_number(word, max, ret_number) ? 0 : word_doc_bad(doc, "not a number up to %" PRIu64, max);
}

static int hex_digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int word_doc_nonce(struct word_doc *doc, uint8_t ret_nonce[STORE_NONCE_SIZE])
{
        struct span word = { 0 };
        uint8_t nonce[STORE_NONCE_SIZE];
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        if (word.size != NONCE_TEXT_MAX)
                return word_doc_bad(doc, "a nonce has %u digits", NONCE_TEXT_MAX);
        for (size_t i = 0; i < STORE_NONCE_SIZE; i++) {
                int high = hex_digit(word.data[2 * i]), low = hex_digit(word.data[2 * i + 1]);
                if (high < 0 || low < 0)
                        return word_doc_bad(doc, "a nonce is made of 0-9 and a-f");
                nonce[i] = (uint8_t)(high << 4 | low);
        }
        memcpy(ret_nonce, nonce, STORE_NONCE_SIZE);
        return 0;
}

int word_doc_text(struct word_doc *doc, char ret_text[], size_t max)
{
        struct span word = { 0 };
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        if (word.size > max)
                return word_doc_bad(doc, "a word of %zu bytes, at most %zu are possible", word.size, max);
        for (size_t i = 0; i < word.size; i++)
                if (!isgraph((unsigned char)word.data[i]))
                        return word_doc_bad(doc, "a character that cannot be shown");
        memcpy(ret_text, word.data, word.size);
        ret_text[word.size] = 0;
        return 0;
}

int word_doc_name(struct word_doc *doc, char ret_name[], size_t size)
{
        struct error why;
        int r = word_doc_text(doc, ret_name, size - 1);
        if (r)
                return r;
        return name_check_host(ret_name, &why) ? word_doc_bad(doc, "%s", why.text) : 0;
}

int word_doc_line_end(struct word_doc *doc)
{
        return doc->words.size ? word_doc_bad(doc, "too many words") : 0;
}

void word_doc_put_head(struct buffer *to, const char *kind, uint32_t version)
{
        buffer_printf(to, "quiver-%s %" PRIu32 "\n", kind, version);
}

void word_doc_put_nonce(struct buffer *to, const uint8_t nonce[STORE_NONCE_SIZE])
{
        char text[2 * STORE_NONCE_SIZE + 1];
        buffer_put(to, units_hex(text, nonce, STORE_NONCE_SIZE), sizeof(text) - 1);
}
