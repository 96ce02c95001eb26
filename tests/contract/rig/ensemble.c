#include "ensemble.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "servers.h"

#define START_MS 60000

void ensemble_give_up(const struct ensemble *e, const char *what)
{
        char command[256];
        (void)fprintf(stderr, "%s: %s\n", e->kind->name, what);
        (void)snprintf(command, sizeof(command), "tail -n 20 %s/*.log >&2", e->folder);
        if (system(command) != 0)
                (void)fprintf(stderr, "(no log)\n");
        exit(1);
}

/* --- starting ---------------------------------------------------------------------------------------------------- */

static void launch(struct ensemble *e, unsigned server)
{
        char log[128];
        pid_t parent = getpid();
        (void)snprintf(log, sizeof(log), "%s/%u.log", e->folder, server);
        pid_t pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0) {
                int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent || fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
                        _exit(1);
                e->kind->execute(e, server);
                _exit(127);
        }
        e->servers[server].pid = pid;
}

void ensemble_init(struct ensemble *e, const struct ensemble_kind *kind, unsigned count)
{
        bool is_in_memory = kind->is_in_memory && access("/dev/shm", W_OK) == 0;
        *e = (struct ensemble){ .kind = kind, .count = count };
        (void)snprintf(
                e->folder, sizeof(e->folder), "%s/quiver-%s-XXXXXX", is_in_memory ? "/dev/shm" : "/tmp", kind->name);
        if (!mkdtemp(e->folder))
                abort();
        for (unsigned i = 0; i < count; i++)
                e->servers[i] = (struct ensemble_server){ free_port(), free_port(), free_port(), 0 };
}

void ensemble_start(struct ensemble *e)
{
        for (unsigned i = 0; i < e->count; i++) {
                if (e->kind->prepare)
                        e->kind->prepare(e, i);
                launch(e, i);
        }
        ensemble_wait(e);
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

void ensemble_wait(struct ensemble *e)
{
        uint64_t until_ms = clock_boot_ms() + START_MS;
        for (unsigned i = 0; i < e->count; i++) {
                while (e->servers[i].pid && !e->kind->serves(e, i)) {
                        if (waitpid(e->servers[i].pid, NULL, WNOHANG) != 0)
                                ensemble_give_up(e, "a server ended");
                        if (clock_boot_ms() > until_ms)
                                ensemble_give_up(e, "a server does not serve");
                        (void)poll(NULL, 0, 50);
                }
        }
}

int ensemble_leader(const struct ensemble *e)
{
        for (unsigned i = 0; i < e->count; i++)
                if (e->servers[i].pid && e->kind->leads(e, i))
                        return (int)i;
        return -1;
}

void ensemble_url(const struct ensemble *e, const char *root, char *ret_url, size_t size)
{
        int n = snprintf(ret_url, size, "%s%s://", e->kind->name, e->has_tls ? "+tls" : "");
        for (unsigned i = 0; i < e->count; i++)
                n += snprintf(ret_url + n, size - (size_t)n, "%s127.0.0.1:%u", i ? "," : "", e->servers[i].port);
        (void)snprintf(ret_url + n, size - (size_t)n, "/%s", root);
}

/* --- breaking ---------------------------------------------------------------------------------------------------- */

void ensemble_kill(struct ensemble *e, unsigned server)
{
        pid_t pid = e->servers[server].pid;
        if (!pid)
                return;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        e->servers[server].pid = 0;
}

void ensemble_restart(struct ensemble *e, unsigned server)
{
        launch(e, server);
}

static void send_signal(const struct ensemble *e, unsigned server, int number)
{
        if (e->servers[server].pid)
                (void)kill(e->servers[server].pid, number);
}

void ensemble_pause(struct ensemble *e, unsigned server)
{
        send_signal(e, server, SIGSTOP);
}

void ensemble_resume(struct ensemble *e, unsigned server)
{
        send_signal(e, server, SIGCONT);
}

static void remove_data(const struct ensemble *e, const char *what)
{
        char command[160];
        (void)snprintf(command, sizeof(command), "rm -rf %s%s", e->folder, what);
        if (system(command) != 0)
                (void)fprintf(stderr, "%s: %s%s stays\n", e->kind->name, e->folder, what);
}

void ensemble_wipe(struct ensemble *e)
{
        for (unsigned i = 0; i < e->count; i++)
                ensemble_kill(e, i);
        remove_data(e, e->kind->data);
        for (unsigned i = 0; i < e->count; i++)
                launch(e, i);
        ensemble_wait(e);
}

void ensemble_stop(struct ensemble *e)
{
        for (unsigned i = 0; i < e->count; i++)
                ensemble_kill(e, i);
        if (e->folder[0])
                remove_data(e, "");
        e->folder[0] = 0;
}
