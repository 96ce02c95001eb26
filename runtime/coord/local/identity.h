/* identity.h: identifies a folder, whatever its path and its machine's name are.
 *
 * The store records where its hosts coordinate, so that two groups of hosts never share a store.  A path and a
 * machine's name do not identify a folder: it may be moved, /etc/machine-id may be made later, a container has a new
 * name at each start.  So the file `identity` in the folder holds a random id and facts about the machine: while one of
 * the facts still holds, it is the same folder.  On another machine none does, so a copy counts as another place. */
#ifndef QUIVER_COORD_LOCAL_IDENTITY_H
#define QUIVER_COORD_LOCAL_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#define IDENTITY_ID_MAX   33u /* 32 hexadecimal digits */
#define IDENTITY_FACT_MAX 128u

/* Facts about a machine; "" is unknown. */
struct identity_facts {
        char machine_id[IDENTITY_FACT_MAX];
        char host_name[IDENTITY_FACT_MAX];
        char boot_id[IDENTITY_FACT_MAX];
};

/* Reads the facts about this machine. */
void identity_read_facts(struct identity_facts *ret_facts);

/* The id of the folder that is open as `fd`; makes one if it has none.  False: another machine made the id, or it
 * cannot be read or written. */
bool identity_ensure(int fd, const struct identity_facts *facts, char ret_id[IDENTITY_ID_MAX]);

#endif
