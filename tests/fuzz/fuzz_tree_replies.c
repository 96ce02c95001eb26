/* Any answers of Redis to a client of the coordination tree: its session, a candidate, a lock, a member who follows the
 * others.  Each question that they ask gets the next answer that the bytes make.  Nobody crashes, nobody asks without
 * end, and what is told of a node is one that can be. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "coord/redis/redis_tree.h"
#include "tree_users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPS_MAX   256
#define WORD_PATH 7 /* EVALSHA sha 1 key NUMBER NONCE kind PATH … */

/* --- what the driver stands on, without a server --- */

static struct redis_command *sent[OPS_MAX];
static unsigned sent_count;

void redis_send(struct redis *redis, struct redis_command *command)
{
        (void)redis;
        demand(sent_count < OPS_MAX);
        sent[sent_count++] = command;
}

void redis_verify(struct redis *redis)
{
        (void)redis;
}

void redis_cancel(struct redis_command *command)
{
        (void)command; /* it comes back all the same */
}

void rtree_refuse(struct redis_tree *tree, int status, const char *why)
{
        remote_refuse_all(&tree->remote, status, why);
}

void redis_facts(const struct redis *redis, struct redis_facts *ret_facts)
{
        (void)redis;
        *ret_facts = (struct redis_facts){ .server = "here", .has_tracking = true };
}

static uint64_t tick(struct remote *remote, uint64_t now_ms)
{
        return rtree_session_tick((struct redis_tree *)remote, now_ms);
}

static const struct remote_hooks hooks = { .make = rtree_request_make,
        .send = rtree_request_send,
        .forget = rtree_op_forget,
        .beat = rtree_beat,
        .tick = tick };

const struct coord_driver local_driver, zookeeper_driver, etcd_driver;
const struct coord_driver redis_tree_driver = { .scheme = "redis", .start = remote_start };

/* --- answers --- */

static redisReply *make(int type)
{
        redisReply *reply = calloc(1, sizeof(*reply));
        if (!reply)
                abort();
        reply->type = type;
        return reply;
}

static redisReply *make_text(const char *text, size_t size)
{
        redisReply *reply = make(REDIS_REPLY_STRING);
        reply->str = malloc(size + 1);
        if (!reply->str)
                abort();
        memcpy(reply->str, text, size);
        reply->str[size] = 0;
        reply->len = (int)size;
        return reply;
}

static void add(redisReply *array, redisReply *item)
{
        array->element = realloc(array->element, (array->elements + 1) * sizeof(redisReply *));
        if (!array->element)
                abort();
        array->element[array->elements++] = item;
}

static void free_reply(redisReply *reply)
{
        for (size_t i = 0; i < reply->elements; i++)
                free_reply(reply->element[i]);
        free(reply->element);
        free(reply->str);
        free(reply);
}

static const char *const words[] = { "OK", "FAILED", "EXPIRED", "BROKEN", "NONODE", "EXISTS", "VERSION", "NOTEMPTY",
        "EPHEMERAL", "!broken", "node:election", "children:members", "nan", "", "-1", "0", "1", "7", "12",
        "9007199254740991", "9007199254740992", "99999999999999999999", "1e5", "election/me-0000000003",
        "election/me-       nan", "locks/one/me-0000000001", "me-0000000003", "me-0000000001", "x-0000000001",
        "x-0000000009", "x-00000000000000000001", "members/me", "me", "x", "a/b", "..", "me-", "-0000000001" };

static redisReply *make_any(struct choices *c, unsigned depth)
{
        unsigned kind = choose(c, 8);
        if (kind == 0)
                return make(REDIS_REPLY_NIL);
        if (kind == 1) {
                redisReply *reply = make(REDIS_REPLY_INTEGER);
                reply->integer = (long long)choose_number(c);
                return reply;
        }
        if (kind == 2 && depth) {
                redisReply *array = make(REDIS_REPLY_ARRAY);
                for (unsigned n = choose(c, 5); n; n--)
                        add(array, make_any(c, depth - 1));
                return array;
        }
        if (kind == 3) {
                size_t size = choose(c, 16);
                size = size < c->size ? size : c->size;
                redisReply *reply = make_text((const char *)c->data, size);
                c->data += size;
                c->size -= size;
                return reply;
        }
        const char *word = words[choose(c, sizeof(words) / sizeof(words[0]))];
        return make_text(word, strlen(word));
}

static redisReply *make_number(struct choices *c, const char *usual)
{
        char text[24];
        if (!choose(c, 8))
                return make_any(c, 1);
        if (!choose(c, 4))
                (void)snprintf(text, sizeof(text), "%" PRIu64, choose_number(c));
        else
                (void)snprintf(text, sizeof(text), "%s", usual);
        return make_text(text, strlen(text));
}

static void add_stat(redisReply *to, struct choices *c, const struct redis_tree *tree)
{
        add(to, make_number(c, "1"));
        add(to, make_number(c, "12"));
        add(to, make_number(c, choose(c, 3) ? tree->number : choose(c, 2) ? "0" : "5"));
}

