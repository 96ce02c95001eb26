#include "runner/elf.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/numbers.h"

/* More segments than any linker writes, and few enough to bound the cost of a hostile file. */
#define SEGMENTS_MAX 256
#define SECTIONS_MAX 65536
/* Symbols are read 3 KiB at a time, which fits on the stack of a fault handler. */
#define SYMBOLS_CHUNK 128

static bool read_at(const struct elf *elf, uint64_t offset, void *to, size_t size)
{
        uint8_t *at = to;
        while (size) {
                if (offset > elf->size)
                        return false;
                ssize_t n = pread(elf->fd, at, size, (off_t)offset);
                if (n <= 0)
                        return false;
                at += n;
                offset += (uint64_t)n;
                size -= (size_t)n;
        }
        return true;
}

/* Whether `count` records of `each` bytes at `offset` lie within the file. */
static bool has_range(const struct elf *elf, uint64_t offset, uint64_t count, uint64_t each)
{
        return offset <= elf->size && (!each || count <= (elf->size - offset) / each);
}

unsigned elf_own_machine(void)
{
#if defined(__x86_64__)
        return EM_X86_64;
#elif defined(__aarch64__)
        return EM_AARCH64;
#elif defined(__riscv)
        return EM_RISCV;
#else
#error "add this machine's ELF number"
#endif
}

const char *elf_machine_name(unsigned machine)
{
        switch (machine) {
        case EM_X86_64:
                return "x86-64";
        case EM_AARCH64:
                return "aarch64";
        case EM_386:
                return "i386";
        case EM_ARM:
                return "arm";
        case EM_RISCV:
                return "riscv";
        case EM_PPC64:
                return "ppc64";
        case EM_S390:
                return "s390";
        default:
                return "another machine";
        }
}

