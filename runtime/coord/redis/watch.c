/* watch.c: which keys are watched.
 *
 * Redis reports one change of a key that was read (key tracking).  The report comes on another connection than the
 * answer, so it may come first: a watch counts from when its read is sent, and a change that is reported meanwhile is
 * passed on after the answer.  Redis does not report our own writes; the scripts return the keys that they changed,
 * which are handled in the same way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "coord/redis/redis_tree.h"

/* There are only a few, so a list is enough. */
struct redis_watch {
        struct redis_watch *next;
        unsigned reads; /* reads under way */
        bool is_armed;  /* a change must be reported */
        bool has_rung;  /* a change was reported while reads were under way */
        size_t size;
        char key[]; /* "node:PATH", "children:PATH" */
};

static struct redis_watch *find(struct redis_tree *tree, const char *key, size_t size)
{
        struct redis_watch *watch = tree->watches;
        while (watch && (watch->size != size || memcmp(watch->key, key, size) != 0))
                watch = watch->next;
        return watch;
}

static void drop(struct redis_tree *tree, struct redis_watch *watch)
{
        LL_DELETE(tree->watches, watch);
        free(watch);
}

static void tell(struct redis_tree *tree, struct redis_watch *watch)
{
        char path[COORD_PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s", strchr(watch->key, ':') + 1);
        drop(tree, watch);
        const struct coord_events *events = &tree->remote.coord.events;
        if (events->changed && !tree->remote.is_closing)
                events->changed(events->self, path);
}

struct redis_watch *rtree_watch_begin(struct redis_tree *tree, const char *kind, const char *path)
{
        char key[COORD_PATH_MAX + 16];
        size_t size = (size_t)snprintf(key, sizeof(key), "%s:%s", kind, path);
        struct redis_watch *watch = find(tree, key, size);
        if (!watch) {
                watch = memory_zero(1, sizeof(*watch) + size + 1);
                memcpy(watch->key, key, size);
                watch->size = size;
                LL_PREPEND(tree->watches, watch);
        }
        watch->reads++;
        return watch;
}

void rtree_watch_end(struct redis_tree *tree, struct redis_watch *watch, bool is_armed)
{
        if (!watch)
                return;
        watch->is_armed |= is_armed;
        if (--watch->reads)
                return;
        if (!watch->is_armed)
                drop(tree, watch);
        else if (watch->has_rung)
                tell(tree, watch);
}

void rtree_watch_rang(struct redis_tree *tree, const char *key, size_t size)
{
        struct redis_watch *watch = find(tree, key, size);
        if (!watch)
                return;
        if (watch->reads)
                watch->has_rung = true;
        else
                tell(tree, watch);
}

void rtree_watch_clear(struct redis_tree *tree)
{
        struct redis_watch **at = &tree->watches;
        while (*at) {
                struct redis_watch *watch = *at;
                watch->is_armed = false;
                if (watch->reads) {
                        at = &watch->next;
                } else {
                        *at = watch->next;
                        free(watch);
                }
        }
}

void rtree_watch_free_all(struct redis_tree *tree)
{
        while (tree->watches)
                drop(tree, tree->watches);
}
