#include "etcds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_here(void)
{
        return system("command -v etcd >/dev/null && command -v etcdctl >/dev/null") == 0;
}

/* --- starting ---------------------------------------------------------------------------------------------------- */

static const char *scheme(const struct ensemble *e)
{
        return e->has_tls ? "https" : "http";
}

static void make_certificates(const struct ensemble *e)
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
        if (system(command) != 0)
                ensemble_give_up(e, "no certificates");
}

static void execute(const struct ensemble *e, unsigned server)
{
        char text[7][512];
        const struct ensemble_server *s = &e->servers[server];
        int n = 0;
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
        (void)execvp("etcd", words);
}

void etcds_start_tls(struct ensemble *e)
{
        ensemble_init(e, &etcd_kind, 1);
        e->has_tls = true;
        make_certificates(e);
        ensemble_start(e);
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

static int ask(const struct ensemble *e, unsigned server, const char *words, char *ret_text, size_t size)
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

const char *etcds_ctl(const struct ensemble *e, unsigned server, const char *words)
{
        static char text[65536];
        if (ask(e, server, words, text, sizeof(text)) != 0) {
                (void)fprintf(stderr, "etcdctl %s: %s\n", words, text);
                ensemble_give_up(e, "etcdctl failed");
        }
        return text;
}

static bool serves(const struct ensemble *e, unsigned server)
{
        char text[4096];
        return ask(e, server, "endpoint health", text, sizeof(text)) == 0;
}

static bool leads(const struct ensemble *e, unsigned server)
{
        char text[4096];
        const char *at = text;
        if (ask(e, server, "endpoint status", text, sizeof(text)) != 0)
                return false;
        /* endpoint, id, version, size, is leader, … */
        for (int comma = 0; comma < 4 && at; comma++)
                at = strchr(at + 1, ',');
        return at && !strncmp(at, ", true", 6);
}

const struct ensemble_kind etcd_kind = {
        .name = "etcd",
        .data = "/?",
        .is_in_memory = true,
        .is_here = is_here,
        .execute = execute,
        .serves = serves,
        .leads = leads,
};
