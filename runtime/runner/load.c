#include "runner/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/elf.h"
#include "runner/symbol.h"

/* As error_set(), with "plugin LABEL: " before it: all of this file's messages begin alike. */
#define REFUSE(r, format, ...) error_set(error, (r), "plugin %s: " format, label __VA_OPT__(, ) __VA_ARGS__)

static int check_elf(int fd, const char *label, struct error *error)
{
        struct elf elf;
        switch (elf_open(&elf, fd)) {
        case ELF_FINE:
                return 0;
        case ELF_UNREADABLE:
                return REFUSE(-errno, "cannot be read: %s", strerror(errno));
        case ELF_OTHER_CLASS:
                return REFUSE(-ENOEXEC, "not a 64-bit little-endian object; rebuild it on this machine");
        case ELF_OTHER_MACHINE:
                return REFUSE(-ENOEXEC, "built for %s, this machine is %s; rebuild it here",
                        elf_machine_name(elf.header.e_machine), elf_machine_name(elf_own_machine()));
        case ELF_NOT_SHARED:
                return REFUSE(-ENOEXEC, "an ELF file, but no shared object; link it with -shared (see sdk/plugin.mk)");
        case ELF_CUT:
                return REFUSE(-ENOEXEC, "cut short: only %llu bytes are there; copy it again and rename it into place",
                        (unsigned long long)elf.size);
        case ELF_NOT_ELF:
                break;
        }
        return REFUSE(-ENOEXEC, "not a shared object (no ELF header); build it with cc -shared -fPIC");
}

int load_check_file(const char *path, const char *label, struct error *error)
{
        struct stat st;
        int r;
        /* Without O_NONBLOCK the open of a pipe would wait for its writer. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return REFUSE(-errno, "cannot open %s: %s", path, strerror(errno));
        if (fstat(fd, &st) < 0) {
                r = REFUSE(-errno, "cannot be read: %s", strerror(errno));
        } else if (!S_ISREG(st.st_mode)) {
                r = REFUSE(-EINVAL, "not a file");
        } else {
                symbol_call_file(st.st_dev, st.st_ino, label);
                r = check_elf(fd, label, error);
        }
        (void)close(fd);
        return r;
}

/* Whether the plugin's table reaches to the end of `field`. */
#define HAS_FIELD(table, field)                                                                                        \
        ((table)->size >= offsetof(struct qv_plugin, field) + sizeof(((struct qv_plugin *)0)->field))

int load_check_table(
        const struct qv_plugin *table, const char *label, uint32_t seats, struct qv_plugin *ret, struct error *error)
{
        if (!HAS_FIELD(table, abi_minor))
                return REFUSE(-EINVAL, "size is %u, too small for a table; use QV_PLUGIN()", table->size);
        if (table->abi_major != QV_ABI_MAJOR)
                return REFUSE(-EPROTO, "abi %u.%u, this host speaks %u.x; rebuild it against sdk/include",
                        table->abi_major, table->abi_minor, QV_ABI_MAJOR);
        if (!HAS_FIELD(table, handle))
                return REFUSE(-EINVAL, "size is %u, so handle is missing; use QV_PLUGIN()", table->size);

        struct qv_plugin known = { 0 };
        memcpy(&known, table, table->size < sizeof(known) ? table->size : sizeof(known));
        if (!known.name || !*known.name)
                return REFUSE(-EINVAL, "name is empty; give it one in QV_PLUGIN()");
        if (!known.handle)
                return REFUSE(-EINVAL, "handle is missing; QV_PLUGIN() takes it as its fifth argument");
        if (seats > 1 && !(known.flags & QV_THREADS))
                return REFUSE(-EINVAL,
                        "threads = %u, but its flags lack QV_THREADS; set threads = 1 and raise processes", seats);
        if (!known.version)
                known.version = "";
        *ret = known;
        return 0;
}

/* What dlopen() complains of, without the path of a private copy that nobody knows. */
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
        void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!object)
                return REFUSE(-ELIBACC, "%s", complaint(path));
        const struct qv_plugin *table = dlsym(object, QV_PLUGIN_SYMBOL);
        if (!table)
                return REFUSE(-EINVAL, "exports no %s; end it with QV_PLUGIN()", QV_PLUGIN_SYMBOL);
        return load_check_table(table, label, seats, ret, error);
}
