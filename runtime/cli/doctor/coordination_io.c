/* coordination_io.c: the coordination as a visitor sees it, and its servers; certificates of servers with TLS. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "cli/admin/membership_ask.h"
#include "cli/doctor/probes.h"
#include "config/connect.h"
#include "tls/tls.h"
#include "view/json.h"

#define REPLY_MAX 65536u

/* --- ZooKeeper --- */

/* The value of "NAME: VALUE"; "" if there is none. */
static void get_line(const struct buffer *reply, const char *name, char *to, size_t size)
{
        const char *at = strstr(buffer_text((struct buffer *)reply), name);
        *to = 0;
        if (at)
                (void)snprintf(to, size, "%.*s", (int)strcspn(at + strlen(name), ",-\n"), at + strlen(name));
}

static void ask_zookeeper(const struct url_host *host, struct doctor_zookeeper *to)
{
        struct buffer reply = { 0 };
        (void)snprintf(to->server, sizeof(to->server), "%.250s:%u", host->name, host->port);
        uint64_t before_ns = clock_boot_ns();
        int r = probe_exchange(host, NULL, "srvr", REPLY_MAX, &reply, NULL, &to->error);
        to->round_trip_ns = clock_boot_ns() - before_ns;
        if (r == 0) {
                get_line(&reply, "Zookeeper version: ", to->version, sizeof(to->version));
                get_line(&reply, "\nMode: ", to->mode, sizeof(to->mode));
                to->is_mute = !to->mode[0] && !strstr(buffer_text(&reply), "not currently serving");
        }
        buffer_free(&reply);
}

/* --- etcd --- */

static json_t *body_of(const struct buffer *reply)
{
        const char *text = buffer_text((struct buffer *)reply);
        const char *body = strstr(text, "\r\n\r\n");
        const char *from = body ? strchr(body, '{') : NULL;
        const char *end = body ? strrchr(body, '}') : NULL;
        return from && end && end > from ? json_loadb(from, (size_t)(end - from) + 1, 0, NULL) : NULL;
}

/* "Date: Tue, 18 Nov 2026 09:00:00 GMT": whole seconds. */
static void take_date(const struct buffer *reply, uint64_t asked_ms, struct doctor_coordination *to)
{
        struct tm tm = { 0 };
        const char *at = strstr(buffer_text((struct buffer *)reply), "\r\nDate: ");
        if (!at || !strptime(at + 8, "%a, %d %b %Y %H:%M:%S GMT", &tm))
                return;
        uint64_t now_ms = clock_wall_ms();
        int64_t theirs_ms = (int64_t)timegm(&tm) * 1000 + 500;
        to->ahead_ms = theirs_ms - (int64_t)((asked_ms + now_ms) / 2);
        to->doubt_ms = 500 + (now_ms - asked_ms) / 2 + 1;
}

static void ask_etcd(const struct config *config, struct doctor_coordination *to)
{
        static const char request[] = "POST /v3/maintenance/status HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n"
                                      "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        const struct url *url = &config->coordination.url;
        const struct tls_files files = tls_files_of(&config->coordination.tls);
        struct tls_context *tls = NULL;
        struct error error;
        if (url->kind == URL_ETCD_TLS && tls_context_open(&files, &tls, &error) < 0)
                return;
        for (size_t i = 0; i < url->hosts_count; i++) {
                struct buffer reply = { 0 };
                uint64_t asked_ms = clock_wall_ms();
                if (probe_exchange(&url->hosts[i], tls, request, REPLY_MAX, &reply, NULL, &error) == 0) {
                        json_t *said = body_of(&reply);
                        const json_t *wrong = json_object_get(said, "errors");
                        take_date(&reply, asked_ms, to);
                        (void)snprintf(
                                to->etcd_version, sizeof(to->etcd_version), "%s", view_json_get_text(said, "version"));
                        /* 64-bit numbers are strings there. */
                        if (*view_json_get_text(said, "dbSize"))
                                to->etcd_db_bytes = strtoull(view_json_get_text(said, "dbSize"), NULL, 10);
                        if (json_array_size(wrong))
                                (void)snprintf(to->etcd_alarm, sizeof(to->etcd_alarm), "%.60s",
                                        json_string_value(json_array_get(wrong, 0)));
                        json_decref(said);
                }
                buffer_free(&reply);
        }
        tls_context_free(tls);
}

