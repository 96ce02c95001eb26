#include "view/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "view/json.h"
#include "view/table.h"
#include "view/text.h"

#define NONCE_TEXT  (2 * STORE_NONCE_SIZE + 1)
#define NONCE_SHOWN 8

/* --- nodes of the tree --- */

void membership_view_add_member(struct membership_view *view, const char *node, struct span document)
{
        struct error error;
        view->members = array_grow(view->members, view->members_count, sizeof(*view->members));
        struct view_member *m = &view->members[view->members_count++];
        (void)snprintf(m->node, sizeof(m->node), "%s", node);
        m->doc = memory_zero(1, sizeof(*m->doc));
        if (member_doc_parse(document, m->doc, &error) < 0)
                (void)snprintf(m->problem, sizeof(m->problem), "%s", error.text);
}

void membership_view_set_leader(struct membership_view *view, const char *const *nodes, size_t count)
{
        const char *lowest = NULL;
        for (size_t i = 0; i < count; i++) {
                const char *dash = strrchr(nodes[i], '-');
                if (dash && (!lowest || strcmp(dash, strrchr(lowest, '-')) < 0))
                        lowest = nodes[i];
        }
        (void)snprintf(view->leader, sizeof(view->leader), "%.*s", lowest ? (int)(strrchr(lowest, '-') - lowest) : 0,
                lowest ? lowest : "");
}

void membership_view_set_assignment(struct membership_view *view, struct span document)
{
        struct error error;
        assignment_free(&view->assignment);
        view->assignment = (struct assignment){ 0 };
        *view->problem = 0;
        if (assign_doc_parse(document, &view->assignment, &error) < 0)
                (void)snprintf(view->problem, sizeof(view->problem), "%s", error.text);
}

void membership_view_set_moves(struct membership_view *view, struct span document)
{
        struct error ignored;
        if (moves_doc_parse(document, &view->moves, &ignored) < 0)
                view->moves.count = 0;
}

void membership_view_add_document(struct membership_view *view, const struct store_status *document)
{
        char nonce[NONCE_TEXT];
        struct span text = document->document;
        json_t *said = json_loadb(text.size ? text.data : "", text.size, 0, NULL);
        if (!view->documents)
                view->documents = json_object();
        if (said)
                (void)json_object_set_new(view->documents, units_hex(nonce, document->nonce, STORE_NONCE_SIZE), said);
}

void membership_view_free(struct membership_view *view)
{
        for (size_t i = 0; i < view->members_count; i++)
                free(view->members[i].doc);
        free(view->members);
        assignment_free(&view->assignment);
        json_decref(view->documents);
        *view = (struct membership_view){ 0 };
}

/* --- one member, for JSON and text --- */

struct shown_member {
        const struct assign_member *said; /* NULL: its document cannot be parsed */
        const char *state;
        char nonce[NONCE_TEXT];
        uint32_t shards; /* assigned to it */
        bool is_leader;
        const json_t *document; /* its status document in the store; NULL: none */
};

static struct shown_member look_at(const struct membership_view *view, const struct view_member *m)
{
        struct shown_member shown = { .state = "foreign" };
        if (*m->problem)
                return shown;
        shown.said = &m->doc->member;
        shown.state = shown.said->is_draining ? "draining" : "active";
        shown.is_leader = !strcmp(units_hex(shown.nonce, shown.said->nonce, STORE_NONCE_SIZE), view->leader);
        for (uint32_t i = 0; i < view->assignment.shards_count; i++) {
                const struct assign_owner *owner = assignment_owner(&view->assignment, i);
                shown.shards += owner && !memcmp(owner->nonce, shown.said->nonce, STORE_NONCE_SIZE);
        }
        shown.document = json_object_get(view->documents, shown.nonce);
        /* Nothing is assigned to it: there are more hosts than shards, or than max_members. */
        if (!shown.said->is_draining && !shown.shards && view->assignment.shards_count)
                shown.state = "standby";
        return shown;
}

/* Fields of its document that are shown. */
static const char *const texts[] = { "machine", "version" };
static const char *const numbers[] = { "pid", "started_ms", "seats" };

