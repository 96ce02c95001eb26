/* endpoint.c: chooses the server of the list to talk to.
 *
 * One at a time.  If it does not answer or says that it cannot serve, the next one is tried at once; after all have
 * failed, a pause follows, which grows.  The first server that answers tells its version; then, if there is a password,
 * it issues a token, which all members of the cluster accept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "coord/etcd/etcd.h"

#define PAUSE_MS     50u
#define PAUSE_MAX_MS 2000u
/* A login takes a server a tenth of a second or more. */
#define LOGIN_MS  5000u
#define TOKEN_MAX 4096u
#define SILENT_MS 5000u

const char *etcd_endpoint_name(const struct etcd_tree *tree, char text[300])
{
        const struct url_host *host = &tree->url.hosts[tree->endpoint];
        bool is_v6 = strchr(host->name, ':') != NULL;
        (void)snprintf(text, 300, "%s%.255s%s:%u", is_v6 ? "[" : "", host->name, is_v6 ? "]" : "", host->port);
        return text;
}

uint64_t etcd_attempt_ms(const struct etcd_tree *tree)
{
        /* With several servers there must be time to try a second one within the session.  With one, only waiting
         * helps. */
        uint64_t session_ms = tree->remote.coord.session_ms;
        return max_u64(tree->url.hosts_count > 1 ? session_ms / REMOTE_BEATS : 2 * session_ms / REMOTE_BEATS, 1);
}

bool etcd_is_ready(const struct etcd_tree *tree, uint64_t now_ms)
{
        return tree->is_greeted && (!tree->password || tree->is_open || tree->token) && now_ms >= tree->retry_at_ms;
}

/* --- a server that does not answer ------------------------------------------------------------------------------- */

static uint64_t pause_ms(const struct etcd_tree *tree)
{
        unsigned rounds = tree->failures / (unsigned)tree->url.hosts_count;
        if (tree->failures % tree->url.hosts_count != 0)
                return 0;
        uint64_t most_ms = min_u64(PAUSE_MAX_MS, remote_beat_every_ms(&tree->remote));
        uint64_t pause = min_u64((uint64_t)PAUSE_MS << min_u64(rounds - 1, 8), most_ms);
        /* Spread, so that a fleet does not reconnect at the same moment. */
        return pause / 2 + (uint64_t)random() % (pause / 2 + 1);
}

/* Logs once per outage.  At the start the opener reports that it waits; the reason is logged if that takes long. */
static void say_down(struct etcd_tree *tree, const char *why)
{
        const char *hint = tree->untrusted ? "set coordination.tls.ca_file to the authority that signed its certificate"
                                           : "no server of coordination.url serves; tasks go on meanwhile";
        bool is_late = clock_boot_ms() - tree->made_ms > SILENT_MS;
        if (tree->is_said_down || tree->remote.is_closing || (!tree->remote.coord.server && !is_late))
                return;
        log_event(LEVEL_WARN, "coordination-etcd", "up=0 error=%s hint=%s", LOG_QUOTE(why), LOG_QUOTE(hint));
        tree->is_said_down = true;
}

void etcd_endpoint_failed(struct etcd_tree *tree, const char *why)
{
        struct error text;
        (void)error_set(&text, 0, "%s", why);
        tree->failures = tree->failures < UINT32_MAX / 2 ? tree->failures + 1 : tree->failures;
        tree->endpoint = (tree->endpoint + 1) % tree->url.hosts_count;
        tree->retry_at_ms = clock_boot_ms() + pause_ms(tree);
        curl_http_abort_all(tree->http);
        if (tree->failures >= tree->url.hosts_count) {
                tree->must_suspend = true;
                say_down(tree, text.text);
        }
        if (tree->remote.opening && tree->untrusted >= tree->url.hosts_count) {
                (void)error_prefix(&text, 0,
                        "no certificate can be verified; set coordination.tls.ca_file to the authority that signed "
                        "them");
                etcd_refuse(tree, -EACCES, text.text);
        }
        remote_wake_at(&tree->remote, 0);
}

void etcd_endpoint_answered(struct etcd_tree *tree)
{
        struct coord *coord = &tree->remote.coord;
        char server[300];
        (void)etcd_endpoint_name(tree, server);
        tree->failures = tree->untrusted = 0;
        tree->retry_at_ms = 0;
        if (tree->is_said_down)
                log_event(LEVEL_INFO, "coordination-etcd", "up=1 server=%s", LOG_QUOTE(server));
        tree->is_said_down = false;
        if (coord->server && !strcmp(coord->server, server))
                return;
        free(coord->server);
        coord->server = text_copy(server);
}

void etcd_endpoint_logout(struct etcd_tree *tree)
{
        text_free_secret(tree->token);
        tree->token = NULL;
        remote_wake_at(&tree->remote, 0);
}

