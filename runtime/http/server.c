/* server.c: where the server listens, and its limits on number and time. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "http/server.h"

#define BACKLOG  128
#define SWEEP_MS 1000u

/* --- connections -------------------------------------------------------------------------------------------------- */

static void on_sweep(uv_timer_t *timer)
{
        struct http_server *server = timer->data;
        for (struct http_connection *c = server->connections, *next; c; c = next) {
                next = c->next;
                http_connection_check_time(c, uv_now(server->loop));
        }
}

void http_server_free_if_over(struct http_server *server)
{
        if (!server->is_closing || server->handles || server->connections || server->events)
                return;
        http_access_free(&server->access);
        free(server->socket_path);
        free(server->address);
        free(server);
}

void http_server_forget(struct http_server *server, struct http_connection *c)
{
        DL_DELETE(server->connections, c);
        server->connections_count--;
        /* An idle host polls nothing. */
        if (!server->connections && !server->is_closing)
                (void)uv_timer_stop(&server->timer);
        http_server_free_if_over(server);
}

static void on_connection(uv_stream_t *listener, int status)
{
        struct http_server *server = listener->data;
        if (status < 0 || server->is_stopping)
                return;
        if (!server->connections)
                (void)uv_timer_start(&server->timer, on_sweep, SWEEP_MS, SWEEP_MS);
        struct http_connection *c = http_connection_accept(server, listener, listener == (uv_stream_t *)&server->pipe);
        DL_APPEND(server->connections, c);
        server->connections_count++;
        server->counts.accepted++;
        if (server->connections_count > server->connections_max) {
                server->counts.refused++;
                http_connection_close(c);
        }
}

struct http_counts http_count(const struct http_server *server)
{
        return server ? server->counts : (struct http_counts){ 0 };
}

/* --- listening ---------------------------------------------------------------------------------------------------- */

static int parse_address(const char *text, struct sockaddr_storage *ret_address, struct error *error)
{
        const char *colon = strrchr(text, ':');
        char *end = NULL;
        unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
        if (!colon || end == colon + 1 || *end || port > 65535)
                return error_set(error, -EINVAL, "http.listen: %s is not ADDRESS:PORT", text);
        size_t size = (size_t)(colon - text);
        bool is_bracketed = size > 2 && text[0] == '[' && text[size - 1] == ']';
        char *name = text_copy_part(text + is_bracketed, size - 2 * (size_t)is_bracketed);
        const char *number = strcmp(name, "localhost") ? name : "127.0.0.1";
        int r = uv_ip4_addr(number, (int)port, (struct sockaddr_in *)ret_address);
        if (r < 0)
                r = uv_ip6_addr(number, (int)port, (struct sockaddr_in6 *)ret_address);
        free(name);
        return r < 0 ? error_set(error, -EINVAL, "http.listen: %s is no address; write it in numbers", text) : 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
        struct sockaddr_in v4;
        if (address->ss_family == AF_INET6)
                return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
        memcpy(&v4, address, sizeof(v4));
        return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
}

/* Checks a socket from the service manager, which keeps listening on it after we end, so that no client is refused. */
static int check_socket(int fd, struct sockaddr_storage *ret_address, char **ret_text, struct error *error)
{
        char name[INET6_ADDRSTRLEN] = "";
        int is_listening = 0;
        socklen_t size = sizeof(is_listening);
        socklen_t address_size = sizeof(*ret_address);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) < 0 || !is_listening ||
                getsockname(fd, (struct sockaddr *)ret_address, &address_size) < 0 ||
                (ret_address->ss_family != AF_INET && ret_address->ss_family != AF_INET6))
                return error_set(error, -EINVAL,
                        "the socket that the service manager hands over (LISTEN_FDS) is no TCP socket that listens; "
                        "see etc/quiver.socket");
        bool is_v6 = ret_address->ss_family == AF_INET6;
        (void)(is_v6 ? uv_ip6_name((struct sockaddr_in6 *)ret_address, name, sizeof(name))
                     : uv_ip4_name((struct sockaddr_in *)ret_address, name, sizeof(name)));
        /* The port is at the same offset in both address types. */
        *ret_text =
                text_printf(is_v6 ? "[%s]:%u" : "%s:%u", name, ntohs(((struct sockaddr_in *)ret_address)->sin_port));
        return 0;
}

/* A failure is only logged: the host works without a port, and the Unix socket remains. */
static void listen_tcp(struct http_server *server, const char *text, const struct sockaddr_storage *address, int fd)
{
        (void)uv_tcp_init(server->loop, &server->tcp);
        server->tcp.data = server;
        server->has_tcp = true;
        server->handles++;
        int r = fd >= 0 ? uv_tcp_open(&server->tcp, fd)
                        : uv_tcp_bind(&server->tcp, (const struct sockaddr *)address, 0);
        if (r == 0)
                r = uv_listen((uv_stream_t *)&server->tcp, BACKLOG, on_connection);
        if (r < 0)
                log_event(LEVEL_WARN, "http-port", "listen=%s error=%s text=%s", LOG_QUOTE(text),
                        LOG_QUOTE(uv_strerror(r)),
                        LOG_QUOTE("HTTP is served on the Unix socket alone; set http.listen to a free port"));
        else
                server->address = text_copy(text);
        if (r == 0)
                log_event(LEVEL_INFO, "http", "listen=%s", LOG_QUOTE(text));
}

