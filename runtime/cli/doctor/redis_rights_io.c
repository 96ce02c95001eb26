#include "cli/doctor/redis_rights_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rights.h"
#include "config/connect.h"
#include "coord/coord.h"
#include "store/rights.h"

/* Of each line "COMMAND [PART]" in ARGV[2…]: whether the user may use it on ARGV[1], a key or a channel.  Nothing is
 * executed. */
static const char script[] = "local lacking = {}\n"
                             "for i = 3, #ARGV do\n"
                             "  local words = {}\n"
                             "  for word in string.gmatch(ARGV[i], '[^|]+') do words[#words + 1] = word end\n"
                             "  local on = words[1] == 'subscribe' and ARGV[2] or ARGV[1]\n"
                             "  for _ = 1, 3 do words[#words + 1] = on end\n"
                             "  local known, may = pcall(redis.acl_check_cmd, unpack(words))\n"
                             "  if known and not may then lacking[#lacking + 1] = ARGV[i] end\n"
                             "end\n"
                             "return lacking";

void redis_ask_block(int fd)
{
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0)
                (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

static void take_lacking(void *self, const redisReply *reply)
{
        struct strings *lacking = self;
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
                if (reply->element[i]->type == REDIS_REPLY_STRING && !strings_has(lacking, reply->element[i]->str))
                        strings_add(lacking, reply->element[i]->str);
}

/* "+hget" is the right to use HGET. */
static void ask_commands(struct redis_asker *a, const struct rights *rights, const char *key, const char *channel,
        struct doctor_rights *to)
{
        size_t count = rights->commands.count;
        const char **words = memory_zero(count + 5, sizeof(*words));
        int argc = 0;
        words[argc++] = "EVAL";
        words[argc++] = script;
        words[argc++] = "0";
        words[argc++] = key;
        words[argc++] = channel;
        for (size_t i = 0; i < count; i++)
                words[argc++] = rights->commands.items[i] + 1;
        int r = redis_ask_argv(a, argc, words, take_lacking, &to->lacking);
        to->is_known = r == 0 || r == -EPERM;
        if (r == -EPERM && !strings_has(&to->lacking, "eval"))
                strings_add(&to->lacking, "eval");
        free(words);
}

/* On a key of each pattern that the role may use: "~quiver:{demo}:*". */
static void ask_role(struct redis_asker *a, const struct rights *rights, struct doctor_rights *to)
{
        const char *channel = rights->channels.count ? rights->channels.items[0] + 1 : "none";
        to->is_known = true;
        for (size_t i = 0; i < rights->keys.count && to->is_known && !to->lacking.count; i++) {
                const char *pattern = rights->keys.items[i];
                char *key = text_printf("%.*sx", (int)strcspn(pattern, "*") - 1, pattern + 1);
                ask_commands(a, rights, key, channel, to);
                free(key);
        }
}

void redis_rights_ask(struct redis_asker *a, const struct config *config, const struct config_secrets *secrets,
        struct doctor_deployment *to)
{
        struct store_options store = store_options_of(config, secrets);
        struct coord_options tree = coord_options_of(config, secrets);
        struct rights host = { 0 }, operator= { 0 };
        bool is_shared = !strcmp(tree.url, "redis");
        if (!strcmp(to->of, "store")) {
                (void)store_rights(&store, STORE_HOST, &host);
                (void)store_rights(&store, STORE_OPERATOR, &operator);
        }
        if (is_shared || strcmp(to->of, "store") != 0) {
                (void)coord_rights(&tree, false, &host);
                (void)coord_rights(&tree, false, &operator);
        }
        ask_role(a, &host, &to->host);
        if (to->host.lacking.count)
                ask_role(a, &operator, & to->operator);
        rights_free(&host);
        rights_free(&operator);
}
