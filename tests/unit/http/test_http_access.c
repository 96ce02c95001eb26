/* Who may ask: tokens and roles, the names that a server is known by, pages of other origins. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/access.h"

struct place {
        char folder[64];
        char path[96];
        struct http_access access;
        struct error error;
};

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));
        (void)strcpy(p->folder, "/tmp/quiver-access-XXXXXX");
        *state = p;
        if (!mkdtemp(p->folder))
                return -1;
        (void)snprintf(p->path, sizeof(p->path), "%s/tokens", p->folder);
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;
        http_access_free(&p->access);
        (void)unlink(p->path);
        (void)rmdir(p->folder);
        free(p);
        return 0;
}

static int read_tokens(struct place *p, const char *text, mode_t mode)
{
        FILE *f = fopen(p->path, "w");
        assert_non_null(f);
        assert_int_equal(fputs(text, f) < 0, 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(p->path, mode), 0);
        http_access_free(&p->access);
        return http_access_read(&p->access, p->path, &p->error);
}

static struct http_head head_with(enum http_verb verb, const char *name, const char *value)
{
        struct http_head head = { .verb = verb, .fields_count = 2 };
        head.fields[0] = (struct http_field){ SPAN_TEXT("host"), SPAN_TEXT("localhost:7070") };
        head.fields[1] = (struct http_field){ span_of_text(name), span_of_text(value) };
        return head;
}

static unsigned roles_of(struct place *p, const char *value, bool *ret_is_known)
{
        struct http_head head = head_with(VERB_GET, "authorization", value);
        struct http_who who;
        *ret_is_known = http_access_by_token(&p->access, &head, &who);
        return who.roles;
}

static void a_token_has_the_roles_of_its_line(void **state)
{
        struct place *p = *state;
        bool is_known;
        assert_int_equal(
                read_tokens(p, "# who may what\n\nshop submit 0123456789abcdef\n  ops read,operate ABCDEF0123456789\n",
                        0600),
                0);
        assert_int_equal(p->access.tokens_count, 2);
        assert_int_equal(roles_of(p, "Bearer 0123456789abcdef", &is_known), ROLE_SUBMIT);
        assert_int_equal(roles_of(p, "bearer ABCDEF0123456789", &is_known), ROLE_READ | ROLE_OPERATE);
        assert_true(is_known);
        assert_int_equal(roles_of(p, "Bearer 0123456789abcde", &is_known), ROLE_NONE);
        assert_false(is_known);
        assert_int_equal(roles_of(p, "Bearer 0123456789abcdef0123456789abcdef", &is_known), ROLE_NONE);
        assert_false(is_known);
        assert_int_equal(roles_of(p, "Basic 0123456789abcdef", &is_known), ROLE_NONE);
        assert_false(is_known);
        assert_int_equal(roles_of(p, "Bearer ", &is_known), ROLE_NONE);
        assert_false(is_known);
}

static void a_bad_file_is_refused_by_its_line(void **state)
{
        struct place *p = *state;
        static const struct {
                const char *text;
                const char *why;
        } bad[] = {
                { "a read 0123456789abcdef\nb\n", "line 2: a line is NAME" },
                { "a reed 0123456789abcdef\n", "reed is no role" },
                { "a read short\n", "it needs 16 to 128" },
                { "a read 0123456789abcdef more\n", "a line is NAME" },
        };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_true(read_tokens(p, bad[i].text, 0600) < 0);
                assert_non_null(strstr(p->error.text, bad[i].why));
        }
        assert_true(read_tokens(p, "a read 0123456789abcdef\n", 0644) < 0);
        assert_non_null(strstr(p->error.text, "chmod 600"));
        (void)unlink(p->path);
        assert_true(http_access_read(&p->access, p->path, &p->error) < 0);
}

static void a_token_is_made_once(void **state)
{
        struct place *p = *state;
        bool is_made;
        char first[HTTP_TOKEN_MAX + 1];
        assert_int_equal(http_access_ensure(&p->access, p->path, &is_made, &p->error), 0);
        assert_true(is_made);
        assert_int_equal(p->access.tokens_count, 1);
        assert_int_equal(p->access.tokens[0].roles, ROLE_ALL);
        (void)strcpy(first, p->access.tokens[0].token);
        assert_true(strlen(first) >= 32);
        http_access_free(&p->access);
        assert_int_equal(http_access_ensure(&p->access, p->path, &is_made, &p->error), 0);
        assert_false(is_made);
        assert_string_equal(p->access.tokens[0].token, first);
        struct stat found;
        assert_int_equal(stat(p->path, &found), 0);
        assert_int_equal(found.st_mode & 0777, 0600);
}

static void only_known_hosts_are_answered(void **state)
{
        struct place *p = *state;
        strings_add(&p->access.hosts, "quiver.example");
        static const char *const good[] = { "localhost", "LOCALHOST:7070", "127.0.0.1", "127.0.0.1:1", "[::1]:7070",
                "quiver.example:443" };
        static const char *const bad[] = { "evil.example", "localhost.evil.example", "", "[::1", "127.0.0.1.evil",
                "quiver.example.evil" };
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_true(http_access_has_host(&p->access, span_of_text(good[i])));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_false(http_access_has_host(&p->access, span_of_text(bad[i])));
}

static void a_page_of_another_origin_changes_nothing(void **state)
{
        (void)state;
        struct http_head head = head_with(VERB_POST, "origin", "http://evil.example");
        assert_false(http_access_is_own_page(&head));
        head = head_with(VERB_POST, "origin", "null");
        assert_false(http_access_is_own_page(&head));
        head = head_with(VERB_POST, "origin", "http://localhost:7070");
        assert_true(http_access_is_own_page(&head));
        head = head_with(VERB_POST, "sec-fetch-site", "cross-site");
        assert_false(http_access_is_own_page(&head));
        head = head_with(VERB_POST, "sec-fetch-site", "same-site");
        assert_false(http_access_is_own_page(&head));
        head = head_with(VERB_POST, "sec-fetch-site", "same-origin");
        assert_true(http_access_is_own_page(&head));
        head = head_with(VERB_GET, "sec-fetch-site", "cross-site");
        assert_true(http_access_is_own_page(&head));
        head = head_with(VERB_POST, "user-agent", "curl");
        assert_true(http_access_is_own_page(&head));
}

static void a_user_of_the_socket_is_root_the_host_or_nobody(void **state)
{
        (void)state;
        struct http_who who;
        http_access_by_peer(&(struct socket_peer){ .uid = geteuid() }, &who);
        assert_int_equal(who.roles, ROLE_ALL);
        http_access_by_peer(&(struct socket_peer){ .uid = 0 }, &who);
        assert_int_equal(who.roles, ROLE_ALL);
        http_access_by_peer(&(struct socket_peer){ .uid = geteuid() + 4711 }, &who);
        assert_int_equal(who.roles, ROLE_NONE);
        http_access_by_peer(&(struct socket_peer){ .uid = geteuid(), .is_ours = true }, &who); /* a runner */
        assert_int_equal(who.roles, ROLE_NONE);
        http_access_by_peer(&(struct socket_peer){ .uid = 0, .is_ours = true }, &who);
        assert_int_equal(who.roles, ROLE_NONE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_token_has_the_roles_of_its_line, setup, teardown),
                cmocka_unit_test_setup_teardown(a_bad_file_is_refused_by_its_line, setup, teardown),
                cmocka_unit_test_setup_teardown(a_token_is_made_once, setup, teardown),
                cmocka_unit_test_setup_teardown(only_known_hosts_are_answered, setup, teardown),
                cmocka_unit_test_setup_teardown(a_page_of_another_origin_changes_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(a_user_of_the_socket_is_root_the_host_or_nobody, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
