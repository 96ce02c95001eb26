/* files_io.c: the plugins' files as they lie there; none of their code is run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_trust.h"
#include "cli/doctor/probes.h"
#include "runner/elf.h"
#include "runner/load.h"

/* Where the file has the byte of that link-time address. */
static bool find_offset(const struct elf *elf, uint64_t address, uint64_t *ret_offset)
{
        Elf64_Phdr segment;
        for (unsigned i = 0; elf_segment(elf, i, &segment); i++) {
                if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
                        address - segment.p_vaddr >= segment.p_filesz)
                        continue;
                *ret_offset = segment.p_offset + (address - segment.p_vaddr);
                return true;
        }
        return false;
}

/* The numbers in the table that the plugin exports: they are constants, and so stand in the file. */
static void read_abi(int fd, struct doctor_plugin *to)
{
        struct elf elf;
        struct elf_symbols symbols;
        Elf64_Sym symbol;
        char name[64];
        uint64_t offset;
        struct {
                uint32_t size, major, minor;
        } head;
        to->abi_major = to->abi_minor = UNKNOWN;
        if (elf_open(&elf, fd) != ELF_FINE || !elf_symbols_open(&elf, &symbols))
                return;
        while (elf_symbols_next(&elf, &symbols, &symbol, name, sizeof(name))) {
                if (strcmp(name, QV_PLUGIN_SYMBOL) != 0 || !find_offset(&elf, symbol.st_value, &offset))
                        continue;
                if (pread(fd, &head, sizeof(head), (off_t)offset) == (ssize_t)sizeof(head)) {
                        to->abi_major = head.major;
                        to->abi_minor = head.minor;
                }
                return;
        }
}

static void look_at(const struct handler_config *h, struct doctor_plugin *to)
{
        struct file_trust trust = { .verdict = FILE_TRUST_SOUND };
        to->handler = h->name;
        to->path = h->plugin_path;
        to->abi_major = to->abi_minor = UNKNOWN;
        int fd = file_trust_open(h->plugin_path, FILE_TRUST_OF_FILE, &trust, &to->error);
        if (fd < 0)
                return;
        if (load_check_file(h->plugin_path, h->plugin_path, &to->error) == 0)
                read_abi(fd, to);
        if (trust.verdict != FILE_TRUST_SOUND)
                to->trust = trust.why;
        to->is_open_to_all = trust.verdict == FILE_TRUST_EVERYBODY;
        (void)close(fd);
}

void probe_files(const struct config *config, struct doctor_files *to)
{
        struct stat st;
        for (size_t i = 0; i < config->handlers_count; i++) {
                if (handler_is_remote(&config->handlers[i]))
                        continue;
                to->plugins = array_grow(to->plugins, to->plugins_count, sizeof(*to->plugins));
                look_at(&config->handlers[i], &to->plugins[to->plugins_count++]);
        }
        to->tokens_file = config->http.tokens_file;
        to->tokens_mode = to->tokens_file && stat(to->tokens_file, &st) == 0 ? st.st_mode & 0777 : UNKNOWN;
}
