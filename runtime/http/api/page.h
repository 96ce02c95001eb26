/* page.h: the files of the page in the browser, as they stand in the binary.
 *
 * They come from http/page/ when Quiver is built (base/embed_files.sh), and need no token: whatever they show they ask
 * for with the token that the person gave them. */
#ifndef QUIVER_HTTP_API_PAGE_H
#define QUIVER_HTTP_API_PAGE_H

#include <stddef.h>

struct page_file {
        const char *name;           /* NULL: the table ends here */
        const char *etag;           /* in quotes; another for other content */
        const unsigned char *bytes; /* compressed with gzip */
        size_t size;
        size_t plain_size;
};

extern const struct page_file page_files[];

#endif
