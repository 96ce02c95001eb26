#include "store/sqlite/file/lock_holder.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Byte of the -shm file that SQLite locks while it writes: WAL_WRITE_LOCK, the first lock byte (UNIX_SHM_BASE). */
#define WRITE_LOCK_BYTE 120

/* One line of /proc/locks: "1: POSIX  ADVISORY  WRITE 71 fe:00:10953869 120 120". */
struct lock_line {
        char kind[16], mode[16], end[24];
        int pid;
        unsigned major, minor;
        unsigned long inode;
        unsigned long start;
};

static bool is_for(const struct lock_line *line, const struct stat *st, const char *kind, unsigned long byte)
{
        unsigned long end = UINT64_MAX;
        if (strcmp(line->end, "EOF") != 0 && sscanf(line->end, "%lu", &end) != 1)
                return false;
        return !strcmp(line->kind, kind) && !strcmp(line->mode, "WRITE") && line->inode == st->st_ino &&
               line->major == major(st->st_dev) && line->minor == minor(st->st_dev) && line->start <= byte &&
               byte <= end;
}

/* Uses /proc/locks instead of F_GETLK: that needs a descriptor, and closing it would release all locks of this process
 * on the file. */
static pid_t find(const char *path, const char *kind, unsigned long byte)
{
        char text[256];
        struct stat st;
        pid_t pid = 0;
        if (stat(path, &st) < 0)
                return 0;
        FILE *locks = fopen("/proc/locks", "re");
        if (!locks)
                return 0;
        while (!pid && fgets(text, sizeof(text), locks)) {
                struct lock_line line = { 0 };
                if (sscanf(text, "%*u: %15s %*s %15s %d %x:%x:%lu %lu %23s", line.kind, line.mode, &line.pid,
                            &line.major, &line.minor, &line.inode, &line.start, line.end) == 8 &&
                        line.pid > 0 && is_for(&line, &st, kind, byte))
                        pid = line.pid;
        }
        (void)fclose(locks);
        return pid;
}

/* Reads "71 (NAME) T …"; the name may contain anything, so the last parenthesis ends it. */
static void read_process(struct lock_holder *holder)
{
        char path[64], text[256];
        (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)holder->pid);
        FILE *file = fopen(path, "re");
        size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
        if (file)
                (void)fclose(file);
        text[size] = 0;
        char *name = strchr(text, '('), *end = strrchr(text, ')');
        if (!name || !end || end < name || end[1] != ' ')
                return;
        (void)snprintf(holder->name, sizeof(holder->name), "%.*s", (int)(end - name - 1), name + 1);
        holder->state = end[2];
}

static void describe(struct lock_holder *holder, pid_t pid)
{
        *holder = (struct lock_holder){ .pid = pid };
        if (pid)
                read_process(holder);
}

void lock_holder_of_writing(const char *path, struct lock_holder *ret_holder)
{
        char shm[4200];
        (void)snprintf(shm, sizeof(shm), "%s-shm", path);
        describe(ret_holder, find(shm, "POSIX", WRITE_LOCK_BYTE));
}

void lock_holder_of_flock(const char *path, struct lock_holder *ret_holder)
{
        describe(ret_holder, find(path, "FLOCK", 0));
}

const char *lock_holder_text(const struct lock_holder *holder, char *text, size_t size)
{
        int pid = (int)holder->pid;
        if (!pid)
                (void)snprintf(text, size,
                        "another process writes to it and does not end, maybe in another container; fuser names the "
                        "processes that have the file open");
        else if (holder->state == 'T' || holder->state == 't')
                (void)snprintf(text, size,
                        "process %d (%s) was stopped while it wrote to it, so nobody else can write; let it go on: "
                        "kill -CONT %d, or end it: kill -KILL %d",
                        pid, holder->name, pid, pid);
        else
                (void)snprintf(text, size,
                        "process %d (%s) writes to it and does not end, so nobody else can write; if it hangs, end it: "
                        "kill -KILL %d",
                        pid, holder->name, pid);
        return text;
}
