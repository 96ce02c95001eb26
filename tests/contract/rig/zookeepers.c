#include "zookeepers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASSES "/usr/share/java/zookeeper.jar"
#define MAIN    "org.apache.zookeeper.server.quorum.QuorumPeerMain"

/* The client forgets operations that are under way when a handle is closed.  What they point to is ours, and freed. */
const char *__lsan_default_suppressions(void); /* NOLINT: the sanitizer's name */
const char *__lsan_default_suppressions(void)  /* NOLINT */
{
        return "leak:libzookeeper_mt.so\n";
}

/* --- starting ---------------------------------------------------------------------------------------------------- */

static void write_text(const char *folder, const char *name, const char *text)
{
        char path[160];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *f = fopen(path, "we");
        if (!f || fputs(text, f) < 0 || fclose(f))
                abort();
}

static void prepare(const struct ensemble *e, unsigned server)
{
        char folder[96], text[2048], id[8];
        (void)snprintf(folder, sizeof(folder), "%s/%u", e->folder, server);
        (void)mkdir(folder, 0700);
        int n = snprintf(text, sizeof(text),
                "dataDir=%s\nclientPort=%u\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                "4lw.commands.whitelist=*\ntickTime=%d\ninitLimit=20\nsyncLimit=4\nmaxClientCnxns=0\n",
                folder, e->servers[server].port, ZOOKEEPER_TICK_MS);
        for (unsigned i = 0; e->count > 1 && i < e->count; i++)
                n += snprintf(text + n, sizeof(text) - (size_t)n, "server.%u=127.0.0.1:%u:%u\n", i + 1,
                        e->servers[i].peer_port, e->servers[i].election_port);
        write_text(folder, "zoo.cfg", text);
        (void)snprintf(id, sizeof(id), "%u\n", server + 1);
        write_text(folder, "myid", id);
}

static void execute(const struct ensemble *e, unsigned server)
{
        char config[128];
        (void)snprintf(config, sizeof(config), "%s/%u/zoo.cfg", e->folder, server);
        (void)execlp("java", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                "-Dzookeeper.forceSync=no", "-cp", CLASSES, MAIN, config, (char *)NULL);
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

static struct sockaddr_in loopback(uint16_t port)
{
        return (struct sockaddr_in){
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
        };
}

/* A four-letter word; the answer's size, 0 if there is none in time. */
static size_t ask(uint16_t port, const char *word, char *ret_text, size_t size)
{
        struct sockaddr_in to = loopback(port);
        struct timeval patience = { .tv_usec = 500000 };
        size_t got = 0;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        if (!connect(fd, (struct sockaddr *)&to, sizeof(to)) && send(fd, word, 4, MSG_NOSIGNAL) == 4)
                for (ssize_t n; got < size - 1 && (n = recv(fd, ret_text + got, size - 1 - got, 0)) > 0;)
                        got += (size_t)n;
        (void)close(fd);
        ret_text[got] = 0;
        return got;
}

/* Whether the server says which mode it is in, and that one. */
static bool is_in_mode(const struct ensemble *e, unsigned server, const char *mode)
{
        char text[4096];
        return ask(e->servers[server].port, "srvr", text, sizeof(text)) && strstr(text, mode);
}

static bool serves(const struct ensemble *e, unsigned server)
{
        return is_in_mode(e, server, "Mode: ");
}

static bool leads(const struct ensemble *e, unsigned server)
{
        return is_in_mode(e, server, "Mode: leader");
}

const struct ensemble_kind zookeeper_kind = {
        .name = "zookeeper",
        .data = "/*/version-2",
        .prepare = prepare,
        .execute = execute,
        .serves = serves,
        .leads = leads,
};
