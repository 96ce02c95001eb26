/* Any servers behind a Redis URL: one, Sentinels and what they name, a Cluster.  Everything above the system's calls is
 * the real thing: sockets, logins, doorbells, redirects, reconnects.  Each command that arrives gets the next answer
 * that the bytes make, nearly right more often than not; connections are cut, and time passes.  Nobody crashes, every
 * command and every opening ends once, and no descriptor is left. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/buffer.h"
#include "choices.h"
#include "redis/redis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENDS_MAX    64
#define LOOKUPS_MAX 64
#define COMMANDS    4
#define STEPS_MAX   400
#define ANSWERS_MAX 2000 /* of one input: a client that asks for more asks without end */

static struct choices input;

/* --- the system, as these servers' machine has it ----------------------------------------------------------------- */

static bool is_inside;
static uint64_t now_ns;

/* Libraries ask here, too.  The clock on the wall is the real one: the fuzzer goes by it. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
        if (!is_inside || clock == CLOCK_REALTIME)
                return (int)syscall(SYS_clock_gettime, clock, ret);
        *ret = (struct timespec){ (time_t)(now_ns / UINT64_C(1000000000)), (long)(now_ns % UINT64_C(1000000000)) };
        return 0;
}

ssize_t getrandom(void *to, size_t size, unsigned flags)
{
        (void)flags;
        memset(to, 7, size);
        return (ssize_t)size;
}

/* The far end of a connection. */
static struct end {
        int fd; /* -1: none */
        redisReader *reader;
} ends[ENDS_MAX];

static struct lookup_asked {
        uv_getaddrinfo_t *request; /* NULL: none */
        uv_getaddrinfo_cb done;
} lookups[LOOKUPS_MAX];

static void end_close(struct end *end)
{
        if (end->fd < 0)
                return;
        (void)close(end->fd);
        redisReaderFree(end->reader);
        *end = (struct end){ .fd = -1 };
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done, const char *host,
        const char *port, const struct addrinfo *hints);
void __wrap_uv_freeaddrinfo(struct addrinfo *found);
int __wrap_uv_cancel(uv_req_t *request);

int __wrap_socket(int domain, int type, int protocol)
{
        int pair[2];
        (void)domain;
        (void)protocol;
        for (unsigned i = 0; i < ENDS_MAX; i++) {
                if (ends[i].fd >= 0)
                        continue;
                demand(socketpair(AF_UNIX, type, 0, pair) == 0);
                ends[i] = (struct end){ pair[1], redisReaderCreate() };
                return pair[0];
        }
        errno = EMFILE;
        return -1;
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
        (void)fd;
        (void)to;
        (void)size;
        return 0;
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done, const char *host,
        const char *port, const struct addrinfo *hints)
{
        (void)loop;
        (void)hints;
        demand(strlen(host) < 256 && strlen(port) < 6);
        for (unsigned i = 0; i < LOOKUPS_MAX; i++) {
                if (lookups[i].request)
                        continue;
                lookups[i] = (struct lookup_asked){ request, done };
                return 0;
        }
        return UV_ENOMEM;
}

void __wrap_uv_freeaddrinfo(struct addrinfo *found)
{
        free(found);
}

/* A resolver cannot be stopped: the answer comes all the same. */
int __wrap_uv_cancel(uv_req_t *request)
{
        (void)request;
        return UV_EBUSY;
}

