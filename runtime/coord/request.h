/* request.h: what coord.c does to a request before the driver gets it. */
#ifndef QUIVER_COORD_REQUEST_H
#define QUIVER_COORD_REQUEST_H

#include "coord/driver.h"

/* Clears the private part of a request without a tree (open, end). */
void coord_prepare(struct coord_request *request, enum coord_op op);
/* Also adds the request to the tree's list. */
void coord_begin(struct coord *coord, struct coord_request *request, enum coord_op op);
/* Passes the request to the driver, which also finishes a refused one. */
void coord_start(struct coord_request *request);
/* Marks the request as called wrongly.  If that happens twice, the first reason is kept. */
void coord_refuse(struct coord_request *request, int status, const char *what);

#endif
