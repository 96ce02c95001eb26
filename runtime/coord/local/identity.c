#include "coord/local/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/units.h"

#define FILE_NAME  "identity"
#define FIRST_LINE "quiver-identity 1"

static void read_line(const char *path, char ret_line[IDENTITY_FACT_MAX])
{
        FILE *f = fopen(path, "re");
        if (!f || !fgets(ret_line, IDENTITY_FACT_MAX, f))
                ret_line[0] = 0;
        if (f)
                (void)fclose(f);
        ret_line[strcspn(ret_line, "\n")] = 0;
}

void identity_read_facts(struct identity_facts *ret_facts)
{
        *ret_facts = (struct identity_facts){ 0 };
        read_line("/etc/machine-id", ret_facts->machine_id);
        read_line("/proc/sys/kernel/random/boot_id", ret_facts->boot_id);
        if (gethostname(ret_facts->host_name, sizeof(ret_facts->host_name) - 1) < 0)
                ret_facts->host_name[0] = 0;
}

static bool is_known(const char *recorded, const char *now)
{
        return *now && !strcmp(recorded, now);
}

static bool is_same_machine(const struct identity_facts *a, const struct identity_facts *b)
{
        return is_known(a->machine_id, b->machine_id) || is_known(a->host_name, b->host_name) ||
               is_known(a->boot_id, b->boot_id);
}

static bool is_id(const char *text)
{
        return strlen(text) == IDENTITY_ID_MAX - 1 && strspn(text, "0123456789abcdef") == IDENTITY_ID_MAX - 1;
}

/* Takes the next line from *at, without its newline; "" after the last one. */
static void take_line(char **at, char *ret_line, size_t size)
{
        size_t length = strcspn(*at, "\n");
        (void)snprintf(ret_line, size, "%.*s", (int)length, *at);
        *at += length + ((*at)[length] == '\n');
}

static bool read_file(int folder, struct identity_facts *ret_facts, char ret_id[IDENTITY_ID_MAX])
{
        char text[1024];
        char line[IDENTITY_FACT_MAX];
        int fd = openat(folder, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                (void)close(fd);
        if (size < 0)
                return false;
        text[size] = 0;
        char *at = text;
        take_line(&at, line, sizeof(line));
        bool is_ours = !strcmp(line, FIRST_LINE);
        take_line(&at, line, sizeof(line));
        take_line(&at, ret_facts->machine_id, sizeof(ret_facts->machine_id));
        take_line(&at, ret_facts->host_name, sizeof(ret_facts->host_name));
        take_line(&at, ret_facts->boot_id, sizeof(ret_facts->boot_id));
        if (!is_ours || !is_id(line))
                return false;
        memcpy(ret_id, line, IDENTITY_ID_MAX);
        return true;
}

/* Writes a temporary file and renames it, so that it is complete or missing.  `is_new`: does not replace another
 * process's file. */
static bool write_file(int folder, const char *id, const struct identity_facts *facts, bool is_new)
{
        char name[64];
        uint64_t random = 0;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return false;
        (void)snprintf(name, sizeof(name), "." FILE_NAME "-%016llx", (unsigned long long)random);
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return false;
        bool is_written = dprintf(fd, FIRST_LINE "\n%s\n%s\n%s\n%s\n", id, facts->machine_id, facts->host_name,
                                  facts->boot_id) > 0;
        is_written &= close(fd) == 0;
        if (is_written)
                is_written = (is_new ? linkat(folder, name, folder, FILE_NAME, 0)
                                     : renameat(folder, name, folder, FILE_NAME)) == 0;
        (void)unlinkat(folder, name, 0);
        return is_written;
}

bool identity_ensure(int fd, const struct identity_facts *facts, char ret_id[IDENTITY_ID_MAX])
{
        struct identity_facts recorded = { 0 };
        char id[IDENTITY_ID_MAX];
        uint8_t random[(IDENTITY_ID_MAX - 1) / 2];
        if (!read_file(fd, &recorded, id)) {
                if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                        return false;
                /* Another process may have been first: then its id counts. */
                if (!write_file(fd, units_hex(id, random, sizeof(random)), facts, true) && errno != EEXIST)
                        return false;
                if (!read_file(fd, &recorded, id))
                        return false;
        }
        if (!is_same_machine(&recorded, facts))
                return false;
        /* Changed facts are recorded, so that the folder is still recognised after the next change. */
        if (memcmp(&recorded, facts, sizeof(recorded)) != 0)
                (void)write_file(fd, id, facts, false);
        memcpy(ret_id, id, IDENTITY_ID_MAX);
        return true;
}