static void resolve_all(void)
{
        for (unsigned i = 0; i < LOOKUPS_MAX; i++) {
                struct lookup_asked asked = lookups[i];
                if (!asked.request)
                        continue;
                lookups[i].request = NULL;
                struct {
                        struct addrinfo info;
                        struct sockaddr_in address;
                } *found = calloc(1, sizeof(*found));
                demand(found);
                found->address = (struct sockaddr_in){ .sin_family = AF_INET };
                found->info = (struct addrinfo){ .ai_family = AF_INET,
                        .ai_addr = (struct sockaddr *)&found->address,
                        .ai_addrlen = sizeof(found->address) };
                if (choose(&input, 32) != 31) {
                        asked.done(asked.request, 0, &found->info);
                } else {
                        free(found);
                        asked.done(asked.request, UV_EAI_NONAME, NULL);
                }
        }
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static const char *const hosts[] = { "h1", "h2", "10.0.0.1", "::1", "", "?", "a b", "\x1b[31m" };

static void put_text(struct buffer *b, const char *text)
{
        buffer_printf(b, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void put_number(struct buffer *b, uint64_t usual)
{
        buffer_printf(b, ":%lld\r\n", (long long)(choose(&input, 8) ? usual : choose_number(&input)));
}

static const char *host(void)
{
        return hosts[choose(&input, choose(&input, 8) ? 2 : sizeof(hosts) / sizeof(hosts[0]))];
}

static void put_error(struct buffer *b)
{
        static const char *const errors[] = { "ERR unknown command 'HELLO'", "NOAUTH Authentication required.",
                "WRONGPASS no", "NOPERM this user has no permissions to run the 'evalsha' command",
                "NOPERM No permissions to access a key", "NOSCRIPT No matching script.", "READONLY You can't write",
                "LOADING Redis is loading", "BUSY running a script", "TRYAGAIN later",
                "CLUSTERDOWN Hash slot not served", "OOM command not allowed", "ERR Error running script: READONLY",
                "MASTERDOWN Link", "MOVED", "ASK 1", "MOVED 99999 h1:1", "MOVED 1 h1", "MOVED 1 :6379",
                "ASK 1 h1:99999", "ERR The client ID 7 does not exist", "BADVALUE x script: y", "", " ", "MISCONF",
                "CROSSSLOT" };
        switch (choose(&input, 4)) {
        case 0:
                buffer_printf(b, "-MOVED %u %s:%u\r\n", choose(&input, 200), host(), 1 + choose(&input, 3));
                break;
        case 1:
                buffer_printf(b, "-ASK %u %s:%u\r\n", choose(&input, 200), host(), 1 + choose(&input, 3));
                break;
        default:
                buffer_printf(b, "-%s\r\n", errors[choose(&input, sizeof(errors) / sizeof(errors[0]))]);
        }
}

static void put_any(struct buffer *b, unsigned depth)
{
        unsigned count = choose(&input, 6);
        switch (choose(&input, depth < 4 ? 8 : 6)) {
        case 0:
                put_number(b, choose_byte(&input));
                break;
        case 1:
                buffer_printf(b, "$-1\r\n");
                break;
        case 2:
                put_error(b);
                break;
        case 3:
                buffer_printf(b, "+OK\r\n");
                break;
        case 4:
                put_text(b, host());
                break;
        case 5:
                buffer_printf(b, "$4\r\n%c%c%c%c\r\n", 0, choose_byte(&input), choose_byte(&input), '\n');
                break;
        default:
                buffer_printf(b, "*%u\r\n", count);
                while (count--)
                        put_any(b, depth + 1);
        }
}

/* Bytes that need be no answer at all, in any pieces. */
static void put_bytes(struct buffer *b)
{
        static const char *const pieces[] = { "*1000000\r\n", "*-2\r\n", "$2147483648\r\n", "*2147483647\r\n", "\r\n",
                "*1\r\n", ":99999999999999999999\r\n", "$1\r\n", "\x15\x03\x01",
                "*9\r\n*9\r\n*9\r\n*9\r\n*9\r\n*9\r\n*9\r\n*9\r\n*9\r\n", "%7\r\n", ">3\r\n", "_\r\n",
                "HTTP/1.1 400 Bad Request\r\n" };
        unsigned which = choose(&input, sizeof(pieces) / sizeof(pieces[0]) + 2);
        if (which < sizeof(pieces) / sizeof(pieces[0])) {
                buffer_put_text(b, pieces[which]);
                return;
        }
        for (unsigned i = choose(&input, 32); i; i--) {
                char byte = (char)choose_byte(&input);
                buffer_put(b, &byte, 1);
        }
}

static void put_hello(struct buffer *b)
{
        static const char *const versions[] = { "7.0.15", "7.2.0", "6.2.6", "", "x", "99999999999999999999.1" };
        static const char *const modes[] = { "standalone", "cluster", "sentinel", "" };
        static const char *const roles[] = { "master", "replica", "slave", "" };
        buffer_printf(b, "*10\r\n");
        put_text(b, "version");
        put_text(b, versions[choose(&input, 16) ? 0 : choose(&input, 6)]);
        put_text(b, "id");
        put_number(b, 1 + choose(&input, 5));
        put_text(b, "mode");
        put_text(b, modes[choose(&input, 16) ? 0 : choose(&input, 4)]);
        put_text(b, "role");
        put_text(b, roles[choose(&input, 16) ? 0 : choose(&input, 4)]);
        put_text(b, "modules");
        buffer_printf(b, "*0\r\n");
}

static void put_info(struct buffer *b)
{
        static const char *const lines[] = { "redis_version:7.0.15", "redis_mode:cluster", "role:slave", "role:master",
                "loading:1", "maxmemory:99999999999999999999", "maxmemory_policy:allkeys-lru", "maxmemory_policy",
                "connected_slaves:4294967296", "aof_enabled:1", "master_replid:\x01\xff", "role", ":" };
        struct buffer text = { 0 };
        for (unsigned i = choose(&input, 5); i; i--)
                buffer_printf(&text, "%s%s", lines[choose(&input, sizeof(lines) / sizeof(lines[0]))],
                        choose(&input, 8) ? "\r\n" : "\n");
        buffer_printf(b, "$%zu\r\n", text.size);
        buffer_put(b, text.data, text.size);
        buffer_printf(b, "\r\n");
        buffer_free(&text);
}

/* Two servers share the slots, roughly. */
static void put_slots(struct buffer *b)
{
        unsigned count = choose(&input, 8) ? 2 : choose(&input, 6);
        buffer_printf(b, "*%u\r\n", count);
        for (unsigned i = 0; i < count; i++) {
                buffer_printf(b, "*%u\r\n", choose(&input, 16) ? 3 : choose(&input, 3));
                put_number(b, i * 8192);
                put_number(b, i * 8192 + 8191);
                buffer_printf(b, "*3\r\n");
                put_text(b, host());
                put_number(b, 1 + i);
                put_text(b, "id");
        }
}

static void put_address(struct buffer *b)
{
        static const char *const ports[] = { "1", "2", "0", "65536", "-1", "", "1x" };
        buffer_printf(b, "*2\r\n");
        put_text(b, host());
        put_text(b, ports[choose(&input, choose(&input, 8) ? 2 : 7)]);
}

/* What is pushed to whoever has subscribed. */
static void put_message(struct buffer *b)
{
        static const char *const said[] = { "mymaster h1 1 h2 2", "mymaster h2 2 h1 1", "mymaster",
                "mymaster a 1 b 99999", "other h1 1 h2 2", "mymaster h1 1 h2 0", "" };
        buffer_printf(b, "*3\r\n");
        put_text(b, choose(&input, 8) ? "message" : "subscribe");
        put_text(b, "channel");
        switch (choose(&input, 4)) {
        case 0:
                buffer_printf(b, "*2\r\n$1\r\nk\r\n$0\r\n\r\n");
                break;
        case 1:
                buffer_printf(b, "*-1\r\n");
                break;
        default:
                put_text(b, said[choose(&input, sizeof(said) / sizeof(said[0]))]);
        }
}

static bool is_word(const redisReply *command, size_t at, const char *word)
{
        return at < command->elements && !strcasecmp(command->element[at]->str, word);
}

static void put_answer(struct buffer *b, const redisReply *command)
{
        unsigned choice = choose(&input, 64);
        if (choice == 63)
                return; /* silence */
        if (choice == 62)
                put_bytes(b);
        else if (choice == 61)
                put_any(b, 0);
        else if (choice >= 58)
                put_error(b);
        else if (is_word(command, 0, "HELLO"))
                put_hello(b);
        else if (is_word(command, 0, "INFO"))
                put_info(b);
        else if (is_word(command, 1, "SLOTS"))
                put_slots(b);
        else if (is_word(command, 0, "SENTINEL"))
                put_address(b);
        else if (is_word(command, 0, "SUBSCRIBE"))
                buffer_printf(b, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
        else if (is_word(command, 0, "CONFIG"))
                buffer_printf(b, "*4\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n$4\r\nsave\r\n$0\r\n\r\n");
        else if (is_word(command, 0, "GET") || is_word(command, 0, "EVALSHA") || is_word(command, 0, "WAIT"))
                put_any(b, 1);
        else
                buffer_printf(b, "+OK\r\n");
}

/* --- the servers -------------------------------------------------------------------------------------------------- */

static unsigned answers;

static void send_bytes(struct end *end, const struct buffer *b)
{
        if (b->size)
                (void)send(end->fd, b->data, b->size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Reads what arrived, and answers each command. */
static void serve(struct end *end)
{
        char bytes[16384];
        void *command = NULL;
        ssize_t n = recv(end->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n == 0) {
                end_close(end);
                return;
        }
        if (n < 0)
                return;
        demand(redisReaderFeed(end->reader, bytes, (size_t)n) == REDIS_OK);
        while (redisReaderGetReply(end->reader, &command) == REDIS_OK && command) {
                struct buffer b = { 0 };
                demand(++answers < ANSWERS_MAX);
                put_answer(&b, command);
                send_bytes(end, &b);
                buffer_free(&b);
                freeReplyObject(command);
                command = NULL;
        }
}

static struct end *choose_end(void)
{
        unsigned first = choose(&input, ENDS_MAX);
        for (unsigned i = 0; i < ENDS_MAX; i++)
                if (ends[(first + i) % ENDS_MAX].fd >= 0)
                        return &ends[(first + i) % ENDS_MAX];
        return NULL;
}

static void push(void)
{
        struct buffer b = { 0 };
        struct end *end = choose_end();
        put_message(&b);
        if (end)
                send_bytes(end, &b);
        buffer_free(&b);
}

/* --- the client --------------------------------------------------------------------------------------------------- */

static uv_loop_t loop;
static unsigned opened, closed, looked;
static int opened_status;
static struct asked {
        struct redis_command command;
        const char *argv[4];
        size_t sizes[4];
        unsigned done;
        bool is_out;
} asked[COMMANDS];

static void on_opened(struct redis_open *open, int status)
{
        opened++;
        opened_status = status;
        demand(status <= 0 && (!status || open->error.text[0]));
}

static void on_closed(void *self)
{
        (void)self;
        closed++;
}

static void on_rang(void *self, const char *key, size_t size)
{
        (void)self;
        demand(strlen(key) <= size);
}

static void on_look(void *self)
{
        (void)self;
        looked++;
}

static void on_state(void *self, bool is_up, const char *text)
{
        (void)self;
        (void)is_up;
        demand(*text);
}

static void on_done(struct redis_command *command)
{
        struct asked *one = (struct asked *)command;
        one->done++;
        one->is_out = false;
        demand(one->done == 1 && (command->status ? command->status < 0 && command->error.text[0] : !!command->reply));
        demand(!command->reply || command->status || command->reply->type != REDIS_REPLY_ERROR);
}

static void ask(struct redis *redis)
{
        static struct redis_script script = { .name = "fuzzed", .text = "return 1", .size = 8 };
        static const char *const keys[] = { "{a}k", "{b}k", "{c}", "k" };
        struct asked *one = &asked[choose(&input, COMMANDS)];
        if (one->is_out)
                return;
        const char *key = keys[choose(&input, 4)];
        bool is_script = choose(&input, 2);
        *one = (struct asked){ .is_out = true,
                .argv = { is_script ? "EVALSHA" : "GET", is_script ? "" : key, "1", key } };
        for (unsigned i = 0; i < 4; i++)
                one->sizes[i] = strlen(one->argv[i]);
        one->command = (struct redis_command){ .done = on_done,
                .route = span_of_text(choose(&input, 8) ? key : ""),
                .argv = one->argv,
                .argv_size = one->sizes,
                .argc = is_script ? 4 : 2,
                .script = is_script ? &script : NULL,
                .deadline_ms = choose(&input, 2) ? 300 : 0,
                .is_tracked = choose(&input, 2),
                .is_untracked = choose(&input, 2),
                .is_blocking = !choose(&input, 8) };
        redis_send(redis, &one->command);
}

static void turn(void)
{
        resolve_all();
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        for (unsigned i = 0; i < ENDS_MAX; i++)
                if (ends[i].fd >= 0)
                        serve(&ends[i]);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void step(struct redis *redis)
{
        static const uint64_t passes_ms[] = { 1, 20, 100, 350, 1100, 5100 };
        struct end *end;
        switch (choose(&input, 8)) {
        case 0:
                now_ns += passes_ms[choose(&input, 6)] * 1000000;
                break;
        case 1:
                push();
                break;
        case 2:
                end = choose(&input, 4) ? NULL : choose_end();
                if (end)
                        end_close(end);
                break;
        case 3:
        case 4:
        case 5:
                if (redis)
                        ask(redis);
                break;
        default:
                break;
        }
        turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const urls[] = { "redis://h1:1/2", "redis+sentinel://h1:1,h2:2/mymaster",
                "redis+cluster://h1:1,h2:2", "redis+unix:/run/redis.sock" };
        static const struct redis_events events = { .rang = on_rang, .look = on_look, .state = on_state };
        static struct redis_script loaded = { .name = "loaded", .text = "return 2", .size = 8 };
        static struct redis_script *scripts[] = { &loaded };
        input = (struct choices){ data, size };
        is_inside = true;
        now_ns = UINT64_C(1000000000000);
        answers = opened = closed = 0;
        memset(asked, 0, sizeof(asked));
        for (unsigned i = 0; i < ENDS_MAX; i++)
                ends[i].fd = -1;
        demand(uv_loop_init(&loop) == 0);
        unsigned how = choose(&input, 32);
        struct redis_open open = { .opened = on_opened,
                .options = { .url = urls[choose(&input, 4)],
                        .user = how & 1 ? "app" : NULL,
                        .password = how & 2 ? "secret" : NULL,
                        .name = "fuzz",
                        .scripts = scripts,
                        .scripts_count = how & 4 ? 1 : 0,
                        .wants_facts = how & 8,
                        .wants_bell = how & 16,
                        .deadline_ms = 1000,
                        .events = &events } };
        redis_open(&loop, &open);
        struct redis *redis = open.redis;
        for (unsigned i = 0; i < STEPS_MAX && (input.size || i < 8); i++) {
                step(redis);
                if (opened && opened_status)
                        redis = NULL; /* it ends by itself */
        }
        if (redis)
                redis_close(redis, on_closed, NULL);
        for (unsigned i = 0; i < 50 && uv_loop_alive(&loop); i++) {
                now_ns += UINT64_C(100000000);
                turn();
        }
        resolve_all();
        demand(opened == 1 && (!redis || closed == 1));
        for (unsigned i = 0; i < COMMANDS; i++)
                demand(!asked[i].is_out);
        demand(uv_run(&loop, UV_RUN_NOWAIT) == 0 && uv_loop_close(&loop) == 0);
        for (unsigned i = 0; i < ENDS_MAX; i++)
                end_close(&ends[i]);
        is_inside = false;
        return 0;
}
