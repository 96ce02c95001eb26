/* override.h: settings of the command line, NAME=VALUE, converted to the syntax of the file. */
#ifndef QUIVER_CONFIG_OVERRIDE_H
#define QUIVER_CONFIG_OVERRIDE_H

#include "base/buffer.h"
#include "base/error.h"

/* "http.listen=127.0.0.1:7071" becomes `http = { listen = "127.0.0.1:7071"; };`.  A value needs no quotes; one that
 * begins with a quote, bracket or brace is taken unchanged.  0, or -EINVAL with the text set. */
int override_text(const char *given, struct buffer *text, struct error *error);

#endif
