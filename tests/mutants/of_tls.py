"""TLS to Redis: runtime/tls, and what runtime/redis does with it."""
from noticed_by import CONTRACT, UNIT

TLS = [CONTRACT("redis_tls")]

MUTANTS = [
    ("tls: nobody is verified", "runtime/tls/context.c",
     "o->SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verified);", "", TLS),
    ("tls: any certificate of the authority does", "runtime/tls/stream.c",
     "if (!expect_name(stream)) {", "if (false && !expect_name(stream)) {", TLS),
    ("tls: addresses are not compared", "runtime/tls/stream.c",
     "return o->X509_VERIFY_PARAM_set1_ip_asc(o->SSL_get0_param(stream->ssl), stream->name) == 1;", "return true;", TLS),
    ("tls: what is wrong with a certificate is only noted", "runtime/tls/context.c",
     "        reason_of_certificate(stream, chain);\n        return 0;", "        reason_of_certificate(stream, chain);\n        return 1;",
     TLS),
    ("tls: what is spoken is not what is written", "runtime/tls/context.c",
     "SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION", "SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION", TLS),
    ("tls: a key of another certificate is taken", "runtime/tls/context.c",
     "if (is_other || o->SSL_CTX_check_private_key(ctx) != 1)", "if (o->SSL_CTX_check_private_key(ctx) != 1 && !is_other)", TLS),
    ("tls: renewed files are not read", "runtime/tls/context.c",
     "if (!memcmp(&now, &context->seen, sizeof(now)))", "if (true)", TLS),
    ("tls: files that are broken end what worked", "runtime/tls/context.c",
     "        if (r)\n                return r;\n        context->openssl->SSL_CTX_free(context->ctx);",
     "        context->openssl->SSL_CTX_free(context->ctx);", TLS),
    ("tls: what is left in a stream waits for more", "runtime/redis/socket.c",
     "(sock->stream || i < READS_MAX) && !sock->is_closing", "i < 2 && !sock->is_closing", TLS),
    ("tls: what the socket did not take stays", "runtime/redis/socket.c",
     "                want_write(sock, can_go_on);\n                return;", "                return;", TLS),
    ("tls: a silent handshake is waited for", "runtime/redis/open.c",
     "silence = redis_socket_silence(&conn->socket);", ";", TLS),
    ("tls: who expects TLS is not understood", "runtime/redis/socket.c",
     "sock->has_tls_alert = true;", "sock->has_tls_alert = false;", TLS),
    ("tls: a server's plain port is another server", "runtime/base/url.c",
     "bool has_other_port = url_is_redis(a) && a->is_tls != b->is_tls;", "bool has_other_port = false;", [UNIT("config_url")]),
    ("tls: a guard connects when its host is dead", "runtime/guard/release.c",
     "if (url_is_redis_tls(start->store_url))", "if (false)", [CONTRACT("guard")]),
    ("tls: a guard ends the session over another connection", "runtime/coord/redis/end_session.c",
     "if (is_read && through && through->redis) {", "if (false) {", [CONTRACT("guard")]),
]