void etcd_refuse(struct etcd_tree *tree, int status, const char *why)
{
        struct coord_open *opening = tree->remote.opening;
        tree->retry_at_ms = clock_boot_ms() + max_u64(remote_beat_every_ms(&tree->remote), PAUSE_MAX_MS);
        if (!opening) {
                if (strcmp(tree->remote.refusal.text, why) != 0)
                        remote_refuse_all(&tree->remote, status, why);
        } else if (!opening->request.status) {
                opening->request.status = error_set(&opening->request.error, status, "%s", why);
                tree->remote.is_closing = true;
        }
        remote_wake_at(&tree->remote, 0);
}

/* --- greeting and login ------------------------------------------------------------------------------------------ */

static void ready(struct etcd_tree *tree)
{
        tree->remote.refusal.text[0] = 0;
        remote_beat_soon(&tree->remote);
        remote_wake_at(&tree->remote, 0);
}

static void logged_in(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        const char *token = json_string_value(json_object_get(call->reply, "token"));
        tree->greeting = NULL;
        if (call->outcome == ETCD_ANSWERED && token && *token && strlen(token) <= TOKEN_MAX &&
                strcspn(token, "\r\n") == strlen(token)) {
                tree->token = text_copy(token);
                ready(tree);
        } else if (call->outcome == ETCD_FAILED && strstr(call->failure.message, "authentication is not enabled")) {
                tree->is_open = true;
                log_event(LEVEL_WARN, "coordination-etcd", "server=%s hint=%s", LOG_QUOTE(tree->remote.coord.server),
                        LOG_QUOTE("it asks nobody for a password, whatever coordination.user is: etcdctl auth enable"));
                ready(tree);
        } else if (call->outcome == ETCD_FAILED) {
                (void)error_prefix(
                        &call->error, 0, "login as \"%s\"; look at user and password of the coordination", tree->user);
                etcd_refuse(tree, -EACCES, call->error.text);
        } else if (call->outcome == ETCD_ANSWERED) {
                etcd_endpoint_failed(tree, "etcd gave no token that can be one");
        }
        etcd_call_free(call);
}

static void log_in(struct etcd_tree *tree)
{
        struct etcd_call *call = etcd_call_new(tree, "/v3/auth/authenticate", logged_in);
        json_t *body = json_pack("{s:s, s:s}", "name", tree->user, "password", tree->password);
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        json_decref(body);
        if (!text) {
                etcd_call_free(call);
                etcd_refuse(tree, -EINVAL, "user and password of the coordination must be UTF-8 for etcd");
                return;
        }
        buffer_put(&call->exchange.body, text, strlen(text));
        text_free_secret(text);
        call->needs_no_login = true;
        tree->greeting = call;
        etcd_call_send(call, LOGIN_MS);
}

/* etcd 3.3 and older have the gateway at another path, and cannot compare ranges. */
static bool is_new_enough(const char *version)
{
        char *end;
        unsigned long major = strtoul(version, &end, 10);
        unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
        return major > 3 || (major == 3 && minor >= 4);
}

static void greeted(struct etcd_call *call)
{
        struct etcd_tree *tree = call->tree;
        const char *version = json_string_value(json_object_get(call->reply, "etcdserver"));
        char server[300], shown[ETCD_MESSAGE_MAX + 1];
        tree->greeting = NULL;
        if (call->outcome == ETCD_ANSWERED && version && is_new_enough(version)) {
                tree->is_greeted = true;
                if (!tree->password)
                        ready(tree);
        } else if (call->outcome == ETCD_ANSWERED && version) {
                struct error text;
                etcd_text(version, shown);
                (void)error_set(&text, 0, "etcd at %s has version %.40s; 3.4 or newer is needed",
                        etcd_endpoint_name(tree, server), shown);
                etcd_refuse(tree, -ENOTSUP, text.text);
        } else if (call->outcome == ETCD_ANSWERED || call->outcome == ETCD_FAILED) {
                struct error text;
                (void)error_set(
                        &text, 0, "%s does not say which version of etcd it is", etcd_endpoint_name(tree, server));
                etcd_endpoint_failed(tree, text.text);
        }
        remote_wake_at(&tree->remote, 0);
        etcd_call_free(call);
}

uint64_t etcd_endpoint_tick(struct etcd_tree *tree, uint64_t now_ms)
{
        if (tree->must_suspend) {
                tree->must_suspend = false;
                remote_suspend(&tree->remote);
        }
        if (tree->greeting || tree->remote.is_closing)
                return UINT64_MAX;
        if (now_ms < tree->retry_at_ms)
                return tree->retry_at_ms;
        if (!tree->is_greeted) {
                struct etcd_call *call = etcd_call_new(tree, "/version", greeted);
                call->needs_no_login = true;
                tree->greeting = call;
                etcd_call_send(call, etcd_attempt_ms(tree));
        } else if (tree->password && !tree->is_open && !tree->token) {
                log_in(tree);
        }
        return UINT64_MAX;
}
