/* vet_elf.c: what a plugin's file says about itself. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/vet/vet.h"
#include "runner/elf.h"
#include "runner/load.h"

#define NAMES_SHOWN 5

/* The first few names of a kind, and how many there are. */
struct named {
        uint64_t count;
        struct buffer names;
};

static void add_name(struct named *n, const char *name)
{
        if (n->count++ < NAMES_SHOWN)
                buffer_printf(&n->names, "%s%s", n->names.size ? ", " : "", name);
        else if (n->count == NAMES_SHOWN + 1)
                buffer_printf(&n->names, ", …");
}

static bool is_exported(const Elf64_Sym *symbol)
{
        unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
        return symbol->st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
               (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

/* Old linkers put some of them into every shared object, and AddressSanitizer marks what is exported. */
static bool is_tools(const char *name)
{
        if (!strncmp(name, "__odr_asan", 10))
                return true;
        static const char *const names[] = { "_init", "_fini", "_edata", "_end", "__bss_start" };
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (!strcmp(names[i], name))
                        return true;
        return false;
}

static void check_symbols(const struct elf *elf, struct vet_report *report)
{
        struct elf_symbols symbols;
        struct named strangers = { 0 };
        struct named unique = { 0 };
        Elf64_Sym symbol;
        char name[256];
        if (!elf_symbols_open(elf, &symbols)) {
                vet_find(report, VET_NOTE, "exports", NULL, "it has no section headers, so its exports are unknown");
                return;
        }
        while (elf_symbols_next(elf, &symbols, &symbol, name, sizeof(name))) {
                if (!is_exported(&symbol))
                        continue;
                if (ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE)
                        add_name(&unique, name);
                if (strcmp(name, QV_PLUGIN_SYMBOL) != 0 && !is_tools(name))
                        add_name(&strangers, name);
        }
        if (strangers.count)
                vet_find(report, VET_WARNING, "exports",
                        "build it with sdk/plugin.mk, or with -fvisibility=hidden and "
                        "-Wl,--version-script=sdk/plugin.map:\nwhat is exported can be taken for a library's function "
                        "of the same name",
                        "it exports %llu symbol%s beside " QV_PLUGIN_SYMBOL ": %s", (unsigned long long)strangers.count,
                        strangers.count == 1 ? "" : "s", buffer_text(&strangers.names));
        else
                vet_find(report, VET_OK, "exports", NULL, "nothing but " QV_PLUGIN_SYMBOL);
        if (unique.count)
                vet_find(report, VET_WARNING, "unique",
                        "compile with -fno-gnu-unique (sdk/plugin.mk does): such a symbol is one for the whole "
                        "process,\nwhoever else has it",
                        "it has %llu symbol%s of binding STB_GNU_UNIQUE: %s", (unsigned long long)unique.count,
                        unique.count == 1 ? "" : "s", buffer_text(&unique.names));
        buffer_free(&strangers.names);
        buffer_free(&unique.names);
}

static bool has_executable_stack(const struct elf *elf)
{
        Elf64_Phdr segment;
        for (unsigned i = 0; elf_segment(elf, i, &segment); i++)
                if (segment.p_type == PT_GNU_STACK)
                        return segment.p_flags & PF_X;
        return true; /* what the loader takes its absence for */
}

static bool has_text_relocations(const struct elf *elf)
{
        uint64_t value = 0;
        return elf_dynamic(elf, DT_TEXTREL, &value) || (elf_dynamic(elf, DT_FLAGS, &value) && (value & DF_TEXTREL));
}

static void check_hardening(const struct elf *elf, struct vet_report *report)
{
        if (has_executable_stack(elf))
                vet_find(report, VET_WARNING, "stack",
                        "an assembly file lacks .note.GNU-stack, or a nested function's address is taken; link with "
                        "-Wl,-z,noexecstack",
                        "it makes the stack of the whole process executable");
        if (has_text_relocations(elf))
                vet_find(report, VET_WARNING, "relocations", "compile every file, libraries too, with -fPIC",
                        "it has text relocations: its code is copied and changed in every process that loads it");
}

bool vet_elf(const struct vet_request *request, struct vet_report *report)
{
        struct error error;
        struct elf elf;
        char size[UNITS_TEXT_MAX];
        if (load_check_file(request->session.copy.path, request->session.copy.label, &error) < 0) {
                vet_find(report, VET_ERROR, "file", NULL, "%s", error.text);
                return false;
        }
        int fd = open(request->session.copy.path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || elf_open(&elf, fd) != ELF_FINE) {
                vet_find(report, VET_ERROR, "file", NULL, "%s: %s", request->session.copy.path, strerror(errno));
        } else {
                vet_find(report, VET_OK, "file", NULL, "a whole shared object for %s, %s",
                        elf_machine_name(elf.header.e_machine), units_format_bytes(size, elf.size));
                check_symbols(&elf, report);
                check_hardening(&elf, report);
        }
        if (fd >= 0)
                (void)close(fd);
        return fd >= 0;
}
