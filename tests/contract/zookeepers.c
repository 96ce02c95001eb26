#include "zookeepers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "servers.h"

#define START_MS 60000
#define CLASSES  "/usr/share/java/zookeeper.jar"
#define MAIN     "org.apache.zookeeper.server.quorum.QuorumPeerMain"

/* The client forgets operations that are under way when a handle is closed.  What they point to is ours, and freed. */
const char *__lsan_default_suppressions(void); /* NOLINT: the sanitizer's name */
const char *__lsan_default_suppressions(void)  /* NOLINT */
{
        return "leak:libzookeeper_mt.so\n";
}

__attribute__((noreturn)) static void give_up(const struct zookeepers *z, const char *what)
{
        char command[256];
        (void)fprintf(stderr, "zookeeper: %s\n", what);
        (void)snprintf(command, sizeof(command), "tail -n 20 %s/*/log >&2", z->folder);
        if (system(command) != 0)
                (void)fprintf(stderr, "(no log)\n");
        exit(1);
}

static struct sockaddr_in loopback(uint16_t port)
{
        return (struct sockaddr_in){
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
        };
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

static void write_config(const struct zookeepers *z, unsigned server)
{
        char folder[96], text[2048], id[8];
        (void)snprintf(folder, sizeof(folder), "%s/%u", z->folder, server);
        (void)mkdir(folder, 0700);
        int n = snprintf(text, sizeof(text),
                "dataDir=%s\nclientPort=%u\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                "4lw.commands.whitelist=*\ntickTime=%d\ninitLimit=20\nsyncLimit=4\nmaxClientCnxns=0\n",
                folder, z->servers[server].port, ZOOKEEPER_TICK_MS);
        for (unsigned i = 0; z->count > 1 && i < z->count; i++)
                n += snprintf(text + n, sizeof(text) - (size_t)n, "server.%u=127.0.0.1:%u:%u\n", i + 1,
                        z->servers[i].peer_port, z->servers[i].election_port);
        write_text(folder, "zoo.cfg", text);
        (void)snprintf(id, sizeof(id), "%u\n", server + 1);
        write_text(folder, "myid", id);
}

static void launch(struct zookeepers *z, unsigned server)
{
        char config[128], log[128];
        pid_t parent = getpid();
        (void)snprintf(config, sizeof(config), "%s/%u/zoo.cfg", z->folder, server);
        (void)snprintf(log, sizeof(log), "%s/%u/log", z->folder, server);
        pid_t pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0) {
                int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent || fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
                        _exit(1);
                (void)execlp("java", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                        "-Dzookeeper.forceSync=no", "-cp", CLASSES, MAIN, config, (char *)NULL);
                _exit(127);
        }
        z->servers[server].pid = pid;
}

void zookeepers_start(struct zookeepers *z, unsigned count)
{
        *z = (struct zookeepers){ .count = count };
        (void)snprintf(z->folder, sizeof(z->folder), "/tmp/quiver-zookeeper-XXXXXX");
        if (!mkdtemp(z->folder))
                abort();
        for (unsigned i = 0; i < count; i++)
                z->servers[i] = (struct zookeeper){ free_port(), free_port(), free_port(), 0 };
        for (unsigned i = 0; i < count; i++) {
                write_config(z, i);
                launch(z, i);
        }
        zookeepers_wait(z);
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

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

static bool serves(const struct zookeeper *server)
{
        char text[4096];
        return ask(server->port, "srvr", text, sizeof(text)) && strstr(text, "Mode: ");
}

void zookeepers_wait(struct zookeepers *z)
{
        uint64_t until_ms = clock_boot_ms() + START_MS;
        for (unsigned i = 0; i < z->count; i++) {
                while (z->servers[i].pid && !serves(&z->servers[i])) {
                        if (waitpid(z->servers[i].pid, NULL, WNOHANG) != 0)
                                give_up(z, "a server ended");
                        if (clock_boot_ms() > until_ms)
                                give_up(z, "a server does not serve");
                        (void)poll(NULL, 0, 50);
                }
        }
}

int zookeepers_leader(struct zookeepers *z)
{
        char text[4096];
        for (unsigned i = 0; i < z->count; i++)
                if (z->servers[i].pid && ask(z->servers[i].port, "srvr", text, sizeof(text)) &&
                        strstr(text, "Mode: leader"))
                        return (int)i;
        return -1;
}

void zookeepers_url(const struct zookeepers *z, const char *root, char *ret_url, size_t size)
{
        int n = snprintf(ret_url, size, "zookeeper://");
        for (unsigned i = 0; i < z->count; i++)
                n += snprintf(ret_url + n, size - (size_t)n, "%s127.0.0.1:%u", i ? "," : "", z->servers[i].port);
        (void)snprintf(ret_url + n, size - (size_t)n, "/%s", root);
}

/* --- breaking ---------------------------------------------------------------------------------------------------- */

void zookeepers_kill(struct zookeepers *z, unsigned server)
{
        pid_t pid = z->servers[server].pid;
        if (!pid)
                return;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        z->servers[server].pid = 0;
}

void zookeepers_restart(struct zookeepers *z, unsigned server)
{
        launch(z, server);
}

void zookeepers_pause(struct zookeepers *z, unsigned server)
{
        (void)kill(z->servers[server].pid, SIGSTOP);
}

void zookeepers_resume(struct zookeepers *z, unsigned server)
{
        (void)kill(z->servers[server].pid, SIGCONT);
}

static void remove_data(const struct zookeepers *z, const char *what)
{
        char command[160];
        (void)snprintf(command, sizeof(command), "rm -rf %s%s", z->folder, what);
        if (system(command) != 0)
                (void)fprintf(stderr, "zookeeper: %s stays\n", z->folder);
}

void zookeepers_wipe(struct zookeepers *z)
{
        for (unsigned i = 0; i < z->count; i++)
                zookeepers_kill(z, i);
        remove_data(z, "/*/version-2");
        for (unsigned i = 0; i < z->count; i++)
                launch(z, i);
        zookeepers_wait(z);
}

void zookeepers_stop(struct zookeepers *z)
{
        for (unsigned i = 0; i < z->count; i++)
                zookeepers_kill(z, i);
        remove_data(z, "");
}