static bool segments_are_whole(const struct elf *elf)
{
        const Elf64_Ehdr *h = &elf->header;
        if (h->e_phentsize != sizeof(Elf64_Phdr) || !h->e_phnum || h->e_phnum > SEGMENTS_MAX ||
                !has_range(elf, h->e_phoff, h->e_phnum, sizeof(Elf64_Phdr)))
                return false;
        for (unsigned i = 0; i < h->e_phnum; i++) {
                Elf64_Phdr segment;
                if (!read_at(elf, h->e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
                        return false;
                if (segment.p_type == PT_LOAD && !has_range(elf, segment.p_offset, segment.p_filesz, 1))
                        return false;
        }
        return true;
}

/* Linkers write the section table last: if it is in the file, so is everything before it. */
static bool sections_are_whole(const struct elf *elf)
{
        const Elf64_Ehdr *h = &elf->header;
        return !h->e_shoff || has_range(elf, h->e_shoff, h->e_shnum, sizeof(Elf64_Shdr));
}

enum elf_verdict elf_open(struct elf *elf, int fd)
{
        struct stat st;
        *elf = (struct elf){ .fd = fd };
        if (fstat(fd, &st) < 0)
                return ELF_UNREADABLE;
        elf->size = (uint64_t)st.st_size;
        Elf64_Ehdr *h = &elf->header;
        if (!read_at(elf, 0, h, EI_NIDENT) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
                return ELF_NOT_ELF;
        if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
                return ELF_OTHER_CLASS;
        if (!read_at(elf, 0, h, sizeof(*h)))
                return ELF_CUT;
        if (h->e_machine != elf_own_machine())
                return ELF_OTHER_MACHINE;
        if (h->e_type != ET_DYN)
                return ELF_NOT_SHARED;
        return segments_are_whole(elf) && sections_are_whole(elf) ? ELF_FINE : ELF_CUT;
}

bool elf_offset_to_address(const struct elf *elf, uint64_t offset, uint64_t *ret_address)
{
        const Elf64_Ehdr *h = &elf->header;
        for (unsigned i = 0; i < h->e_phnum; i++) {
                Elf64_Phdr segment;
                if (!read_at(elf, h->e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
                        return false;
                if (segment.p_type != PT_LOAD || offset < segment.p_offset ||
                        offset - segment.p_offset >= segment.p_filesz)
                        continue;
                *ret_address = offset - segment.p_offset + segment.p_vaddr;
                return true;
        }
        return false;
}

static bool section_at(const struct elf *elf, uint64_t index, Elf64_Shdr *ret)
{
        const Elf64_Ehdr *h = &elf->header;
        return index < h->e_shnum && read_at(elf, h->e_shoff + index * sizeof(*ret), ret, sizeof(*ret));
}

static bool find_section(const struct elf *elf, uint32_t type, Elf64_Shdr *ret)
{
        for (uint64_t i = 0; i < elf->header.e_shnum && i < SECTIONS_MAX; i++)
                if (section_at(elf, i, ret) && ret->sh_type == type)
                        return true;
        return false;
}

static bool is_function_around(const Elf64_Sym *symbol, uint64_t address)
{
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
               address >= symbol->st_value && address - symbol->st_value < symbol->st_size;
}

static bool find_symbol(const struct elf *elf, const Elf64_Shdr *table, uint64_t address, Elf64_Sym *ret)
{
        Elf64_Sym chunk[SYMBOLS_CHUNK];
        uint64_t count = table->sh_size / sizeof(*chunk);
        if (!has_range(elf, table->sh_offset, count, sizeof(*chunk)))
                return false;
        for (uint64_t i = 0; i < count; i += SYMBOLS_CHUNK) {
                size_t n = count - i < SYMBOLS_CHUNK ? (size_t)(count - i) : SYMBOLS_CHUNK;
                if (!read_at(elf, table->sh_offset + i * sizeof(*chunk), chunk, n * sizeof(*chunk)))
                        return false;
                for (size_t j = 0; j < n; j++) {
                        if (is_function_around(&chunk[j], address)) {
                                *ret = chunk[j];
                                return true;
                        }
                }
        }
        return false;
}

/* Reads the text at `offset` of a string table; a text that the end of the table cuts is returned as far as it goes. */
static bool read_name(const struct elf *elf, const Elf64_Shdr *strings, uint64_t offset, char *name, size_t size)
{
        if (strings->sh_type != SHT_STRTAB || offset >= strings->sh_size ||
                !has_range(elf, strings->sh_offset, strings->sh_size, 1))
                return false;
        uint64_t there = strings->sh_size - offset;
        size_t n = (size_t)min_u64(there, size - 1);
        if (!read_at(elf, strings->sh_offset + offset, name, n))
                return false;
        name[n] = 0;
        return *name != 0;
}

bool elf_function_at(const struct elf *elf, uint64_t address, char *name, size_t name_size, uint64_t *ret_start)
{
        static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM };
        for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
                Elf64_Shdr table;
                Elf64_Shdr strings;
                Elf64_Sym symbol;
                if (!find_section(elf, tables[i], &table) || !section_at(elf, table.sh_link, &strings) ||
                        !find_symbol(elf, &table, address, &symbol) ||
                        !read_name(elf, &strings, symbol.st_name, name, name_size))
                        continue;
                *ret_start = symbol.st_value;
                return true;
        }
        return false;
}

bool elf_segment(const struct elf *elf, unsigned index, Elf64_Phdr *ret)
{
        return index < elf->header.e_phnum &&
               read_at(elf, elf->header.e_phoff + index * sizeof(*ret), ret, sizeof(*ret));
}

bool elf_text_at(const struct elf *elf, uint64_t offset, char *text, size_t size)
{
        if (offset >= elf->size)
                return false;
        uint64_t there = elf->size - offset;
        size_t n = (size_t)min_u64(there, size - 1);
        if (!read_at(elf, offset, text, n))
                return false;
        text[n] = 0;
        return true;
}

/* The value of the index-th entry with that tag. */
static bool dynamic_at(const struct elf *elf, int64_t tag, unsigned index, uint64_t *ret_value)
{
        Elf64_Phdr segment;
        unsigned i = 0;
        while (elf_segment(elf, i, &segment) && segment.p_type != PT_DYNAMIC)
                i++;
        if (!elf_segment(elf, i, &segment) || !has_range(elf, segment.p_offset, segment.p_filesz, 1))
                return false;
        for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
                Elf64_Dyn entry;
                if (!read_at(elf, segment.p_offset + at, &entry, sizeof(entry)) || entry.d_tag == DT_NULL)
                        return false;
                if (entry.d_tag == tag && !index--) {
                        *ret_value = entry.d_un.d_val;
                        return true;
                }
        }
        return false;
}

bool elf_dynamic(const struct elf *elf, int64_t tag, uint64_t *ret_value)
{
        return dynamic_at(elf, tag, 0, ret_value);
}

/* The file offset of a link-time address; false if no loaded segment has it. */
static bool address_to_offset(const struct elf *elf, uint64_t address, uint64_t *ret_offset)
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

bool elf_needed(const struct elf *elf, unsigned index, char *name, size_t size)
{
        uint64_t names;
        uint64_t at;
        uint64_t offset;
        if (!dynamic_at(elf, DT_STRTAB, 0, &names) || !dynamic_at(elf, DT_NEEDED, index, &at) ||
                at > UINT64_MAX - names || !address_to_offset(elf, names + at, &offset))
                return false;
        return elf_text_at(elf, offset, name, size);
}

bool elf_symbols_open(const struct elf *elf, struct elf_symbols *ret)
{
        struct elf_symbols s = { .at = 0 };
        if (!find_section(elf, SHT_DYNSYM, &s.table) || !section_at(elf, s.table.sh_link, &s.strings))
                return false;
        s.count = s.table.sh_size / sizeof(Elf64_Sym);
        *ret = s;
        return has_range(elf, s.table.sh_offset, s.count, sizeof(Elf64_Sym));
}

bool elf_symbols_next(const struct elf *elf, struct elf_symbols *s, Elf64_Sym *ret_symbol, char *name, size_t name_size)
{
        while (s->at < s->count) {
                uint64_t offset = s->table.sh_offset + s->at++ * sizeof(*ret_symbol);
                if (!read_at(elf, offset, ret_symbol, sizeof(*ret_symbol)))
                        return false;
                if (read_name(elf, &s->strings, ret_symbol->st_name, name, name_size))
                        return true;
        }
        return false;
}
