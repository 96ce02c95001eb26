/* watch.h: which nodes and lists of children somebody waits for, and since which revision.
 *
 * One stream tells of every change in the app's tree, each with its revision.  A read that watches saw the tree as of
 * some revision, so later changes are told and earlier ones are not, in whichever order the two connections bring
 * them.  Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_WATCH_H
#define QUIVER_COORD_ETCD_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum etcd_watch_kind { ETCD_WATCH_NODE, ETCD_WATCH_CHILDREN };

struct etcd_watch;
/* Zero-initialised is empty. */
struct etcd_watches {
        struct etcd_watch *all;
        void (*tell)(void *self, const char *path); /* may begin and end others */
        void *self;
};

/* A read that watches begins; the stream may tell of a change before its answer comes. */
struct etcd_watch *etcd_watch_begin(struct etcd_watches *watches, enum etcd_watch_kind kind, const char *path);
/* It has been answered as of that revision; 0: it failed, and its reader is not to be told.  A change that came
 * meanwhile is told at once. */
void etcd_watch_end(struct etcd_watches *watches, struct etcd_watch *watch, uint64_t revision);
/* The stream tells of a change at that revision. */
void etcd_watch_rang(struct etcd_watches *watches, enum etcd_watch_kind kind, const char *path, uint64_t revision);
/* Changes may have been missed: disarms every watch. */
void etcd_watch_clear(struct etcd_watches *watches);
void etcd_watch_free_all(struct etcd_watches *watches);

#endif
