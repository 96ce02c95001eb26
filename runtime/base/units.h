/* units.h: "30s", "64KiB" and back; bytes as hexadecimal digits. */
#ifndef QUIVER_BASE_UNITS_H
#define QUIVER_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Reads a duration: a decimal number and one of ms, s, m, h, d ("1.5s", "250ms").  A bare 0 is allowed; any other bare
 * number is refused, because its unit would be a guess.  0, or -EINVAL / -ERANGE with the text set. */
int units_duration_ms(const char *text, uint64_t *ret_ms, struct error *error);

/* Reads a size: a decimal number and one of B, K/KB/KiB, M/MB/MiB, G/GB/GiB, all powers of 1024; a bare number is
 * bytes. */
int units_size_bytes(const char *text, uint64_t *ret_bytes, struct error *error);

#define UNITS_TEXT_MAX 32

/* For people, rounded to at most one decimal: "250ms", "1.5s", "10m", "3d".  Returns `text`. */
const char *units_format_ms(char text[UNITS_TEXT_MAX], uint64_t ms);

/* The same from nanoseconds, down to "0.4us". */
const char *units_format_ns(char text[UNITS_TEXT_MAX], uint64_t ns);

/* "512 B", "1.5 KiB", "64 MiB". */
const char *units_format_bytes(char text[UNITS_TEXT_MAX], uint64_t bytes);

/* Two lower-case digits per byte, and a NUL: 2 * size + 1 bytes.  Returns `text`. */
const char *units_hex(char *text, const void *bytes, size_t size);
/* The reverse: exactly two lower-case digits per byte.  False for anything else. */
bool units_hex_read(const char *text, size_t text_size, uint8_t *ret_bytes, size_t size);

#endif
