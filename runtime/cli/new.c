/* new.c: `quiver new NAME`: a folder with a plugin, its test and its Makefile.
 *
 * The files come from sdk/templates/, which are taken into the binary.  They are a plugin called my-plugin that builds
 * as it stands; a new one differs from it in its name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "task/envelope.h"

/* Made from sdk/templates/ by base/embed.awk. */
#define TEMPLATE(name) embedded_sdk_templates_##name
extern const char TEMPLATE(my_plugin_c)[], TEMPLATE(test_my_plugin_c)[], TEMPLATE(my_plugin_cc)[],
        TEMPLATE(test_my_plugin_cc)[], TEMPLATE(Makefile)[], TEMPLATE(README_md)[], TEMPLATE(gitignore)[];

struct file {
        const char *name; /* in the new folder, before words are replaced */
        const char *text;
};

#define FILES 5
static const struct file c_files[FILES] = {
        { "my-plugin.c", TEMPLATE(my_plugin_c) },
        { "test_my-plugin.c", TEMPLATE(test_my_plugin_c) },
        { "Makefile", TEMPLATE(Makefile) },
        { "README.md", TEMPLATE(README_md) },
        { ".gitignore", TEMPLATE(gitignore) },
};
static const struct file cc_files[FILES] = {
        { "my-plugin.cc", TEMPLATE(my_plugin_cc) },
        { "test_my-plugin.cc", TEMPLATE(test_my_plugin_cc) },
        { "Makefile", TEMPLATE(Makefile) },
        { "README.md", TEMPLATE(README_md) },
        { ".gitignore", TEMPLATE(gitignore) },
};

/* What a new plugin is made with. */
struct recipe {
        const char *name;
        char identifier[TASK_HANDLER_MAX + 1]; /* the name as a part of C identifiers */
        const struct file *files;
        const char *extension;
        char sdk[PATH_MAX];    /* "" if it was not found */
        char quiver[PATH_MAX]; /* what to type to run this binary */
};

/* The SDK that belongs to this binary: beside build/ in the source tree, in share/ of an installed prefix. */
static void find_sdk(struct recipe *recipe)
{
        static const struct {
                const char *from_binary;
                bool is_installed;
        } places[] = { { "../share/quiver", true }, { "../sdk", false }, { "../../sdk", false } };
        char binary[PATH_MAX];
        (void)snprintf(recipe->quiver, sizeof(recipe->quiver), "quiver");
        recipe->sdk[0] = 0;
        ssize_t size = readlink("/proc/self/exe", binary, sizeof(binary) - 1);
        if (size <= 0)
                return;
        binary[size] = 0;
        size_t folder = (size_t)(strrchr(binary, '/') - binary);
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                char path[2 * PATH_MAX];
                char resolved[PATH_MAX];
                (void)snprintf(path, sizeof(path), "%.*s/%s/plugin.mk", (int)folder, binary, places[i].from_binary);
                /* Make cannot include a path with these in it. */
                if (!realpath(path, resolved) || strpbrk(resolved, " \t#$%:;*?['\"\\"))
                        continue;
                *strrchr(resolved, '/') = 0;
                (void)snprintf(recipe->sdk, sizeof(recipe->sdk), "%s", resolved);
                if (!places[i].is_installed)
                        (void)snprintf(recipe->quiver, sizeof(recipe->quiver), "%s", binary);
                return;
        }
}

/* Appends the text with its words replaced. */
static void expand(struct buffer *to, const struct recipe *recipe, const char *text, size_t size)
{
        const struct {
                const char *word, *replacement;
        } words[] = {
                { "my-plugin", recipe->name },
                { "my_plugin", recipe->identifier },
                { "@EXT@", recipe->extension },
                { "@SDK@", recipe->sdk },
        };
        size_t at = 0;
        while (at < size) {
                size_t i = 0;
                size_t length = 0;
                for (; i < sizeof(words) / sizeof(words[0]); i++) {
                        length = strlen(words[i].word);
                        if (size - at >= length && !memcmp(text + at, words[i].word, length))
                                break;
                }
                if (i < sizeof(words) / sizeof(words[0])) {
                        buffer_put(to, words[i].replacement, strlen(words[i].replacement));
                        at += length;
                } else {
                        buffer_put(to, text + at++, 1);
                }
        }
}

static int write_file(int folder, const char *name, const struct buffer *text, struct error *error)
{
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0)
                return error_set(error, -errno, "cannot write %s: %s", name, strerror(errno));
        int r = 0;
        for (size_t done = 0; done < text->size && !r;) {
                ssize_t n = write(fd, text->data + done, text->size - done);
                if (n >= 0)
                        done += (size_t)n;
                else if (errno != EINTR)
                        r = error_set(error, -errno, "cannot write %s: %s", name, strerror(errno));
        }
        if (close(fd) < 0 && !r)
                r = error_set(error, -errno, "cannot write %s: %s", name, strerror(errno));
        return r;
}

