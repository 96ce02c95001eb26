/* text.h: ids as people and programs write them: decimal, base 32 and base 58 with the alphabets of the well-known
 * snowflake library. */
#ifndef QUIVER_ID_TEXT_H
#define QUIVER_ID_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define ID_TEXT_MAX 24u /* with the NUL */

enum id_base { ID_BASE_10 = 10, ID_BASE_32 = 32, ID_BASE_58 = 58 };

/* Returns ret_text. */
const char *id_format(uint64_t id, enum id_base base, char ret_text[ID_TEXT_MAX]);
/* False: a letter outside the alphabet, an empty text, or more than 63 bits. */
bool id_parse(struct span text, enum id_base base, uint64_t *ret_id);

#endif
