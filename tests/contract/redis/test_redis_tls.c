/* Connections to a real Redis over TLS: what is verified, what is said when it is refused, and that bytes which come in
 * any pieces, or not at all, do no harm. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "certificates.h"
#include "proxy.h"
#include "redis_rig.h"

static struct certificates c;
static struct redis_server server; /* asks nobody for a certificate */
static struct redis_server strict; /* wants one */

static int start_all(void **state)
{
        (void)state;
        certificates_make(&c);
        certificates_add_authority(&c, "other-ca");
        server_start_tls(&server, &c, NULL);
        server_start_tls(&strict, &c, "--tls-auth-clients", "yes", NULL);
        return 0;
}

static int stop_all(void **state)
{
        (void)state;
        server_free(&server);
        server_free(&strict);
        certificates_free(&c);
        return 0;
}

#define PATH(file) certificates_path(&c, file)

static void init(struct rig *rig, const char *url)
{
        rig_init(rig, url);
        rig->open.options.tls.ca_file = PATH("ca.pem");
}

static void start(struct rig *rig, const char *url)
{
        init(rig, url);
        if (rig_open(rig))
                fail_msg("%s: %s", url, rig->open.error.text);
}

static const char *url_of(const char *host, unsigned port)
{
        static char url[96];
        (void)snprintf(url, sizeof(url), "rediss://%s:%u", host, port);
        return url;
}

/* Opens what init() and the caller have prepared, which must be refused with these words. */
static void expect_refused(struct rig *rig, int status, const char *const *words)
{
        int got = rig_open(rig);
        if (got != status)
                fail_msg("status %d, not %d: %s", got, status, rig->open.error.text);
        for (; *words; words++)
                if (!strstr(rig->open.error.text, *words))
                        fail_msg("no \"%s\" in: %s", *words, rig->open.error.text);
        rig_close(rig);
}
#define EXPECT_REFUSED(rig, status, ...) expect_refused(rig, status, (const char *const[]){ __VA_ARGS__, NULL })

/* --- what works --------------------------------------------------------------------------------------------------- */

static void commands_and_rings_go_over_tls(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        struct redis_facts facts;
        start(&rig, server.tls_url);
        redis_facts(rig.redis, &facts);
        assert_string_equal(facts.tls, "TLSv1.3");
        assert_true(facts.has_tracking);
        assert_int_equal(call_do(&rig, &call, "SET {a}:k v"), 0);
        call_init(&call, "GET {a}:k");
        call.command.is_tracked = true;
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_string_equal(call.reply, "v");
        server_ok(&server, "SET {a}:k w");
        RUN_UNTIL(&rig, rig.rings > 0);
        assert_string_equal(rig.rung_key, "{a}:k");
        rig_close(&rig);
}

#define LARGE (5u << 20)

/* Larger than any buffer on the way: of OpenSSL, of the kernel, of the loop's share of reading. */
static void large_values_go_both_ways(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        char *value = malloc(LARGE);
        assert_non_null(value);
        for (size_t i = 0; i < LARGE; i++)
                value[i] = (char)(i * 2654435761u >> 24);
        start(&rig, server.tls_url);
        call_init(&call, "SET {a}:large x");
        call.argv[2] = value;
        call.argv_size[2] = LARGE;
        redis_send(rig.redis, &call.command);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, 0);
        redisReply *reply = server_do(&server, "GET {a}:large");
        assert_int_equal(reply->len, LARGE);
        assert_memory_equal(reply->str, value, LARGE);
        freeReplyObject(reply);
        server_ok(&server, "EVAL %s 0", "for i = 1, 20000 do redis.call('RPUSH', 'many', string.rep('x', 100)) end");
        /* The answers of both come behind each other, and end in the middle of records. */
        struct call many, last;
        call_send(&rig, &many, "LRANGE many 0 -1");
        call_send(&rig, &call, "STRLEN {a}:large");
        call_send(&rig, &last, "GETRANGE {a}:large 0 -1");
        RUN_UNTIL(&rig, last.is_done);
        assert_string_equal(many.reply, "(array of 20000)");
        assert_string_equal(call.reply, "5242880");
        assert_memory_equal(last.reply, value, 1);
        rig_close(&rig);
        free(value);
}

