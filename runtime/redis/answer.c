#include <stdlib.h>
#include <string.h>

#include "redis/parts.h"

/* What an error reply begins with.  A word with a blank is compared as it stands, the others up to the first blank. */
static const struct rule {
        const char *word;
        enum verdict verdict;
        int status;
} rules[] = {
        { "MOVED", ANSWER_MOVED, -EPROTO },
        { "ASK", ANSWER_ASK, -EPROTO },
        { "NOSCRIPT", ANSWER_RELOAD, -EPROTO },
        { "READONLY", ANSWER_READONLY, -EROFS },
        { "MASTERDOWN", ANSWER_READONLY, -EROFS },
        { "UNBLOCKED", ANSWER_READONLY, -EROFS },
        { "LOADING", ANSWER_LATER, -EBUSY },
        { "BUSY", ANSWER_LATER, -EBUSY },
        { "TRYAGAIN", ANSWER_LATER, -EBUSY },
        { "CLUSTERDOWN", ANSWER_LATER, -EBUSY },
        { "NOAUTH", ANSWER_FAILED, -EACCES },
        { "WRONGPASS", ANSWER_FAILED, -EACCES },
        { "NOPERM", ANSWER_FAILED, -EACCES },
        { "OOM", ANSWER_FAILED, -ENOSPC },
        { "MISCONF", ANSWER_FAILED, -EIO },
        { "NOREPLICAS", ANSWER_FAILED, -EIO },
        { "WRONGTYPE", ANSWER_FAILED, -EPROTO },
        { "BADVALUE", ANSWER_FAILED, -EPROTO }, /* what our own scripts say of a number that is not as it should be */
        { "CROSSSLOT", ANSWER_FAILED, -EPROTO },
        { "ERR unknown command", ANSWER_FAILED, -EPROTO },
        { "ERR unknown subcommand", ANSWER_FAILED, -EPROTO },
        { "ERR wrong number of arguments", ANSWER_FAILED, -EPROTO },
        { "ERR syntax error", ANSWER_FAILED, -EPROTO },
};

enum verdict answer_judge(const redisReply *reply, int *ret_status)
{
        if (reply->type != REDIS_REPLY_ERROR)
                return ANSWER_OK;
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
        /* A script that ran into it says so in the middle of its own words. */
        bool is_readonly = strstr(reply->str, "READONLY") != NULL;
        *ret_status = is_readonly ? -EROFS : -EREMOTEIO;
        return is_readonly ? ANSWER_READONLY : ANSWER_FAILED;
}

bool answer_target(const redisReply *reply, const struct address *from, uint16_t *ret_slot, struct address *ret_to)
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
