/* webhook without a network: which addresses are refused, what URLs become, what answers mean, who is left alone. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <quiver/mock.h>

#include "../../../plugins/webhook/address.h"
#include "../../../plugins/webhook/destinations.h"
#include "../../../plugins/webhook/pattern.h"
#include "../../../plugins/webhook/rules.h"
#include "../../../plugins/webhook/signature.h"
#include "../../../plugins/webhook/target.h"

/* --- addresses --------------------------------------------------------------------------------------------------- */

static const char *refused(const char *text, const char *allow)
{
        struct ranges allowed = { 0 };
        struct sockaddr_storage storage = { 0 };
        struct sockaddr_in *in = (struct sockaddr_in *)&storage;
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;
        if (allow) {
                assert_int_equal(range_parse(&allowed.list[0], allow), 0);
                allowed.count = 1;
        }
        if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
                storage.ss_family = AF_INET;
        else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
                storage.ss_family = AF_INET6;
        else
                fail_msg("%s is no address", text);
        return address_refused((struct sockaddr *)&storage, &allowed);
}

static void only_public_addresses_are_allowed(void **state)
{
        static const char *const special[] = { "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1",
                "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
                "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
                "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1",
                "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1",
                "64:ff9b::127.0.0.1", "64:ff9b:1::1", "100::1", "2001::1", "2001:10::1", "2001:db8::1",
                "2002:7f00:1::", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1",
                "ff02::1" };
        static const char *const public[] = { "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
                "126.255.255.255", "128.0.0.1", "169.253.1.1", "172.15.255.255", "172.32.0.0", "192.0.1.1",
                "192.167.1.1", "192.169.1.1", "198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700::1111", "2a00:1450::1",
                "3ffe::1" };
        (void)state;
        for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
                if (!refused(special[i], NULL))
                        fail_msg("%s is allowed", special[i]);
        for (size_t i = 0; i < sizeof(public) / sizeof(*public); i++)
                if (refused(public[i], NULL))
                        fail_msg("%s is refused: %s", public[i], refused(public[i], NULL));
}

static void what_is_allowed_is_allowed_in_each_spelling(void **state)
{
        (void)state;
        assert_null(refused("10.1.2.3", "10.0.0.0/8"));
        assert_null(refused("::ffff:10.1.2.3", "10.0.0.0/8"));
        assert_null(refused("10.1.2.3", "::ffff:10.0.0.0/104"));
        assert_null(refused("127.0.0.1", "127.0.0.1"));
        assert_non_null(refused("127.0.0.2", "127.0.0.1"));
        assert_null(refused("172.20.0.1", "172.16.0.0/12"));
        assert_non_null(refused("192.168.128.0", "192.168.0.0/17"));
        assert_null(refused("192.168.127.255", "192.168.0.0/17"));
        assert_null(refused("fd00::7", "fd00::/8"));
        assert_non_null(refused("127.0.0.1", "::1"));
        assert_null(refused("127.0.0.1", "0.0.0.0/0"));
        assert_non_null(refused("::1", "0.0.0.0/0"));
        struct range range;
        static const char *const bad[] = { "", "10", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "::/129",
                "example.org", "1.2.3.4.5", "10.0.0.0/ 8", "/8" };
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_int_equal(range_parse(&range, bad[i]), -EINVAL);
}

/* --- URLs -------------------------------------------------------------------------------------------------------- */

static void a_url_is_taken_apart_and_checked(void **state)
{
        static const struct {
                const char *url, *destination, *why;
        } cases[] = {
                { "https://Hooks.Example.org/a?b#c", "https://hooks.example.org:443", NULL },
                { "http://example.org:8080", "http://example.org:8080", NULL },
                { "https://1.1.1.1/", "https://1.1.1.1:443", NULL },
                { "https://[2606:4700::1111]/", "https://[2606:4700::1111]:443", NULL },
                { "https://127.0.0.1/", NULL, "loopback" },
                { "https://127.1/", NULL, "loopback" },
                { "https://0x7f000001/", NULL, "loopback" },
                { "https://2130706433/", NULL, "loopback" },
                { "https://[::1]/", NULL, "loopback" },
                { "https://[::ffff:10.0.0.1]/", NULL, "private" },
                { "https://[fe80::1%25eth0]/", NULL, "link-local" },
                { "https://user@example.org/", NULL, "user or a password" },
                { "https://user:secret@example.org/", NULL, "user or a password" },
                { "ftp://example.org/", NULL, "neither with http" },
                { "file:///etc/passwd", NULL, "URL" },
                { "gopher://example.org/", NULL, "neither with http" },
                { "https://exa mple.org/", NULL, "URL" },
                { "https://", NULL, "URL" },
                { "", NULL, "URL" },
                { "https://example.org:99999/", NULL, "URL" },
                { "https://a%2Fb.example.org/", NULL, "URL" },
                { "https://x%40evil.example/", NULL, "URL" },
        };
        struct ranges none = { 0 };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct target target;
                char why[TARGET_WHY] = "";
                enum target_result r = target_parse(&target, cases[i].url, &none, false, why);
                if (cases[i].why) {
                        if (r == TARGET_GOOD || !strstr(why, cases[i].why))
                                fail_msg("%s: %s", cases[i].url, why);
                        continue;
                }
                if (r != TARGET_GOOD)
                        fail_msg("%s: %s", cases[i].url, why);
                assert_string_equal(target.destination, cases[i].destination);
                target_free(&target);
        }
}

