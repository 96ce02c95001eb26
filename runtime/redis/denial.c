/* Turns a server's refusal for lack of a right into a text that names the right and says where the rules are. */
#include <ctype.h>
#include <string.h>

#include "redis/redis_private.h"

static const char *const in_scripts[] = {
        "ERR The user executing the script can't", /* 7.0 */
        "ERR ACL failure in script",               /* 7.2 */
        "NOPERM ACL failure in script",
};

bool denial_is(const char *said)
{
        if (!strncmp(said, "NOPERM ", 7))
                return true;
        for (size_t i = 0; i < sizeof(in_scripts) / sizeof(in_scripts[0]); i++)
                if (!strncmp(said, in_scripts[i], strlen(in_scripts[i])))
                        return true;
        return false;
}

void denial_describe(const struct redis_command *command, const char *user, const char *said, struct error *ret_error)
{
        const struct redis_script *script = command->script;
        const char *does = !script ? command->argv[0] : command->is_eval ? "EVAL" : command->argv[0];
        char what[96];
        char hint[160] = "";
        if (script)
                (void)snprintf(what, sizeof(what), "%s of the script \"%s\"", does, script->name);
        else
                (void)snprintf(what, sizeof(what), "%s", does);
        if (script && command->is_eval)
                (void)snprintf(hint, sizeof(hint),
                        " (this server does not have the script now; a host loads it when it connects, and at its next "
                        "renewal)");
        (void)error_set(ret_error, 0,
                "the Redis user \"%s\" lacks the right to %s on %.*s%s; \"quiver check --acl\" prints the rights of "
                "each role; Redis says: %.200s",
                user ? user : "default", what, (int)command->route.size, command->route.size ? command->route.data : "",
                hint, said);
}