/* --- for programs --- */

/* In thousandths of a seat (host/membership/load.h); omitted for a host that does not report it. */
static void put_load(json_t *o, const struct load_summary *load)
{
        if (!load->is_known)
                return;
        json_t *busy = json_array();
        view_json_number(o, "load", load->total);
        for (uint32_t i = 0; i < load->busy_count; i++) {
                json_t *one = json_object();
                view_json_number(one, "shard", load->busy[i].shard);
                view_json_number(one, "load", load->busy[i].load);
                (void)json_array_append_new(busy, one);
        }
        (void)json_object_set_new(o, "busy", busy);
}

static json_t *member_as_json(const struct membership_view *view, const struct view_member *m)
{
        struct shown_member shown = look_at(view, m);
        json_t *o = json_object();
        view_json_set_text(o, "node", m->node);
        view_json_set_text(o, "state", shown.state);
        if (!shown.said) {
                view_json_set_text(o, "problem", m->problem);
                return o;
        }
        view_json_set_text(o, "name", shown.said->name);
        view_json_set_text(o, "nonce", shown.nonce);
        view_json_number(o, "weight", shown.said->weight);
        view_json_number(o, "shards", shown.shards);
        (void)json_object_set_new(o, "leader", json_boolean(shown.is_leader));
        (void)json_object_set_new(o, "sees_store", json_boolean(shown.said->sees_store));
        put_load(o, &shown.said->load);
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                if (*view_json_get_text(shown.document, texts[i]))
                        view_json_set_text(o, texts[i], view_json_get_text(shown.document, texts[i]));
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if (view_json_get_number(shown.document, numbers[i]))
                        view_json_number(o, numbers[i], view_json_get_number(shown.document, numbers[i]));
        json_t *handlers = json_object();
        for (uint32_t i = 0; i < m->doc->handlers_count; i++)
                view_json_set_text(handlers, m->doc->handlers[i].name, m->doc->handlers[i].version);
        (void)json_object_set_new(o, "handlers", handlers);
        json_t *features = json_array();
        for (uint32_t i = 0; i < m->doc->features_count; i++)
                (void)json_array_append_new(features, json_string(m->doc->features[i]));
        (void)json_object_set_new(o, "features", features);
        return o;
}

static json_t *move_as_json(const struct moved *moved)
{
        const struct assign_move *move = &moved->move;
        json_t *o = json_object();
        view_json_number(o, "at_ms", moved->at_ms);
        view_json_number(o, "shard", move->shard);
        view_json_set_text(o, "from", move->from.name);
        view_json_set_text(o, "to", move->to.name);
        view_json_number(o, "epoch", move->epoch);
        view_json_set_text(o, "reason", assign_reason_name(move->reason));
        return o;
}

json_t *membership_as_json(const struct membership_view *view)
{
        json_t *o = json_object();
        json_t *members = json_array();
        json_t *moves = json_array();
        for (size_t i = 0; i < view->members_count; i++)
                (void)json_array_append_new(members, member_as_json(view, &view->members[i]));
        for (uint32_t i = 0; i < view->moves.count; i++)
                (void)json_array_append_new(moves, move_as_json(&view->moves.items[i]));
        (void)json_object_set_new(o, "members", members);
        view_json_number(o, "generation", view->assignment.generation);
        view_json_number(o, "shards", view->assignment.shards_count);
        (void)json_object_set_new(o, "moves", moves);
        return o;
}

/* --- for people --- */

static void put_known(struct table *table, const json_t *document, const char *name)
{
        uint64_t number = view_json_get_number(document, name);
        if (number)
                table_put_number(table, TONE_PLAIN, number);
        else
                table_put_text(table, TONE_FAINT, "-");
}

