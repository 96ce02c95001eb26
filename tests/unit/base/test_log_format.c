/* A line of the log as JSON and as a datagram for systemd's journal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log/format.h"
#include "base/log/journal.h"
#include "check.h"

static const struct log_head head = { "2026-11-16T10:00:00.123Z", LEVEL_WARN, "takeover" };

static const char *json(const char *pairs)
{
        static char line[LOG_FORMATTED_MAX + 1];
        size_t n = log_as_json(line, &head, pairs);
        line[n] = 0;
        return line;
}

#define HEAD "{\"time\":\"2026-11-16T10:00:00.123Z\",\"level\":\"warn\",\"event\":\"takeover\""

static void pairs_become_members_and_numbers_stay_numbers(void **state)
{
        (void)state;
        assert_string_equal(json(""), HEAD "}\n");
        assert_string_equal(json("shard=7 from=host-a rate=1.5 less=-3"),
                HEAD ",\"shard\":7,\"from\":\"host-a\",\"rate\":1.5,\"less\":-3}\n");
        assert_string_equal(json("key=\"7\" a=007 b=1. c=.5 d=1e5 e=- f=12345678901234567890123"),
                HEAD ",\"key\":\"7\",\"a\":\"007\",\"b\":\"1.\",\"c\":\".5\",\"d\":\"1e5\",\"e\":\"-\","
                     "\"f\":\"12345678901234567890123\"}\n");
        assert_string_equal(json("empty= none"), HEAD ",\"empty\":\"\",\"none\":\"\"}\n");
}

static void what_was_quoted_comes_back_as_it_was(void **state)
{
        (void)state;
        char pairs[256];
        (void)snprintf(pairs, sizeof(pairs), "key=%s", LOG_QUOTE("a \"b\" = \\c\nd\te\x01\x7f gr\xc3\xbc\xc3\x9f"));
        assert_string_equal(
                json(pairs), HEAD ",\"key\":\"a \\\"b\\\" = \\\\c\\nd\\te\\u0001\\u007f gr\xc3\xbc\xc3\x9f\"}\n");
        /* Not UTF-8: a lone byte, an overlong slash, a surrogate, a character that is cut. */
        assert_string_equal(json("k=\xff\xc0\xaf\xed\xa0\x80\xe2\x82"),
                HEAD ",\"k\":"
                     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf"
                     "\xbd\"}\n");
}

/* A line may be cut anywhere. */
static void a_cut_line_is_still_an_object(void **state)
{
        (void)state;
        const char *whole = "a=\"x \\\" \\x01 y\" b=2";
        for (size_t n = 0; n <= strlen(whole); n++) {
                char cut[64];
                memcpy(cut, whole, n);
                cut[n] = 0;
                const char *line = json(cut);
                size_t size = strlen(line);
                assert_memory_equal(line, HEAD, strlen(HEAD));
                assert_string_equal(line + size - 2, "}\n");
        }
        assert_string_equal(json("a=\"x"), HEAD ",\"a\":\"x\"}\n");
        assert_string_equal(json("a=\"x\\"), HEAD ",\"a\":\"x\\\\\"}\n");
}

static void the_longest_line_has_room_in_each_form(void **state)
{
        (void)state;
        char pairs[LOG_LINE_MAX], out[LOG_FORMATTED_MAX];
        for (size_t i = 0; i + 4 < sizeof(pairs); i += 4)
                memcpy(pairs + i, "a=1 ", 5);
        assert_true(log_as_json(out, &head, pairs) < LOG_FORMATTED_MAX);
        assert_true(log_as_journal(out, &head, pairs) < LOG_FORMATTED_MAX);
        memset(pairs, 0xff, sizeof(pairs) - 1);
        memcpy(pairs, "a=", 2);
        pairs[sizeof(pairs) - 1] = 0;
        assert_true(log_as_json(out, &head, pairs) < LOG_FORMATTED_MAX);
        assert_true(log_as_journal(out, &head, pairs) < LOG_FORMATTED_MAX);
}

static void the_journal_gets_a_field_for_each_pair(void **state)
{
        (void)state;
        char out[LOG_FORMATTED_MAX];
        const char expected[] =
                "MESSAGE=takeover shard=7 from-host=\"two\\nlines\"\nPRIORITY=4\nSYSLOG_IDENTIFIER=quiver\n"
                "QUIVER_TIME=2026-11-16T10:00:00.123Z\nQUIVER_LEVEL=warn\nQUIVER_EVENT=takeover\nQUIVER_SHARD="
                "7\nQUIVER_FROM_HOST\n\x09\0\0\0\0\0\0\0two\nlines\n";
        size_t n = log_as_journal(out, &head, "shard=7 from-host=\"two\\nlines\"");
        assert_int_equal(n, sizeof(expected) - 1);
        assert_memory_equal(out, expected, n);
}

