/* redis_server.h: a Redis that answers anything, for fuzzers of the store's driver.
 *
 * The store is the real one up to redis_send(), which is here.  Replies are made in three ways from the input: as they
 * should be with some values replaced, as any tree, or as bytes that hiredis parses.  For one source file of a program.
 */
#ifndef QUIVER_TESTS_FUZZ_REDIS_SERVER_H
#define QUIVER_TESTS_FUZZ_REDIS_SERVER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/log.h"
#include "host/shard/window.h"
#include "redis/redis.h"
#include "store/driver.h"

#define SHARDS     4u
#define NOW_MS     1794804690543
#define DEPTH_MAX  4u
#define ITEMS      4u
#define VALUES_MAX 32u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void demand(bool is_true)
{
        if (!is_true)
                abort();
}

/* --- the input ------------------------------------------------------------------------------------------------------
 */

static struct span input;

static inline uint8_t take_byte(void)
{
        if (!input.size)
                return 0;
        input.size--;
        return (uint8_t)*input.data++;
}

static inline struct span take_bytes(size_t size)
{
        struct span taken = { input.data, size < input.size ? size : input.size };
        input.data += taken.size;
        input.size -= taken.size;
        return taken;
}

/* --- replies as trees -----------------------------------------------------------------------------------------------
 */

static const struct span texts[] = {
        SPAN_TEXT("qv1\nkey:k\nhandler:work\n\npayload"),
        SPAN_TEXT("qv1\nkey:\nhandler:work\nid:a-0\nreply:1\nattempts:3\n\n"),
        SPAN_TEXT("qv1\nkey:k\nhandler:work\nnot_before:9007199254740991\n\n"),
        SPAN_TEXT("qv1\nkey:k\nhandler:work\nreply:99999999999999999999\n\n"),
        SPAN_TEXT("qn1\nattempts:2\nsuspect:1\nevent:1 crash why\n\ncheckpoint"),
        SPAN_TEXT("qn1\nattempts:4294967295\nstarted:99999999999999999999\n\n"),
        SPAN_TEXT("00112233445566778899aabbccddeeff"),
        SPAN_TEXT("FENCED"),
        SPAN_TEXT("HELD"),
        SPAN_TEXT("18446744073709551616"),
        SPAN_TEXT("281474976710657"),
        SPAN_TEXT("-1"),
        SPAN_TEXT("nan"),
        SPAN_TEXT(""),
};

static const long long numbers[] = { 0, 1, 2, 3, 4, 5, -1, -2, 63, 64, 65, 255, 256, 257, 281474976710656,
        281474976710657, 844424930131967, 844424930131968, 2533274790395905, 9007199254740991, 9007199254740992, NOW_MS,
        INT64_MAX, INT64_MIN, UINT32_MAX };

static inline redisReply *reply_make(int type)
{
        redisReply *reply = calloc(1, sizeof(*reply));
        demand(reply);
        reply->type = type;
        return reply;
}

static inline redisReply *reply_integer(long long value)
{
        redisReply *reply = reply_make(REDIS_REPLY_INTEGER);
        reply->integer = value;
        return reply;
}

static inline redisReply *reply_text(int type, const void *data, size_t size)
{
        redisReply *reply = reply_make(type);
        reply->str = malloc(size + 1);
        demand(reply->str);
        if (size)
                memcpy(reply->str, data, size);
        reply->str[size] = 0;
        reply->len = size;
        return reply;
}

static inline redisReply *reply_array(size_t count)
{
        redisReply *reply = reply_make(REDIS_REPLY_ARRAY);
        reply->elements = count;
        reply->element = calloc(count ? count : 1, sizeof(redisReply *));
        demand(reply->element);
        return reply;
}

/* A list of texts, as the tasks of a block and their notes; one of them may be missing. */
static inline redisReply *reply_texts(void)
{
        redisReply *reply = reply_array(take_byte() % ITEMS);
        for (size_t i = 0; i < reply->elements; i++) {
                struct span text = texts[take_byte() % (sizeof(texts) / sizeof(texts[0]))];
                reply->element[i] = take_byte() > 240 ? reply_make(REDIS_REPLY_NIL)
                                                      : reply_text(REDIS_REPLY_STRING, text.data, text.size);
        }
        return reply;
}

