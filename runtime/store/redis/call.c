/* Commands and their answers. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "store/redis/redis_store.h"

/* --- operations --- */

struct redis_op *op_begin(struct redis_store *s, struct store_request *request)
{
        struct redis_op *op = arena_take(request_arena(request), sizeof(*op));
        op->s = s;
        op->request = request;
        return op;
}

void op_fail(struct redis_op *op, int status, const char *format, ...)
{
        struct store_request *request = op->request;
        if (request->status)
                return;
        va_list args;
        va_start(args, format);
        (void)vsnprintf(request->error.text, sizeof(request->error.text), format, args);
        va_end(args);
        request->status = status;
}

void op_bad_answer(struct redis_op *op)
{
        redis_verify(op->s->redis);
        op_fail(op, -EPROTO, "%s: Redis gave an answer that this Quiver cannot read", store_op_name(op->request->op));
}

void op_bad_value(struct redis_op *op, const char *name)
{
        redis_verify(op->s->redis);
        op_fail(op, -EPROTO, "%s: Redis gave an answer whose %s is out of range", store_op_name(op->request->op), name);
}

void op_answered(struct redis_op *op)
{
        if (--op->pending)
                return;
        if (op->after)
                op->after(op);
        else
                request_finish(op->request, op->request->status);
}

static void on_done(struct redis_command *command)
{
        struct redis_call *call = (struct redis_call *)command;
        struct redis_op *op = call->op;
        if (!command->status) {
                if (call->answer)
                        call->answer(call, command->reply);
        } else if (call->failed && command->status != -ECANCELED) {
                call->failed(call);
        } else {
                char text[512];
                refusal_describe(op->s, command, text, sizeof(text));
                op_fail(op, command->status, "%s: %s", store_op_name(op->request->op), text);
        }
        op_answered(op);
}

/* --- commands --- */

static struct redis_call *call_make(struct redis_op *op, unsigned room)
{
        struct arena_chunk **arena = request_arena(op->request);
        struct redis_call *call = arena_take(arena, sizeof(*call));
        call->op = op;
        call->argv = arena_take(arena, room * sizeof(*call->argv));
        call->sizes = arena_take(arena, room * sizeof(*call->sizes));
        return call;
}

struct redis_call *call_arguments(struct redis_op *op, unsigned args)
{
        return call_make(op, args);
}

struct redis_call *call_new(struct redis_op *op, const char *name, unsigned args)
{
        struct redis_call *call = call_make(op, 1 + args);
        call_put(call, (struct span){ name, strlen(name) });
        return call;
}

struct redis_call *call_script_keys(struct redis_op *op, enum script_number script, unsigned keys, unsigned args)
{
        struct redis_call *call = call_make(op, 3 + keys + args);
        call->command.script = &op->s->scripts.all[script];
        call_put(call, SPAN_TEXT("EVALSHA"));
        call_put(call, (struct span){ call->command.script->sha, 40 });
        call_put_number(call, keys);
        return call;
}

/* The keys that every script of a shard gets (lua/lib/shard.lua).  The last one never exists, and is passed in a
 * Cluster only.  While a slot moves, a script could meet a key that is on the other server only after it has written;
 * if it is given a missing key, Redis answers TRYAGAIN at once until the slot has moved. */
static const char *const shard_keys[SHARD_KEYS] = { "shard", "high", "normal", "low", "delayed", "control", "never" };

static struct redis_shard *shard_get(struct redis_store *s, uint32_t number)
{
        struct redis_shard *shard = &s->shards[number];
        if (shard->keys)
                return shard;
        struct buffer b = { 0 };
        for (unsigned i = 0; i < SHARD_KEYS; i++) {
                size_t from = b.size;
                buffer_printf(&b, "quiver:{%s:%" PRIu32 "}:%s", s->store.app, number, shard_keys[i]);
                shard->key_sizes[i] = (uint16_t)(b.size - from);
                buffer_put(&b, "", 1);
        }
        shard->keys = (char *)b.data;
        return shard;
}

static struct span shard_key(struct redis_store *s, uint32_t number, unsigned which)
{
        const struct redis_shard *shard = shard_get(s, number);
        const char *at = shard->keys;
        for (unsigned i = 0; i < which; i++)
                at += shard->key_sizes[i] + 1;
        return (struct span){ at, shard->key_sizes[which] };
}

struct redis_call *call_script(struct redis_op *op, enum script_number script, uint32_t shard, unsigned args)
{
        unsigned keys = op->s->is_cluster ? SHARD_KEYS : SHARD_KEYS - 1;
        struct redis_call *call = call_script_keys(op, script, keys, args);
        call->shard = shard;
        for (unsigned i = 0; i < keys; i++)
                call_put(call, shard_key(op->s, shard, i));
        return call;
}

struct redis_call *call_script_unrung(struct redis_op *op, enum script_number script, uint32_t shard, unsigned args)
{
        static const unsigned few[] = { 0, 2, SHARD_KEYS - 1 };
        unsigned keys = op->s->is_cluster ? 3 : 2;
        struct redis_call *call = call_script_keys(op, script, keys, args);
        call->shard = shard;
        for (unsigned i = 0; i < keys; i++)
                call_put(call, shard_key(op->s, shard, few[i]));
        return call;
}

void call_put(struct redis_call *call, struct span argument)
{
        int at = call->command.argc++;
        call->argv[at] = argument.size ? argument.data : "";
        call->sizes[at] = argument.size;
}

