/* machine.h: a slot chosen by a person: a number, or derived from the machine's address. */
#ifndef QUIVER_ID_MACHINE_H
#define QUIVER_ID_MACHINE_H

#include "id/layout.h"

/* "17", or "address": the low bits of the first private IPv4 address, as many as a slot has.  0, or -errno with the
 * text set. */
int id_machine(const char *setting, const struct id_layout *layout, uint32_t *ret_number, struct error *error);

#endif
