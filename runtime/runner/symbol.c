#include "runner/symbol.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/elf.h"

#define PATH_ROOM  512
#define NAME_ROOM  256
#define CHUNK_ROOM 1024

/* The plugin's file.  Written once, while the runner has one thread. */
static struct {
        dev_t device;
        ino_t inode;
        const char *label;
        int fd; /* of the open file; -1: none */
} renamed = { .fd = -1 };

void symbol_call_file(dev_t device, ino_t inode, const char *label)
{
        renamed.device = device;
        renamed.inode = inode;
        renamed.label = label;
}

void symbol_hold_file(int fd)
{
        renamed.fd = fd;
}

/* One mapped file: a line of /proc/self/maps. */
struct mapping {
        uint64_t start, end, offset, inode;
        char path[PATH_ROOM];
};

/* Reads /proc/self/maps line by line through a small buffer, since the stack of a signal handler is small. */
struct maps {
        int fd;
        size_t at, filled;
        char chunk[CHUNK_ROOM];
};

static int next_char(struct maps *m)
{
        if (m->at == m->filled) {
                ssize_t n = read(m->fd, m->chunk, sizeof(m->chunk));
                if (n <= 0)
                        return -1;
                m->at = 0;
                m->filled = (size_t)n;
        }
        return (unsigned char)m->chunk[m->at++];
}

static int hex_digit(int c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a hexadecimal number and the character that ends it. */
static uint64_t next_hex(struct maps *m)
{
        uint64_t number = 0;
        int digit;
        while ((digit = hex_digit(next_char(m))) >= 0)
                number = number << 4 | (uint64_t)digit;
        return number;
}

/* start-end rwxp offset device inode    path */
static bool next_mapping(struct maps *m, struct mapping *ret)
{
        ret->start = next_hex(m);
        ret->end = next_hex(m);
        for (int c = next_char(m); c != ' '; c = next_char(m))
                if (c < 0)
                        return false;
        ret->offset = next_hex(m);
        int c;
        do
                c = next_char(m);
        while (c >= 0 && c != ' ');
        ret->inode = 0;
        while ((c = next_char(m)) >= '0' && c <= '9')
                ret->inode = ret->inode * 10 + (uint64_t)(c - '0');
        while (c >= 0 && c != '/' && c != '\n')
                c = next_char(m);
        size_t n = 0;
        for (; c >= 0 && c != '\n'; c = next_char(m))
                if (n + 1 < sizeof(ret->path))
                        ret->path[n++] = (char)c;
        ret->path[n] = 0;
        return true;
}

static bool find_mapping(uintptr_t address, struct mapping *ret)
{
        struct maps maps = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
        bool found = false;
        if (maps.fd < 0)
                return false;
        while (!found && next_mapping(&maps, ret))
                found = address >= ret->start && address < ret->end;
        (void)close(maps.fd);
        return found && ret->path[0];
}

static bool is_renamed(int fd)
{
        struct stat st;
        return renamed.label && fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == renamed.device &&
               st.st_ino == renamed.inode;
}

static const char *file_name(const struct mapping *mapping)
{
        const char *slash = strrchr(mapping->path, '/');
        return slash ? slash + 1 : mapping->path;
}

/* Writes "function+0x12", else the link-time address, else as much as is known.  Returns the link-time address; 0:
 * unknown. */
static uint64_t put_place(struct signal_text *to, int fd, uint64_t offset, uintptr_t address, bool is_return)
{
        struct elf elf;
        char name[NAME_ROOM];
        uint64_t at;
        uint64_t start;
        /* If a function ends in a call that never returns, the return address is the first byte after the function. */
        unsigned back = is_return ? 1 : 0;
        if (fd < 0 || elf_open(&elf, fd) != ELF_FINE || !elf_offset_to_address(&elf, offset - back, &at)) {
                signal_text_put_hex(to, address);
                return 0;
        }
        if (!elf_function_at(&elf, at, name, sizeof(name), &start)) {
                signal_text_put_hex(to, at + back);
                return at;
        }
        signal_text_put(to, name);
        signal_text_put(to, "+");
        signal_text_put_hex(to, at + back - start);
        return at;
}

uint64_t symbol_put(struct signal_text *to, uintptr_t address, bool is_return)
{
        struct mapping mapping;
        if (!find_mapping(address, &mapping)) {
                signal_text_put_hex(to, address);
                return 0;
        }
        int fd = open(mapping.path, O_RDONLY | O_CLOEXEC);
        int from = fd < 0 && mapping.inode == renamed.inode ? renamed.fd : fd;
        uint64_t at = put_place(to, from, address - mapping.start + mapping.offset, address, is_return);
        bool is_plugin = is_renamed(from);
        signal_text_put(to, " (");
        signal_text_put(to, is_plugin ? renamed.label : file_name(&mapping));
        signal_text_put(to, ")");
        if (fd >= 0)
                (void)close(fd);
        return is_plugin ? at : 0;
}
