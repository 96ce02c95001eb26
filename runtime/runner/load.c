#include "runner/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/numbers.h"
#include "runner/elf.h"
#include "runner/symbol.h"

static int check_elf(int fd, struct error *error)
{
        struct elf elf;
        switch (elf_open(&elf, fd)) {
        case ELF_FINE:
                return 0;
        case ELF_UNREADABLE:
                return error_set(error, -errno, "cannot be read: %s", strerror(errno));
        case ELF_OTHER_CLASS:
                return error_set(error, -ENOEXEC, "not a 64-bit little-endian object; rebuild it on this machine");
        case ELF_OTHER_MACHINE:
                return error_set(error, -ENOEXEC, "built for %s, this machine is %s; rebuild it here",
                        elf_machine_name(elf.header.e_machine), elf_machine_name(elf_own_machine()));
        case ELF_NOT_SHARED:
                return error_set(
                        error, -ENOEXEC, "an ELF file, but no shared object; link it with -shared (see sdk/plugin.mk)");
        case ELF_CUT:
                return error_set(error, -ENOEXEC,
                        "cut short: only %llu bytes are there; copy it again and rename it into place",
                        (unsigned long long)elf.size);
        case ELF_NOT_ELF:
                break;
        }
        return error_set(error, -ENOEXEC, "not a shared object (no ELF header); build it with cc -shared -fPIC");
}

static int check_file(const char *path, const char *label, struct error *error)
{
        struct stat st;
        int r;
        /* Without O_NONBLOCK, opening a pipe would block until it has a writer. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
        if (fstat(fd, &st) < 0) {
                r = error_set(error, -errno, "cannot be read: %s", strerror(errno));
        } else if (!S_ISREG(st.st_mode)) {
                r = error_set(error, -EINVAL, "not a file");
        } else {
                symbol_call_file(st.st_dev, st.st_ino, label);
                r = check_elf(fd, error);
        }
        (void)close(fd);
        return r;
}

/* Puts the plugin's name in front of the message. */
static int name_plugin(struct error *error, int r, const char *label)
{
        return r < 0 ? error_prefix(error, r, "plugin %s", label) : r;
}

int load_check_file(const char *path, const char *label, struct error *error)
{
        return name_plugin(error, check_file(path, label, error), label);
}

/* Whether the plugin's table reaches to the end of `field`. */
#define HAS_FIELD(table, field)                                                                                        \
        ((table)->size >= offsetof(struct qv_plugin, field) + sizeof(((struct qv_plugin *)0)->field))

static int check_table(const struct qv_plugin *table, uint32_t seats, struct qv_plugin *ret, struct error *error)
{
        if (!HAS_FIELD(table, abi_minor))
                return error_set(error, -EINVAL, "size is %u, too small for a table; use QV_PLUGIN()", table->size);
        if (table->abi_major != QV_ABI_MAJOR)
                return error_set(error, -EPROTO, "abi %u.%u, this host speaks %u.x; rebuild it against sdk/include",
                        table->abi_major, table->abi_minor, QV_ABI_MAJOR);
        if (!HAS_FIELD(table, handle))
                return error_set(error, -EINVAL, "size is %u, so handle is missing; use QV_PLUGIN()", table->size);

        struct qv_plugin known = { 0 };
        memcpy(&known, table, min_u64(table->size, sizeof(known)));
        if (!known.name || !*known.name)
                return error_set(error, -EINVAL, "name is empty; give it one in QV_PLUGIN()");
        if (!known.handle)
                return error_set(error, -EINVAL, "handle is missing; QV_PLUGIN() takes it as its fifth argument");
        if (seats > 1 && !(known.flags & QV_THREADS))
                return error_set(error, -EINVAL,
                        "threads = %u, but its flags lack QV_THREADS; set threads = 1 and raise processes", seats);
        if (!known.version)
                known.version = "";
        *ret = known;
        return 0;
}

int load_check_table(
        const struct qv_plugin *table, const char *label, uint32_t seats, struct qv_plugin *ret, struct error *error)
{
        return name_plugin(error, check_table(table, seats, ret, error), label);
}

void load_find_sanitizer(const char *path, char *name, size_t size)
{
        static const char *const runtimes[] = { "libasan.so", "libtsan.so", "liblsan.so", "libclang_rt.asan",
                "libclang_rt.tsan" };
        struct elf elf;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        *name = 0;
        if (fd < 0)
                return;
        bool is_found = false;
        if (elf_open(&elf, fd) == ELF_FINE)
                for (unsigned i = 0; !is_found && elf_needed(&elf, i, name, size); i++)
                        for (size_t k = 0; k < sizeof(runtimes) / sizeof(*runtimes); k++)
                                is_found |= !strncmp(name, runtimes[k], strlen(runtimes[k]));
        if (!is_found)
                *name = 0;
        (void)close(fd);
}

/* The runtime of a sanitizer ends the process if it is not loaded first. */
static int check_sanitizer(const char *path, const char *label, struct error *error)
{
        char name[128];
        load_find_sanitizer(path, name, sizeof(name));
        void *loaded = *name ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (loaded)
                (void)dlclose(loaded);
        if (!*name || loaded)
                return 0;
        return error_set(error, -ELIBACC,
                "plugin %s: built with a sanitizer, whose runtime %s has to be loaded first: quiver try and quiver vet "
                "do "
                "that; start a host with LD_PRELOAD=%s quiver run, or build it without the sanitizer",
                label, name, name);
}

/* dlerror() without the path of the private copy, which means nothing to the reader. */
static const char *complaint(const char *path)
{
        const char *text = dlerror();
        size_t n = strlen(path);
        if (!text)
                return "no reason given";
        return !strncmp(text, path, n) && !strncmp(text + n, ": ", 2) ? text + n + 2 : text;
}

int load_plugin(const char *path, const char *label, uint32_t seats, struct qv_plugin *ret, struct error *error)
{
        int r = load_check_file(path, label, error);
        if (r < 0)
                return r;
        r = check_sanitizer(path, label, error);
        if (r < 0)
                return r;
        void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!object) {
                const char *text = complaint(path);
                return error_set(error, -ELIBACC, "plugin %s: %s%s", label, text,
                        strstr(text, "__asan_") || strstr(text, "__tsan_") || strstr(text, "__ubsan_")
                                ? "; built with a sanitizer whose runtime is not part of it: link it with gcc, or with "
                                  "clang "
                                  "-shared-libsan"
                                : "");
        }
        const struct qv_plugin *table = dlsym(object, QV_PLUGIN_SYMBOL);
        if (!table)
                return error_set(
                        error, -EINVAL, "plugin %s: exports no %s; end it with QV_PLUGIN()", label, QV_PLUGIN_SYMBOL);
        return load_check_table(table, label, seats, ret, error);
}
