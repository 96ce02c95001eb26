/* page.h: the files of the page for browsers, embedded in the binary.
 *
 * They come from http/page/ when Quiver is built (base/embed_files.sh), and need no token: the page asks for its data
 * with the token that the person entered. */
#ifndef QUIVER_HTTP_API_PAGE_H
#define QUIVER_HTTP_API_PAGE_H

#include <stddef.h>

struct page_file {
        const char *name;           /* NULL: end of the table */
        const char *etag;           /* in quotes; changes with the content */
        const unsigned char *bytes; /* compressed with gzip */
        size_t size;
        size_t plain_size;
};

extern const struct page_file page_files[];

#endif
