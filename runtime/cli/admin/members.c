/* members.c: who runs this app's hosts, what each was assigned, and the latest moves; drain one, or take that back. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/admin/known.h"
#include "cli/admin/members_follow.h"
#include "cli/admin/membership_ask.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"

#define WATCH_S     2
#define MOVES_SHOWN 10

struct members_request {
        const char *config;
        const char *verb, *name; /* NULL: only look */
        bool is_watch;
        bool is_follow;
        bool all_moves;
        bool has_json;
};

static void add_document(void *self, const struct store_status *document)
{
        membership_view_add_document(self, document);
}

static int show(const struct cli_store *s, bool is_json, bool is_watch, bool all_moves)
{
        struct membership_view view;
        struct error error = { "" };
        struct buffer text = { 0 };
        if (membership_ask(&s->config, "members", &view, NULL, &error) < 0) {
                membership_view_free(&view);
                (void)fprintf(stderr, "quiver members: %s: %s\n", s->config.coordination.url.text, error.text);
                return EXIT_UNREACHABLE;
        }
        /* What the store has besides is worth showing, and its lack no reason to show nothing. */
        (void)client_documents(s->client, DOCUMENT_STATUS, add_document, NULL, &view, &error);
        if (is_json) {
                (is_watch ? cli_json_print : cli_json_print_wide)(membership_as_json(&view));
        } else {
                if (is_watch)
                        cli_clear_screen();
                membership_as_text(&text, &view,
                        &(struct membership_screen){ .moves_max = all_moves ? MOVES_MAX : MOVES_SHOWN,
                                .now_ms = clock_wall_ms(),
                                .has_color = cli_has_color() });
                cli_text_print(&text);
        }
        (void)fflush(stdout);
        membership_view_free(&view);
        return EXIT_DONE;
}

/* --- drain and activate --- */

static int set_drain(struct cli_store *s, const char *name, bool is_drain)
{
        char desired[256];
        (void)snprintf(desired, sizeof(desired), "drain.%s", name);
        int r = qv_client_set_desired(s->client, desired, is_drain ? "asked for on the command line" : NULL);
        if (r < 0)
                return cli_fail(s->command, r, qv_client_error());
        if (is_drain)
                (void)printf("%s gives its shards away and gets none, also after a restart. Take it back: quiver "
                             "members activate %s\n",
                        name, name);
        else
                (void)printf("%s gets shards again\n", name);
        known_warn_of_host(s, name);
        return EXIT_DONE;
}

static int act(struct cli_store *s, void *self)
{
        const struct members_request *q = self;
        int code;
        if (q->verb)
                return set_drain(s, q->name, !strcmp(q->verb, "drain"));
        do
                code = show(s, q->has_json, q->is_watch, q->all_moves);
        while (q->is_watch && code == EXIT_DONE && sleep(WATCH_S) == 0);
        return code;
}

int cmd_members(int argc, char **argv)
{
        struct members_request q = { 0 };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--watch", &q.is_watch, "again every 2 s, until it is interrupted"),
                OPT_FLAG("--follow", &q.is_follow,
                        "a line for each that is there, joins or leaves, until it is interrupted"),
                OPT_FLAG("--moves", &q.all_moves, "all moves that are remembered, not only the latest ten"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "members [--watch] [--moves] [--json]\n       quiver members --follow [--json]\n       quiver "
                         "members drain|activate NAME",
                .about = "The hosts of this app: what each was assigned, who leads, and which shards moved and why.\n"
                         "drain: the host of that name gives its shards away and gets none; activate takes that back.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver members\n"
                            "  quiver members --watch\n"
                            "  quiver members drain host-a\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        q.verb = o.words[0];
        if (q.verb && strcmp(q.verb, "drain") != 0 && strcmp(q.verb, "activate") != 0)
                return options_wrong(&o, "there is no \"quiver members %s\"; there are drain and activate", q.verb);
        if (q.verb && o.words_count != 2)
                return options_wrong(&o, "%s needs the name of one host", q.verb);
        q.name = q.verb ? o.words[1] : NULL;
        if (q.name && strlen(q.name) > ASSIGN_NAME_MAX)
                return options_wrong(&o, "a host's name has at most %u bytes", ASSIGN_NAME_MAX);
        if (q.is_follow && (q.verb || q.is_watch || q.all_moves))
                return options_wrong(&o, "--follow goes with --json only");
        if (q.is_follow)
                return members_follow(o.command, q.config, q.has_json);
        return cli_act(&o, q.config, act, &q);
}
