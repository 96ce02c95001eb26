#include "cli/lock/lock_look.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/lock/lock_break.h"
#include "cli/lock/tree.h"
#include "cli/lock/tree_ask.h"
#include "cli/print.h"
#include "view/json.h"
#include "view/table.h"

struct question {
        const char *command, *config;
        const char *name; /* of an election; NULL: about all locks */
        bool has_json;
};

/* Opens the tree, looks at all locks and elections, and answers from that. */
static int answer_from_look(const struct question *q,
        int (*answer)(const struct question *q, struct cli_tree *tree, const struct locks_look *look))
{
        struct cli_tree tree;
        struct locks_look look = { 0 };
        int code = cli_tree_open(&tree, q->command, q->config, NULL);
        if (code != EXIT_DONE)
                return code;
        locks_look_init(&look);
        code = cli_tree_look(&tree, &look.look);
        if (code == EXIT_DONE)
                code = answer(q, &tree, &look);
        locks_look_free(&look);
        cli_tree_close(&tree);
        return code;
}

/* --- list --------------------------------------------------------------------------------------------------------- */

static const char *kind_of(uint64_t limit, char text[32])
{
        if (limit == QUEUE_NO_LIMIT)
                return "shared";
        if (limit == 1)
                return "alone";
        (void)snprintf(text, 32, "one of %" PRIu64, limit);
        return text;
}

/* Who it is: the command from a shell, or the task of a host. */
static void put_who(struct table *table, const json_t *place)
{
        char text[256];
        const char *command = view_json_get_text(place, "command");
        const char *problem = view_json_get_text(place, "problem");
        if (*view_json_get_text(place, "handler"))
                (void)snprintf(text, sizeof(text), "task %s of %s on host %s", view_json_get_text(place, "task"),
                        view_json_get_text(place, "handler"), view_json_get_text(place, "host"));
        else
                (void)snprintf(text, sizeof(text), "%s", *problem ? problem : *command ? command : "-");
        table_put_text(table, TONE_PLAIN, text);
}

static void put_place(struct table *table, const json_t *lock, const json_t *place)
{
        char text[32];
        bool holds = json_is_true(json_object_get(place, "holds"));
        uint64_t since_ms = view_json_get_number(place, "since_ms");
        uint64_t now_ms = clock_wall_ms();
        table_row(table);
        table_put_text(table, TONE_PLAIN, view_json_get_text(lock, "name"));
        table_put_text(table, holds ? TONE_GOOD : TONE_FAINT, holds ? "held" : "waits");
        table_put_text(table, TONE_PLAIN, kind_of(view_json_get_number(place, "limit"), text));
        table_put_age(table, TONE_PLAIN, since_ms && now_ms > since_ms ? now_ms - since_ms : 0);
        const char *machine = view_json_get_text(place, "machine");
        table_put_text(table, TONE_PLAIN, *machine ? machine : "-");
        table_put_number(table, TONE_PLAIN, view_json_get_number(place, "pid"));
        put_who(table, place);
}

static void print_table(const json_t *locks, const char *kind)
{
        struct table table = { .has_color = cli_has_color() };
        struct buffer text = { 0 };
        size_t i;
        size_t j;
        const json_t *lock;
        const json_t *place;
        table_text_column(&table, "NAME", 0);
        table_text_column(&table, "STATE", 0);
        table_text_column(&table, "KIND", 0);
        table_text_column(&table, "SINCE", 0);
        table_text_column(&table, "MACHINE", 0);
        table_number_column(&table, "PID");
        table_text_column(&table, "WHO", 0);
        for (i = 0; (lock = json_array_get(locks, i)); i++) {
                if (strcmp(view_json_get_text(lock, "kind"), kind) != 0)
                        continue;
                put_place(&table, lock, json_object_get(lock, "holder"));
                for (j = 0; (place = json_array_get(json_object_get(lock, "queue"), j)); j++)
                        put_place(&table, lock, place);
        }
        if (table.rows_count)
                table_print(&table, &text);
        else
                buffer_printf(&text, "nobody holds or waits for a lock\n");
        table_free(&table);
        cli_text_print(&text);
}

static void print_breaks(const json_t *breaks)
{
        size_t i;
        const json_t *line;
        if (json_array_size(breaks))
                (void)printf("\nbroken:\n");
        for (i = 0; (line = json_array_get(breaks, i)); i++) {
                cli_bytes_print(span_of_text(json_string_value(line)), SIZE_MAX);
                (void)putchar('\n');
        }
}

/* Who leaves a lock last removes its node; who lost its session, or was killed, does not.  A node that somebody is in
 * again is not deleted, and if another removed it first, or we may not, nothing is amiss. */