static int write_files(int folder, const struct recipe *recipe, struct error *error)
{
        struct buffer name = { 0 };
        struct buffer text = { 0 };
        int r = 0;
        for (size_t i = 0; i < FILES && !r; i++) {
                const struct file *file = &recipe->files[i];
                buffer_clear(&name);
                buffer_clear(&text);
                expand(&name, recipe, file->name, strlen(file->name));
                expand(&text, recipe, file->text, strlen(file->text));
                r = write_file(folder, buffer_text(&name), &text, error);
        }
        buffer_free(&name);
        buffer_free(&text);
        return r;
}

/* Half a folder would be in the way of the next try. */
static void remove_files(int folder, const struct recipe *recipe)
{
        struct buffer name = { 0 };
        for (size_t i = 0; i < FILES; i++) {
                buffer_clear(&name);
                expand(&name, recipe, recipe->files[i].name, strlen(recipe->files[i].name));
                (void)unlinkat(folder, buffer_text(&name), 0);
        }
        buffer_free(&name);
        (void)rmdir(recipe->name);
}

static int make_folder(const struct recipe *recipe, struct error *error)
{
        if (mkdir(recipe->name, 0777) < 0) {
                if (errno == EEXIST)
                        return error_set(error, -EEXIST,
                                "%s is there already; choose another name or move it out of the way", recipe->name);
                return error_set(error, -errno, "cannot make folder %s: %s", recipe->name, strerror(errno));
        }
        int folder = open(recipe->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
                return error_set(error, -errno, "cannot open folder %s: %s", recipe->name, strerror(errno));
        int r = write_files(folder, recipe, error);
        if (r < 0)
                remove_files(folder, recipe);
        (void)close(folder);
        return r;
}

static void print_next_steps(const struct recipe *recipe)
{
        const char *name = recipe->name;
        (void)printf("Made %s/ with %s.%s, test_%s.%s, Makefile, README.md and .gitignore.\n\n", name, name,
                recipe->extension, name, recipe->extension);
        if (!recipe->sdk[0])
                (void)printf("The SDK was not found beside this binary: unless pkg-config knows quiver-plugin, say "
                             "where it\n"
                             "is with make QUIVER_SDK=/path/to/quiver/sdk\n\n");
        (void)printf("  cd %s\n"
                     "  make                # %s.so\n"
                     "  make test           # its tests, against the mock host\n"
                     "  %s try ./%s.so --payload \"hello world\"\n\n"
                     "In runtime.cfg:\n\n"
                     "  handlers = {\n"
                     "    %s = { plugin = \"%s.so\"; config = { words_max = 1000; }; };\n"
                     "  };\n",
                name, name, recipe->quiver, name, name, name);
}

int cmd_new(int argc, char **argv)
{
        struct recipe recipe = { .files = c_files, .extension = "c" };
        struct error error = { 0 };
        bool is_cpp = false;
        const struct option table[] = { OPT_FLAG("--cpp", &is_cpp, "write it in C++17 instead of C") };
        struct options o = {
                .usage = "new NAME [--cpp]",
                .about = "Makes the folder NAME with a plugin, a test against the mock host, a Makefile and a README.\n"
                         "It builds and passes as it is.  A name is a letter, then at most 63 letters, digits, _ or -.",
                OPTIONS_TABLE(table),
                .words_max = 1,
                .hint = "One name, please",
                .examples = "  quiver new resize && make -C resize test\n"
                            "  quiver new geo-lookup --cpp\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        recipe.name = o.words[0];
        if (!recipe.name)
                return options_wrong(&o, "say what the plugin is to be called");
        if (task_handler_check((struct span){ recipe.name, strlen(recipe.name) }, NULL) < 0)
                return options_wrong(&o,
                        "\"%s\" cannot be a plugin's name: a letter, then at most 63 letters, digits, _ or -",
                        recipe.name);
        if (is_cpp) {
                recipe.files = cc_files;
                recipe.extension = "cc";
        }
        for (size_t i = 0; recipe.name[i]; i++)
                recipe.identifier[i] = recipe.name[i] == '-' ? '_' : recipe.name[i];
        find_sdk(&recipe);
        if (make_folder(&recipe, &error) < 0) {
                (void)fprintf(stderr, "quiver new: %s\n", error.text);
                return EXIT_FAILED;
        }
        print_next_steps(&recipe);
        return EXIT_DONE;
}
