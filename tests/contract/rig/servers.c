#include "servers.h"

#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "certificates.h"
#include "check.h"

#define PATIENCE_MS 20000
#define PAUSE_MS    5

/* Below the ports that the kernel gives to clients: a server that is started again would find its own taken. */
#define PORT_FIRST 10000
#define PORT_COUNT 12000

static bool is_free(unsigned port)
{
        struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)
        };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_so = !bind(fd, (struct sockaddr *)&address, sizeof(address));
        (void)close(fd);
        return is_so;
}

uint16_t free_port(void)
{
        /* Several are asked for before the first of them is in use. */
        static bool is_given[PORT_COUNT];
        for (int i = 0; i < 1000; i++) {
                unsigned random = 0;
                assert_int_equal(getrandom(&random, sizeof(random), 0), sizeof(random));
                unsigned port = PORT_FIRST + random % PORT_COUNT;
                /* A Cluster's servers talk to each other on their port + 10000. */
                if (is_given[port - PORT_FIRST] || !is_free(port) || !is_free(port + 10000))
                        continue;
                is_given[port - PORT_FIRST] = true;
                return (uint16_t)port;
        }
        fail_msg("no free port");
        return 0;
}

bool wait_until(bool (*is_so)(void *self), void *self)
{
        for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += PAUSE_MS) {
                if (is_so(self))
                        return true;
                (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
        }
        return false;
}

static redisContext *try_connect(const struct redis_server *server)
{
        redisContext *context = redisConnectWithTimeout("127.0.0.1", server->port, (struct timeval){ .tv_sec = 5 });
        if (!context || context->err) {
                redisFree(context);
                return NULL;
        }
        (void)redisSetTimeout(context, (struct timeval){ .tv_sec = 20 });
        if (server->password[0])
                freeReplyObject(redisCommand(context, "AUTH %s", server->password));
        return context;
}

static bool answers(void *self)
{
        redisContext *context = try_connect(self);
        redisReply *reply = context ? redisCommand(context, "PING") : NULL;
        bool is_so = reply && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
        redisFree(context);
        return is_so;
}

static void run(struct redis_server *server, const char **argv)
{
        server->pid = fork();
        assert_true(server->pid >= 0);
        if (server->pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                /* A Sentinel judges by time, so it has the machine's clock, whatever those that it watches have. */
                if (server->is_sentinel)
                        (void)unsetenv("LD_PRELOAD");
                (void)execvp(argv[0], (char **)argv);
                _exit(127);
        }
        if (!wait_until(answers, server))
                fail_msg("redis-server on port %u does not answer; see %s/log", server->port, server->folder);
}

static void spawn(struct redis_server *server)
{
        char port[8], path[96];
        const char *argv[REDIS_ARGS_MAX + 32] = { "redis-server", "--port", port, "--dir", server->folder, "--bind",
                "127.0.0.1", "--unixsocket", path, "--logfile", "log", "--save", "", "--appendonly", "no",
                "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--daemonize", "no" };
        int count = 0;
        (void)snprintf(port, sizeof(port), "%u", server->port);
        (void)snprintf(path, sizeof(path), "%s/redis.sock", server->folder);
        while (argv[count])
                count++;
        char tls_port[8];
        (void)snprintf(tls_port, sizeof(tls_port), "%u", server->tls_port);
        if (server->tls_port) {
                argv[count++] = "--tls-port";
                argv[count++] = tls_port;
        }
        for (int i = 0; server->args[i]; i++)
                argv[count++] = server->args[i];
        run(server, argv);
}

static void spawn_sentinel(struct redis_server *server)
{
        char path[96];
        (void)snprintf(path, sizeof(path), "%s/sentinel.conf", server->folder);
        run(server, (const char *[]){ "redis-sentinel", path, NULL });
}

static void make_folder(struct redis_server *server)
{
        *server = (struct redis_server){ .port = free_port(), .folder = "/tmp/quiver-redis-XXXXXX" };
        assert_non_null(mkdtemp(server->folder));
        (void)snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%u", server->port);
        (void)snprintf(server->unix_url, sizeof(server->unix_url), "redis+unix:%s/redis.sock", server->folder);
}

static void take_words(struct redis_server *server, const char *const *words)
{
        int count = 0;
        while (server->args[count])
                count++;
        for (int i = 0; words[i]; i++) {
                assert_true(count + 1 < REDIS_ARGS_MAX);
                server->args[count++] = words[i];
                if (!strcmp(words[i], "--requirepass"))
                        (void)snprintf(server->password, sizeof(server->password), "%s", words[i + 1]);
        }
}

void server_start_words(struct redis_server *server, const char *const *words)
{
        make_folder(server);
        take_words(server, words);
        spawn(server);
}

