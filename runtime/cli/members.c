/* members.c: who runs this app's hosts, what each was assigned, and the latest moves; drain one, or take that back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/membership_view.h"
#include "cli/open.h"
#include "cli/show.h"

#define WATCH_S     2
#define MOVES_SHOWN 10

enum { OPTION_WATCH = OPTION_OWN, OPTION_MOVES };

static const struct option_spec specs[] = {
        OPTION_CONFIG_ROW,
        { OPTION_WATCH, "watch", NULL, "again every 2 s, until it is interrupted" },
        { OPTION_MOVES, "moves", NULL, "all moves that are remembered, not only the latest ten" },
        OPTION_JSON_ROW,
};

static const char *state_of(const struct view_member *m)
{
        return *m->problem ? "foreign" : m->doc->member.is_draining ? "draining" : "active";
}

/* --- for people --- */

static void print_members(const struct membership_view *view)
{
        char nonce[2 * STORE_NONCE_SIZE + 1];
        (void)printf("%-24s %-8s %-9s %6s %7s  %s\n", "member", "nonce", "state", "weight", "shards", "");
        for (size_t i = 0; i < view->members_count; i++) {
                const struct view_member *m = &view->members[i];
                if (*m->problem) {
                        (void)printf(
                                "%-24.24s %-8s %-9s %6s %7s  %s\n", m->node, "-", state_of(m), "-", "-", m->problem);
                        continue;
                }
                (void)units_hex(nonce, m->doc->member.nonce, STORE_NONCE_SIZE);
                (void)printf("%-24.24s %.8s %-9s %6" PRIu32 " %7" PRIu32 "  %s%s%s\n", m->doc->member.name, nonce,
                        state_of(m), m->doc->member.weight, m->shards, m->is_leader ? "leads" : "",
                        m->doc->member.sees_store ? "" : " does not reach the store",
                        m->doc->stale_count ? " waits for higher epochs" : "");
        }
        if (!view->members_count)
                (void)printf("(none: no host runs)\n");
        if (*view->problem)
                (void)printf("\nassignment: %s\n", view->problem);
        else if (view->assignment.shards_count)
                (void)printf("\n%" PRIu32 " shards assigned, generation %" PRIu64 "\n", view->assignment.shards_count,
                        view->assignment.generation);
}

static void print_moves(const struct membership_view *view, bool all)
{
        char when[SHOW_TIME_MAX];
        uint32_t first = all || view->moves.count < MOVES_SHOWN ? 0 : view->moves.count - MOVES_SHOWN;
        if (view->moves.count)
                (void)printf("\n%-24s %5s  %-20s %-20s %-9s %s\n", "moved", "shard", "from", "to", "reason", "epoch");
        for (uint32_t i = first; i < view->moves.count; i++) {
                const struct moved *m = &view->moves.items[i];
                (void)printf("%-24s %5" PRIu32 "  %-20.20s %-20.20s %-9s %" PRIu64 "\n", show_time(when, m->at_ms),
                        m->move.shard, *m->move.from.name ? m->move.from.name : "-", m->move.to.name,
                        assign_reason_name(m->move.reason), m->move.epoch);
        }
}

/* --- for programs --- */

static json_t *json_of_member(const struct view_member *m)
{
        char nonce[2 * STORE_NONCE_SIZE + 1];
        json_t *json = json_pack("{s:s, s:s}", "node", m->node, "state", state_of(m));
        if (*m->problem) {
                (void)json_object_set_new(json, "problem", json_string(m->problem));
                return json;
        }
        const struct assign_member *member = &m->doc->member;
        (void)units_hex(nonce, member->nonce, STORE_NONCE_SIZE);
        (void)json_object_set_new(json, "name", json_string(member->name));
        (void)json_object_set_new(json, "nonce", json_string(nonce));
        (void)json_object_set_new(json, "weight", json_integer(member->weight));
        (void)json_object_set_new(json, "shards", json_integer(m->shards));
        (void)json_object_set_new(json, "leader", json_boolean(m->is_leader));
        (void)json_object_set_new(json, "sees_store", json_boolean(member->sees_store));
        json_t *handlers = json_object();
        for (uint32_t i = 0; i < m->doc->handlers_count; i++)
                (void)json_object_set_new(handlers, m->doc->handlers[i].name, json_string(m->doc->handlers[i].version));
        (void)json_object_set_new(json, "handlers", handlers);
        return json;
}

static void print_json(const struct membership_view *view)
{
        json_t *members = json_array();
        json_t *moves = json_array();
        for (size_t i = 0; i < view->members_count; i++)
                (void)json_array_append_new(members, json_of_member(&view->members[i]));
        for (uint32_t i = 0; i < view->moves.count; i++) {
                const struct moved *m = &view->moves.items[i];
                (void)json_array_append_new(
                        moves, json_pack("{s:I, s:i, s:s, s:s, s:I, s:s}", "at_ms", (json_int_t)m->at_ms, "shard",
                                       (int)m->move.shard, "from", m->move.from.name, "to", m->move.to.name, "epoch",
                                       (json_int_t)m->move.epoch, "reason", assign_reason_name(m->move.reason)));
        }
        cli_json_print(json_pack("{s:o, s:I, s:i, s:o}", "members", members, "generation",
                (json_int_t)view->assignment.generation, "shards", (int)view->assignment.shards_count, "moves", moves));
}

static int show(const struct cli_store *s, bool is_json, bool is_watch, bool all_moves)
{
        struct membership_view view;
        struct error error = { "" };
        if (membership_view_read(&s->config, &view, &error) < 0) {
                (void)fprintf(stderr, "quiver members: %s: %s\n", s->config.coordination.url.text, error.text);
                return EXIT_UNREACHABLE;
        }
        if (is_watch && !is_json && isatty(STDOUT_FILENO))
                (void)printf("\033[H\033[2J");
        if (is_json) {
                print_json(&view);
        } else {
                print_members(&view);
                print_moves(&view, all_moves);
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
