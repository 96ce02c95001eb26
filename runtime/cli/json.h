/* json.h: the former names of what cli/print.h and view/json.h offer, for the commands that still use them. */
#ifndef QUIVER_CLI_JSON_H
#define QUIVER_CLI_JSON_H

#include "cli/print.h"
#include "view/json.h"

#define cli_json_text     view_json_text
#define cli_json_bytes    view_json_bytes
#define cli_json_span     view_json_span
#define cli_json_number   view_json_number
#define cli_base64_decode view_base64_decode

#endif
