/* clock_file.h: the wall clock of servers that a test moves, as tests/preload/clock.c shows it to them. */
#ifndef QUIVER_TESTS_CONTRACT_CLOCK_FILE_H
#define QUIVER_TESTS_CONTRACT_CLOCK_FILE_H

#include <stdint.h>

/* What it shows when a test begins. */
#define CLOCK_START_MS UINT64_C(1763256000000)

/* Every redis-server that is started from here on has this clock: milliseconds since 1970 that stand still, or 0 for
 * the machine's own.  The memory stays mapped. */
uint64_t *clock_file_open(void);
/* Whoever is started after this has the machine's clock.  Call it when those with the other one answer. */
void clock_file_close(void);

#endif
