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
#include "base/strings.h"
#include "cli/command.h"
#include "cli/handler.h"
#include "cli/open.h"
#include "config/field.h"
#include "task/envelope.h"

/* Made from sdk/templates/ by base/embed.awk. */
#define TEMPLATE(name) embedded_sdk_templates_##name
extern const char TEMPLATE(my_plugin_c)[], TEMPLATE(test_my_plugin_c)[], TEMPLATE(my_plugin_cc)[],
        TEMPLATE(test_my_plugin_cc)[], TEMPLATE(Makefile)[], TEMPLATE(README_md)[], TEMPLATE(gitignore)[],
        TEMPLATE(my_plugin_py)[], TEMPLATE(my_plugin_js)[], TEMPLATE(my_plugin_rb)[], TEMPLATE(my_plugin_sh)[],
        TEMPLATE(Makefile_worker)[], TEMPLATE(README_worker_md)[], embedded_sdk_pipe_python_quiver_pipe_py[],
        embedded_sdk_pipe_python_quiver_pipe_pyi[], embedded_sdk_pipe_node_quiver_pipe_js[],
        embedded_sdk_pipe_node_quiver_pipe_d_ts[], embedded_sdk_pipe_ruby_quiver_pipe_rb[];

struct file {
        const char *name; /* in the new folder, before words are replaced; NULL: no more */
        const char *text;
};

#define FILES 5 /* the most of one language */
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

#define WORKER_FILES(extension, worker)                                                                                \
        { "my-plugin." extension, worker }, { "Makefile", TEMPLATE(Makefile_worker) },                                 \
        {                                                                                                              \
                "README.md", TEMPLATE(README_worker_md)                                                                \
        }
static const struct file python_files[FILES] = { WORKER_FILES("py", TEMPLATE(my_plugin_py)),
        { "quiver_pipe.py", embedded_sdk_pipe_python_quiver_pipe_py },
        { "quiver_pipe.pyi", embedded_sdk_pipe_python_quiver_pipe_pyi } };
static const struct file node_files[FILES] = { WORKER_FILES("js", TEMPLATE(my_plugin_js)),
        { "quiver_pipe.js", embedded_sdk_pipe_node_quiver_pipe_js },
        { "quiver_pipe.d.ts", embedded_sdk_pipe_node_quiver_pipe_d_ts } };
static const struct file ruby_files[FILES] = { WORKER_FILES("rb", TEMPLATE(my_plugin_rb)),
        { "quiver_pipe.rb", embedded_sdk_pipe_ruby_quiver_pipe_rb } };
static const struct file shell_files[FILES] = { WORKER_FILES("sh", TEMPLATE(my_plugin_sh)) };

struct language {
        const char *extension;
        const struct file *files;
        const char *plugin;      /* the stock plugin that runs it; NULL: it is a plugin itself */
        const char *interpreter; /* NULL: it is started by its own name */
};

enum { IN_C, IN_CPP, IN_PYTHON, IN_NODE, IN_RUBY, IN_SHELL, LANGUAGES };
static const struct language languages[LANGUAGES] = {
        [IN_C] = { "c", c_files, NULL, NULL },
        [IN_CPP] = { "cc", cc_files, NULL, NULL },
        [IN_PYTHON] = { "py", python_files, "pipe.so", "/usr/bin/python3" },
        [IN_NODE] = { "js", node_files, "pipe.so", "/usr/bin/node" },
        [IN_RUBY] = { "rb", ruby_files, "pipe.so", "/usr/bin/ruby" },
        [IN_SHELL] = { "sh", shell_files, "exec.so", NULL },
};

/* Libraries that plugins often need, by the names that --with takes. */
static const struct {
        const char *name, *package, *header; /* package: what pkg-config calls it */
} libraries[] = {
        { "curl", "libcurl", "curl/curl.h" },
        { "pq", "libpq", "libpq-fe.h" },
        { "sqlite", "sqlite3", "sqlite3.h" },
        { "jansson", "jansson", "jansson.h" },
        { "ssl", "openssl", "openssl/evp.h" },
};

/* What a new plugin is made with. */
struct recipe {
        const char *name;
        char identifier[TASK_HANDLER_MAX + 1]; /* the name as a part of C identifiers */
        const struct language *language;
        char folder[PATH_MAX];  /* the new one, absolute */
        char stock[PATH_MAX];   /* the stock plugin that runs it */
        struct buffer settings; /* its handler's, for runtime.cfg */
        struct buffer sets;     /* the same for `quiver try` */
        char sdk[PATH_MAX];     /* "" if it was not found */
        char quiver[PATH_MAX];  /* what to type to run this binary */
        struct buffer packages; /* the line of its Makefile that names libraries */
        struct buffer includes; /* the SDK's header and theirs */
};

