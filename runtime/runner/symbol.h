/* symbol.h: names the code at an address, for a backtrace: "resize+0x12 (thumbs.so)".
 *
 * Plugins hide their symbols from dladdr(), so this reads .symtab of the mapped file instead.  It reads
 * /proc/self/maps each time, so it also knows files that were just loaded.  Safe in a signal handler: it calls only
 * open, read, pread, fstat and close. */
#ifndef QUIVER_RUNNER_SYMBOL_H
#define QUIVER_RUNNER_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runner/signal_text.h"

/* From now on the file with these numbers is called `label`: a plugin copy is shown under the name of the original
 * file.  `label` must stay valid. */
void symbol_call_file(dev_t device, ino_t inode, const char *label);

/* The file of symbol_call_file() is read through this descriptor if its path cannot be opened.  The descriptor must
 * stay open. */
void symbol_hold_file(int fd);

/* Appends "function+0x12 (file)"; "0x1234 (file)" with the link-time address if no function is known; or the bare
 * address.  `is_return` marks a return address, which belongs to the call before it.  Returns the link-time address of
 * the code if it lies in the file of symbol_call_file(); else 0. */
uint64_t symbol_put(struct signal_text *to, uintptr_t address, bool is_return);

#endif
