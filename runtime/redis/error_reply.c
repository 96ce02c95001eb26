#include <stdlib.h>
#include <string.h>

#include "redis/redis_private.h"

/* Beginnings of error replies.  An entry with a blank is compared as a prefix, the others with the first word. */
static const struct rule {
        const char *word;
        enum reply_kind verdict;
        int status;
} rules[] = {
        { "MOVED", REPLY_MOVED, -EPROTO },
        { "ASK", REPLY_ASK, -EPROTO },
        { "NOSCRIPT", REPLY_RELOAD, -EPROTO },
        { "READONLY", REPLY_READONLY, -EROFS },
        { "MASTERDOWN", REPLY_READONLY, -EROFS },
        { "UNBLOCKED", REPLY_READONLY, -EROFS },
        { "LOADING", REPLY_LATER, -EBUSY },
        { "BUSY", REPLY_LATER, -EBUSY },
        { "TRYAGAIN", REPLY_LATER, -EBUSY },
        { "CLUSTERDOWN", REPLY_LATER, -EBUSY },
        { "NOAUTH", REPLY_FAILED, -EACCES },
        { "WRONGPASS", REPLY_FAILED, -EACCES },
        { "NOPERM", REPLY_FAILED, -EPERM },
        { "OOM", REPLY_FAILED, -ENOSPC },
        { "MISCONF", REPLY_FAILED, -EIO },
        { "NOREPLICAS", REPLY_FAILED, -EIO },
        { "WRONGTYPE", REPLY_FAILED, -EPROTO },
        { "BADVALUE", REPLY_FAILED, -EPROTO }, /* our own scripts, about a stored number that is out of range */
        { "CROSSSLOT", REPLY_FAILED, -EPROTO },
        { "ERR unknown command", REPLY_FAILED, -EPROTO },
        { "ERR unknown subcommand", REPLY_FAILED, -EPROTO },
        { "ERR wrong number of arguments", REPLY_FAILED, -EPROTO },
        { "ERR syntax error", REPLY_FAILED, -EPROTO },
};

enum reply_kind error_reply_judge(const redisReply *reply, int *ret_status)
{
        if (reply->type != REDIS_REPLY_ERROR)
                return REPLY_OK;
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
                const char *word = rules[i].word;
                size_t size = strlen(word);
                if (strncmp(reply->str, word, size) != 0)
                        continue;
                if (!strchr(word, ' ') && reply->str[size] && reply->str[size] != ' ')
                        continue;
                *ret_status = rules[i].status;
                return rules[i].verdict;
        }
        if (denial_is(reply->str)) {
                *ret_status = -EPERM;
                return REPLY_FAILED;
        }
        /* An error inside a script has READONLY in the middle of its text. */
        bool is_readonly = strstr(reply->str, "READONLY") != NULL;
        *ret_status = is_readonly ? -EROFS : -EREMOTEIO;
        return is_readonly ? REPLY_READONLY : REPLY_FAILED;
}

void error_reply_describe(const struct redis_command *command, const char *said, struct error *ret_error)
{
        const struct redis_script *script = command->script;
        const char *in_lua = script ? strstr(said, "user_script") : NULL;
        if (!in_lua) {
                (void)error_set(ret_error, 0, "%s", *said ? said : "the server refused it and does not say why");
                return;
        }
        (void)error_set(ret_error, 0,
                "the script \"%s\" failed on %.*s: something stored there is not as Quiver writes it, \"quiver fsck\" "
                "names "
                "it; Redis says: %.300s",
                script->name, (int)command->route.size, command->route.size ? command->route.data : "", said);
}

bool error_reply_target(const redisReply *reply, const struct address *from, uint16_t *ret_slot, struct address *ret_to)
{
        const char *at = strchr(reply->str, ' ');
        char *end = NULL;
        unsigned long slot = at ? strtoul(at + 1, &end, 10) : 0;
        const char *colon = strrchr(reply->str, ':'); /* an IPv6 address has more of them */
        if (!end || *end != ' ' || slot > 16383 || !colon || colon <= end)
                return false;
        const char *host = end + 1;
        size_t host_size = (size_t)(colon - host);
        unsigned long port = strtoul(colon + 1, &end, 10);
        if (*end || !port || port > 65535 || host_size >= sizeof(ret_to->host))
                return false;
        *ret_slot = (uint16_t)slot;
        *ret_to = *from;
        if (host_size) {
                memcpy(ret_to->host, host, host_size);
                ret_to->host[host_size] = 0;
        }
        ret_to->port = (uint16_t)port;
        return true;
}
