/* end_session.h: coord_end_session() for a folder. */
#ifndef QUIVER_COORD_LOCAL_END_SESSION_H
#define QUIVER_COORD_LOCAL_END_SESSION_H

#include "coord/coord.h"

void local_end_session(struct uv_loop_s *loop, struct coord_end_session *end);

#endif
