/* symbol.h: what stands at an address, for a backtrace: "resize+0x12 (thumbs.so)".
 *
 * Plugins hide their symbols, so dladdr() would name none of them; this reads .symtab of the mapped file instead. Looks
 * into /proc/self/maps each time, so it knows what was loaded a moment ago.  Safe in a signal handler: open, read,
 * pread, fstat and close are all it calls. */
#ifndef QUIVER_RUNNER_SYMBOL_H
#define QUIVER_RUNNER_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runner/signal_text.h"

/* The file with these numbers is called `label` from now on: a private copy goes by the name that its author knows.
 * `label` is borrowed for good. */
void symbol_call_file(dev_t device, ino_t inode, const char *label);

/* The file that symbol_call_file() names is read through this descriptor where its path cannot be opened.  Borrowed for
 * good. */
void symbol_hold_file(int fd);

/* Appends "function+0x12 (file)"; "0x1234 (file)" with the address at link time if no function is known; or the bare
 * address.  `is_return`: a return address, which belongs to the call before it. */
void symbol_put(struct signal_text *to, uintptr_t address, bool is_return);

#endif
