/* machine.h: a slot that a person chose: a number, or what the machine's address gives. */
#ifndef QUIVER_ID_MACHINE_H
#define QUIVER_ID_MACHINE_H

#include "id/layout.h"

/* "17", or "address": as many low bits of the first private IPv4 address as a slot has.  0, or -errno with the text. */
int id_machine(const char *setting, const struct id_layout *layout, uint32_t *ret_number, struct error *error);

#endif