void call_put_number(struct redis_call *call, uint64_t number)
{
        char text[24];
        char *at = text + sizeof(text);
        do
                *--at = (char)('0' + number % 10);
        while (number /= 10);
        call_put(call,
                arena_copy(request_arena(call->op->request), (struct span){ at, (size_t)(text + sizeof(text) - at) }));
}

void call_printf(struct redis_call *call, const char *format, ...)
{
        char text[1024];
        va_list args;
        va_start(args, format);
        int size = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (size < 0 || (size_t)size >= sizeof(text))
                abort();
        call_put(call, arena_copy(request_arena(call->op->request), (struct span){ text, (size_t)size }));
}

void call_put_lease(struct redis_call *call, const struct store_lease *lease)
{
        char nonce[2 * STORE_NONCE_SIZE + 1];
        nonce_text(lease->nonce, nonce);
        call_printf(call, "held %" PRIu64 " %s", lease->epoch, nonce);
}

static void call_start(struct redis_call *call, struct span route, bool is_tracked)
{
        struct redis_command *command = &call->command;
        command->done = on_done;
        command->argv = call->argv;
        command->argv_size = call->sizes;
        command->is_tracked = is_tracked;
        command->route = route;
        call->op->pending++;
        redis_send(call->op->s->redis, command);
}

/* The command's first key chooses the server. */
static struct span first_key(const struct redis_call *call)
{
        int at = call->command.script ? 3 : 1;
        return (struct span){ call->argv[at], call->sizes[at] };
}

void call_send(struct redis_call *call)
{
        call_start(call, first_key(call), false);
}

void call_send_untracked(struct redis_call *call)
{
        call->command.is_untracked = true;
        call_start(call, first_key(call), false);
}

void call_send_tracked(struct redis_call *call)
{
        call_start(call, first_key(call), true);
}

void call_send_to(struct redis_call *call, struct span key)
{
        call_start(call, key, false);
}

/* --- names --- */

struct span key_of_shard(struct redis_op *op, uint32_t shard, const char *name)
{
        char text[512];
        int size = snprintf(text, sizeof(text), "quiver:{%s:%" PRIu32 "}:%s", op->s->store.app, shard, name);
        return arena_copy(request_arena(op->request), (struct span){ text, (size_t)size });
}

struct span key_of_app(struct redis_op *op, const char *name)
{
        char text[512];
        int size = snprintf(text, sizeof(text), "quiver:{%s}:%s", op->s->store.app, name);
        return arena_copy(request_arena(op->request), (struct span){ text, (size_t)size });
}

struct span key_of_lane(struct redis_store *s, uint32_t shard, enum lane lane)
{
        return shard_key(s, shard, 1 + (unsigned)lane);
}

struct span key_of_lease(struct redis_store *s, uint32_t shard)
{
        return shard_key(s, shard, 0);
}

struct span key_of_rare(struct redis_store *s, uint32_t shard, unsigned which)
{
        static const unsigned rare[RARE_KEYS] = { 1, 3, 4, 5 }; /* in shard_keys: high, low, delayed, control */
        return shard_key(s, shard, rare[which]);
}

void nonce_text(const uint8_t nonce[STORE_NONCE_SIZE], char ret_text[2 * STORE_NONCE_SIZE + 1])
{
        (void)units_hex(ret_text, nonce, STORE_NONCE_SIZE);
}

bool nonce_read(struct span text, uint8_t ret_nonce[STORE_NONCE_SIZE])
{
        return units_hex_read(text.data, text.size, ret_nonce, STORE_NONCE_SIZE);
}

/* --- answers --- */

struct span reply_span(const redisReply *reply)
{
        bool is_text = reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
        return is_text ? (struct span){ reply->str, (size_t)reply->len } : (struct span){ 0 };
}

/* Accepts integers, which scripts return, and decimal digits, which hash fields hold. */
static bool number_read(const redisReply *reply, uint64_t *ret_number)
{
        uint64_t number = 0;
        if (!reply || (reply->type != REDIS_REPLY_INTEGER && reply->type != REDIS_REPLY_STRING))
                return false;
        if (reply->type == REDIS_REPLY_INTEGER) {
                *ret_number = (uint64_t)reply->integer;
                return reply->integer >= 0;
        }
        if (!reply->len || reply->len > 19)
                return false;
        for (size_t i = 0; i < reply->len; i++) {
                if (reply->str[i] < '0' || reply->str[i] > '9')
                        return false;
                number = number * 10 + (uint64_t)(reply->str[i] - '0');
        }
        *ret_number = number;
        return true;
}

uint64_t answer_number(struct redis_op *op, const redisReply *reply, uint64_t max, const char *name)
{
        uint64_t number = 0;
        if (number_read(reply, &number) && number <= max)
                return number;
        op_bad_value(op, name);
        return 0;
}

bool answer_bool(struct redis_op *op, const redisReply *reply, const char *name)
{
        return answer_number(op, reply, 1, name) == 1;
}

uint64_t answer_due(struct redis_op *op, const redisReply *reply)
{
        if (reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == -1)
                return STORE_NEVER;
        return answer_number(op, reply, TASK_NUMBER_MAX, "next due time");
}

size_t reply_count(const redisReply *reply)
{
        return reply && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

const redisReply *reply_at(const redisReply *reply, size_t index)
{
        return index < reply_count(reply) ? reply->element[index] : NULL;
}

bool reply_is_fenced(const redisReply *reply)
{
        return span_is(reply_span(reply), SPAN_TEXT("FENCED"));
}
