/* fsck_ids.h: tasks that have the id of another one.
 *
 * No damage: the store goes by seq, and a producer may use an id twice.  But `quiver task ID` shows only one of them,
 * and two dumps of the same tasks that were both loaded look just like that. */
#ifndef QUIVER_CLI_ADMIN_FSCK_IDS_H
#define QUIVER_CLI_ADMIN_FSCK_IDS_H

#include "cli/open.h"

/* Of one shard: how many tasks have an id that another one had before them; adds a line that names some to `report`.
 * Reads all of the shard's tasks, 24 bytes of memory each.  0 or -errno. */
int fsck_equal_ids(
        struct cli_store *s, uint32_t shard, struct buffer *report, uint64_t *ret_count, struct error *error);

#endif
