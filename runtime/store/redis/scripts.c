#include "store/redis/scripts.h"

#include <string.h>

#define SCRIPT_ROW(script) [SCRIPT_##script] = { .name = #script, .text = SCRIPT_TEXT(script) },

void scripts_init(struct scripts *scripts)
{
        *scripts = (struct scripts){ .all = { SCRIPTS(SCRIPT_ROW) } };
        for (unsigned i = 0; i < SCRIPTS_COUNT; i++) {
                scripts->all[i].size = strlen(scripts->all[i].text);
                scripts->pointers[i] = &scripts->all[i];
        }
}
