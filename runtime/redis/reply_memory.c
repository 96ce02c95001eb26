#include "redis/reply_memory.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"

static redisReply *object_new(const redisReadTask *task, int type)
{
        struct reply_memory *memory = task->privdata;
        redisReply *reply = arena_take(&memory->arena, sizeof(*reply));
        reply->type = type;
        if (task->parent) {
                redisReply *parent = task->parent->obj;
                parent->element[task->idx] = reply;
        }
        return reply;
}

static void *create_string(const redisReadTask *task, char *text, size_t size)
{
        struct reply_memory *memory = task->privdata;
        redisReply *reply = object_new(task, task->type);
        struct span copy = arena_copy(&memory->arena, (struct span){ text, size });
        reply->str = (char *)copy.data;
        reply->len = size;
        return reply;
}

static void *create_array(const redisReadTask *task, int elements)
{
        struct reply_memory *memory = task->privdata;
        if (elements < 0 || (uint32_t)elements > memory->elements_max - memory->elements)
                return NULL;
        memory->elements += (uint32_t)elements;
        redisReply *reply = object_new(task, REDIS_REPLY_ARRAY);
        reply->elements = (size_t)elements;
        reply->element = arena_take(&memory->arena, (size_t)elements * sizeof(redisReply *));
        return reply;
}

static void *create_integer(const redisReadTask *task, long long value)
{
        redisReply *reply = object_new(task, REDIS_REPLY_INTEGER);
        reply->integer = value;
        return reply;
}

static void *create_nil(const redisReadTask *task)
{
        return object_new(task, REDIS_REPLY_NIL);
}

static void free_object(void *reply)
{
        (void)reply; /* freed with the arena */
}

redisReader *reply_memory_reader(struct reply_memory *memory, uint32_t elements_max)
{
        static redisReplyObjectFunctions functions = {
                .createString = create_string,
                .createArray = create_array,
                .createInteger = create_integer,
                .createNil = create_nil,
                .freeObject = free_object,
        };
        redisReader *reader = memory_or_abort(redisReaderCreateWithFunctions(&functions));
        reader->privdata = memory;
        memory->elements_max = elements_max;
        return reader;
}

void reply_memory_reset(struct reply_memory *memory)
{
        arena_reset(&memory->arena);
        memory->elements = 0;
}

void reply_memory_free(struct reply_memory *memory)
{
        arena_free(memory->arena);
        *memory = (struct reply_memory){ 0 };
}
