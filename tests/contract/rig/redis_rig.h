/* redis_rig.h: a struct redis on a loop of its own, with commands written as text and everything counted. */
#ifndef QUIVER_TESTS_CONTRACT_REDIS_RIG_H
#define QUIVER_TESTS_CONTRACT_REDIS_RIG_H

#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "check.h"
#include "redis/redis.h"
#include "servers.h"

#define PATIENCE_MS 20000
#define WORDS_MAX   16

struct rig {
        uv_loop_t loop;
        uv_timer_t beat; /* so that a condition is looked at now and then */
        struct redis_open open;
        struct redis *redis;
        struct redis_events events;
        bool is_opened, is_closed;
        int open_status;
        int rings, looks, ups, downs, no_tracking;
        char rung_key[128];
        char last_state[512];
};

/* A command and what became of it. */
struct call {
        struct redis_command command;
        char text[512]; /* the words, cut at blanks */
        const char *argv[WORDS_MAX];
        size_t argv_size[WORDS_MAX];
        bool is_done;
        int order; /* the how manyth to be done */
        int status;
        char reply[512]; /* text or number; "(nil)", "(array of N)" */
        char error[ERROR_TEXT_MAX];
};

#define RUN_UNTIL(rig, condition)                                                                                      \
        do {                                                                                                           \
                uint64_t give_up_ms_ = clock_boot_ms() + PATIENCE_MS;                                                  \
                while (!(condition)) {                                                                                 \
                        if (clock_boot_ms() > give_up_ms_)                                                             \
                                fail_msg("%s:%d: never came: %s", __FILE__, __LINE__, #condition);                     \
                        (void)uv_run(&(rig)->loop, UV_RUN_ONCE);                                                       \
                }                                                                                                      \
        } while (0)

/* Fill in rig->open.options between the two for anything but the URL. */
void rig_init(struct rig *rig, const char *url);
int rig_open(struct rig *rig);
/* Both, with a bell; fails the test if it does not open. */
void rig_start(struct rig *rig, const char *url);
void rig_close(struct rig *rig);

/* Words of `format`, cut at blanks; the first one with a "{" or ":" decides the route, or none. */
__attribute__((format(printf, 3, 4))) void call_send(struct rig *rig, struct call *call, const char *format, ...);
/* Sends what `call` is made of already. */
void call_init(struct call *call, const char *text);
/* call_send() and waits.  Returns the status. */
__attribute__((format(printf, 3, 4))) int call_do(struct rig *rig, struct call *call, const char *format, ...);

#endif
