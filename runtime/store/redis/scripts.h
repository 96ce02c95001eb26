/* scripts.h: the Lua scripts, one per operation.  Their text is made from lua/ by base/embed.awk when Quiver is built.
 */
#ifndef QUIVER_STORE_REDIS_SCRIPTS_H
#define QUIVER_STORE_REDIS_SCRIPTS_H

#include "redis/redis.h"

#define SCRIPTS(X)                                                                                                     \
        X(acquire)                                                                                                     \
        X(advance)                                                                                                     \
        X(advance_many)                                                                                                \
        X(app_set)                                                                                                     \
        X(aside)                                                                                                       \
        X(cancel)                                                                                                      \
        X(commit)                                                                                                      \
        X(consume)                                                                                                     \
        X(count)                                                                                                       \
        X(dead)                                                                                                        \
        X(dead_groups)                                                                                                 \
        X(desired)                                                                                                     \
        X(fires)                                                                                                       \
        X(find)                                                                                                        \
        X(forget)                                                                                                      \
        X(fsck)                                                                                                        \
        X(import)                                                                                                      \
        X(in_flight)                                                                                                   \
        X(key_act)                                                                                                     \
        X(keys)                                                                                                        \
        X(limit_look)                                                                                                  \
        X(limit_take)                                                                                                  \
        X(list)                                                                                                        \
        X(mail_take)                                                                                                   \
        X(names)                                                                                                       \
        X(outbox)                                                                                                      \
        X(post)                                                                                                        \
        X(record)                                                                                                      \
        X(release)                                                                                                     \
        X(renew)                                                                                                       \
        X(repair)                                                                                                      \
        X(report)                                                                                                      \
        X(reschedule)                                                                                                  \
        X(move)                                                                                                        \
        X(room_append)                                                                                                 \
        X(room_delete)                                                                                                 \
        X(remembered_list)                                                                                             \
        X(room_list)                                                                                                   \
        X(room_read)                                                                                                   \
        X(room_set)                                                                                                    \
        X(room_truncate)                                                                                               \
        X(schedule_list)                                                                                               \
        X(schedule_set)                                                                                                \
        X(status_list)                                                                                                 \
        X(status_put)                                                                                                  \
        X(submit)                                                                                                      \
        X(take)                                                                                                        \
        X(wake)                                                                                                        \
        X(wanting_list)                                                                                                \
        X(wanting_set)                                                                                                 \
        X(writable)

#define SCRIPT_ENUM(name) SCRIPT_##name,
enum script_number { SCRIPTS(SCRIPT_ENUM) SCRIPTS_COUNT };

#define SCRIPT_TEXT(name)   embedded_runtime_store_redis_lua_##name##_lua
#define SCRIPT_EXTERN(name) extern const char SCRIPT_TEXT(name)[];
SCRIPTS(SCRIPT_EXTERN)

/* One set per store, because redis_open() writes the scripts' sha1 into it. */
struct scripts {
        struct redis_script all[SCRIPTS_COUNT];
        struct redis_script *pointers[SCRIPTS_COUNT];
};
void scripts_init(struct scripts *scripts);

#endif
