#include "coord/local/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct watch_seen look(const struct local_tree *tree, enum watch_kind kind, const char *path)
{
        const struct tree_node *node = tree_get(tree, path);
        if (!node)
                return (struct watch_seen){ 0 };
        return (struct watch_seen){ node->stat.created,
                kind == WATCH_CHILDREN ? node->children_changes : node->stat.version };
}

void watch_arm(struct watches *watches, const struct local_tree *tree, enum watch_kind kind, const char *path)
{
        struct local_watch *watch = watches->first;
        while (watch && (watch->kind != kind || strcmp(watch->path, path) != 0))
                watch = watch->next;
        /* Keeps the earlier reader's state: that reader may not have been told of a change since. */
        if (watch)
                return;
        size_t size = strlen(path) + 1;
        watch = memory_zero(1, sizeof(*watch) + size);
        watch->kind = kind;
        memcpy(watch->path, path, size);
        watch->seen = look(tree, kind, path);
        watch->next = watches->first;
        watches->first = watch;
}

struct local_watch *watch_fired(struct watches *watches, const struct local_tree *tree)
{
        for (struct local_watch **at = &watches->first; *at; at = &(*at)->next) {
                struct local_watch *watch = *at;
                struct watch_seen now = look(tree, watch->kind, watch->path);
                if (now.created == watch->seen.created && now.number == watch->seen.number)
                        continue;
                *at = watch->next;
                return watch;
        }
        return NULL;
}

void watches_free(struct watches *watches)
{
        while (watches->first) {
                struct local_watch *watch = watches->first;
                watches->first = watch->next;
                free(watch);
        }
}
