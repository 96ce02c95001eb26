#include "coord/zookeeper/client_log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "coord/zookeeper/client.h"

/* A client that cannot connect logs that several times a second. */
#define LINE_EVERY_MS 1000

static _Atomic uint64_t last_ms;
static _Atomic uint64_t left_out;

void zk_client_log_level(void)
{
        zoo_set_debug_level(log_level_get() == LEVEL_DEBUG ? ZOO_LOG_LEVEL_INFO : ZOO_LOG_LEVEL_ERROR);
}

static bool may_write(void)
{
        uint64_t now_ms = clock_boot_ms();
        uint64_t before_ms = atomic_load(&last_ms);
        if ((!before_ms || now_ms - before_ms >= LINE_EVERY_MS) &&
                atomic_compare_exchange_strong(&last_ms, &before_ms, now_ms))
                return true;
        (void)atomic_fetch_add(&left_out, 1);
        return false;
}

/* Parses "DATE TIME:PID(THREAD):ZOO_ERROR@function@line: text".  The client's errors are mostly servers that it could
 * not reach: it tries the next one by itself, and nobody has to act. */
void zk_client_log(const char *message)
{
        const char *level = strstr(message, ":ZOO_");
        const char *text = level ? strstr(level, ": ") : NULL;
        if (!may_write())
                return;
        uint64_t skipped = atomic_exchange(&left_out, 0);
        log_event(level && level[5] == 'E' ? LEVEL_INFO : LEVEL_DEBUG, "zookeeper-client", "text=%s left_out=%llu",
                LOG_QUOTE(text ? text + 2 : message), (unsigned long long)skipped);
}