static void names_of_this_machine_do_not_pass_through_a_proxy(void **state)
{
        static const char *const names[] = { "http://localhost/", "http://LOCALHOST:80/", "http://a.localhost/",
                "http://localhost./" };
        struct ranges none = { 0 }, loopback = { .count = 1 };
        struct target target;
        char why[TARGET_WHY];
        (void)state;
        assert_int_equal(range_parse(&loopback.list[0], "127.0.0.0/8"), 0);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                assert_int_equal(target_parse(&target, names[i], &none, true, why), TARGET_FORBIDDEN);
                assert_int_equal(target_parse(&target, names[i], &loopback, true, why), TARGET_GOOD);
                target_free(&target);
        }
        assert_int_equal(target_parse(&target, "http://notlocalhost/", &none, true, why), TARGET_GOOD);
        target_free(&target);
}

static void dots_in_a_path_are_found(void **state)
{
        (void)state;
        assert_true(target_has_dots("https://e/a/../b"));
        assert_true(target_has_dots("https://e/."));
        assert_true(target_has_dots("https://e/a/..?x"));
        assert_false(target_has_dots("https://e/a/...?x=/../"));
        assert_false(target_has_dots("https://e"));
        assert_false(target_has_dots("https://../.a/b."));
        assert_false(target_has_dots("https://e?/../"));
}

/* --- rules ------------------------------------------------------------------------------------------------------- */

static struct verdict judge(const struct rules *rules, int status, uint64_t retry_after_ms)
{
        return rules_judge(
                rules, &(struct answer){ .kind = ANSWERED, .status = status, .retry_after_ms = retry_after_ms });
}

static void a_status_means_what_the_page_says(void **state)
{
        static const struct {
                int status, plain, with_retry_after;
        } cases[] = { { 200, QV_DONE, QV_DONE }, { 204, QV_DONE, QV_DONE }, { 299, QV_DONE, QV_DONE },
                { 301, QV_REJECT, QV_REJECT }, { 304, QV_REJECT, QV_REJECT }, { 400, QV_REJECT, QV_REJECT },
                { 401, QV_REJECT, QV_REJECT }, { 404, QV_REJECT, QV_REJECT }, { 408, QV_RETRY, QV_RETRY },
                { 410, QV_REJECT, QV_REJECT }, { 425, QV_RETRY, QV_RETRY }, { 429, QV_LIMITED, QV_LIMITED },
                { 500, QV_RETRY, QV_RETRY }, { 503, QV_RETRY, QV_LATER }, { 599, QV_RETRY, QV_RETRY } };
        struct rules rules;
        (void)state;
        rules_init(&rules, 60000);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct verdict v = judge(&rules, cases[i].status, 0);
                assert_int_equal(v.outcome, cases[i].plain);
                assert_int_equal(v.delay_ms, 0);
                v = judge(&rules, cases[i].status, 5000);
                assert_int_equal(v.outcome, cases[i].with_retry_after);
                bool is_waiting = v.outcome != QV_DONE && v.outcome != QV_REJECT;
                assert_int_equal(v.delay_ms, is_waiting ? 5000 : 0);
        }
        assert_int_equal(judge(&rules, 429, 3600000).delay_ms, 60000);
        assert_int_equal(rules_judge(&rules, &(struct answer){ .kind = DOWN }).outcome, QV_LATER);
        assert_int_equal(rules_judge(&rules, &(struct answer){ .kind = SILENT }).outcome, QV_RETRY);
        assert_int_equal(rules_judge(&rules, &(struct answer){ .kind = FORBIDDEN }).outcome, QV_REJECT);
        assert_int_equal(rules_judge(&rules, &(struct answer){ .kind = STOPPED }).outcome, QV_RETRY);
}

/* --- destinations ------------------------------------------------------------------------------------------------ */

