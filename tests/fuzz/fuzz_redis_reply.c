/* Whatever a Redis answers: the store's driver reads nothing outside of it, every request ends once, and what it hands
 * out is in range: a window takes it.
 *
 * The store is the real one up to redis_send(), which is here.  Replies are made in three ways from the input: as they
 * should be with some values replaced, as any tree, or as bytes that hiredis parses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/log.h"
#include "host/shard/window.h"
#include "redis/redis.h"
#include "store/driver.h"

#define SHARDS    4u
#define NOW_MS    1794804690543
#define DEPTH_MAX 4u
#define ITEMS     4u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
        if (!is_true)
                abort();
}

/* --- the input ------------------------------------------------------------------------------------------------------
 */

static struct span input;

static uint8_t take_byte(void)
{
        if (!input.size)
                return 0;
        input.size--;
        return (uint8_t)*input.data++;
}

static struct span take_bytes(size_t size)
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

static redisReply *reply_make(int type)
{
        redisReply *reply = calloc(1, sizeof(*reply));
        demand(reply);
        reply->type = type;
        return reply;
}

static redisReply *reply_integer(long long value)
{
        redisReply *reply = reply_make(REDIS_REPLY_INTEGER);
        reply->integer = value;
        return reply;
}

static redisReply *reply_text(int type, const void *data, size_t size)
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

static redisReply *reply_array(size_t count)
{
        redisReply *reply = reply_make(REDIS_REPLY_ARRAY);
        reply->elements = count;
        reply->element = calloc(count ? count : 1, sizeof(redisReply *));
        demand(reply->element);
        return reply;
}

/* A list of texts, as the tasks of a block and their notes; one of them may be missing. */
static redisReply *reply_texts(void)
{
        redisReply *reply = reply_array(take_byte() % ITEMS);
        for (size_t i = 0; i < reply->elements; i++) {
                struct span text = texts[take_byte() % (sizeof(texts) / sizeof(texts[0]))];
                reply->element[i] = take_byte() > 240 ? reply_make(REDIS_REPLY_NIL)
                                                      : reply_text(REDIS_REPLY_STRING, text.data, text.size);
        }
        return reply;
}

static redisReply *reply_any(unsigned depth)
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

/* i: 0 or 1, n: a number, t: the time, d: -1, s: seq, h: a nonce, a: an id, g: a digest, w: a handler, e: an envelope,
 * o: a note, l: a definition of a limit, r: a value of one, q: its record, p: a list of envelopes, z: 0, x: troubles,
 * b: bits that say that tasks stand in their list, u: the seq of the first of these; in brackets: a list, whose rows
 * may be repeated. */
static const char *const shapes[] = {
        "inniniditi[seoi]it", /* acquire; its first is 0: granted */
        "i[seoi]t",           /* in flight */
        "itnidzznnnsp.",      /* advance, nothing asked for */
        "itnid[nhhs]xnnnspp", /* advance with controls, troubles, a block */
        "btnidzznnnun.",      /* advance, tasks that stand in their list */
        "btnidzznnnun.sn.",   /* the same, of two lanes */
        "idiin",              /* renew */
        "nnnnnnnnnnnnnnnihnint",
        "ni[nseonehhn]",       /* list, find: rows are lists, made of the same */
        "nnnnn",               /* dead */
        "nteehpo",             /* consume */
        "nnp",                 /* outbox */
        "n[ag]i",              /* submit, with what is remembered */
        "inenenen",            /* mail */
        "ininntententen",      /* room read */
        "ihnnnnnnhnnnnnn",     /* rooms */
        "whntwhnt",            /* wanting */
        "nnnni",               /* limit take */
        "lnntn[rqrq]",         /* limit look */
        "nwnnntsnnewnnntsnne", /* schedules */
        "nnnntsnn",            /* fires */
        "n",
        "idp",
        ".ni[h]nn",
};

