#include "coord/redis/scripts.h"

#include <stdlib.h>
#include <string.h>

/* The assembler takes the file as it is; the path counts from the top of the tree, where make runs. */
#define EMBED(name)                                                                                                    \
        __asm__(".pushsection .rodata\n"                                                                               \
                ".hidden tree_lua_" #name ", tree_lua_" #name "_end\n"                                                 \
                ".globl tree_lua_" #name ", tree_lua_" #name "_end\n"                                                  \
                "tree_lua_" #name ":\n"                                                                                \
                ".incbin \"runtime/coord/redis/lua/" #name ".lua\"\n"                                                  \
                "tree_lua_" #name "_end:\n"                                                                            \
                ".popsection\n");                                                                                      \
        extern const char tree_lua_##name[] __attribute__((visibility("hidden")));                                     \
        extern const char tree_lua_##name##_end[] __attribute__((visibility("hidden")));

EMBED(tree)
EMBED(begin)
EMBED(renew)
EMBED(finish)
EMBED(get)
EMBED(children)
EMBED(write)

#define ROW(number, script) [number] = { #script, tree_lua_##script, tree_lua_##script##_end }

static const struct {
        const char *name;
        const char *start, *end;
} sources[TREE_SCRIPTS + 1] = {
        ROW(TREE_BEGIN, begin),
        ROW(TREE_RENEW, renew),
        ROW(TREE_FINISH, finish),
        ROW(TREE_GET, get),
        ROW(TREE_CHILDREN, children),
        ROW(TREE_WRITE, write),
        ROW(TREE_SCRIPTS, tree),
};

/* A server that is full must not take the hosts' sessions from them; the tree is small. */
static const char head[] = "#!lua flags=allow-oom\n";

void rtree_scripts_init(struct tree_scripts *scripts)
{
        const char *before = sources[TREE_SCRIPTS].start;
        size_t common = (size_t)(sources[TREE_SCRIPTS].end - before);
        for (unsigned i = 0; i < TREE_SCRIPTS; i++) {
                size_t own = (size_t)(sources[i].end - sources[i].start);
                size_t size = sizeof(head) - 1 + common + own;
                char *text = malloc(size + 1);
                if (!text)
                        abort();
                memcpy(text, head, sizeof(head) - 1);
                memcpy(text + sizeof(head) - 1, before, common);
                memcpy(text + sizeof(head) - 1 + common, sources[i].start, own);
                text[size] = 0;
                scripts->all[i] = (struct redis_script){ .name = sources[i].name, .text = text, .size = size };
                scripts->pointers[i] = &scripts->all[i];
        }
}

void rtree_scripts_free(struct tree_scripts *scripts)
{
        for (unsigned i = 0; i < TREE_SCRIPTS; i++)
                free((char *)scripts->all[i].text);
}