/* --- as a visitor --- */

static const char *driver_of(enum url_kind kind)
{
        switch (kind) {
        case URL_LOCAL:
                return "local";
        case URL_ZOOKEEPER:
                return "zookeeper";
        case URL_ETCD:
        case URL_ETCD_TLS:
                return "etcd";
        default:
                return "redis";
        }
}

static bool has_local_tree(const char *folder, const char *app)
{
        struct stat st;
        char *path = text_printf("%s/coord-%s", folder, app);
        bool is_there = stat(path, &st) == 0 || errno != ENOENT;
        free(path);
        return is_there;
}

void probe_coordination(const struct config *config, struct doctor_figures *figures)
{
        struct doctor_coordination *to = &figures->coordination;
        const struct url *url = &config->coordination.url;
        struct membership_view view = { 0 };
        struct membership_asked asked = { 0 };
        *to = (struct doctor_coordination){ .driver = driver_of(url->kind),
                .url = url->text,
                .wanted_ms = config->coordination.session_ms,
                .ttl_ms = config->lease.ttl_ms,
                .round_trip_ns = UNKNOWN,
                .hosts_alive = (size_t)UNKNOWN,
                .etcd_db_bytes = UNKNOWN,
                .etcd_quota_bytes = UNKNOWN,
                .doubt_ms = UNKNOWN };
        /* A Redis that did not answer just now is not asked again. */
        if (url->kind == URL_STORE_REDIS && figures->store.status < 0) {
                to->driver = NULL;
                return;
        }
        /* A visitor to a local tree makes it. */
        to->is_missing = url->kind == URL_LOCAL && !has_local_tree(url->path, config->app);
        if (to->is_missing)
                return;
        to->status = membership_ask(config, "doctor", &view, &asked, &to->error);
        if (to->status == 0) {
                to->session_ms = url->kind == URL_ZOOKEEPER ? asked.session_ms : 0;
                to->round_trip_ns = asked.round_trip_ns ? asked.round_trip_ns : UNKNOWN;
                to->has_leader = *view.leader != 0;
                to->members = view.members_count;
        }
        membership_view_free(&view);
        if (url->kind == URL_ZOOKEEPER) {
                for (size_t i = 0; i < url->hosts_count; i++) {
                        to->zookeepers = array_grow(to->zookeepers, to->zookeepers_count, sizeof(*to->zookeepers));
                        ask_zookeeper(&url->hosts[i], &to->zookeepers[to->zookeepers_count++]);
                }
        } else if (url->kind == URL_ETCD || url->kind == URL_ETCD_TLS) {
                ask_etcd(config, to);
        }
}

/* --- certificates --- */

static struct doctor_certificate *add_certificate(struct doctor_figures *to)
{
        to->certificates = array_grow(to->certificates, to->certificates_count, sizeof(*to->certificates));
        return &to->certificates[to->certificates_count++];
}

static uint64_t left_s(uint64_t end_s)
{
        uint64_t now_s = clock_wall_ms() / 1000;
        return end_s > now_s ? end_s - now_s : 0;
}

static void look_at(const struct url *url, const struct tls_config *config, struct doctor_figures *to)
{
        const struct tls_files files = tls_files_of(config);
        struct tls_context *context;
        struct error error;
        if (!url->is_tls || tls_context_open(&files, &context, &error) < 0)
                return; /* the settings' problems say why */
        if (config->cert_file) {
                struct doctor_certificate *c = add_certificate(to);
                (void)snprintf(c->of, sizeof(c->of), "host's own file %.240s", config->cert_file);
                c->left_s = left_s(tls_context_own_end_s(context));
        }
        for (size_t i = 0; i < url->hosts_count; i++) {
                struct doctor_certificate *c = add_certificate(to);
                uint64_t end_s = 0;
                (void)snprintf(c->of, sizeof(c->of), "server %.250s:%u", url->hosts[i].name, url->hosts[i].port);
                if (probe_exchange(&url->hosts[i], context, NULL, 0, NULL, &end_s, &c->error) == 0)
                        c->left_s = left_s(end_s);
        }
        tls_context_free(context);
}

void probe_certificates(const struct config *config, struct doctor_figures *to)
{
        look_at(&config->store.url, &config->store.tls, to);
        if (config->coordination.url.kind != URL_STORE_REDIS)
                look_at(&config->coordination.url, &config->coordination.tls, to);
}