#define HUGE_VALUE (32u << 20)

/* More than the kernel takes before somebody reads it. */
static void what_the_socket_did_not_take_at_once_is_sent_when_it_does(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        struct proxy *proxy = proxy_start(server.tls_port);
        char *value = calloc(1, HUGE_VALUE);
        assert_non_null(value);
        start(&rig, url_of("127.0.0.1", proxy_port(proxy)));
        proxy_hold(proxy, true);
        call_init(&call, "SET {a}:huge x");
        call.command.deadline_ms = PATIENCE_MS;
        call.argv[2] = value;
        call.argv_size[2] = HUGE_VALUE;
        redis_send(rig.redis, &call.command);
        for (int turns = 0; turns < 10; turns++)
                (void)uv_run(&rig.loop, UV_RUN_NOWAIT);
        proxy_hold(proxy, false);
        RUN_UNTIL(&rig, call.is_done);
        assert_int_equal(call.status, 0);
        server_ok(&server, "DEL {a}:huge");
        rig_close(&rig);
        proxy_stop(proxy);
        free(value);
}

#define RINGS 60

/* Each ring is a record of its own, and one read of the socket brings many of them. */
static void what_one_read_has_brought_is_used_to_its_end(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        struct proxy *proxy = proxy_start(server.tls_port);
        init(&rig, url_of("127.0.0.1", proxy_port(proxy)));
        rig.open.options.deadline_ms = 10 * PATIENCE_MS; /* a ping's answer would be more to read */
        assert_int_equal(rig_open(&rig), 0);
        for (int i = 0; i < RINGS; i++)
                assert_int_equal(call_do(&rig, &call, "GET {ring}:%d", i), 0);
        int before = rig.rings;
        proxy_hold(proxy, true);
        for (int i = 0; i < RINGS; i++)
                server_ok(&server, "SET {ring}:%d x", i);
        proxy_hold(proxy, false);
        RUN_UNTIL(&rig, rig.rings == before + RINGS);
        rig_close(&rig);
        proxy_stop(proxy);
}

static void a_name_and_an_address_are_both_verified(void **state)
{
        (void)state;
        struct rig rig;
        start(&rig, url_of("localhost", server.tls_port));
        rig_close(&rig);
        certificates_add(&c, "by-name", "DNS:redis.test", "ca");
        struct redis_server named;
        server_start_tls(
                &named, &c, "--tls-cert-file", PATH("by-name.pem"), "--tls-key-file", PATH("by-name.key"), NULL);
        init(&rig, named.tls_url);
        EXPECT_REFUSED(&rig, -EACCES, "its certificate is for DNS:redis.test, not for 127.0.0.1", "tls.server_name");
        init(&rig, url_of("localhost", named.tls_port));
        EXPECT_REFUSED(&rig, -EACCES, "its certificate is for DNS:redis.test, not for localhost");
        init(&rig, named.tls_url);
        rig.open.options.tls.server_name = "redis.test";
        assert_int_equal(rig_open(&rig), 0);
        rig_close(&rig);
        server_free(&named);
}

