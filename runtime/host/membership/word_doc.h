/* word_doc.h: reading the documents that hosts leave for each other: lines of words, any of which may be wrong.
 *
 * A document is text with a format and its version in the first line.  Whoever can write to the tree can write anything
 * there, so everything is checked, and errors name the document and the line. */
#ifndef QUIVER_HOST_MEMBERSHIP_WORD_DOC_H
#define QUIVER_HOST_MEMBERSHIP_WORD_DOC_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define NONCE_TEXT_MAX (2 * STORE_NONCE_SIZE)

struct word_doc {
        const char *kind;  /* for errors: "assign" */
        struct span rest;  /* lines not yet read */
        struct span words; /* of the line at hand, not yet read */
        uint32_t line;     /* its number, from 1 */
        struct error *error;
};

/* Reads the first line, `quiver-KIND VERSION`.  0; -EBADMSG: something else, or larger than size_max; -EPROTO: a newer
 * version than `version`: whoever reads this is too old to take part, and stands by. */
int word_doc_open(struct word_doc *doc, const char *kind, uint32_t version, struct span text, size_t size_max,
        struct error *error);

/* The next line.  False at the end, and if the last line does not end in a newline: then word_doc_end() says so. */
bool word_doc_line(struct word_doc *doc);
/* 0, or -EBADMSG if something is left. */
int word_doc_end(struct word_doc *doc);

/* The words of a line stand one space apart.  Each takes the next one; 0 or -EBADMSG. */
int word_doc_word(struct word_doc *doc, struct span *ret_word);
/* Decimal, without sign or leading zeros, `max` ≤ UINT64_MAX / 10 - 1. */
int word_doc_number(struct word_doc *doc, uint64_t max, uint64_t *ret_number);
int word_doc_nonce(struct word_doc *doc, uint8_t ret_nonce[STORE_NONCE_SIZE]);
/* A host's name. */
int word_doc_name(struct word_doc *doc, char ret_name[], size_t size);
/* Up to `max` bytes without spaces or control characters; `ret_text` has room for a NUL more. */
int word_doc_text(struct word_doc *doc, char ret_text[], size_t max);
/* No word may be left. */
int word_doc_line_end(struct word_doc *doc);

/* Fails with the document, the line and `what`. */
__attribute__((format(printf, 2, 3))) int word_doc_bad(struct word_doc *doc, const char *format, ...);

/* The same for writing. */
void word_doc_put_head(struct buffer *to, const char *kind, uint32_t version);
void word_doc_put_nonce(struct buffer *to, const uint8_t nonce[STORE_NONCE_SIZE]);

/* A number in a text, as word_doc_number() takes it. */
bool word_doc_parse_number(struct span text, uint64_t max, uint64_t *ret_number);

#endif
