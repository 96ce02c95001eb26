/* show.h: the former names of what view/text.h offers, for the commands that still use them. */
#ifndef QUIVER_CLI_SHOW_H
#define QUIVER_CLI_SHOW_H

#include <stdio.h>

#include "view/text.h"

#define SHOW_TIME_MAX TEXT_TIME_MAX
#define show_time     text_time
#define show_plural   text_plural

static inline void show_bytes(FILE *out, struct span bytes, size_t max)
{
        struct buffer text = { 0 };
        text_put_bytes(&text, bytes, max);
        (void)fputs(buffer_text(&text), out);
        buffer_free(&text);
}

#endif
