/* children.h: store tests with several processes.  A child is this program again, with other arguments, so that it
 * shares nothing with its parent but the store's files and one page of counters. */
#ifndef QUIVER_TESTS_CONTRACT_CHILDREN_H
#define QUIVER_TESTS_CONTRACT_CHILDREN_H

#include <sys/types.h>

#include "harness.h"

/* A driver on SQLite with the machine's clock, in the folder of $QUIVER_TEST_FOLDER. */
extern const struct contract_driver sqlite_real;

/* What parent and children share: which tasks were certainly submitted, perhaps done, certainly done. */
#define LEDGER_TASKS 400000u
struct ledger {
        uint32_t next; /* the last number given to a task */
        uint32_t ops;
        uint32_t epoch;
        uint8_t submitted[LEDGER_TASKS];
        uint8_t maybe_done[LEDGER_TASKS];
        uint8_t done[LEDGER_TASKS];
};

/* Makes the folder and the ledger, and sets the environment for children. */
struct ledger *children_setup(char folder[64]);
struct ledger *ledger_open(void);
void children_cleanup(const char *folder, struct ledger *ledger);

pid_t child_start(const char *role, const char *argument);
/* The exit status, as waitpid says it. */
int child_wait(pid_t pid);

/* A world on sqlite_real.  The nonce says who we are. */
void world_start(struct world *w, uint8_t who, uint32_t shards);
void world_end(struct world *w);

#endif
