/* sized_struct.h: the structs of client.h that begin with their size, between a program and a library of different
 * versions. */
#ifndef QUIVER_CLIENT_SIZED_STRUCT_H
#define QUIVER_CLIENT_SIZED_STRUCT_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/numbers.h"

/* A smaller size cannot come from the _INIT macro. */
#define SIZED_MIN 8u
#define SIZED_MAX 4096u

static inline int sized_copy(void *to, uint32_t to_size, const void *from, uint32_t from_size)
{
        if (from_size < SIZED_MIN || from_size > SIZED_MAX || to_size < SIZED_MIN || to_size > SIZED_MAX)
                return -EINVAL;
        uint32_t size = min_u64(from_size, to_size);
        memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size), size - sizeof(size));
        return 0;
}

/* From the program: fields that it does not have keep their value in *to.  0 or -EINVAL. *to keeps its size. */
#define SIZED_COPY(to, from) sized_copy((to), sizeof(*(to)), (from), (from)->size)
/* To the program: fields that it does not have are left out. */
#define SIZED_FILL(to, from) sized_copy((to), (to)->size, (from), sizeof(*(from)))

#endif
