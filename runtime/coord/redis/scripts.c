#include "coord/redis/scripts.h"

#include <string.h>

#define TEXT(script)        embedded_runtime_coord_redis_lua_##script##_lua
#define ROW(number, script) [number] = { #script, TEXT(script) }

extern const char TEXT(begin)[], TEXT(renew)[], TEXT(finish)[], TEXT(get)[], TEXT(children)[], TEXT(write)[];

static const struct {
        const char *name;
        const char *text;
} sources[TREE_SCRIPTS] = {
        ROW(TREE_BEGIN, begin),
        ROW(TREE_RENEW, renew),
        ROW(TREE_FINISH, finish),
        ROW(TREE_GET, get),
        ROW(TREE_CHILDREN, children),
        ROW(TREE_WRITE, write),
};

void rtree_scripts_init(struct tree_scripts *scripts)
{
        for (unsigned i = 0; i < TREE_SCRIPTS; i++) {
                scripts->all[i] = (struct redis_script){
                        .name = sources[i].name, .text = sources[i].text, .size = strlen(sources[i].text)
                };
                scripts->pointers[i] = &scripts->all[i];
        }
}
