/* socket.h: one socket to one server: sends commands and receives replies.
 *
 * The asynchronous API of hiredis has no timeouts, resolves names on the loop, aborts on unexpected pub/sub messages
 * and accepts replies of any size.  So the socket is handled here, and hiredis only parses.  What is put into the
 * buffer in one iteration of the loop leaves in one write, when the owner flushes. */
#ifndef QUIVER_REDIS_SOCKET_H
#define QUIVER_REDIS_SOCKET_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/error.h"
#include "redis/reply_memory.h"

/* Limits on one reply; a server that exceeds them is treated as broken. */
#define REPLY_BYTES_MAX    (64u << 20)
#define REPLY_ELEMENTS_MAX (1u << 20)

/* A host name or address and a port, or the path of a unix socket and port 0. */
struct address {
        char host[256];
        uint16_t port;
};

#define ADDRESS_TEXT_MAX 272

bool address_is_equal(const struct address *a, const struct address *b);
/* "HOST:PORT", "[ADDRESS]:PORT" or the path.  Returns `text`. */
const char *address_format(const struct address *address, char text[ADDRESS_TEXT_MAX]);

struct redis_socket;
struct tls_context;
struct tls_stream;

/* Called from the loop, never inside a call of this file. */
struct redis_socket_events {
        void (*up)(struct redis_socket *sock); /* connected, with TLS established if wanted: commands can be sent */
        /* One reply; it is gone when this returns. */
        void (*reply)(struct redis_socket *sock, redisReply *reply);
        /* The connection failed or ended, error.text has the reason; the owner closes the socket. */
        void (*down)(struct redis_socket *sock, int status);
        void (*closed)(struct redis_socket *sock);
};

/* Embedded in its owner. */
struct redis_socket {
        struct address address;
        struct buffer out; /* bytes for the next redis_socket_flush() */
        struct error error;
        bool is_closing;

        /* private */
        const struct redis_socket_events *events;
        uv_loop_t *loop;
        uv_timer_t timer; /* the timeout of connecting and logging in; also reports `failed` */
        uint64_t timeout_ms;
        struct lookup *lookup;
        struct addrinfo *found, *next_found;
        uv_poll_t *poll; /* NULL: no socket */
        int fd;
        struct tls_context *tls;   /* NULL: plain */
        struct tls_stream *stream; /* NULL: plain, or not connected yet */
        int failed;                /* a status that the timer will report */
        bool is_up, is_settled, is_polling_write;
        bool is_stuck;      /* the stream must read before it can write on */
        bool is_read_stuck; /* the stream must write before it can read on */
        bool has_received;  /* plain: the server has sent something */
        bool has_tls_alert; /* a plain connection got the answer of a server that expects TLS */
        size_t out_sent;
        redisReader *reader;
        struct reply_memory replies;
        size_t reply_bytes;
};

/* Begins to connect, with TLS if there is a context; it must live as long as the socket.  If redis_socket_settled() is
 * not called within `timeout_ms`, the socket fails. */
void redis_socket_open(struct redis_socket *sock, uv_loop_t *loop, const struct address *address,
        struct tls_context *tls, uint64_t timeout_ms, const struct redis_socket_events *events);
/* What to add to the error about a silent server: "", or that the TLS handshake was under way. */
const char *redis_socket_silence(const struct redis_socket *sock);
/* Ends the timeout.  From now on the output buffer holds no password and is not wiped. */
void redis_socket_settled(struct redis_socket *sock);
/* Appends a command in the Redis protocol to `out`. */
void redis_socket_put(struct redis_socket *sock, int argc, const char *const *argv, const size_t *argv_size);
/* As redis_socket_put(), in pieces: the number of words, then each word. */
void redis_socket_put_count(struct redis_socket *sock, int argc);
void redis_socket_put_word(struct redis_socket *sock, const char *word, size_t size);
void redis_socket_flush(struct redis_socket *sock);
/* closed() is called later; until then the memory must stay valid. */
void redis_socket_close(struct redis_socket *sock);

#endif
