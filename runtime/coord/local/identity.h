/* identity.h: which folder this is, whatever it is called and whatever its machine calls itself.
 *
 * The store records where its hosts agree, so that two groups of hosts never share a store.  A path and a machine's
 * name are not enough to recognise a folder: it may be moved, /etc/machine-id may be made later, a container has a new
 * name at each start.  So a random id stands in the folder, in the file `identity`, with what was known of the machine:
 * as long as one of these facts still holds, it is the same folder.  On another machine none does, and a copy is
 * another place. */
#ifndef QUIVER_COORD_LOCAL_IDENTITY_H
#define QUIVER_COORD_LOCAL_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#define IDENTITY_ID_MAX   33u /* 32 hexadecimal digits */
#define IDENTITY_FACT_MAX 128u

/* What is known of a machine; "" is unknown. */
struct identity_facts {
        char machine_id[IDENTITY_FACT_MAX];
        char host_name[IDENTITY_FACT_MAX];
        char boot_id[IDENTITY_FACT_MAX];
};

/* Those of this machine. */
void identity_read_facts(struct identity_facts *ret_facts);

/* The id of the folder that is open as `fd`; makes one if it has none.  False: it has one that another machine made, or
 * none that can be read or written. */
bool identity_ensure(int fd, const struct identity_facts *facts, char ret_id[IDENTITY_ID_MAX]);

#endif