static void a_destination_that_is_down_is_left_alone_and_tried_by_one(void **state)
{
        struct destinations d = { 0 };
        (void)state;
        assert_int_equal(destinations_ask(&d, "a", 1000, 500), 0);
        destinations_failed(&d, "a", true, 1000);
        assert_int_equal(destinations_ask(&d, "a", 1200, 500), 800);
        assert_int_equal(destinations_ask(&d, "b", 1200, 500), 0);
        assert_int_equal(destinations_ask(&d, "a", 2000, 500), 0);
        assert_int_equal(destinations_ask(&d, "a", 2100, 500), 400); /* the other one tries */
        destinations_failed(&d, "a", true, 2200);
        destinations_failed(&d, "a", true, 2200); /* another seat, at the same time */
        assert_int_equal(destinations_ask(&d, "a", 2200, 500), 2000);
        for (uint64_t now = 10000; now < 1000000; now += 100000)
                destinations_failed(&d, "a", true, now);
        destinations_failed(&d, "a", true, 2000000);
        assert_int_equal(destinations_ask(&d, "a", 2000000, 500), 60000);
        assert_int_equal(destinations_ask(&d, "a", 2060000, 500), 0);
        destinations_answered(&d, "a");
        assert_int_equal(d.count, 0);
        destinations_failed(&d, "a", true, 3000000);
        assert_int_equal(destinations_ask(&d, "a", 3000000, 500), 1000);
        assert_int_equal(destinations_ask(&d, "a", 3001000, 500), 0);
        destinations_stopped(&d, "a");
        assert_int_equal(destinations_ask(&d, "a", 3001000, 500), 0);
        destinations_free(&d);
}

static void silence_closes_at_the_third_time(void **state)
{
        struct destinations d = { 0 };
        (void)state;
        destinations_failed(&d, "a", false, 0);
        destinations_failed(&d, "a", false, 0);
        assert_int_equal(destinations_ask(&d, "a", 1, 500), 0);
        destinations_answered(&d, "a");
        destinations_failed(&d, "a", false, 0);
        destinations_failed(&d, "a", false, 0);
        assert_int_equal(destinations_ask(&d, "a", 1, 500), 0);
        destinations_failed(&d, "a", false, 1);
        assert_int_equal(destinations_ask(&d, "a", 1, 500), 1000);
        destinations_close(&d, "c", 30000, 1);
        assert_int_equal(destinations_ask(&d, "c", 1, 500), 30000);
        destinations_free(&d);
}

static void the_table_of_destinations_has_an_end(void **state)
{
        struct destinations d = { 0 };
        char name[32];
        (void)state;
        for (unsigned i = 0; i < 3 * DESTINATIONS_MAX; i++) {
                (void)snprintf(name, sizeof(name), "d%u", i);
                destinations_failed(&d, name, true, 1000 + i);
        }
        assert_int_equal(d.count, DESTINATIONS_MAX);
        assert_true(destinations_ask(&d, name, 1000 + 3 * DESTINATIONS_MAX, 1) > 0);
        assert_int_equal(destinations_ask(&d, "d0", 1001, 1), 0);
        destinations_free(&d);
}

/* --- signatures -------------------------------------------------------------------------------------------------- */

static void a_signature_is_that_of_other_programs(void **state)
{
        struct bytes to = { 0 };
        (void)state;
        /* printf '%s' 'msg-1.1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef -binary | base64 */
        signature_put(&to, "0123456789abcdef", "msg-1", 1700000000, "{\"a\":1}", 7);
        bytes_put(&to, " ", 1);
        signature_put(&to, "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", "msg-1", 1700000000, "{\"a\":1}", 7);
        bytes_put(&to, "", 1);
        assert_string_equal(to.data,
                "v1,rcvmCJb4Y0t6YN5X898L54CieYidJ4Tk6oLfWp2nKm4= v1,rcvmCJb4Y0t6YN5X898L54CieYidJ4Tk6oLfWp2nKm4=");
        bytes_free(&to);
        assert_int_equal(signature_check_key("0123456789abcde"), -EINVAL);
        assert_int_equal(signature_check_key("whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!"), -EINVAL);
        assert_int_equal(signature_check_key("whsec_MDEyMzQ1Njc4OWFiY2RlZg"), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_public_addresses_are_allowed),
                cmocka_unit_test(what_is_allowed_is_allowed_in_each_spelling),
                cmocka_unit_test(a_url_is_taken_apart_and_checked),
                cmocka_unit_test(names_of_this_machine_do_not_pass_through_a_proxy),
                cmocka_unit_test(dots_in_a_path_are_found),
                cmocka_unit_test(a_status_means_what_the_page_says),
                cmocka_unit_test(a_destination_that_is_down_is_left_alone_and_tried_by_one),
                cmocka_unit_test(silence_closes_at_the_third_time),
                cmocka_unit_test(the_table_of_destinations_has_an_end),
                cmocka_unit_test(a_signature_is_that_of_other_programs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
