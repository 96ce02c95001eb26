#include "etcds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "servers.h"

#define START_MS 60000

static void run(const char *command, const char *what)
{
        if (system(command) != 0) {
                (void)fprintf(stderr, "etcd: %s: %s\n", what, command);
                exit(1);
        }
}

__attribute__((noreturn)) static void give_up(const struct etcds *e, const char *what)
{
        char command[256];
        (void)fprintf(stderr, "etcd: %s\n", what);
        (void)snprintf(command, sizeof(command), "tail -n 20 %s/*.log >&2", e->folder);
        if (system(command) != 0)
                (void)fprintf(stderr, "(no log)\n");
        exit(1);
}

bool etcds_are_here(void)
{
        return system("command -v etcd >/dev/null && command -v etcdctl >/dev/null") == 0;
}

/* --- starting ---------------------------------------------------------------------------------------------------- */

static const char *scheme(const struct etcds *e)
{
        return e->has_tls ? "https" : "http";
}

static void make_certificates(const struct etcds *e)
{
        char command[1024];
        (void)snprintf(command, sizeof(command),
                "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout "
                "ca-key.pem "
                "-out ca.pem -subj /CN=test-ca 2>/dev/null && openssl req -newkey ec -pkeyopt "
                "ec_paramgen_curve:P-256 -nodes -keyout key.pem -out request.pem -subj /CN=etcd 2>/dev/null && "
                "printf 'subjectAltName=IP:127.0.0.1' > names && openssl x509 -req -in request.pem -CA ca.pem -CAkey "
                "ca-key.pem -CAcreateserial -days 2 -extfile names -out cert.pem 2>/dev/null",
                e->folder);
        run(command, "no certificates");
}

static void launch(struct etcds *e, unsigned server)
{
        char text[9][512], log[128];
        pid_t parent = getpid();
        const struct etcd_server *s = &e->servers[server];
        int n = 0;
        (void)snprintf(log, sizeof(log), "%s/%u.log", e->folder, server);
        (void)snprintf(text[0], sizeof(text[0]), "%s/%u", e->folder, server);
        (void)snprintf(text[1], sizeof(text[1]), "%s://127.0.0.1:%u", scheme(e), s->port);
        (void)snprintf(text[2], sizeof(text[2]), "http://127.0.0.1:%u", s->peer_port);
        (void)snprintf(text[3], sizeof(text[3]), "%u", server);
        for (unsigned i = 0; i < e->count; i++)
                n += snprintf(text[4] + n, sizeof(text[4]) - (size_t)n, "%s%u=http://127.0.0.1:%u", i ? "," : "", i,
                        e->servers[i].peer_port);
        (void)snprintf(text[5], sizeof(text[5]), "%s/cert.pem", e->folder);
        (void)snprintf(text[6], sizeof(text[6]), "%s/key.pem", e->folder);
        /* With these times the shortest lease is one second. */
        char *words[] = { "etcd", "--data-dir", text[0], "--listen-client-urls", text[1], "--advertise-client-urls",
                text[1], "--listen-peer-urls", text[2], "--initial-advertise-peer-urls", text[2], "--name", text[3],
                "--initial-cluster", text[4], "--heartbeat-interval", "100", "--election-timeout", "500",
                "--auth-token-ttl", "300", e->has_tls ? "--cert-file" : NULL, text[5], "--key-file", text[6], NULL };
        pid_t pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0) {
                int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent || fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
                        _exit(1);
                (void)execvp("etcd", words);
                _exit(127);
        }
        e->servers[server].pid = pid;
}