/* A failure is only logged: the host works without the socket. */
static void listen_unix(struct http_server *server, const char *path)
{
        (void)uv_pipe_init(server->loop, &server->pipe, 0);
        server->pipe.data = server;
        server->has_pipe = true;
        server->handles++;
        (void)unlink(path);
        /* The peer's user decides who may connect; the folder's mode keeps other users out. */
        int r = uv_pipe_bind(&server->pipe, path);
        if (r == 0)
                r = uv_listen((uv_stream_t *)&server->pipe, BACKLOG, on_connection);
        if (r < 0)
                log_event(LEVEL_WARN, "http-socket", "path=%s error=%s", LOG_QUOTE(path), LOG_QUOTE(uv_strerror(r)));
        else
                server->socket_path = text_copy(path);
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

static int read_access(struct http_access *access, const struct http_options *options, struct error *error)
{
        bool is_made = false;
        int r = http_access_ensure(access, options->token_file, &is_made, error);
        if (r == 0 && options->tokens_file)
                r = http_access_read(access, options->tokens_file, error);
        for (size_t i = 0; r == 0 && options->hosts && i < options->hosts->count; i++)
                strings_add(&access->hosts, options->hosts->items[i]);
        if (is_made)
                log_event(LEVEL_INFO, "http-token", "file=%s text=%s", LOG_QUOTE(options->token_file),
                        LOG_QUOTE("made: whoever can read this file may do everything over HTTP"));
        return r;
}

static void take_limits(struct http_server *server, const struct http_options *options)
{
        server->connections_max = options->connections_max;
        server->has_open_metrics = options->has_open_metrics;
        server->is_strict_ready = options->is_strict_ready;
}

int http_open(uv_loop_t *loop, const struct http_options *options, const struct http_services *services,
        struct http_server **ret_server, struct error *error)
{
        struct sockaddr_storage address = { 0 };
        struct http_server *server = memory_zero(1, sizeof(*server));
        server->loop = loop;
        server->services = *services;
        take_limits(server, options);
        (void)uv_timer_init(loop, &server->timer);
        server->timer.data = server;
        server->handles = 1;
        bool is_handed_over = options->listen_fd >= 0;
        bool has_tcp = options->listen || is_handed_over;
        char *name = is_handed_over ? NULL : text_copy(options->listen);
        int r = read_access(&server->access, options, error);
        if (r == 0 && is_handed_over)
                r = check_socket(options->listen_fd, &address, &name, error);
        else if (r == 0 && has_tcp)
                r = parse_address(options->listen, &address, error);
        if (r == 0 && has_tcp && !is_loopback(&address) && !options->tokens_file)
                r = error_set(error, -EPERM,
                        "http.listen: %s can be reached from other machines; set http.tokens_file, and put a proxy "
                        "with "
                        "TLS in front, or listen on 127.0.0.1",
                        name);
        if (r < 0) {
                free(name);
                http_close(server);
                return r;
        }
        if (options->socket)
                listen_unix(server, options->socket);
        if (has_tcp)
                listen_tcp(server, name, &address, options->listen_fd);
        free(name);
        *ret_server = server;
        return 0;
}

int http_reconfigure(struct http_server *server, const struct http_options *options, struct error *error)
{
        struct http_access access = { 0 };
        int r = read_access(&access, options, error);
        if (r < 0) {
                http_access_free(&access);
                return r;
        }
        http_access_free(&server->access);
        server->access = access;
        take_limits(server, options);
        /* A token may have been removed: streams that were opened with it end. */
        http_events_end_all(server->events);
        return 0;
}

const char *http_address(const struct http_server *server)
{
        return server->address;
}

static void on_handle_closed(uv_handle_t *handle)
{
        struct http_server *server = handle->data;
        server->handles--;
        http_server_free_if_over(server);
}

/* New clients go to the next host if a service manager keeps the socket; otherwise they are refused. */
static void stop_listening(struct http_server *server)
{
        if (server->has_tcp)
                uv_close((uv_handle_t *)&server->tcp, on_handle_closed);
        server->has_tcp = false;
}

void http_stop_accepting(struct http_server *server)
{
        if (!server || server->is_stopping)
                return;
        server->is_stopping = true;
        stop_listening(server);
        http_events_stop(server->events);
        for (struct http_connection *c = server->connections, *next; c; c = next) {
                next = c->next;
                if (c->phase == CONNECTION_HEAD && !c->reader.head_bytes)
                        http_connection_close(c);
        }
}

void http_close(struct http_server *server)
{
        if (!server || server->is_closing)
                return;
        server->is_stopping = server->is_closing = true;
        http_events_stop(server->events);
        if (server->socket_path)
                (void)unlink(server->socket_path);
        uv_close((uv_handle_t *)&server->timer, on_handle_closed);
        if (server->has_pipe)
                uv_close((uv_handle_t *)&server->pipe, on_handle_closed);
        stop_listening(server);
        for (struct http_connection *c = server->connections, *next; c; c = next) {
                next = c->next;
                http_connection_close(c);
        }
}
