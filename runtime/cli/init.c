/* init.c: `quiver init [FOLDER]`: a folder that is ready for `quiver run`, for those who have no source tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/open.h"

/* etc/runtime.cfg, taken into the binary by base/embed.awk. */
extern const char embedded_etc_runtime_cfg[];

static int make_folder(const char *base, const char *name, mode_t mode, struct error *error)
{
        char *path = text_printf("%s%s%s", base, *name ? "/" : "", name);
        int r = mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
        if (r)
                (void)error_set(error, r, "cannot make folder %s: %s", path, strerror(-r));
        free(path);
        return r;
}

static int write_new(const char *path, const char *text, size_t size, mode_t mode, struct error *error)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0)
                return error_set(error, -errno, "%s: %s%s", path, strerror(errno),
                        errno == EEXIST ? "; this folder was made before: quiver run in it, or choose another" : "");
        int r = 0;
        while (size && !r) {
                ssize_t n = write(fd, text, size);
                if (n > 0) {
                        text += n;
                        size -= (size_t)n;
                } else if (errno != EINTR) {
                        r = error_set(error, -errno, "cannot write %s: %s", path, strerror(errno));
                }
        }
        if (close(fd) < 0 && !r)
                r = error_set(error, -errno, "cannot write %s: %s", path, strerror(errno));
        if (r)
                (void)unlink(path);
        return r;
}

/* 1: it was copied; 0: it was not found. */
static int copy_plugin(const char *base, const char *name, struct error *error)
{
        char *from = cli_stock_plugin(name);
        if (!from)
                return 0;
        char *to = text_printf("%s/plugins/%s", base, name);
        struct buffer bytes = { 0 };
        struct stat st;
        int r = file_read(from, (size_t)64 << 20, &bytes, &st, NULL, error);
        if (!r)
                r = write_new(to, (const char *)bytes.data, bytes.size, 0644, error);
        buffer_free(&bytes);
        free(from);
        free(to);
        return r < 0 ? r : 1;
}

static int make(const char *base, bool *ret_has_plugins, struct error *error)
{
        static const struct {
                const char *name;
                mode_t mode;
        } folders[] = { { "", 0755 }, { "etc", 0755 }, { "plugins", 0755 }, { "var", 0700 } };
        int r = 0;
        for (size_t i = 0; !r && i < sizeof(folders) / sizeof(folders[0]); i++)
                r = make_folder(base, folders[i].name, folders[i].mode, error);
        char *path = text_printf("%s/etc/runtime.cfg", base);
        if (!r)
                r = write_new(path, embedded_etc_runtime_cfg, strlen(embedded_etc_runtime_cfg), 0644, error);
        free(path);
        static const char *const plugins[] = { "echo.so", "exec.so", "pipe.so" };
        for (size_t i = 0; r >= 0 && i < sizeof(plugins) / sizeof(plugins[0]); i++)
                r = copy_plugin(base, plugins[i], error);
        *ret_has_plugins = r > 0;
        return r < 0 ? r : 0;
}

int cmd_init(int argc, char **argv)
{
        struct error error = { "" };
        bool has_plugins = false;
        struct options o = {
                .usage = "init [FOLDER]",
                .about = "Makes a folder that is ready for quiver run: etc/runtime.cfg with comments, plugins/ with an "
                         "example, and var/\nfor the store. FOLDER is the working directory unless it is named. "
                         "Nothing that is there is changed.",
                .words_max = 1,
                .hint = "it takes one folder",
                .examples = "  quiver init jobs && cd jobs && quiver run\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        const char *base = o.words_count ? o.words[0] : ".";
        if (make(base, &has_plugins, &error) < 0) {
                (void)fprintf(stderr, "quiver init: %s\n", error.text);
                return EXIT_FAILED;
        }
        (void)printf("Made %s/etc/runtime.cfg, plugins/ and var/.\n\n", base);
        if (!has_plugins)
                (void)printf("The stock plugins were not found beside this binary: put echo.so into plugins/, or name "
                             "your own in\nruntime.cfg.\n\n");
        if (o.words_count)
                (void)printf("  cd %s\n", base);
        (void)printf("  quiver run                                # leave it running; in another terminal:\n"
                     "  quiver submit echo --wait world\n"
                     "  quiver new my-plugin --add                # a plugin of your own\n");
        return EXIT_DONE;
}
