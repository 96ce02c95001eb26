/* word_doc.h: reads the documents that hosts write to the coordination tree: lines of words.
 *
 * A document is text with a format and its version in the first line.  Anyone who can write to the tree can write
 * anything, so everything is checked, and errors name the document and the line. */
#ifndef QUIVER_HOST_MEMBERSHIP_WORD_DOC_H
#define QUIVER_HOST_MEMBERSHIP_WORD_DOC_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define NONCE_TEXT_MAX (2 * STORE_NONCE_SIZE)

struct word_doc {
        const char *kind;  /* for errors: "assign" */
        struct span rest;  /* lines that are not read yet */
        struct span words; /* words of the current line that are not read yet */
        uint32_t line;     /* number of the current line, from 1 */
        struct error *error;
};

/* Reads the first line, `quiver-KIND VERSION`.  0; -EBADMSG: another first line, or larger than size_max; -EPROTO: a
 * newer version than `version`, so this host is too old to read it. */
int word_doc_open(struct word_doc *doc, const char *kind, uint32_t version, struct span text, size_t size_max,
        struct error *error);

/* Moves to the next line.  False at the end, and if the last line does not end in a newline: then word_doc_end()
 * fails. */
bool word_doc_line(struct word_doc *doc);
/* 0, or -EBADMSG if something is left. */
int word_doc_end(struct word_doc *doc);

/* Words are separated by one space.  Each function takes the next word of the line; 0 or -EBADMSG. */
int word_doc_word(struct word_doc *doc, struct span *ret_word);
/* A decimal number without sign or leading zeros; `max` ≤ UINT64_MAX / 10 - 1. */
int word_doc_number(struct word_doc *doc, uint64_t max, uint64_t *ret_number);
int word_doc_nonce(struct word_doc *doc, uint8_t ret_nonce[STORE_NONCE_SIZE]);
/* A host's name. */
int word_doc_name(struct word_doc *doc, char ret_name[], size_t size);
/* Up to `max` bytes without spaces or control characters; `ret_text` has room for `max` bytes and a NUL. */
int word_doc_text(struct word_doc *doc, char ret_text[], size_t max);
/* Fails if a word is left on the line. */
int word_doc_line_end(struct word_doc *doc);

/* Fails with the document, the line and `what`. */
__attribute__((format(printf, 2, 3))) int word_doc_bad(struct word_doc *doc, const char *format, ...);

/* For writing: appends the first line; a nonce. */
void word_doc_put_head(struct buffer *to, const char *kind, uint32_t version);
void word_doc_put_nonce(struct buffer *to, const uint8_t nonce[STORE_NONCE_SIZE]);

/* Parses a number by the rules of word_doc_number(). */
bool word_doc_parse_number(struct span text, uint64_t max, uint64_t *ret_number);

#endif