static redisReply *make_names(struct choices *c)
{
        redisReply *names = make(REDIS_REPLY_ARRAY);
        for (unsigned n = choose(c, 4); n; n--)
                add(names, make_any(c, 0));
        return names;
}

/* What a create of that word of the command makes. */
static redisReply *make_made(struct choices *c, const struct tree_op *op)
{
        static const char *const ends[] = { "0000000001", "0000000002", "0000000000", "       nan", "00000000001", "",
                "-000000001" };
        redisReply *all = make(REDIS_REPLY_ARRAY), *one = make(REDIS_REPLY_ARRAY);
        struct buffer path = { 0 };
        if (op->command.argc > WORD_PATH)
                buffer_put(&path, op->argv[WORD_PATH], op->sizes[WORD_PATH]);
        buffer_printf(&path, "%s", ends[choose(c, sizeof(ends) / sizeof(ends[0]))]);
        add(one, choose(c, 16) ? make_text((const char *)path.data, path.size) : make_any(c, 0));
        add_stat(one, c, op->tree);
        add(all, one);
        buffer_free(&path);
        return all;
}

/* As the script that was asked answers, more often than not. */
static redisReply *make_reply(struct choices *c, const struct tree_op *op)
{
        const struct redis_script *asked = op->command.script;
        const struct redis_script *scripts = op->tree->scripts.all;
        if (!choose(c, 16))
                return make_any(c, 3);
        redisReply *reply = make(REDIS_REPLY_ARRAY), *changed = make(REDIS_REPLY_ARRAY);
        const char *word = words[choose(c, 4) ? 0 : choose(c, 4)];
        add(reply, make_text(word, strlen(word)));
        for (unsigned n = choose(c, 4) ? 0 : choose(c, 3); n; n--)
                add(changed, make_any(c, 1));
        add(reply, changed);
        if (asked == &scripts[TREE_CHILDREN]) {
                add(reply, make_names(c));
                add(reply, make_number(c, "1"));
        } else if (asked == &scripts[TREE_GET] && choose(c, 4)) {
                add(reply, make_any(c, 0));
                add_stat(reply, c, op->tree);
        } else if (asked == &scripts[TREE_WRITE]) {
                add(reply, make_made(c, op));
        } else if (asked != &scripts[TREE_GET]) {
                add(reply, make_number(c, "7"));
                add(reply, make_number(c, "3000"));
        }
        for (unsigned n = choose(c, 8) ? 0 : choose(c, 3); n; n--)
                add(reply, make_any(c, 2));
        return reply;
}

/* --- who asks --- */

struct scene {
        struct redis_tree tree;
        struct tree_users users;
};

static void open_scene(struct scene *s)
{
        struct coord_events events = users_events(&s->users);
        struct coord_options options = { .app = "demo", .session_ms = 10000, .events = &events };
        s->users.created_max = REPLY_NUMBER_MAX;
        coord_base_init(&s->tree.remote.coord, &redis_tree_driver, &options, "redis");
        s->tree.remote.hooks = &hooks;
        s->tree.remote.timer_at_ms = 0; /* as if it were about to fire: nobody sets it */
        s->tree.prefix = "quiver:{demo:coord}";
        s->tree.redis = (struct redis *)&s->tree; /* only asked whether it is there */
        users_begin(&s->users, &s->tree.remote.coord);
}

static void answer(struct redis_command *command, int status, redisReply *reply)
{
        command->status = status;
        command->reply = reply;
        command->error.text[0] = 0;
        command->done(command);
        if (reply)
                free_reply(reply);
}

/* The oldest question, in order of asking as a connection does. */
static struct redis_command *take_sent(void)
{
        struct redis_command *command = sent[0];
        memmove(sent, sent + 1, --sent_count * sizeof(struct redis_command *));
        return command;
}

static void close_scene(struct scene *s)
{
        remote_close(&s->tree.remote, NULL, NULL);
        coord_cancel(&s->tree.remote.coord, -125);
        while (sent_count)
                answer(take_sent(), -104, NULL);
        rtree_watch_free_all(&s->tree);
        member_free(&s->users.member);
        coord_base_free(&s->tree.remote.coord);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        static struct scene s;
        memset(&s, 0, sizeof(s));
        log_set_level(LEVEL_ERROR);
        sent_count = 0;
        open_scene(&s);
        while (c.size) {
                if (!sent_count)
                        s.tree.remote.next_beat_ms = 0;
                remote_turn(&s.tree.remote);
                if (!sent_count)
                        break;
                struct redis_command *command = take_sent();
                if (!choose(&c, 16))
                        answer(command, choose(&c, 2) ? -104 : -5, NULL);
                else
                        answer(command, 0, make_reply(&c, (struct tree_op *)command));
                if (!choose(&c, 8)) {
                        member_retry(&s.users.member);
                        leader_retry(&s.users.leader);
                }
        }
        close_scene(&s);
        return 0;
}
