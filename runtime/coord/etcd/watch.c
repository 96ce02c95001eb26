#include "coord/etcd/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "coord/driver.h"

/* There are only a few, so a list is enough. */
struct etcd_watch {
        struct etcd_watch *next;
        enum etcd_watch_kind kind;
        unsigned reads;  /* reads under way */
        uint64_t since;  /* changes after this revision are reported; 0: none */
        uint64_t latest; /* the latest change while reads were under way */
        char path[];
};

static struct etcd_watch *find(const struct etcd_watches *watches, enum etcd_watch_kind kind, const char *path)
{
        struct etcd_watch *watch = watches->all;
        while (watch && (watch->kind != kind || strcmp(watch->path, path) != 0))
                watch = watch->next;
        return watch;
}

static void drop(struct etcd_watches *watches, struct etcd_watch *watch)
{
        LL_DELETE(watches->all, watch);
        free(watch);
}

static void tell(struct etcd_watches *watches, struct etcd_watch *watch)
{
        char path[COORD_PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s", watch->path);
        if (watch->reads)
                watch->since = 0; /* one-shot; the reads under way arm it again */
        else
                drop(watches, watch);
        watches->tell(watches->self, path);
}

struct etcd_watch *etcd_watch_begin(struct etcd_watches *watches, enum etcd_watch_kind kind, const char *path)
{
        struct etcd_watch *watch = find(watches, kind, path);
        if (!watch) {
                size_t size = strlen(path) + 1;
                watch = memory_zero(1, sizeof(*watch) + size);
                watch->kind = kind;
                memcpy(watch->path, path, size);
                LL_PREPEND(watches->all, watch);
        }
        if (!watch->reads++)
                watch->latest = 0;
        return watch;
}

void etcd_watch_end(struct etcd_watches *watches, struct etcd_watch *watch, uint64_t revision)
{
        if (!watch)
                return;
        watch->reads--;
        /* The earliest reader determines which change is reported. */
        if (revision)
                watch->since = watch->since ? min_u64(watch->since, revision) : revision;
        if (watch->since && watch->latest > watch->since)
                tell(watches, watch);
        else if (!watch->since && !watch->reads)
                drop(watches, watch);
}

void etcd_watch_rang(struct etcd_watches *watches, enum etcd_watch_kind kind, const char *path, uint64_t revision)
{
        struct etcd_watch *watch = find(watches, kind, path);
        if (!watch)
                return;
        if (watch->reads)
                watch->latest = max_u64(watch->latest, revision);
        if (watch->since && revision > watch->since)
                tell(watches, watch);
}

void etcd_watch_clear(struct etcd_watches *watches)
{
        struct etcd_watch **at = &watches->all;
        while (*at) {
                struct etcd_watch *watch = *at;
                watch->since = 0;
                if (watch->reads) {
                        at = &watch->next;
                } else {
                        *at = watch->next;
                        free(watch);
                }
        }
}

void etcd_watch_free_all(struct etcd_watches *watches)
{
        while (watches->all)
                drop(watches, watches->all);
}
