/* check_acl.c: quiver check --acl: the users that Redis may know, each with the rights that its role needs. */
#include "cli/check/check_acl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "client/rights.h"
#include "view/json.h"

static json_t *json_rules(const char *rules)
{
        json_t *list = json_array();
        unsigned depth = 0;
        const char *from = rules;
        /* A selector in parentheses is one word. */
        for (const char *at = rules;; at++) {
                depth += *at == '(' ? 1 : 0;
                depth -= *at == ')' && depth ? 1 : 0;
                if (*at && (*at != ' ' || depth))
                        continue;
                (void)json_array_append_new(list, json_stringn(from, (size_t)(at - from)));
                if (!*at)
                        return list;
                from = at + 1;
        }
}

static void print_json(const struct config *config, const struct server_users *users)
{
        json_t *list = json_array();
        for (size_t i = 0; i < users->count; i++) {
                const struct server_user *u = &users->items[i];
                (void)json_array_append_new(
                        list, json_pack("{s:s, s:s, s:s, s:s, s:o}", "server", u->server, "role", u->role, "user",
                                      u->name, "about", u->about, "rules", json_rules(u->rules)));
        }
        cli_json_print_wide(json_pack("{s:s, s:s, s:s, s:o}", "app", config->app, "store", config->store.url.text,
                "coordination", config->coordination.url.text, "users", list));
}

/* A selector must reach the server as one word. */
static void print_rules(const char *rules)
{
        for (const char *at = rules; *at; at++) {
                if (*at == '(')
                        (void)putchar('\'');
                (void)putchar(*at);
                if (*at == ')')
                        (void)putchar('\'');
        }
        (void)putchar('\n');
}

static void print_text(const struct config *config, const struct server_users *users)
{
        (void)printf(
                "# Users for the app \"%s\", each with what its role needs and nothing of another app.  Choose the "
                "passwords, and give\n"
                "# each line to every server (redis-cli, or without the quotes as \"user NAME …\" in an aclfile).  A "
                "host, a command and\n"
                "# a client then name theirs: %s = { user = \"NAME\"; password_file = \"FILE\"; … }.\n",
                config->app, "store");
        for (size_t i = 0; i < users->count; i++) {
                const struct server_user *u = &users->items[i];
                (void)printf("\n# %s (%s): %s\nACL SETUSER %s ", u->role, u->server, u->about, u->name);
                print_rules(u->rules);
        }
}

int check_acl(const struct config *config, bool has_json)
{
        struct server_users users;
        struct error error;
        int r = server_users_make(config, &users, &error);
        if (r < 0)
                return cli_fail("check", -EINVAL, error.text);
        if (has_json)
                print_json(config, &users);
        else
                print_text(config, &users);
        server_users_free(&users);
        return EXIT_DONE;
}
