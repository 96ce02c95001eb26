#include "redis_fake.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>

#include "check.h"

struct fake_peer {
        uv_tcp_t tcp;
        struct fake *fake;
        redisReader *reader;
        struct fake_peer *next;
};

static void on_peer_closed(uv_handle_t *handle)
{
        struct fake_peer *peer = handle->data;
        redisReaderFree(peer->reader);
        free(peer);
}

static void drop(struct fake_peer *peer)
{
        struct fake_peer **at = &peer->fake->peers;
        while (*at != peer)
                at = &(*at)->next;
        *at = peer->next;
        uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

static void answer(struct fake_peer *peer, const redisReply *command)
{
        const char *reply = "+OK\r\n";
        peer->fake->commands++;
        for (const struct fake_line *line = peer->fake->lines; line->word; line++)
                if (command->type == REDIS_REPLY_ARRAY && command->elements &&
                        !strcasecmp(command->element[0]->str, line->word)) {
                        reply = line->reply;
                        break;
                }
        uv_buf_t data = uv_buf_init((char *)reply, (unsigned)strlen(reply));
        (void)uv_try_write((uv_stream_t *)&peer->tcp, &data, 1);
}

static void give_room(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
        static char room[65536];
        (void)handle;
        (void)size;
        *ret = uv_buf_init(room, sizeof(room));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *data)
{
        struct fake_peer *peer = stream->data;
        void *command = NULL;
        if (n < 0) {
                drop(peer);
                return;
        }
        (void)redisReaderFeed(peer->reader, data->base, (size_t)n);
        while (redisReaderGetReply(peer->reader, &command) == REDIS_OK && command) {
                answer(peer, command);
                freeReplyObject(command);
        }
}

static void on_connection(uv_stream_t *listener, int status)
{
        struct fake *fake = listener->data;
        struct fake_peer *peer = calloc(1, sizeof(*peer));
        assert_int_equal(status, 0);
        assert_non_null(peer);
        fake->connections++;
        peer->fake = fake;
        peer->reader = redisReaderCreate();
        peer->tcp.data = peer;
        peer->next = fake->peers;
        fake->peers = peer;
        (void)uv_tcp_init(listener->loop, &peer->tcp);
        assert_int_equal(uv_accept(listener, (uv_stream_t *)&peer->tcp), 0);
        (void)uv_read_start((uv_stream_t *)&peer->tcp, give_room, on_read);
}

void fake_start(struct fake *fake, uv_loop_t *loop, const struct fake_line *lines)
{
        struct sockaddr_in address;
        int size = sizeof(address);
        *fake = (struct fake){ .lines = lines };
        (void)uv_tcp_init(loop, &fake->listener);
        fake->listener.data = fake;
        (void)uv_ip4_addr("127.0.0.1", 0, &address);
        assert_int_equal(uv_tcp_bind(&fake->listener, (struct sockaddr *)&address, 0), 0);
        assert_int_equal(uv_listen((uv_stream_t *)&fake->listener, 16, on_connection), 0);
        assert_int_equal(uv_tcp_getsockname(&fake->listener, (struct sockaddr *)&address, &size), 0);
        (void)snprintf(fake->url, sizeof(fake->url), "redis://127.0.0.1:%u", ntohs(address.sin_port));
}

void fake_stop(struct fake *fake)
{
        uv_close((uv_handle_t *)&fake->listener, NULL);
        while (fake->peers)
                drop(fake->peers);
}