/* An outcome as a script packs it, with some of its bytes replaced. */
static inline redisReply *reply_outcome(void)
{
        static const char *const packed[] = { "\x95\x01\x01\xa4"
                                              "data\xa0\xa0",
                "\x95\x02\x00\xa0\xa6"
                "reason\xd9\x05qn1\n\n",
                "\x95\x03\x01\xa3"
                "a-1\xa0\xa0",
                "\x95\x01\x01\xdb\x00\x00\x00\x02xy\xda\x00\x00\xa0" };
        static const size_t sizes[] = { 10, 19, 9, 15 };
        unsigned which = take_byte() % 4;
        redisReply *reply = reply_text(REDIS_REPLY_STRING, packed[which], sizes[which]);
        for (unsigned i = take_byte() % 4; i; i--)
                reply->str[take_byte() % reply->len] = (char)take_byte();
        return reply;
}

static inline redisReply *reply_any(unsigned depth)
{
        struct span text;
        long long raw = 0;
        redisReply *reply;
        switch (take_byte() % 8) {
        case 0:
                return reply_integer(take_byte());
        case 1:
                return reply_integer(numbers[take_byte() % (sizeof(numbers) / sizeof(numbers[0]))]);
        case 2:
                for (unsigned i = 0; i < 8; i++)
                        raw = (long long)((unsigned long long)raw << 8 | take_byte());
                return reply_integer(raw);
        case 3:
                text = texts[take_byte() % (sizeof(texts) / sizeof(texts[0]))];
                return reply_text(REDIS_REPLY_STRING, text.data, text.size);
        case 4:
                text = take_bytes(take_byte());
                return reply_text(take_byte() & 1 ? REDIS_REPLY_STATUS : REDIS_REPLY_STRING, text.data, text.size);
        case 5:
                return reply_texts();
        case 6:
                reply = reply_array(depth < DEPTH_MAX ? take_byte() % 24 : 0);
                for (size_t i = 0; i < reply->elements; i++)
                        reply->element[i] = reply_any(depth + 1);
                return reply;
        default:
                return reply_make(REDIS_REPLY_NIL);
        }
}

/* --- replies as they should be --------------------------------------------------------------------------------------
 */

/* i: 0 or 1, n: a number, t: the time, d: -1, s: seq, h: a nonce, a: an id, g: a digest, v: an idempotency name and a
 * key, w: a handler, e: an envelope, o: a note, l: a definition of a limit, r: a value of one, q: its record, p: a list
 * of envelopes, z: 0, x: troubles, b: bits that say that tasks stand in their list, u: the seq of the first of these;
 * in brackets: a list, whose rows may be repeated. */
/* What the program's requests are answered with. */
extern const char *const shapes[];
extern const size_t shapes_count;

/* How many tasks were too long, and lines. */
static inline redisReply *reply_troubles(void)
{
        redisReply *troubles = reply_array(2);
        redisReply *lines = reply_array(take_byte() % 3);
        for (size_t i = 0; i < lines->elements; i++)
                lines->element[i] = reply_any(2);
        troubles->element[0] = reply_integer(take_byte() & 3);
        troubles->element[1] = lines;
        return troubles;
}