static void remove_unused(struct cli_tree *tree, const struct strings *paths)
{
        for (size_t i = 0; i < paths->count; i++) {
                struct tree_ask ask = { .del = { .path = paths->items[i], .version = COORD_ANY_VERSION } };
                (void)tree_ask_delete(tree, &ask);
        }
}

static int answer_list(const struct question *q, struct cli_tree *tree, const struct locks_look *look)
{
        json_t *breaks = breaks_read(tree);
        remove_unused(tree, &look->unused);
        if (q->has_json) {
                json_t *o = json_pack("{s:O,s:O}", "locks", look->found, "breaks", breaks);
                view_json_number(o, "total", look->total);
                cli_json_print_wide(o);
        } else {
                print_table(look->found, "lock");
                print_breaks(breaks);
        }
        json_decref(breaks);
        return EXIT_DONE;
}

int lock_list(const char *command, const char *config, bool has_json)
{
        struct question q = { .command = command, .config = config, .has_json = has_json };
        return answer_from_look(&q, answer_list);
}

/* --- elections ---------------------------------------------------------------------------------------------------- */

/* The leader of that election as the look shows it; NULL: nobody leads. */
static const json_t *find_leader(const json_t *locks, const char *name)
{
        size_t i;
        const json_t *lock;
        json_array_foreach(locks, i,
                lock) if (!strcmp(view_json_get_text(lock, "kind"), "election") &&
                          !strcmp(view_json_get_text(lock, "name"), name)) return json_object_get(lock, "holder");
        return NULL;
}

static int say_nobody(const char *command, const char *name)
{
        (void)fprintf(stderr, "quiver %s %s: nobody leads\n", command, name);
        return EXIT_FAILED;
}

static int answer_who(const struct question *q, struct cli_tree *tree, const struct locks_look *look)
{
        const json_t *leader = find_leader(look->found, q->name);
        (void)tree;
        if (!leader)
                return say_nobody(q->command, q->name);
        if (q->has_json) {
                cli_json_print_wide(json_deep_copy(leader));
                return EXIT_DONE;
        }
        const char *machine = view_json_get_text(leader, "machine");
        const char *what = view_json_get_text(leader, "command");
        struct buffer text = { 0 };
        buffer_printf(&text, "%s pid %" PRIu64 " token %" PRIu64 " %s", *machine ? machine : "-",
                view_json_get_number(leader, "pid"), view_json_get_number(leader, "token"), what);
        cli_bytes_print((struct span){ (const char *)text.data, text.size }, SIZE_MAX);
        (void)putchar('\n');
        buffer_free(&text);
        return EXIT_DONE;
}

int elect_who(const char *command, const char *config, const char *name, bool has_json)
{
        struct question q = { .command = command, .config = config, .name = name, .has_json = has_json };
        return answer_from_look(&q, answer_who);
}

/* Its node is set to a request, which it finds there. */
static int ask_leader(struct cli_tree *tree, const char *name, const json_t *leader)
{
        char path[COORD_PATH_MAX], says[QUEUE_SAYS_MAX], text[QUEUE_SAYS_MAX];
        const char *machine = view_json_get_text(leader, "machine");
        const char *what = view_json_get_text(leader, "command");
        (void)snprintf(path, sizeof(path), "elections/%.200s/%.255s", name, view_json_get_text(leader, "node"));
        (void)snprintf(says, sizeof(says), "machine=%.64s pid=%" PRIu64 " since_ms=%" PRIu64 " command=%.255s\n",
                machine, view_json_get_number(leader, "pid"), view_json_get_number(leader, "since_ms"), what);
        queue_put_request(text, span_of_text(says));
        struct tree_ask ask = { .set = { .path = path, .data = span_of_text(text), .version = COORD_ANY_VERSION } };
        int r = tree_ask_set(tree, &ask);
        if (r < 0 && r != -ENOENT)
                return cli_fail(tree->command, r, ask.request.error.text);
        (void)printf("%s pid %" PRIu64 " was asked to resign\n", *machine ? machine : "the leader",
                view_json_get_number(leader, "pid"));
        return EXIT_DONE;
}

static int answer_resign(const struct question *q, struct cli_tree *tree, const struct locks_look *look)
{
        const json_t *leader = find_leader(look->found, q->name);
        return leader ? ask_leader(tree, q->name, leader) : say_nobody(q->command, q->name);
}

int elect_resign(const char *command, const char *config, const char *name)
{
        struct question q = { .command = command, .config = config, .name = name };
        return answer_from_look(&q, answer_resign);
}
