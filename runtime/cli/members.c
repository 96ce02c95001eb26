/* members.c: who runs this app's hosts, what each was assigned, and the latest moves; drain one, or take that back. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/membership_ask.h"
#include "cli/open.h"
#include "cli/print.h"

#define WATCH_S     2
#define MOVES_SHOWN 10

enum { OPTION_WATCH = OPTION_OWN, OPTION_MOVES };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_WATCH, "watch", NULL, "again every 2 s, until it is interrupted" },
        { OPTION_MOVES, "moves", NULL, "all moves that are remembered, not only the latest ten" },
        OPTION_JSON_ROW,
};

static int show(const struct cli_store *s, bool is_json, bool is_watch, bool all_moves)
{
        struct membership_view view;
        struct error error = { "" };
        struct buffer text = { 0 };
        if (membership_ask(&s->config, &view, &error) < 0) {
                membership_view_free(&view);
                (void)fprintf(stderr, "quiver members: %s: %s\n", s->config.coordination.url.text, error.text);
                return EXIT_UNREACHABLE;
        }
        if (is_json) {
                (is_watch ? cli_json_print : cli_json_print_wide)(membership_as_json(&view));
        } else {
                if (is_watch)
                        cli_clear_screen();
                membership_as_text(&text, &view, all_moves ? MOVES_MAX : MOVES_SHOWN);
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
        return EXIT_DONE;
}

static int act(struct options *o, const struct cli_words *w, bool is_watch, bool all_moves)
{
        struct cli_store s;
        bool is_drain = w->count && !strcmp(w->words[0], "drain");
        if (w->count && !is_drain && strcmp(w->words[0], "activate") != 0)
                return options_wrong(o, "drain or activate; what is %s?", w->words[0]);
        if (w->count && w->count != 2)
                return options_wrong(o, "%s needs the name of one host", w->words[0]);
        if (w->count && strlen(w->words[1]) > ASSIGN_NAME_MAX)
                return options_wrong(o, "a host's name has at most %u bytes", ASSIGN_NAME_MAX);
        int code = cli_open(&s, o->argv[0], w->config);
        if (code != EXIT_DONE)
                return code;
        if (w->count)
                code = set_drain(&s, w->words[1], is_drain);
        else
                do
                        code = show(&s, w->has_json, is_watch, all_moves);
                while (is_watch && code == EXIT_DONE && sleep(WATCH_S) == 0);
        cli_close(&s);
        return code;
}

int cmd_members(int argc, char **argv)
{
        struct options o = {
                .usage = "members [--watch] [--moves] [--json]\n       quiver members drain|activate NAME",
                .about = "The hosts of this app: what each was assigned, who leads, and which shards moved and why.\n"
                         "drain: the host of that name gives its shards away and gets none; activate takes that back.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver members\n"
                            "  quiver members --watch\n"
                            "  quiver members drain host-a\n",
        };
        struct cli_words w = { 0 };
        bool is_watch = false;
        bool all_moves = false;
        options_start(&o, argc, argv);
        for (int id; (id = cli_words_next(&w, &o)) >= OPTION_OWN;) {
                is_watch |= id == OPTION_WATCH;
                all_moves |= id == OPTION_MOVES;
        }
        int code = w.is_over ? w.code : act(&o, &w, is_watch, all_moves);
        cli_words_free(&w);
        return code;
}