static int listen_at(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0 && !bind(fd, (const struct sockaddr *)&address, sizeof(address)));
        return fd;
}

/* A journal that reads nothing: what does not fit is counted, and nobody waits. */
static void a_journal_without_room_costs_lines_and_no_time(void **state)
{
        (void)state;
        char folder[] = "/tmp/quiver-journal-XXXXXX", path[64], text[64];
        assert_non_null(mkdtemp(folder));
        (void)snprintf(path, sizeof(path), "%s/socket", folder);
        int server = listen_at(path);
        struct journal journal = { .fd = -1 };
        struct error error = { "" };
        assert_int_equal(journal_open(&journal, path, &error), 0);
        size_t sent = 0;
        while (sent < 100000 && journal_send(&journal, "A=1\n", 4) == 0)
                sent++;
        assert_int_equal(journal.dropped, 1);
        assert_int_equal(journal_send(&journal, "A=1\n", 4), -EAGAIN);
        assert_int_equal(journal.dropped, 2);
        assert_int_equal(recv(server, text, sizeof(text), 0), 4);
        assert_int_equal(journal_send(&journal, "A=1\n", 4), 0);
        assert_int_equal(journal.dropped, 0);
        (void)close(server);
        (void)unlink(path);
        assert_true(journal_send(&journal, "A=1\n", 4) < 0);
        assert_true(journal_open(&journal, path, &error) < 0);
        assert_non_null(strstr(error.text, "cannot reach the journal at /tmp/quiver-journal-"));
        (void)close(journal.fd);
        (void)rmdir(folder);
}

/* A message that has a newline, which nothing that quotes its values writes, does not begin another field. */
static void a_newline_in_a_line_begins_no_field(void **state)
{
        (void)state;
        char out[LOG_FORMATTED_MAX];
        const char begin[] = "MESSAGE\n\x13\0\0\0\0\0\0\0takeover a=1\nUSER=0\nPRIORITY=4\n";
        assert_true(log_as_journal(out, &head, "a=1\nUSER=0") > sizeof(begin));
        assert_memory_equal(out, begin, sizeof(begin) - 1);
}

/* As a socket with little room, or a long line. */
static void a_line_that_is_too_long_for_a_datagram_goes_as_a_sealed_file(void **state)
{
        (void)state;
        char folder[] = "/tmp/quiver-journal-XXXXXX", path[64], line[12000], back[sizeof(line) + 1];
        char control[CMSG_SPACE(sizeof(int))];
        struct iovec byte = { back, 1 };
        struct msghdr message = {
                .msg_iov = &byte, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
        };
        struct journal journal = { .fd = -1 };
        struct error error = { "" };
        int fd, small = 1;
        assert_non_null(mkdtemp(folder));
        (void)snprintf(path, sizeof(path), "%s/socket", folder);
        int server = listen_at(path);
        assert_int_equal(journal_open(&journal, path, &error), 0);
        assert_int_equal(setsockopt(journal.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
        memset(line, 'x', sizeof(line));
        assert_int_equal(journal_send(&journal, line, sizeof(line)), 0);
        assert_int_equal(recvmsg(server, &message, 0), 0);
        const struct cmsghdr *head_of = CMSG_FIRSTHDR(&message);
        assert_non_null(head_of);
        assert_int_equal(head_of->cmsg_type, SCM_RIGHTS);
        memcpy(&fd, CMSG_DATA(head_of), sizeof(fd));
        assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
        assert_int_equal(pread(fd, back, sizeof(back), 0), sizeof(line));
        assert_memory_equal(back, line, sizeof(line));
        (void)close(fd);
        (void)close(server);
        (void)close(journal.fd);
        (void)unlink(path);
        (void)rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pairs_become_members_and_numbers_stay_numbers),
                cmocka_unit_test(what_was_quoted_comes_back_as_it_was),
                cmocka_unit_test(a_cut_line_is_still_an_object),
                cmocka_unit_test(the_longest_line_has_room_in_each_form),
                cmocka_unit_test(the_journal_gets_a_field_for_each_pair),
                cmocka_unit_test(a_newline_in_a_line_begins_no_field),
                cmocka_unit_test(a_line_that_is_too_long_for_a_datagram_goes_as_a_sealed_file),
                cmocka_unit_test(a_journal_without_room_costs_lines_and_no_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
