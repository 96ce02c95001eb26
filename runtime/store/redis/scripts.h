/* scripts.h: the Lua scripts, one per operation.  Their text is made from lua/ by lua/embed.awk when Quiver is built.
 */
#ifndef QUIVER_STORE_REDIS_SCRIPTS_H
#define QUIVER_STORE_REDIS_SCRIPTS_H

#include "redis/redis.h"

#define SCRIPTS(X)                                                                                                     \
        X(acquire)                                                                                                     \
        X(advance)                                                                                                     \
        X(aside)                                                                                                       \
        X(cancel)                                                                                                      \
        X(commit)                                                                                                      \
        X(consume)                                                                                                     \
        X(count)                                                                                                       \
        X(dead)                                                                                                        \
        X(desired)                                                                                                     \
        X(find)                                                                                                        \
        X(forget)                                                                                                      \
        X(fsck)                                                                                                        \
        X(import)                                                                                                      \
        X(in_flight)                                                                                                   \
        X(key_act)                                                                                                     \
        X(keys)                                                                                                        \
        X(list)                                                                                                        \
        X(open)                                                                                                        \
        X(outbox)                                                                                                      \
        X(record)                                                                                                      \
        X(release)                                                                                                     \
        X(renew)                                                                                                       \
        X(repair)                                                                                                      \
        X(reply)                                                                                                       \
        X(status_list)                                                                                                 \
        X(status_put)                                                                                                  \
        X(submit)                                                                                                      \
        X(take)                                                                                                        \
        X(writable)

#define SCRIPT_ENUM(name) SCRIPT_##name,
enum script_number { SCRIPTS(SCRIPT_ENUM) SCRIPTS_COUNT };

#define SCRIPT_TEXT(name) extern const char lua_##name[];
SCRIPTS(SCRIPT_TEXT)

/* A set of one's own: redis_open() writes into it. */
struct scripts {
        struct redis_script all[SCRIPTS_COUNT];
        struct redis_script *pointers[SCRIPTS_COUNT];
};
void scripts_init(struct scripts *scripts);

#endif