static inline redisReply *reply_value(char what)
{
        struct span text;
        switch (what) {
        case 'i':
                return reply_integer(take_byte() & 1);
        case 'n':
                return reply_integer(take_byte() & 3);
        case 't':
                return reply_integer(NOW_MS);
        case 'd':
                return reply_integer(-1);
        case 'b':
                return reply_integer(512 | (take_byte() & 7));
        case 'u':
                return reply_integer((long long)((uint64_t)LANE_NORMAL << STORE_SEQ_LANE_SHIFT | 1));
        case 's':
                return reply_integer(
                        (long long)((uint64_t)(take_byte() % LANES) << STORE_SEQ_LANE_SHIFT | take_byte()));
        case 'p':
                return reply_texts();
        case 'z':
                return reply_integer(0);
        case 'x':
                return reply_troubles();
        case 'h':
                text = texts[6];
                break;
        case 'w':
                text = SPAN_TEXT("work");
                break;
        case 'a':
                text = SPAN_TEXT("a-1");
                break;
        case 'v':
                text = SPAN_TEXT("name\nk");
                break;
        case 'g':
                text = SPAN_TEXT("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
                break;
        case 'e':
                text = texts[take_byte() % 4];
                break;
        case 'l':
                text = take_byte() & 1 ? SPAN_TEXT("1 10 1000 5 0 0 9") : SPAN_TEXT("1 0 0 0 5 500 9");
                break;
        case 'r':
                text = SPAN_TEXT("tenant");
                break;
        case 'q':
                text = take_byte() & 1 ? SPAN_TEXT("4000 1794804690543")
                                       : SPAN_TEXT("00112233445566778899aabbccddeeff:3:1794804690999");
                break;
        case 'o':
                text = take_byte() & 1 ? texts[4] : SPAN_TEXT("");
                break;
        default:
                text = SPAN_TEXT("");
        }
        return reply_text(REDIS_REPLY_STRING, text.data, text.size);
}

/* Fills a list of at most VALUES_MAX values from a shape, up to its end or its closing bracket. */
static inline redisReply *reply_shaped(const char **shape)
{
        redisReply *made[VALUES_MAX] = { NULL };
        size_t count = 0;
        for (; **shape && **shape != ']' && count < VALUES_MAX; ++*shape) {
                if (take_byte() > 240)
                        made[count++] = reply_any(2);
                else if (**shape != '[')
                        made[count++] = reply_value(**shape);
                else {
                        ++*shape;
                        const char *inner = *shape;
                        made[count] = reply_shaped(&inner);
                        if (**shape && take_byte() & 1) { /* as rows that are lists themselves */
                                redisReply *rows = reply_array(1);
                                rows->element[0] = made[count];
                                made[count] = rows;
                        }
                        count++;
                        *shape = strchr(*shape, ']');
                }
        }
        redisReply *reply = reply_array(count);
        memcpy(reply->element, made, count * sizeof(*made));
        return reply;
}

/* --- the server -----------------------------------------------------------------------------------------------------
 */

static struct redis_open *opening;
static struct redis_command *sent, **sent_tail = &sent;
static redisReader *reader; /* not NULL: the input is what a server writes */
static bool is_opening, is_granting;
static struct store *store;

void redis_open(struct uv_loop_s *loop, struct redis_open *open)
{
        (void)loop;
        open->redis = (struct redis *)open;
        opening = open;
}

void redis_close(struct redis *redis, void (*closed)(void *self), void *self)
{
        (void)redis;
        if (closed)
                closed(self);
}

void redis_facts(const struct redis *redis, struct redis_facts *ret_facts)
{
        (void)redis;
        *ret_facts = (struct redis_facts){
                .version = "7.0.0", .mode = "standalone", .role = "master", .has_tracking = true
        };
        (void)snprintf(ret_facts->maxmemory_policy, sizeof(ret_facts->maxmemory_policy), "noeviction");
}

void redis_verify(struct redis *redis)
{
        (void)redis;
}

void redis_flush(struct redis *redis)
{
        (void)redis;
}

void redis_want_bell(struct redis *redis)
{
        (void)redis;
}

void redis_send(struct redis *redis, struct redis_command *command)
{
        (void)redis;
        command->next = NULL;
        command->sends = take_byte() > 240 ? 2 : 1;
        *sent_tail = command;
        sent_tail = &command->next;
}

/* What acquire says of a shard in which nothing is. */
static inline redisReply *reply_granted(void)
{
        static const long long values[] = { 0, 5, 2, 1000, 0, 0, -1, 0, NOW_MS, 0 };
        redisReply *reply = reply_array(13);
        for (unsigned i = 0; i < 10; i++)
                reply->element[i] = reply_integer(values[i]);
        reply->element[10] = reply_array(0);
        reply->element[11] = reply_integer(0);
        reply->element[12] = reply_integer(0);
        return reply;
}

/* Now, and what became of one shard: more of it, small ones, the last number, how many; or it is no common case. */
static inline redisReply *reply_many(void)
{
        const char *shape = "innn";
        redisReply *reply = reply_array(2);
        reply->element[0] = reply_value('t');
        reply->element[1] = take_byte() > 32 ? reply_shaped(&shape) : reply_value('z');
        return reply;
}

static inline redisReply *reply_next(const struct redis_command *command)
{
        void *reply = NULL;
        if (is_granting)
                return reply_granted();
        if (is_opening) {
                static const char *const said[] = { "2", "4", "", "limits merge names rooms schedules", "",
                        "41.10.12" };
                redisReply *record = reply_array(7);
                for (unsigned i = 0; i < 6; i++)
                        record->element[i] = reply_text(REDIS_REPLY_STRING, said[i], strlen(said[i]));
                record->element[6] = reply_integer(0);
                return record;
        }
        if (!input.size && !reader)
                return NULL;
        if (reader)
                return redisReaderGetReply(reader, &reply) == REDIS_OK ? reply : NULL;
        uint8_t choice = take_byte();
        if (choice < 192 && !strcmp(command->argv[0], "LRANGE"))
                return reply_texts();
        if (choice < 192 && command->script && !strcmp(command->script->name, "advance_many"))
                return reply_many();
        if (choice < 192 && !strcmp(command->argv[0], "GET"))
                return reply_outcome();
        if (choice & 1)
                return reply_any(0);
        const char *shape = shapes[(choice >> 1) % (shapes_count)];
        return reply_shaped(&shape);
}

static inline void answer_all(void)
{
        if (store)
                store_flush(store);
        while (sent) {
                struct redis_command *command = sent;
                sent = command->next;
                if (!sent)
                        sent_tail = &sent;
                redisReply *reply = reply_next(command);
                bool is_good = reply && reply->type != REDIS_REPLY_ERROR;
                command->reply = is_good ? reply : NULL;
                command->status = is_good ? 0 : reply ? -EREMOTEIO : -ECONNRESET;
                command->done(command);
                freeReplyObject(reply);
        }
}

/* --- the requests ---------------------------------------------------------------------------------------------------
 */

static struct window window;
static unsigned done_count;

static inline void on_done(struct store_request *request)
{
        (void)request;
        done_count++;
}

static inline void look_at(struct span bytes)
{
        volatile char seen = 0;
        for (size_t i = 0; i < bytes.size; i++)
                seen = (char)(seen ^ bytes.data[i]);
}

static inline void look_at_due(uint64_t due_ms)
{
        demand(due_ms <= TASK_NUMBER_MAX || due_ms == STORE_NEVER);
}

static const struct store_lease lease = { .shard = 1, .epoch = 7, .ttl_ms = 1000 };

static inline void open_done(struct store_request *request)
{
        demand(!request->status);
        store = ((struct store_open *)request)->store;
}

/* Of the two drivers only one is meant. */
const struct store_driver sqlite_driver = { .scheme = "sqlite" };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        static struct store_open open = { .request.done = open_done,
                .options = { .url = "redis://127.0.0.1:1", .app = "fuzz", .may_create = true } };
        (void)argc;
        (void)argv;
        is_opening = true;
        store_open(uv_default_loop(), &open);
        opening->opened(opening, 0);
        answer_all();
        is_opening = false;
        demand(store);
        return 0;
}

/* One input: `start` starts one request, by the first byte, and it ends once. */
static inline void fuzz_one(const uint8_t *data, size_t size, void (*start)(uint8_t choice))
{
        input = (struct span){ (const char *)data, size };
        uint8_t choice = take_byte();
        window_init(&window, 2, 16);
        done_count = 0;
        if (choice & 128) {
                reader = redisReaderCreate();
                demand(reader && (!input.size || redisReaderFeed(reader, input.data, input.size) == REDIS_OK));
        }
        start(choice);
        answer_all();
        (void)uv_run(uv_default_loop(), UV_RUN_NOWAIT);
        answer_all();
        demand(done_count == 1);
        for (uint32_t line = 0; line < 2 * LANES; line++)
                for (struct claimed *c; (c = window_next(&window, line / LANES, (enum lane)(line % LANES)));)
                        window_drop(&window, c);
        window_free(&window);
        if (reader)
                redisReaderFree(reader);
        reader = NULL;
}

#endif
