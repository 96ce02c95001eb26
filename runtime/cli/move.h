/* move.h: what `dump` writes and `load` reads: one JSON object a line.
 *
 *         {"quiver": "dump", "version": 1, "app": "demo", "shards": 64}
 *         {"state": "queued", "shard": 3, "lane": "normal", "envelope": "qv1\\nkey:…", "note": "qn1\\n…"}
 *         {"state": "delayed", …, "due_in_ms": 5000}
 *         {"state": "dead", …, "id": "…", "handler": "…", "reason": "exhausted", "at_ms": 1763256000123}
 *         {"held": "user-17", "reason": "by hand"}
 *         {"desired": "pause.mail", "value": "…"}
 *
 * Tasks of a shard come in the order in which they are to be loaded.  Bytes that are not UTF-8 stand in base64 under
 * NAME_base64. */
#ifndef QUIVER_CLI_MOVE_H
#define QUIVER_CLI_MOVE_H

#include "cli/open.h"

#define MOVE_VERSION 1

/* Refuses a store on which a host works: EXIT_DONE, or EXIT_FAILED after it said why. */
int move_check_idle(struct cli_store *s);

#endif
