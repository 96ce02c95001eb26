#include "cli/json.h"

json_t *json_text(const char *text)
{
        json_t *json = json_string(text);
        return json ? json : json_string("(not UTF-8)");
}
