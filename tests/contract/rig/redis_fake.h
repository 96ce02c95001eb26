/* redis_fake.h: a server that says what a test wants, for what a real one does not say when asked. */
#ifndef QUIVER_TESTS_CONTRACT_REDIS_FAKE_H
#define QUIVER_TESTS_CONTRACT_REDIS_FAKE_H

#include <hiredis/hiredis.h>
#include <uv.h>

/* To a command that begins with `word`, these bytes. */
struct fake_line {
        const char *word;
        const char *reply;
};

struct fake {
        uv_tcp_t listener;
        const struct fake_line *lines; /* up to a NULL word; anything else is answered +OK */
        int commands;                  /* that came in */
        int connections;
        struct fake_peer *peers;
        char url[64];
};

void fake_start(struct fake *fake, uv_loop_t *loop, const struct fake_line *lines);
/* Closes the listener and every connection; the loop must run once more. */
void fake_stop(struct fake *fake);

/* What a master of this version says to HELLO. */
#define FAKE_HELLO(version)                                                                                            \
        "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n" version                                        \
        "\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n" \
        "$7\r\nmodules\r\n*0\r\n"

#endif