/* The places of the templates that libraries change. */
#define PACKAGES_LINE "PKGS ="
#define INCLUDE_LINE  "#include <quiver/plugin.h>"

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
static void expand(struct buffer *to, struct recipe *recipe, const char *text, size_t size)
{
        const struct {
                const char *word, *replacement;
        } words[] = {
                { "my-plugin", recipe->name },
                { "my_plugin", recipe->identifier },
                { "@EXT@", recipe->language->extension },
                { "@SDK@", recipe->sdk },
                { "@QUIVER@", recipe->quiver },
                { "@STOCK@", recipe->stock },
                { "@SETS@", buffer_text(&recipe->sets) },
                { "@SETTINGS@", buffer_text(&recipe->settings) },
                { PACKAGES_LINE, buffer_text(&recipe->packages) },
                { INCLUDE_LINE, buffer_text(&recipe->includes) },
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
        mode_t mode = text->size > 2 && !memcmp(text->data, "#!", 2) ? 0777 : 0666;
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
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

static int write_files(int folder, struct recipe *recipe, struct error *error)
{
        struct buffer name = { 0 };
        struct buffer text = { 0 };
        int r = 0;
        for (size_t i = 0; i < FILES && recipe->language->files[i].name && !r; i++) {
                const struct file *file = &recipe->language->files[i];
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
static void remove_files(int folder, struct recipe *recipe)
{
        struct buffer name = { 0 };
        const struct file *files = recipe->language->files;
        for (size_t i = 0; i < FILES && files[i].name; i++) {
                buffer_clear(&name);
                expand(&name, recipe, files[i].name, strlen(files[i].name));
                (void)unlinkat(folder, buffer_text(&name), 0);
        }
        buffer_free(&name);
        (void)rmdir(recipe->name);
}

/* What runtime.cfg and `quiver try` need to know of it, once it is known where it is. */
static void describe(struct recipe *recipe)
{
        const struct language *language = recipe->language;
        if (!language->plugin) {
                buffer_printf(&recipe->settings, "plugin = \"%s.so\"; config = { words_max = 1000; };", recipe->name);
                return;
        }
        struct strings command = { 0 };
        char *file = text_printf("%s/%s.%s", recipe->folder, recipe->name, language->extension);
        if (language->interpreter)
                strings_add(&command, language->interpreter);
        strings_add(&command, file);
        buffer_printf(&recipe->settings, "plugin = \"%s\"; config = { command = [", language->plugin);
        for (size_t i = 0; i < command.count; i++) {
                buffer_printf(&recipe->settings, "%s", i ? ", " : "");
                field_format_text(command.items[i], &recipe->settings);
                buffer_printf(&recipe->sets, "%s--set 'command.%zu=%s'", i ? " " : "", i, command.items[i]);
        }
        buffer_printf(&recipe->settings, "]; };");
        char *stock = cli_stock_plugin(language->plugin);
        (void)snprintf(recipe->stock, sizeof(recipe->stock), "%s", stock ? stock : language->plugin);
        free(stock);
        free(file);
        strings_free(&command);
}

/* Names the libraries in Makefile and source.  -EINVAL: one is unknown. */
static int add_libraries(struct recipe *recipe, const struct strings *names)
{
        buffer_printf(&recipe->packages, "%s", PACKAGES_LINE);
        for (size_t i = 0; i < names->count; i++) {
                size_t at = 0;
                while (at < sizeof(libraries) / sizeof(libraries[0]) &&
                        strcmp(libraries[at].name, names->items[i]) != 0)
                        at++;
                if (at == sizeof(libraries) / sizeof(libraries[0]))
                        return -EINVAL;
                buffer_printf(&recipe->packages, " %s", libraries[at].package);
                buffer_printf(&recipe->includes, "#include <%s>\n", libraries[at].header);
        }
        buffer_printf(&recipe->includes, "%s%s", names->count ? "\n" : "", INCLUDE_LINE);
        return 0;
}

static int make_folder(struct recipe *recipe, struct error *error)
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
        if (!realpath(recipe->name, recipe->folder))
                (void)snprintf(recipe->folder, sizeof(recipe->folder), "%s", recipe->name);
        describe(recipe);
        int r = write_files(folder, recipe, error);
        if (r < 0)
                remove_files(folder, recipe);
        (void)close(folder);
        return r;
}

static void print_made(const struct recipe *recipe)
{
        const char *name = recipe->name, *extension = recipe->language->extension;
        if (recipe->language->plugin)
                (void)printf("Made %s/ with %s.%s, Makefile and README.md.\n\n  cd %s\n  make try\n", name, name,
                        extension, name);
        else
                (void)printf("Made %s/ with %s.%s, test_%s.%s, Makefile, README.md and .gitignore.\n\n", name, name,
                        extension, name, extension);
}

static void print_next_steps(struct recipe *recipe)
{
        const char *name = recipe->name;
        bool is_plugin = !recipe->language->plugin;
        print_made(recipe);
        if (is_plugin && !recipe->sdk[0])
                (void)printf("The SDK was not found beside this binary: unless pkg-config knows quiver-plugin, say "
                             "where it\n"
                             "is with make QUIVER_SDK=/path/to/quiver/sdk\n\n");
        if (is_plugin)
                (void)printf("  cd %s\n"
                             "  make                # %s.so\n"
                             "  make test           # its tests, against the mock host\n"
                             "  %s try ./%s.so --payload \"hello world\"\n",
                        name, name, recipe->quiver, name);
        (void)printf("\nIts line for `handlers` in runtime.cfg (quiver new --add writes it there):\n\n  %s = { %s };\n",
                name, buffer_text(&recipe->settings));
}

struct new_request {
        const char *config;
        bool is_in[LANGUAGES];
        bool is_added;
        struct strings with;
};

static int make_plugin(const struct options *o, const struct new_request *q, struct recipe *recipe)
{
        struct error error = { 0 };
        int code = EXIT_DONE;
        find_sdk(recipe);
        if (make_folder(recipe, &error) < 0) {
                (void)fprintf(stderr, "quiver new: %s\n", error.text);
                code = EXIT_FAILED;
        } else if (q->is_added) {
                print_made(recipe);
                code = handler_add(o->command, q->config, recipe->name, buffer_text(&recipe->settings), false);
                if (code == EXIT_DONE && !recipe->language->plugin)
                        (void)printf("Before that: make -C %s, and put %s.so into the folder of plugins.\n",
                                recipe->name, recipe->name);
        } else {
                print_next_steps(recipe);
        }
        buffer_free(&recipe->settings);
        buffer_free(&recipe->sets);
        buffer_free(&recipe->packages);
        buffer_free(&recipe->includes);
        return code;
}

int cmd_new(int argc, char **argv)
{
        struct recipe recipe = { .language = &languages[IN_C] };
        struct new_request q = { 0 };
        const struct option table[] = {
                OPT_FLAG("--cpp", &q.is_in[IN_CPP], "write it in C++17 instead of C"),
                OPT_FLAG("--python", &q.is_in[IN_PYTHON], "a worker in Python, run by the plugin pipe"),
                OPT_FLAG("--node", &q.is_in[IN_NODE], "the same for Node.js"),
                OPT_FLAG("--ruby", &q.is_in[IN_RUBY], "the same for Ruby"),
                OPT_FLAG("--shell", &q.is_in[IN_SHELL], "a command per task, run by the plugin exec"),
                OPT_LIST(
                        "--with LIBRARY", &q.with, "C and C++: link curl, pq, sqlite, jansson or ssl; may be repeated"),
                OPT_FLAG("--add", &q.is_added, "name it in the settings, and show the line"),
                OPT_CONFIG(&q.config),
        };
        struct options o = {
                .usage = "new NAME [--cpp | --python | --node | --ruby | --shell] [--with LIBRARY] [--add]",
                .about = "Makes the folder NAME with a plugin, a test against the mock host, a Makefile and a README.\n"
                         "It builds and passes as it is.  In a scripting language: a worker, with its library and make "
                         "try.\n"
                         "A name is a letter, then at most 63 letters, digits, _ or -.",
                OPTIONS_TABLE(table),
                .words_max = 1,
                .hint = "it takes one name",
                .examples = "  quiver new resize && make -C resize test\n"
                            "  quiver new geo-lookup --cpp --with curl --with jansson\n"
                            "  quiver new report --python --add && quiver reload --wait\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        recipe.name = o.words[0];
        if (!recipe.name)
                return options_wrong(&o, "what is the plugin to be called? quiver new NAME");
        if (task_handler_check((struct span){ recipe.name, strlen(recipe.name) }, NULL) < 0)
                return options_wrong(&o,
                        "\"%s\" cannot be a plugin's name: a letter, then at most 63 letters, digits, _ or -",
                        recipe.name);
        for (unsigned i = 0; i < LANGUAGES; i++) {
                if (!q.is_in[i])
                        continue;
                if (recipe.language != &languages[IN_C])
                        return options_wrong(
                                &o, "only one of --cpp, --python, --node, --ruby and --shell can be given");
                recipe.language = &languages[i];
        }
        if (q.with.count && recipe.language->plugin)
                return options_wrong(&o, "--with is for plugins in C and C++; a worker imports its libraries itself");
        if (add_libraries(&recipe, &q.with) < 0)
                return options_wrong(&o, "--with knows curl, pq, sqlite, jansson and ssl; name others that pkg-config "
                                         "knows in the Makefile's line PKGS");
        for (size_t i = 0; recipe.name[i]; i++)
                recipe.identifier[i] = recipe.name[i] == '-' ? '_' : recipe.name[i];
        code = make_plugin(&o, &q, &recipe);
        strings_free(&q.with);
        return code;
}
