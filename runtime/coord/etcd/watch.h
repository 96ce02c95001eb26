/* watch.h: the nodes and lists of children that are watched, and since which revision.
 *
 * One stream reports every change in the app's tree, with its revision.  A read that watches saw the tree at some
 * revision, so later changes are reported to it and earlier ones are not, in whichever order the two connections
 * deliver them.  Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_WATCH_H
#define QUIVER_COORD_ETCD_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum etcd_watch_kind { ETCD_WATCH_NODE, ETCD_WATCH_CHILDREN };

struct etcd_watch;
/* Zero-initialised is empty. */
struct etcd_watches {
        struct etcd_watch *all;
        void (*tell)(void *self, const char *path); /* may begin and end other watches */
        void *self;
};

/* A read that watches begins; the stream may report a change before its answer comes. */
struct etcd_watch *etcd_watch_begin(struct etcd_watches *watches, enum etcd_watch_kind kind, const char *path);
/* The read was answered at that revision; 0: it failed, and the watch is not armed for it.  A change that came
 * meanwhile is reported at once. */
void etcd_watch_end(struct etcd_watches *watches, struct etcd_watch *watch, uint64_t revision);
/* The stream reports a change at that revision. */
void etcd_watch_rang(struct etcd_watches *watches, enum etcd_watch_kind kind, const char *path, uint64_t revision);
/* Changes may have been missed: disarms every watch. */
void etcd_watch_clear(struct etcd_watches *watches);
void etcd_watch_free_all(struct etcd_watches *watches);

#endif
