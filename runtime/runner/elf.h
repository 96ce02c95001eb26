/* elf.h: reads from an ELF file whether it is a complete plugin for this machine, which function an address belongs to,
 * and what it exports.
 *
 * It reads with pread() only, so that a file that shrinks meanwhile gives a short read and never a SIGBUS.  It
 * allocates nothing, so that a fault handler may use it.  Nothing in the file is trusted. */
#ifndef QUIVER_RUNNER_ELF_H
#define QUIVER_RUNNER_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf {
        int fd; /* borrowed */
        uint64_t size;
        Elf64_Ehdr header;
};

enum elf_verdict {
        ELF_FINE,
        ELF_UNREADABLE,    /* errno has the reason */
        ELF_NOT_ELF,       /* or too short to tell */
        ELF_OTHER_CLASS,   /* 32 bit, or the other byte order */
        ELF_OTHER_MACHINE, /* header.e_machine is another machine */
        ELF_NOT_SHARED,    /* an executable, an object file, a core */
        ELF_CUT,           /* its tables refer to bytes beyond the end of the file */
};

/* Reads the header and checks that everything it refers to lies within the file. */
enum elf_verdict elf_open(struct elf *elf, int fd);

/* "x86-64", "aarch64", …; "another machine" if it has no name here. */
const char *elf_machine_name(unsigned machine);
/* The machine that this program was built for. */
unsigned elf_own_machine(void);

/* The link-time address of the byte at `offset` of the file.  False if no loaded segment has it. */
bool elf_offset_to_address(const struct elf *elf, uint64_t offset, uint64_t *ret_address);

/* The function that contains the link-time address `address`: its name, cut to fit, and its start.  Searches .symtab,
 * then .dynsym.  False if there is none. */
bool elf_function_at(const struct elf *elf, uint64_t address, char *name, size_t name_size, uint64_t *ret_start);

/* The segment of that number; false if there is none. */
bool elf_segment(const struct elf *elf, unsigned index, Elf64_Phdr *ret);
/* Up to `size` - 1 bytes at `offset` of the file, as text.  False if they are not there. */
bool elf_text_at(const struct elf *elf, uint64_t offset, char *text, size_t size);
/* The value of the first entry with that tag in the dynamic segment; false if there is none. */
bool elf_dynamic(const struct elf *elf, int64_t tag, uint64_t *ret_value);

/* The name of the index-th library that the file needs; false if there is none. */
bool elf_needed(const struct elf *elf, unsigned index, char *name, size_t size);

/* A walk through the dynamic symbols. */
struct elf_symbols {
        Elf64_Shdr table, strings;
        uint64_t at, count;
};

/* False if the file has no such table, for instance because its section headers were stripped. */
bool elf_symbols_open(const struct elf *elf, struct elf_symbols *ret);
/* The next symbol with a name, which is cut to fit; false at the end. */
bool elf_symbols_next(
        const struct elf *elf, struct elf_symbols *s, Elf64_Sym *ret_symbol, char *name, size_t name_size);

#endif
