/* page.c: `quiver page`: where the page in the browser is.  The token stands behind a #, which a browser never sends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/open.h"

#define TOKENS_BYTES_MAX ((size_t)64 * 1024)

/* The first token of the file: its lines are `NAME ROLES TOKEN`.  0, or an exit code after it said why. */
static int read_token(const char *path, char ret_token[129])
{
        struct buffer text = { 0 };
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : cli_read_all(fd, TOKENS_BYTES_MAX, &text);
        if (fd >= 0)
                (void)close(fd);
        buffer_put(&text, "", 1);
        bool is_found = r == 0 && sscanf((const char *)text.data, "%*s %*s %128s", ret_token) == 1;
        buffer_free(&text);
        if (is_found)
                return EXIT_DONE;
        (void)fprintf(stderr, "quiver page: %s: %s\n", path,
                r == -ENOENT   ? "is not there; the first start of a host makes it: quiver run"
                : r == -EACCES ? "it is for the user of the host alone; ask as that user, or as root"
                : r            ? strerror(-r)
                               : "has no line NAME ROLES TOKEN; remove it, and the next start of a host makes another");
        return EXIT_FAILED;
}

static int print_page(const struct config *config)
{
        char token[129];
        if (!config->http.listen) {
                (void)fprintf(
                        stderr, "quiver page: http.listen is not set, so there is no page; set it to 127.0.0.1:7070\n");
                return EXIT_FAILED;
        }
        char *path = text_printf("%s/http.token", config->state);
        int code = read_token(path, token);
        if (code == EXIT_DONE)
                (void)printf("http://%s/#token=%s\n", config->http.listen, token);
        free(path);
        return code;
}

int cmd_page(int argc, char **argv)
{
        const char *config = NULL;
        const struct option table[] = { OPT_CONFIG(&config) };
        struct options o = {
                .usage = "page [-c FILE]",
                .about = "Prints the address of the page in the browser. It has a token in it that may do everything: "
                         "open it, do not\n"
                         "send it around. A browser keeps it to itself, for one tab.",
                OPTIONS_TABLE(table),
                .examples = "  quiver page\n"
                            "  xdg-open \"$(quiver page)\"\n",
        };
        struct cli_store s = { 0 };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        code = cli_load(&s, "page", config, READER_COMMAND);
        if (code == EXIT_DONE)
                code = print_page(&s.config);
        cli_close(&s);
        return code;
}