static void add_member(
        struct table *table, const struct membership_view *view, const struct view_member *m, uint64_t now_ms)
{
        struct shown_member shown = look_at(view, m);
        char words[128];
        table_row(table);
        table_put_text(table, TONE_PLAIN, shown.said ? shown.said->name : m->node);
        if (!shown.said) {
                table_put_text(table, TONE_FAINT, "-");
                table_put_text(table, TONE_BAD, shown.state);
                for (int i = 0; i < 8; i++)
                        table_put_text(table, TONE_FAINT, "-");
                table_put_text(table, TONE_BAD, m->problem);
                return;
        }
        table_put(table, TONE_PLAIN, (struct span){ shown.nonce, NONCE_SHOWN });
        table_put_text(table, shown.said->is_draining ? TONE_WARN : TONE_PLAIN, shown.state);
        table_put_number(table, TONE_PLAIN, shown.said->weight);
        table_put_number(table, TONE_PLAIN, shown.shards);
        put_known(table, shown.document, "seats");
        (void)snprintf(words, sizeof(words), "%.1f", (double)shown.said->load.total / 1000);
        table_put_text(table, TONE_PLAIN, shown.said->load.is_known ? words : "-");
        put_known(table, shown.document, "pid");
        const char *machine = view_json_get_text(shown.document, "machine");
        const char *version = view_json_get_text(shown.document, "version");
        uint64_t started_ms = view_json_get_number(shown.document, "started_ms");
        table_put_text(table, TONE_PLAIN, *machine ? machine : "-");
        table_put_text(table, TONE_PLAIN, *version ? version : "-");
        table_put_age(table, TONE_PLAIN, started_ms && now_ms > started_ms ? now_ms - started_ms : 0);
        (void)snprintf(words, sizeof(words), "%s%s%s", shown.is_leader ? ", leads" : "",
                shown.said->sees_store ? "" : ", does not reach the store",
                m->doc->stale_count ? ", waits for higher epochs" : "");
        table_put_text(table, shown.said->sees_store ? TONE_PLAIN : TONE_BAD, *words ? words + 2 : "");
}

static void put_members(struct buffer *to, const struct membership_view *view, const struct membership_screen *screen)
{
        struct table table = { .has_color = screen->has_color };
        table_text_column(&table, "member", 24);
        table_text_column(&table, "nonce", 0);
        table_text_column(&table, "state", 0);
        table_number_column(&table, "weight");
        table_number_column(&table, "shards");
        table_number_column(&table, "seats");
        table_number_column(&table, "load");
        table_number_column(&table, "pid");
        table_text_column(&table, "machine", 24);
        table_text_column(&table, "version", 16);
        table_number_column(&table, "up");
        table_text_column(&table, "", 0);
        for (size_t i = 0; i < view->members_count; i++)
                add_member(&table, view, &view->members[i], screen->now_ms);
        table_print(&table, to);
        table_free(&table);
}

static void put_moves(struct buffer *to, const struct moves *moves, uint32_t max)
{
        char when[TEXT_TIME_MAX];
        if (moves->count)
                buffer_printf(
                        to, "\n%-24s %5s  %-20s %-20s %-9s %s\n", "moved", "shard", "from", "to", "reason", "epoch");
        for (uint32_t i = moves->count < max ? 0 : moves->count - max; i < moves->count; i++) {
                const struct assign_move *move = &moves->items[i].move;
                buffer_printf(to, "%-24s %5" PRIu32 "  ", text_time(when, moves->items[i].at_ms), move->shard);
                (void)text_put_column(to, span_of_text(*move->from.name ? move->from.name : "-"), 20, 20);
                buffer_put(to, " ", 1);
                (void)text_put_column(to, span_of_text(move->to.name), 20, 20);
                buffer_printf(to, " %-9s %" PRIu64 "\n", assign_reason_name(move->reason), move->epoch);
        }
}

void membership_as_text(struct buffer *to, const struct membership_view *view, const struct membership_screen *screen)
{
        put_members(to, view, screen);
        if (!view->members_count)
                buffer_printf(to, "(none: no host runs)\n");
        if (*view->problem) {
                text_put_between(to, "\nassignment: ", view->problem, "\n");
        } else if (view->assignment.shards_count) {
                buffer_printf(to, "\n%" PRIu32 " shards assigned, generation %" PRIu64 "\n",
                        view->assignment.shards_count, view->assignment.generation);
        }
        put_moves(to, &view->moves, screen->moves_max);
}
