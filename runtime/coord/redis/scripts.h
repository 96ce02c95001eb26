/* scripts.h: the Lua scripts of the tree, in lua/. They are allow-oom: a full server must not end the hosts' sessions,
 * and the tree is small. */
#ifndef QUIVER_COORD_REDIS_SCRIPTS_H
#define QUIVER_COORD_REDIS_SCRIPTS_H

#include "redis/redis.h"

enum tree_script {
        TREE_BEGIN,
        TREE_RENEW,
        TREE_FINISH,
        TREE_GET,
        TREE_CHILDREN,
        TREE_WRITE,
        TREE_SCRIPTS,
};

/* Each tree has its own set, because redis_open() writes into it. */
struct tree_scripts {
        struct redis_script all[TREE_SCRIPTS];
        struct redis_script *pointers[TREE_SCRIPTS];
};
void rtree_scripts_init(struct tree_scripts *scripts);

#endif