/* How many tasks were too long, and lines. */
static redisReply *reply_troubles(void)
{
        redisReply *troubles = reply_array(2);
        redisReply *lines = reply_array(take_byte() % 3);
        for (size_t i = 0; i < lines->elements; i++)
                lines->element[i] = reply_any(2);
        troubles->element[0] = reply_integer(take_byte() & 3);
        troubles->element[1] = lines;
        return troubles;
}

static redisReply *reply_value(char what)
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

/* Fills a list of at most 24 values from a shape, up to its end or its closing bracket. */
static redisReply *reply_shaped(const char **shape)
{
        redisReply *made[24] = { NULL };
        size_t count = 0;
        for (; **shape && **shape != ']' && count < 24; ++*shape) {
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

void redis_send(struct redis *redis, struct redis_command *command)
{
        (void)redis;
        command->next = NULL;
        command->sends = take_byte() > 240 ? 2 : 1;
        *sent_tail = command;
        sent_tail = &command->next;
}

/* What acquire says of a shard in which nothing is. */
static redisReply *reply_granted(void)
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

static redisReply *reply_next(const struct redis_command *command)
{
        void *reply = NULL;
        if (is_granting)
                return reply_granted();
        if (is_opening) {
                static const char *const said[] = { "2", "4", "", "limits names rooms schedules", "", "41.10.12" };
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
        if (choice & 1)
                return reply_any(0);
        const char *shape = shapes[(choice >> 1) % (sizeof(shapes) / sizeof(shapes[0]))];
        return reply_shaped(&shape);
}

static void answer_all(void)
{
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

static struct store *store;
static struct window window;
static unsigned done_count;

static void on_done(struct store_request *request)
{
        (void)request;
        done_count++;
}

static void look_at(struct span bytes)
{
        volatile char seen = 0;
        for (size_t i = 0; i < bytes.size; i++)
                seen = (char)(seen ^ bytes.data[i]);
}

static void look_at_tasks(const struct store_task *tasks, uint32_t count)
{
        demand(count <= STORE_CALL_TASKS);
        for (uint32_t i = 0; i < count; i++) {
                const struct store_task *t = &tasks[i];
                demand(t->seq <= STORE_SEQ_MAX && t->envelope.lane < LANES && t->key.size && t->envelope.id.size);
                demand(t->note.checkpoint.size <= NOTE_CHECKPOINT_MAX && t->envelope.reply_ms <= TASK_NUMBER_MAX);
                look_at(t->key);
                look_at(t->envelope.payload);
                look_at(t->note.events);
                (void)window_add(&window, t, (uint32_t)t->seq % 3);
        }
}

static void look_at_due(uint64_t due_ms)
{
        demand(due_ms <= TASK_NUMBER_MAX || due_ms == STORE_NEVER);
}

static void on_acquired(struct store_request *request)
{
        const struct store_acquire *a = (const struct store_acquire *)request;
        done_count++;
        if (request->status || a->grant != STORE_GRANTED)
                return;
        look_at_tasks(a->page.tasks, a->page.tasks_count);
        look_at_due(a->next_due_ms);
        look_at_due(a->next_schedule_ms);
        demand(a->call <= TASK_NUMBER_MAX && a->left_ms <= TASK_NUMBER_MAX && a->stored_epoch <= TASK_NUMBER_MAX);
}

static void on_paged(struct store_request *request)
{
        const struct store_in_flight *p = (const struct store_in_flight *)request;
        done_count++;
        if (!request->status)
                look_at_tasks(p->page.tasks, p->page.tasks_count);
}

/* The tasks that the last advance brought, by seq. */
static uint64_t brought[STORE_CALL_TASKS];
static uint32_t brought_count;

static void on_advanced(struct store_request *request)
{
        const struct store_advance *a = (const struct store_advance *)request;
        done_count++;
        brought_count = 0;
        if (request->status || a->verdict != STORE_OK)
                return;
        for (uint32_t i = 0; i < a->tasks_count; i++)
                brought[brought_count++] = a->tasks[i].seq;
        look_at_tasks(a->tasks, a->tasks_count);
        look_at_due(a->next_due_ms);
        demand(a->controls_count <= STORE_CALL_CONTROLS && a->wanted <= STORE_WANTED_FIRM);
        for (uint32_t i = 0; i < a->controls_count; i++) {
                demand(a->controls[i].verb < CONTROLS && a->controls[i].seq <= STORE_SEQ_MAX);
                look_at(a->controls[i].key);
                (void)window_find(&window, a->controls[i].key, a->controls[i].seq);
        }
}

static void on_listed(struct store_request *request)
{
        const struct store_list *l = (const struct store_list *)request;
        done_count++;
        for (uint32_t i = 0; i < l->tasks_count && !request->status; i++) {
                demand(l->tasks[i].envelope.lane < LANES);
                look_at(l->tasks[i].id);
                look_at(l->tasks[i].key);
                look_at(l->tasks[i].envelope.payload);
        }
}

static void on_keys(struct store_request *request)
{
        const struct store_keys *k = (const struct store_keys *)request;
        done_count++;
        for (uint32_t i = 0; i < k->keys_count && !request->status; i++) {
                demand(k->keys[i].state < KEY_STATES);
                look_at(k->keys[i].name);
                look_at(k->keys[i].head);
        }
}

static void on_woken(struct store_request *request)
{
        const struct store_wake *w = (const struct store_wake *)request;
        done_count++;
        demand(request->status || w->woken <= STORE_CALL_TASKS);
}

static void on_names(struct store_request *request)
{
        const struct store_names *n = (const struct store_names *)request;
        done_count++;
        for (uint32_t i = 0; i < n->names_count && !request->status; i++)
                demand(store_name_is_good(n->names[i]));
}

static void on_consumed(struct store_request *request)
{
        const struct store_consume *c = (const struct store_consume *)request;
        done_count++;
        for (uint32_t i = 0; i < c->results_count && !request->status; i++)
                look_at(c->results[i].data);
}

static void on_submitted(struct store_request *request)
{
        const struct store_submit *s = (const struct store_submit *)request;
        done_count++;
        for (uint32_t i = 0; i < s->items_count && !request->status; i++) {
                demand(strlen(s->items[i].id) <= TASK_ID_MAX);
                demand(!s->items[i].is_repeat || (!s->items[i].status && s->items[i].idempotency.size));
        }
}

static const struct store_lease lease = { .shard = 1, .epoch = 7, .ttl_ms = 1000 };

/* The driver knows which tasks stand in their lists: it begins with none, and hears of some. */
static void grant(void)
{
        static struct store_acquire acquire;
        acquire = (struct store_acquire){ .request.done = on_done, .lease = lease };
        is_granting = true;
        store_acquire(store, &acquire);
        answer_all();
        is_granting = false;
        demand(!acquire.request.status && acquire.grant == STORE_GRANTED);
        done_count = 0;
}

/* Several calls in a row, each of which says of some of what the last one brought that it is done. */
static void advance_often(void)
{
        static struct store_advance advance;
        static struct store_outcome outcomes[STORE_CALL_TASKS];
        grant();
        brought_count = 0;
        for (unsigned call = 3; call < 6; call++) {
                uint32_t count = 0;
                for (uint32_t i = 0; i < brought_count; i++)
                        if (take_byte() & 1)
                                outcomes[count++] = (struct store_outcome){ .task = { .seq = brought[i] } };
                advance = (struct store_advance){ .request.done = on_advanced,
                        .lease = lease,
                        .call = call,
                        .outcomes = outcomes,
                        .outcomes_count = count,
                        .want = { 256, 256, 256 } };
                store_advance(store, &advance);
                answer_all();
                demand(done_count == 1);
                done_count = 0;
        }
        done_count = 1;
}

static void start_owner(unsigned which)
{
        static struct store_acquire acquire;
        static struct store_in_flight page;
        static struct store_advance advance;
        static struct store_outcome outcome;
        static struct store_renewal renewals[3];
        static struct store_renew renew;
        static struct store_release release;
        static struct store_forward forward;
        static struct store_wake wake;
        static struct store_names names;
        switch (which) {
        case 0:
                acquire = (struct store_acquire){ .request.done = on_acquired, .lease = lease, .page_tasks = 256 };
                store_acquire(store, &acquire);
                break;
        case 1:
                page = (struct store_in_flight){ .request.done = on_paged, .lease = lease };
                store_in_flight(store, &page);
                break;
        case 2:
                outcome = (struct store_outcome){ .task = { .seq = 1, .id = SPAN_TEXT("a-1"), .key = SPAN_TEXT("k") } };
                advance = (struct store_advance){ .request.done = on_advanced,
                        .lease = lease,
                        .call = 3,
                        .outcomes = &outcome,
                        .outcomes_count = 1,
                        .want = { 256, 256, 256 } };
                store_advance(store, &advance);
                break;
        case 3:
                for (unsigned i = 0; i < 3; i++)
                        renewals[i].lease = lease;
                renew = (struct store_renew){ .request.done = on_done, .items = renewals, .items_count = 3 };
                store_renew(store, &renew);
                break;
        case 4:
                release = (struct store_release){ .request.done = on_done, .lease = lease, .call = 4 };
                store_release(store, &release);
                break;
        case 5:
                wake = (struct store_wake){
                        .request.done = on_woken, .lease = lease, .call = 5, .name = SPAN_TEXT("handler:h"), .max = 3
                };
                store_wake(store, &wake);
                break;
        case 6:
                names = (struct store_names){ .request.done = on_names, .lease = lease };
                store_names(store, &names);
                break;
        default:
                forward = (struct store_forward){ .request.done = on_done, .lease = lease };
                store_forward(store, &forward);
        }
}

static void start_admin(unsigned which)
{
        static struct store_counts counts[SHARDS];
        static struct store_count count;
        static struct store_list list;
        static struct store_find find;
        static struct store_keys keys;
        static struct store_dead dead;
        static struct store_fsck fsck;
        static struct store_cancel cancel;
        static struct store_status_list statuses;
        static struct store_desired_get desired;
        switch (which) {
        case 0:
                count = (struct store_count){ .request.done = on_done, .shards = SHARDS, .counts = counts };
                store_count(store, &count);
                break;
        case 1:
                list = (struct store_list){ .request.done = on_listed, .state = take_byte() % STATES };
                store_list(store, &list);
                break;
        case 2:
                find = (struct store_find){ .request.done = on_done, .id = SPAN_TEXT("a-1") };
                store_find(store, &find);
                break;
        case 3:
                keys = (struct store_keys){ .request.done = on_keys };
                store_keys(store, &keys);
                break;
        case 4:
                dead = (struct store_dead){ .request.done = on_done };
                store_dead(store, &dead);
                break;
        case 5:
                fsck = (struct store_fsck){ .request.done = on_done };
                store_fsck(store, &fsck);
                break;
        case 6:
                cancel =
                        (struct store_cancel){ .request.done = on_done, .id = SPAN_TEXT("a-1"), .key = SPAN_TEXT("k") };
                store_cancel(store, &cancel);
                break;
        case 7:
                statuses = (struct store_status_list){ .request.done = on_done };
                store_status_list(store, &statuses);
                break;
        default:
                desired = (struct store_desired_get){ .request.done = on_done };
                store_desired_get(store, &desired);
        }
}

static void start_results(unsigned which)
{
        static struct store_consume consume;
        static struct store_commit commit;
        static struct store_reply reply;
        static struct store_submission items[2];
        static struct store_submit submit;
        static const uint64_t numbers_held[2] = { 1, 2 };
        static bool held[2];
        switch (which) {
        case 0:
                consume = (struct store_consume){ .request.done = on_consumed, .lease_ms = 1000, .results_max = 64 };
                store_consume(store, &consume);
                break;
        case 1:
                commit = (struct store_commit){
                        .request.done = on_done, .numbers = numbers_held, .numbers_count = 2, .held = held
                };
                store_commit(store, &commit);
                break;
        case 2:
                reply = (struct store_reply){ .request.done = on_done, .id = SPAN_TEXT("a-1") };
                store_reply(store, &reply);
                break;
        default:
                for (unsigned i = 0; i < 2; i++) {
                        uint8_t options = take_byte();
                        items[i] = (struct store_submission){ .envelope = { .key = SPAN_TEXT("k"),
                                                                      .handler = SPAN_TEXT("work"),
                                                                      .lane = LANE_NORMAL,
                                                                      .unique_ms = options & 1 ? 1000 : 0 },
                                .idempotency = options & 2 ? SPAN_TEXT("name") : SPAN_TEXT("") };
                }
                submit = (struct store_submit){ .request.done = on_submitted, .items = items, .items_count = 2 };
                store_submit(store, &submit);
        }
}

static void on_mail(struct store_request *request)
{
        const struct store_mail_take *t = (const struct store_mail_take *)request;
        done_count++;
        demand(request->status || t->messages_count <= t->messages_max);
        for (uint32_t i = 0; i < t->messages_count && !request->status; i++) {
                demand(t->messages[i].number <= TASK_NUMBER_MAX);
                look_at(t->messages[i].bytes);
        }
}

static void on_wanting(struct store_request *request)
{
        const struct store_wanting_list *l = (const struct store_wanting_list *)request;
        done_count++;
        for (uint32_t i = 0; i < l->items_count && !request->status; i++)
                demand(l->items[i].tasks <= TASK_NUMBER_MAX && !task_handler_check(l->items[i].handler, NULL));
}

static void on_room_read(struct store_request *request)
{
        const struct store_room_read *r = (const struct store_room_read *)request;
        done_count++;
        if (request->status)
                return;
        demand(r->entries_count <= r->entries_max && r->first <= r->last + 1);
        for (uint32_t i = 0; i < r->entries_count; i++) {
                demand(r->entries[i].number <= TASK_NUMBER_MAX && r->entries[i].at_ms <= TASK_NUMBER_MAX);
                look_at(r->entries[i].bytes);
        }
}

static void on_rooms(struct store_request *request)
{
        const struct store_room_list *l = (const struct store_room_list *)request;
        done_count++;
        for (uint32_t i = 0; i < l->rooms_count && !request->status; i++) {
                demand(l->rooms[i].first <= l->rooms[i].last + 1);
                look_at(l->rooms[i].name);
        }
}

static struct store_limit_item limit_item;

static void on_limit_taken(struct store_request *request)
{
        done_count++;
        demand(request->status ||
                (limit_item.granted <= limit_item.want && limit_item.left_ms <= STORE_LIMIT_LEASE_MS));
}

static void on_limit_look(struct store_request *request)
{
        const struct store_limit_look *l = (const struct store_limit_look *)request;
        done_count++;
        for (uint32_t i = 0; i < l->listed && !request->status; i++) {
                demand(l->values[i].held <= TASK_NUMBER_MAX && l->values[i].tokens <= STORE_LIMIT_MAX);
                look_at(l->values[i].value);
        }
}

static void look_at_schedule(const struct store_schedule *s)
{
        demand(s->state <= SCHEDULE_DELETED && s->version <= TASK_NUMBER_MAX && s->fired <= TASK_NUMBER_MAX);
        look_at_due(s->next_ms);
        look_at(s->definition);
}

static void on_schedules(struct store_request *request)
{
        const struct store_schedule_list *l = (const struct store_schedule_list *)request;
        done_count++;
        demand(request->status || l->schedules_count <= STORE_SCHEDULES_MAX);
        for (uint32_t i = 0; i < l->schedules_count && !request->status; i++)
                look_at_schedule(&l->schedules[i]);
}

static void on_fired(struct store_request *request)
{
        const struct store_fires *f = (const struct store_fires *)request;
        done_count++;
        if (request->status || f->verdict != STORE_OK)
                return;
        demand(f->fires[0].fired <= STORE_FIRE_STALE);
        look_at_schedule(&f->fires[0].stored);
}

/* Limits and schedules. */
static void start_shared(unsigned which)
{
        static struct store_limit_take take;
        static struct store_limit_look look;
        static struct store_schedule_list list;
        static struct store_fire fire;
        static struct store_fires fires;
        switch (which) {
        case 0:
                limit_item = (struct store_limit_item){ .want = 3 };
                take = (struct store_limit_take){ .request.done = on_limit_taken,
                        .limit = { .name = SPAN_TEXT("api"), .version = 1, .concurrency = 5, .values_max = 9 },
                        .lease_ms = 1000,
                        .items = &limit_item,
                        .items_count = 1 };
                store_limit_take(store, &take);
                break;
        case 1:
                look = (struct store_limit_look){
                        .request.done = on_limit_look, .name = SPAN_TEXT("api"), .page_values = 9
                };
                store_limit_look(store, &look);
                break;
        case 2:
                list = (struct store_schedule_list){ .request.done = on_schedules };
                store_schedule_list(store, &list);
                break;
        default:
                fire = (struct store_fire){
                        .name = SPAN_TEXT("work"), .version = 1, .expected_ms = 1000, .next_ms = STORE_NEVER
                };
                fires = (struct store_fires){
                        .request.done = on_fired, .lease = lease, .call = 5, .fires = &fire, .fires_count = 1
                };
                store_fires(store, &fires);
        }
}

static void start_room(unsigned which)
{
        static struct store_room_append append;
        static struct store_room_read read;
        static struct store_room_truncate truncate;
        static struct store_room_list list;
        static const struct span entry = SPAN_TEXT("x");
        switch (which) {
        case 0:
                append = (struct store_room_append){
                        .request.done = on_done, .name = SPAN_TEXT("room"), .entries = &entry, .entries_count = 1
                };
                store_room_append(store, &append);
                break;
        case 1:
                truncate = (struct store_room_truncate){ .request.done = on_done, .name = SPAN_TEXT("room") };
                store_room_truncate(store, &truncate);
                break;
        case 2:
                list = (struct store_room_list){ .request.done = on_rooms, .page_rooms = 3 };
                store_room_list(store, &list);
                break;
        default:
                read = (struct store_room_read){
                        .request.done = on_room_read, .name = SPAN_TEXT("room"), .entries_max = 3, .follow_ms = 1000
                };
                store_room_read(store, &read);
        }
}

/* What hosts say to each other. */
static void start_mail(unsigned which)
{
        static struct store_post post;
        static struct store_mail_take take;
        static struct store_wanting_list list;
        switch (which) {
        case 0:
                post = (struct store_post){ .request.done = on_done, .bytes = SPAN_TEXT("hello") };
                store_post(store, &post);
                break;
        case 1:
                take = (struct store_mail_take){ .request.done = on_mail, .messages_max = 3 };
                store_mail_take(store, &take);
                break;
        default:
                list = (struct store_wanting_list){ .request.done = on_wanting };
                store_wanting_list(store, &list);
        }
}

static void open_done(struct store_request *request)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        input = (struct span){ (const char *)data, size };
        uint8_t choice = take_byte();
        unsigned which = choice & 31;
        window_init(&window, 2, 16);
        done_count = 0;
        if (choice & 128) {
                reader = redisReaderCreate();
                demand(reader && (!input.size || redisReaderFeed(reader, input.data, input.size) == REDIS_OK));
        }
        /* Owners read most. */
        if (which == 16 || which == 17)
                advance_often();
        else if (which < 18)
                start_owner(which % 8);
        else if (which < 27)
                start_admin(which - 18);
        else if (choice & 64 && which & 1)
                start_mail(which % 3);
        else if (choice & 64 && which & 2)
                start_shared(take_byte() % 4);
        else if (choice & 64)
                start_room(take_byte() % 4);
        else
                start_results(which % 4);
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
        return 0;
}
