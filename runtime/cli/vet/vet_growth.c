/* vet_growth.c: whether a runner grows with the tasks that it does. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/vet/vet.h"

#define TASKS_MIN       2000                /* with fewer, a quarter is no more than what is on its way at once */
#define BYTES_MIN       (UINT64_C(1) << 20) /* less may be what malloc keeps */
#define DESCRIPTORS_MIN 16                  /* fewer may be connections that are opened when they are needed */

/* The memory that no file and no other process has a part in, so without the ring. */
static uint64_t own_bytes(pid_t pid)
{
        char path[64];
        char line[128];
        unsigned long long kib = 0;
        (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "RssAnon: %llu kB", &kib) == 1)
                        break;
        if (file)
                (void)fclose(file);
        return kib * 1024;
}

static uint64_t descriptors(pid_t pid)
{
        char path[64];
        uint64_t count = 0;
        (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
        DIR *folder = opendir(path);
        while (folder && readdir(folder))
                count++;
        if (folder)
                (void)closedir(folder);
        return count;
}

void vet_growth_start(struct vet_growth *g, pid_t pid)
{
        g->is_broken |= g->pid && g->pid != pid;
        g->pid = pid;
}

void vet_growth_look(struct vet_growth *g, uint64_t settled, uint64_t all)
{
        if (settled == 1)
                g->descriptors_first = descriptors(g->pid);
        if (all < TASKS_MIN || g->quarters == VET_QUARTERS || settled != all / VET_QUARTERS * (g->quarters + 1))
                return;
        g->bytes[g->quarters++] = own_bytes(g->pid);
        if (g->quarters == VET_QUARTERS)
                g->descriptors_last = descriptors(g->pid);
}

/* A bound that was reached late grows once; a leak grows all the time. */
static uint64_t steady_growth(const struct vet_growth *g)
{
        const unsigned last = VET_QUARTERS - 1;
        uint64_t whole = g->bytes[last] > g->bytes[0] ? g->bytes[last] - g->bytes[0] : 0;
        for (unsigned i = 1; i <= last; i++)
                if (g->bytes[i] < g->bytes[i - 1] + whole / (2 * (uint64_t)last))
                        return 0;
        return whole >= BYTES_MIN ? whole : 0;
}

void vet_growth_report(const struct vet_growth *g, const char *check, uint64_t all, struct vet_report *report)
{
        char total[UNITS_TEXT_MAX];
        if (g->is_broken || g->quarters < VET_QUARTERS) {
                vet_find(report, VET_NOTE, check, NULL,
                        "growth of memory and descriptors was not measured: that takes one runner and %d payloads",
                        TASKS_MIN);
                return;
        }
        uint64_t tasks = all / VET_QUARTERS * (VET_QUARTERS - 1);
        uint64_t grown = steady_growth(g);
        if (grown)
                vet_find(report, VET_WARNING, check,
                        "free what each task allocates, and bound every cache; valgrind quiver try --here says where",
                        "memory grows with every task: %s in %" PRIu64 " tasks, about %" PRIu64 " bytes each",
                        units_format_bytes(total, grown), tasks, grown / tasks);
        uint64_t opened = g->descriptors_last -
                          (g->descriptors_last < g->descriptors_first ? g->descriptors_last : g->descriptors_first);
        if (opened >= DESCRIPTORS_MIN)
                vet_find(report, VET_WARNING, check, "close what each task opens, on every way out of handle()",
                        "descriptors grow with the tasks: %" PRIu64 " more after the last than after the first",
                        opened);
        if (!grown && opened < DESCRIPTORS_MIN)
                vet_find(report, VET_OK, check, NULL, "neither memory nor descriptors grow with the tasks");
}