static void a_server_that_wants_a_certificate_gets_it(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        init(&rig, strict.tls_url);
        rig.open.options.tls.cert_file = PATH("client.pem");
        rig.open.options.tls.key_file = PATH("client.key");
        assert_int_equal(rig_open(&rig), 0);
        assert_int_equal(call_do(&rig, &call, "PING"), 0);
        rig_close(&rig);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static void an_unknown_authority_is_refused(void **state)
{
        (void)state;
        struct rig rig;
        init(&rig, server.tls_url);
        rig.open.options.tls.ca_file = PATH("other-ca.pem");
        EXPECT_REFUSED(&rig, -EACCES, "127.0.0.1:", "/CN=server", "signed by nobody whom we trust", "tls.ca_file");
        init(&rig, server.tls_url);
        rig.open.options.tls.ca_file = NULL; /* the system's, of which none is ours */
        EXPECT_REFUSED(&rig, -EACCES, "signed by nobody whom we trust");
}

static void an_expired_certificate_is_refused(void **state)
{
        (void)state;
        struct rig rig;
        struct redis_server old;
        certificates_add_expired(&c, "old", "IP:127.0.0.1", "ca");
        server_start_tls(&old, &c, "--tls-cert-file", PATH("old.pem"), "--tls-key-file", PATH("old.key"), NULL);
        init(&rig, old.tls_url);
        EXPECT_REFUSED(&rig, -EACCES, "the certificate /CN=old has expired on 20");
        server_free(&old);
}

/* In TLS 1.3 the server looks at our certificate after our side of the handshake is done. */
static void a_server_that_misses_our_certificate_is_understood(void **state)
{
        (void)state;
        struct rig rig;
        init(&rig, strict.tls_url);
        EXPECT_REFUSED(&rig, -EACCES, "it wants to see a certificate of ours", "tls.cert_file");
        certificates_add(&c, "stranger", "DNS:host-z", "other-ca");
        init(&rig, strict.tls_url);
        rig.open.options.tls.cert_file = PATH("stranger.pem");
        rig.open.options.tls.key_file = PATH("stranger.key");
        EXPECT_REFUSED(&rig, -EACCES, "does not know who signed our certificate");
}

static void files_that_cannot_be_used_are_named(void **state)
{
        (void)state;
        struct rig rig;
        init(&rig, server.tls_url);
        rig.open.options.tls.ca_file = "/nowhere/ca.pem";
        EXPECT_REFUSED(&rig, -EINVAL, "/nowhere/ca.pem", "No such file or directory");
        init(&rig, server.tls_url);
        rig.open.options.tls.ca_file = PATH("openssl.log");
        EXPECT_REFUSED(&rig, -EINVAL, "openssl.log", "PEM");
        init(&rig, server.tls_url);
        rig.open.options.tls.cert_file = PATH("client.pem");
        rig.open.options.tls.key_file = PATH("server.key");
        EXPECT_REFUSED(&rig, -EINVAL, "server.key is not the key of the certificate in");
        char command[256];
        (void)snprintf(command, sizeof(command), "openssl pkey -in %s -aes256 -passout pass:secret -out %s",
                PATH("client.key"), PATH("locked.key"));
        assert_int_equal(system(command), 0);
        init(&rig, server.tls_url);
        rig.open.options.tls.cert_file = PATH("client.pem");
        rig.open.options.tls.key_file = PATH("locked.key");
        EXPECT_REFUSED(&rig, -EINVAL, "locked.key has a passphrase");
}

static void tls_and_plain_on_the_wrong_port_are_named(void **state)
{
        (void)state;
        struct rig rig;
        char url[64];
        init(&rig, url_of("127.0.0.1", server.port));
        rig.open.options.deadline_ms = 300;
        EXPECT_REFUSED(&rig, -ETIMEDOUT, "to the TLS handshake", "its URL is redis://, not rediss://");
        (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u", server.tls_port);
        init(&rig, url);
        rig.open.options.deadline_ms = 300;
        EXPECT_REFUSED(&rig, -EHOSTUNREACH, "if this port is for TLS, write rediss://");
}

/* Opens a URL of a server that says these bytes, whatever it is told. */
static void open_on_bytes(struct rig *rig, const char *scheme, const char *bytes, size_t bytes_size)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(at);
        char url[64];
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(listen(listener, 5), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
        (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u", scheme, ntohs(at.sin_port));
        init(rig, url);
        redis_open(&rig->loop, &rig->open);
        int fd = -1;
        RUN_UNTIL(rig, (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
        assert_true(send(fd, bytes, bytes_size, 0) > 0);
        RUN_UNTIL(rig, rig->is_opened);
        (void)close(fd);
        (void)close(listener);
}

static void a_server_of_something_else_is_named(void **state)
{
        (void)state;
        struct rig rig;
        open_on_bytes(&rig, "rediss", "220 mail ready\r\n", 16);
        assert_int_equal(rig.open_status, -EPROTO);
        assert_non_null(strstr(rig.open.error.text, "does not speak TLS on this port"));
        rig_close(&rig);
        /* An alert: unexpected message. */
        open_on_bytes(&rig, "redis", "\x15\x03\x03\x00\x02\x02\x0a", 7);
        assert_int_equal(rig.open_status, -EPROTO);
        assert_non_null(strstr(rig.open.error.text, "speaks TLS on this port; write rediss://"));
        rig_close(&rig);
}

static void an_old_protocol_is_refused(void **state)
{
        (void)state;
        struct rig rig;
        struct redis_server old;
        server_start_tls(&old, &c, "--tls-protocols", "TLSv1.1", "--tls-ciphers", "ALL:@SECLEVEL=0", NULL);
        init(&rig, old.tls_url);
        EXPECT_REFUSED(&rig, -EPROTO, "it speaks no TLS 1.2 or newer");
        server_free(&old);
        server_start_tls(&old, &c, "--tls-protocols", "TLSv1.2", NULL);
        start(&rig, old.tls_url);
        rig_close(&rig);
        server_free(&old);
}

/* --- what goes on ------------------------------------------------------------------------------------------------- */

static void a_silent_server_costs_a_timeout_and_the_loop_goes_round(void **state)
{
        (void)state;
        struct rig rig;
        struct proxy *proxy = proxy_start(server.tls_port);
        proxy_hold(proxy, true);
        init(&rig, url_of("127.0.0.1", proxy_port(proxy)));
        rig.open.options.deadline_ms = 300;
        redis_open(&rig.loop, &rig.open);
        int turns = 0;
        for (; !rig.is_opened; turns++)
                (void)uv_run(&rig.loop, UV_RUN_ONCE);
        assert_true(turns > 3); /* the rig has a timer of 20 ms */
        assert_int_equal(rig.open_status, -ETIMEDOUT);
        assert_non_null(strstr(rig.open.error.text, "to the TLS handshake"));
        rig_close(&rig);
        proxy_stop(proxy);
}

static void bytes_that_come_one_by_one_are_put_together(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        struct proxy *proxy = proxy_start(strict.tls_port);
        init(&rig, url_of("127.0.0.1", proxy_port(proxy)));
        rig.open.options.tls.cert_file = PATH("client.pem");
        rig.open.options.tls.key_file = PATH("client.key");
        for (unsigned size = 1; size <= 3; size++) {
                proxy_split(proxy, size);
                if (size == 1)
                        assert_int_equal(rig_open(&rig), 0);
                assert_int_equal(call_do(&rig, &call, "SET {a}:small %060d", (int)size), 0);
                assert_int_equal(call_do(&rig, &call, "GET {a}:small"), 0);
                assert_int_equal(atoi(call.reply), (int)size);
                int ups = rig.ups;
                proxy_cut(proxy);
                RUN_UNTIL(&rig, rig.ups > ups);
        }
        rig_close(&rig);
        proxy_stop(proxy);
}

/* A handshake and a login take some 5000 bytes of the server. */
#define CUT_STEP 131
#define CUT_LAST 5500

static void a_connection_that_is_cut_anywhere_is_made_anew(void **state)
{
        (void)state;
        struct proxy *proxy = proxy_start(server.tls_port);
        for (unsigned after = 1; after < CUT_LAST; after += CUT_STEP) {
                struct rig rig;
                struct call call;
                unsigned cuts = proxy_cuts_after(proxy);
                proxy_cut_after(proxy, after);
                init(&rig, url_of("127.0.0.1", proxy_port(proxy)));
                redis_open(&rig.loop, &rig.open);
                RUN_UNTIL(&rig, proxy_cuts_after(proxy) > cuts);
                proxy_cut_after(proxy, 0);
                RUN_UNTIL(&rig, rig.is_opened);
                assert_int_equal(rig.open_status, 0);
                assert_int_equal(call_do(&rig, &call, "PING"), 0);
                rig_close(&rig);
        }
        proxy_stop(proxy);
}

/* The server's new certificate is by another authority, which is what the file says when it is read again. */
static void renewed_certificates_are_taken_up(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        struct redis_server renewed;
        certificates_add(&c, "second", "IP:127.0.0.1", "other-ca");
        certificates_replace(&c, "mine", "ca");
        server_start_tls(&renewed, &c, NULL);
        init(&rig, renewed.tls_url);
        rig.open.options.tls.ca_file = PATH("mine.pem");
        assert_int_equal(rig_open(&rig), 0);
        certificates_replace(&c, "mine", "other-ca");
        /* The connection that is there goes on. */
        assert_int_equal(call_do(&rig, &call, "PING"), 0);
        server_ok(&renewed, "CONFIG SET tls-key-file %s tls-cert-file %s tls-ca-cert-file %s", PATH("second.key"),
                PATH("second.pem"), PATH("other-ca.pem"));
        int ups = rig.ups;
        server_ok(&renewed, "CLIENT KILL TYPE normal SKIPME yes");
        RUN_UNTIL(&rig, rig.ups > ups);
        assert_int_equal(call_do(&rig, &call, "PING"), 0);
        /* What cannot be read leaves the old one in use. */
        char command[256];
        (void)snprintf(command, sizeof(command), "echo broken > %s", PATH("mine.pem"));
        assert_int_equal(system(command), 0);
        ups = rig.ups;
        server_ok(&renewed, "CLIENT KILL TYPE normal SKIPME yes");
        RUN_UNTIL(&rig, rig.ups > ups);
        rig_close(&rig);
        server_free(&renewed);
}

/* A server that has come up with a wrong certificate is not spoken to, and is when it is right again. */
static void a_wrong_certificate_later_costs_only_the_time_until_it_is_right(void **state)
{
        (void)state;
        struct rig rig;
        struct call call;
        struct redis_server changing;
        certificates_add(&c, "wrong", "IP:127.0.0.1", "other-ca");
        server_start_tls(&changing, &c, NULL);
        init(&rig, changing.tls_url);
        rig.open.options.deadline_ms = 400;
        assert_int_equal(rig_open(&rig), 0);
        server_ok(&changing, "CONFIG SET tls-key-file %s tls-cert-file %s", PATH("wrong.key"), PATH("wrong.pem"));
        server_ok(&changing, "CLIENT KILL TYPE normal SKIPME yes");
        RUN_UNTIL(&rig, rig.downs > 0);
        assert_int_equal(call_do(&rig, &call, "PING"), -EACCES);
        assert_non_null(strstr(call.error, "signed by nobody whom we trust"));
        server_ok(&changing, "CONFIG SET tls-key-file %s tls-cert-file %s", PATH("server.key"), PATH("server.pem"));
        int ups = rig.ups;
        RUN_UNTIL(&rig, rig.ups > ups);
        assert_int_equal(call_do(&rig, &call, "PING"), 0);
        rig_close(&rig);
        server_free(&changing);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(commands_and_rings_go_over_tls),
                cmocka_unit_test(large_values_go_both_ways),
                cmocka_unit_test(what_the_socket_did_not_take_at_once_is_sent_when_it_does),
                cmocka_unit_test(what_one_read_has_brought_is_used_to_its_end),
                cmocka_unit_test(a_name_and_an_address_are_both_verified),
                cmocka_unit_test(a_server_that_wants_a_certificate_gets_it),
                cmocka_unit_test(an_unknown_authority_is_refused),
                cmocka_unit_test(an_expired_certificate_is_refused),
                cmocka_unit_test(a_server_that_misses_our_certificate_is_understood),
                cmocka_unit_test(files_that_cannot_be_used_are_named),
                cmocka_unit_test(tls_and_plain_on_the_wrong_port_are_named),
                cmocka_unit_test(a_server_of_something_else_is_named),
                cmocka_unit_test(an_old_protocol_is_refused),
                cmocka_unit_test(a_silent_server_costs_a_timeout_and_the_loop_goes_round),
                cmocka_unit_test(bytes_that_come_one_by_one_are_put_together),
                cmocka_unit_test(a_connection_that_is_cut_anywhere_is_made_anew),
                cmocka_unit_test(renewed_certificates_are_taken_up),
                cmocka_unit_test(a_wrong_certificate_later_costs_only_the_time_until_it_is_right),
        };
        return cmocka_run_group_tests(tests, start_all, stop_all);
}