void etcds_start(struct etcds *e, unsigned count, bool has_tls)
{
        bool is_in_memory = access("/dev/shm", W_OK) == 0;
        *e = (struct etcds){ .count = count, .has_tls = has_tls };
        (void)snprintf(e->folder, sizeof(e->folder), "%s/quiver-etcd-XXXXXX", is_in_memory ? "/dev/shm" : "/tmp");
        if (!mkdtemp(e->folder))
                abort();
        if (has_tls)
                make_certificates(e);
        for (unsigned i = 0; i < count; i++)
                e->servers[i] = (struct etcd_server){ free_port(), free_port(), 0 };
        for (unsigned i = 0; i < count; i++)
                launch(e, i);
        etcds_wait(e);
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

static int ask(const struct etcds *e, unsigned server, const char *words, char *ret_text, size_t size)
{
        char command[2048];
        size_t got = 0;
        (void)snprintf(command, sizeof(command),
                "ETCDCTL_API=3 timeout 20 etcdctl --command-timeout=2s --dial-timeout=2s --endpoints "
                "%s://127.0.0.1:%u %s%s%s %s 2>&1",
                scheme(e), e->servers[server].port, e->has_tls ? "--cacert " : "", e->has_tls ? e->folder : "",
                e->has_tls ? "/ca.pem" : "", words);
        FILE *out = popen(command, "re");
        if (!out)
                abort();
        got = fread(ret_text, 1, size - 1, out);
        ret_text[got] = 0;
        return pclose(out);
}

const char *etcds_ctl(const struct etcds *e, unsigned server, const char *words)
{
        static char text[65536];
        if (ask(e, server, words, text, sizeof(text)) != 0) {
                (void)fprintf(stderr, "etcdctl %s: %s\n", words, text);
                give_up(e, "etcdctl failed");
        }
        return text;
}

void etcds_wait(struct etcds *e)
{
        uint64_t until_ms = clock_boot_ms() + START_MS;
        char text[4096];
        for (unsigned i = 0; i < e->count; i++) {
                while (e->servers[i].pid && ask(e, i, "endpoint health", text, sizeof(text)) != 0) {
                        if (waitpid(e->servers[i].pid, NULL, WNOHANG) != 0)
                                give_up(e, "a server ended");
                        if (clock_boot_ms() > until_ms)
                                give_up(e, "a server does not serve");
                        (void)poll(NULL, 0, 50);
                }
        }
}

int etcds_leader(struct etcds *e)
{
        char text[4096];
        for (unsigned i = 0; i < e->count; i++) {
                /* endpoint, id, version, size, is leader, … */
                if (e->servers[i].pid && ask(e, i, "endpoint status", text, sizeof(text)) == 0) {
                        const char *at = text;
                        for (int comma = 0; comma < 4 && at; comma++)
                                at = strchr(at + 1, ',');
                        if (at && !strncmp(at, ", true", 6))
                                return (int)i;
                }
        }
        return -1;
}

void etcds_url(const struct etcds *e, const char *root, char *ret_url, size_t size)
{
        int n = snprintf(ret_url, size, "etcd%s://", e->has_tls ? "+tls" : "");
        for (unsigned i = 0; i < e->count; i++)
                n += snprintf(ret_url + n, size - (size_t)n, "%s127.0.0.1:%u", i ? "," : "", e->servers[i].port);
        (void)snprintf(ret_url + n, size - (size_t)n, "/%s", root);
}

/* --- breaking ---------------------------------------------------------------------------------------------------- */

void etcds_kill(struct etcds *e, unsigned server)
{
        pid_t pid = e->servers[server].pid;
        if (!pid)
                return;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        e->servers[server].pid = 0;
}

void etcds_restart(struct etcds *e, unsigned server)
{
        launch(e, server);
}

void etcds_pause(struct etcds *e, unsigned server)
{
        if (e->servers[server].pid)
                (void)kill(e->servers[server].pid, SIGSTOP);
}

void etcds_resume(struct etcds *e, unsigned server)
{
        if (e->servers[server].pid)
                (void)kill(e->servers[server].pid, SIGCONT);
}

static void remove_data(const struct etcds *e, const char *what)
{
        char command[160];
        (void)snprintf(command, sizeof(command), "rm -rf %s%s", e->folder, what);
        run(command, "its data stays");
}

void etcds_wipe(struct etcds *e)
{
        for (unsigned i = 0; i < e->count; i++)
                etcds_kill(e, i);
        remove_data(e, "/?");
        for (unsigned i = 0; i < e->count; i++)
                launch(e, i);
        etcds_wait(e);
}

void etcds_stop(struct etcds *e)
{
        for (unsigned i = 0; i < e->count; i++)
                etcds_kill(e, i);
        if (e->folder[0])
                remove_data(e, "");
        e->folder[0] = 0;
}