void server_start_tls_words(
        struct redis_server *server, const struct certificates *certificates, const char *const *words)
{
        make_folder(server);
        server->tls_port = free_port();
        (void)snprintf(server->tls_url, sizeof(server->tls_url), "rediss://127.0.0.1:%u", server->tls_port);
        (void)snprintf(server->cert, sizeof(server->cert), "%s", certificates_path(certificates, "server.pem"));
        (void)snprintf(server->key, sizeof(server->key), "%s", certificates_path(certificates, "server.key"));
        (void)snprintf(server->ca, sizeof(server->ca), "%s", certificates_path(certificates, "ca.pem"));
        take_words(server, (const char *const[]){ "--tls-cert-file", server->cert, "--tls-key-file", server->key,
                                   "--tls-ca-cert-file", server->ca, "--tls-auth-clients", "no", NULL });
        take_words(server, words);
        spawn(server);
}

void server_start_sentinel(struct redis_server *server, const char *lines)
{
        char path[96];
        char password[32] = "";
        make_folder(server);
        (void)snprintf(path, sizeof(path), "%s/sentinel.conf", server->folder);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        (void)fprintf(file, "port %u\ndir %s\nlogfile log\nbind 127.0.0.1\n%s\n", server->port, server->folder, lines);
        assert_int_equal(fclose(file), 0);
        const char *at = strstr(lines, "requirepass ");
        if (at && sscanf(at, "requirepass %31s", password) == 1)
                (void)snprintf(server->password, sizeof(server->password), "%s", password);
        server->is_sentinel = true;
        spawn_sentinel(server);
}

void server_restart(struct redis_server *server)
{
        assert_int_equal(server->pid, 0);
        if (server->is_sentinel)
                spawn_sentinel(server);
        else
                spawn(server);
}

static void end(struct redis_server *server, int sig)
{
        if (!server->pid)
                return;
        (void)kill(server->pid, SIGCONT);
        (void)kill(server->pid, sig);
        assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
        server->pid = 0;
}

void server_stop(struct redis_server *server)
{
        end(server, SIGTERM);
}

void server_kill(struct redis_server *server)
{
        end(server, SIGKILL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

void server_free(struct redis_server *server)
{
        end(server, SIGKILL);
        if (server->folder[0])
                (void)nftw(server->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        server->folder[0] = 0;
}

static redisReply *do_list(const struct redis_server *server, const char *format, va_list list)
{
        redisContext *context = try_connect(server);
        if (!context)
                fail_msg("redis-server on port %u does not take a connection", server->port);
        redisReply *reply = redisvCommand(context, format, list);
        if (!reply)
                fail_msg("%s: %s", format, context->errstr);
        redisFree(context);
        return reply;
}

redisReply *server_do(const struct redis_server *server, const char *format, ...)
{
        va_list list;
        va_start(list, format);
        redisReply *reply = do_list(server, format, list);
        va_end(list);
        return reply;
}

redisReply *server_do_text(const struct redis_server *server, const char *text)
{
        char copy[1024];
        const char *words[64];
        int count = 0;
        (void)snprintf(copy, sizeof(copy), "%s", text);
        char *rest = NULL;
        for (char *word = strtok_r(copy, " ", &rest); word && count < 64; word = strtok_r(NULL, " ", &rest))
                words[count++] = word;
        redisContext *to = redisConnect("127.0.0.1", server->port);
        redisReply *reply = to && !to->err ? redisCommandArgv(to, count, words, NULL) : NULL;
        if (!reply)
                fail_msg("%s: no answer", text);
        redisFree(to);
        return reply;
}

void server_ok(const struct redis_server *server, const char *format, ...)
{
        va_list list;
        va_start(list, format);
        redisReply *reply = do_list(server, format, list);
        va_end(list);
        if (reply->type == REDIS_REPLY_ERROR)
                fail_msg("%s: %s", format, reply->str);
        freeReplyObject(reply);
}

void server_add_user(const struct redis_server *server, const char *name, const struct rights *rights)
{
        const struct strings *lists[] = { &rights->keys, &rights->channels, &rights->commands, &rights->selectors };
        const char *words[256] = { "ACL", "SETUSER", name, "reset", "on", ">secret", "-@all" };
        int count = 7;
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
                for (size_t k = 0; k < lists[i]->count && count < 256; k++)
                        words[count++] = lists[i]->items[k];
        redisContext *to = redisConnect("127.0.0.1", server->port);
        redisReply *reply = to && !to->err ? redisCommandArgv(to, count, words, NULL) : NULL;
        if (!reply || reply->type == REDIS_REPLY_ERROR)
                fail_msg("ACL SETUSER %s: %s", name, reply ? reply->str : "no answer");
        freeReplyObject(reply);
        redisFree(to);
}

void server_info(const struct redis_server *server, const char *name, char *value, size_t size)
{
        redisReply *reply = server_do(server, "INFO");
        char line[64];
        (void)snprintf(line, sizeof(line), "\n%s:", name);
        const char *at = reply->str ? strstr(reply->str, line) : NULL;
        value[0] = 0;
        if (at)
                (void)snprintf(value, size, "%.*s", (int)strcspn(at + strlen(line), "\r\n"), at + strlen(line));
        freeReplyObject(reply);
}
