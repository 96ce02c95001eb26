/* bury.h: coord_bury() for a folder. */
#ifndef QUIVER_COORD_LOCAL_BURY_H
#define QUIVER_COORD_LOCAL_BURY_H

#include "coord/coord.h"

void local_bury(struct uv_loop_s *loop, struct coord_bury *bury);

#endif
