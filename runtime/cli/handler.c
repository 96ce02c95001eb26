/* handler.c: `quiver handler add NAME PLUGIN`: names a plugin in runtime.cfg. */
#include "cli/handler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "cli/command.h"
#include "cli/open.h"
#include "config/edit.h"
#include "config/field.h"

#define FILE_BYTES_MAX ((size_t)1024 * 1024)

struct handler_request {
        const char *config;
        bool is_dry;
};

static int write_all(int fd, const struct buffer *text)
{
        for (size_t done = 0; done < text->size;) {
                ssize_t n = write(fd, text->data + done, text->size - done);
                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t)n : 0;
        }
        return 0;
}

/* Replaces the file by rename, so that a host that reloads meanwhile sees the old or the new one. */
static int replace(const char *path, const struct buffer *text, const struct stat *old, struct error *error)
{
        char *new = text_printf("%s.new", path);
        int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : write_all(fd, text);
        if (fd >= 0 && !r && (fchmod(fd, old->st_mode & 07777) < 0 || fsync(fd) < 0))
                r = -errno;
        /* Only root can restore another owner. */
        if (fd >= 0 && !r && fchown(fd, old->st_uid, old->st_gid) < 0 && geteuid() == 0)
                r = -errno;
        if (fd >= 0 && close(fd) < 0 && !r)
                r = -errno;
        if (!r && rename(new, path) < 0)
                r = -errno;
        if (r && fd >= 0)
                (void)unlink(new);
        if (r)
                (void)error_set(error, r, "cannot write %s: %s", fd < 0 ? new : path, strerror(-r));
        free(new);
        return r;
}

/* Refuses an edit that would make the file invalid. */
static int check_new(const char *path, const struct buffer *text, struct error *error)
{
        struct problems problems = { .reader = READER_ANYBODY };
        struct config config;
        int r = config_parse(path, (const char *)text->data, text->size, &config, &problems);
        if (r < 0) {
                char first[512] = "it could not be read";
                if (problems.count)
                        (void)problem_format(&problems.items[0], first, sizeof(first));
                (void)error_set(error, r,
                        "nothing was changed, since with this handler the file would not be valid: %s", first);
        } else {
                config_free(&config);
        }
        problems_free(&problems);
        return r;
}

static int edit_file(const char *path, const char *line, bool is_dry, struct error *error)
{
        struct buffer old = { 0 };
        struct buffer new = { 0 };
        struct stat st;
        uint32_t number = 0;
        int r = file_read(path, FILE_BYTES_MAX, &old, &st, NULL, error);
        if (!r)
                edit_add_handler(buffer_text(&old), line, &new, &number);
        if (!r)
                r = check_new(path, &new, error);
        if (!r && !is_dry)
                r = replace(path, &new, &st, error);
        if (!r)
                (void)printf("%s:%u\n+   %s\n", path, number, line);
        buffer_free(&old);
        buffer_free(&new);
        return r;
}

int handler_add(const char *command, const char *given_config, const char *name, const char *settings, bool is_dry)
{
        struct cli_store s;
        struct error error = { "" };
        int code = cli_load(&s, command, given_config, READER_COMMAND);
        if (code != EXIT_DONE)
                return code;
        const struct handler_config *known = config_handler(&s.config, name);
        char *line = text_printf("%s = { %s };", name, settings);
        char *path = realpath(s.config.path, NULL); /* follows symbolic links */
        int r = known  ? error_set(&error, -EEXIST, "there is a handler %s already, at %s:%u", name, known->file,
                                 known->line)
                : path ? edit_file(path, line, is_dry, &error)
                       : error_set(&error, -errno, "%s: %s", s.config.path, strerror(errno));
        free(path);
        free(line);
        config_free(&s.config);
        if (r < 0) {
                (void)fprintf(stderr, "quiver %s: %s\n", command, error.text);
                return EXIT_FAILED;
        }
        (void)printf(is_dry ? "(nothing was changed)\n" : "A running host takes it up: quiver reload --wait\n");
        return EXIT_DONE;
}

static void warn_if_missing(const struct handler_request *q, const char *plugin)
{
        struct cli_store s;
        if (cli_load(&s, "handler", q->config, READER_COMMAND) != EXIT_DONE)
                return;
        char *path = file_resolve(s.config.plugins, plugin);
        if (access(path, R_OK) < 0)
                (void)fprintf(
                        stderr, "quiver handler: warning: %s is not there yet; put it there before the reload\n", path);
        free(path);
        config_free(&s.config);
}

int cmd_handler(int argc, char **argv)
{
        struct handler_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--dry-run", &q.is_dry, "only show what would be changed"),
        };
        struct options o = {
                .usage = "handler add NAME PLUGIN [--dry-run]",
                .about = "Adds the handler NAME, served by PLUGIN (a file in the folder of plugins), to the settings, "
                         "and shows\nthe line. Everything else in the file stays as it is; a file that would be wrong "
                         "with it is not changed.",
                OPTIONS_TABLE(table),
                .words_max = 3,
                .hint = "its settings are edited in the file",
                .examples = "  quiver handler add word-count word-count.so && quiver reload --wait\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (o.words_count != 3 || strcmp(o.words[0], "add") != 0)
                return options_wrong(&o, "which handler, and which plugin? quiver handler add NAME PLUGIN");
        struct buffer settings = { 0 };
        buffer_printf(&settings, "plugin = ");
        field_format_text(o.words[2], &settings);
        buffer_printf(&settings, ";");
        code = handler_add(o.command, q.config, o.words[1], buffer_text(&settings), q.is_dry);
        if (code == EXIT_DONE)
                warn_if_missing(&q, o.words[2]);
        buffer_free(&settings);
        return code;
}
