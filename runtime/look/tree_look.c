#include "look/tree_look.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "view/json.h"

void tree_look_start(struct coord *coord, struct tree_look *look)
{
        if (look->is_children)
                coord_children(coord, &look->children);
        else
                coord_get(coord, &look->get);
}

bool tree_look_has_failed(const struct tree_look *look)
{
        int status = look->request.status;
        return status < 0 && status != -ENOENT && status != -EBADMSG;
}

__attribute__((format(printf, 2, 3))) static bool ask_children(struct tree_look *look, const char *format, ...)
{
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(look->path, sizeof(look->path), format, arguments);
        va_end(arguments);
        look->is_children = true;
        look->children = (struct coord_children){ .path = look->path };
        return true;
}

__attribute__((format(printf, 2, 3))) static bool ask_get(struct tree_look *look, const char *format, ...)
{
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(look->path, sizeof(look->path), format, arguments);
        va_end(arguments);
        look->is_children = false;
        look->get = (struct coord_get){ .path = look->path };
        return true;
}

static void take_names(struct strings *to, const struct tree_look *look)
{
        strings_free(to);
        for (uint32_t i = 0; look->request.status == 0 && i < look->children.names_count; i++)
                strings_add(to, look->children.names[i]);
}

/* --- members ------------------------------------------------------------------------------------------------------ */

/* A member whose node is gone has left meanwhile. */
static void take_member(struct membership_look *look)
{
        const struct coord_get *get = &look->look.get;
        const char *node = look->nodes.items[look->node++];
        if (get->request.status == 0) {
                membership_view_add_member(&look->view, node, get->data);
        } else if (get->request.status == -EBADMSG) {
                membership_view_add_member(&look->view, node, (struct span){ "", 0 });
                struct view_member *added = &look->view.members[look->view.members_count - 1];
                (void)snprintf(added->problem, sizeof(added->problem), "%s", get->request.error.text);
        }
}

static bool ask_member(struct membership_look *look)
{
        if (look->node < look->nodes.count) {
                look->step = MEMBERSHIP_MEMBER;
                return ask_get(&look->look, "members/%s", look->nodes.items[look->node]);
        }
        look->step = MEMBERSHIP_ELECTION;
        return ask_children(&look->look, "election");
}

static void take_assign(struct membership_look *look)
{
        const struct coord_get *get = &look->look.get;
        if (get->request.status == 0)
                membership_view_set_assignment(&look->view, get->data);
        else if (get->request.status == -EBADMSG)
                (void)snprintf(look->view.problem, sizeof(look->view.problem), "%s", get->request.error.text);
}

static bool membership_next(struct tree_look *base)
{
        struct membership_look *look = container_of(base, struct membership_look, look);
        switch (look->step) {
        case MEMBERSHIP_BEGIN:
                look->step = MEMBERSHIP_NAMES;
                return ask_children(base, "members");
        case MEMBERSHIP_NAMES:
                take_names(&look->nodes, base);
                return ask_member(look);
        case MEMBERSHIP_MEMBER:
                take_member(look);
                return ask_member(look);
        case MEMBERSHIP_ELECTION:
                membership_view_set_leader(&look->view, base->children.names, base->children.names_count);
                look->step = MEMBERSHIP_ASSIGN;
                return ask_get(base, "assign");
        case MEMBERSHIP_ASSIGN:
                take_assign(look);
                look->step = MEMBERSHIP_MOVES;
                return ask_get(base, "moves");
        case MEMBERSHIP_MOVES:
                if (base->request.status == 0)
                        membership_view_set_moves(&look->view, base->get.data);
                break;
        case MEMBERSHIP_END:
                break;
        }
        look->step = MEMBERSHIP_END;
        return false;
}

void membership_look_init(struct membership_look *look)
{
        look->look.next = membership_next;
}

void membership_look_free(struct membership_look *look)
{
        strings_free(&look->nodes);
}

/* --- locks and elections ------------------------------------------------------------------------------------------ */

static const struct {
        const char *folder, *kind;
} kinds[] = { { "locks", "lock" }, { "elections", "election" } };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Compares the ten digits that the tree appended to the nodes' names. */
static int by_number(const void *a, const void *b)
{
        const char *one = *(char *const *)a;
        const char *other = *(char *const *)b;
        const char *one_dash = strrchr(one, '-');
        const char *other_dash = strrchr(other, '-');
        return strcmp(one_dash ? one_dash : one, other_dash ? other_dash : other);
}

/* Parses "machine=… pid=… since_ms=… command=…": the command is last and may contain spaces.  Anything else is
 * ignored. */
static void set_says(json_t *o, struct span says)
{
        char text[512];
        (void)snprintf(text, sizeof(text), "%.*s", (int)says.size, says.size ? says.data : "");
        text[strcspn(text, "\n")] = 0;
        for (char *at = text; *at;) {
                char *equals = strchr(at, '=');
                if (!equals)
                        return;
                *equals = 0;
                char *value = equals + 1;
                char *end = !strcmp(at, "command") ? strchr(value, 0) : value + strcspn(value, " ");
                char *next = *end ? end + 1 : end;
                *end = 0;
                if (!strcmp(at, "pid") || !strcmp(at, "since_ms"))
                        view_json_number(o, at, strtoull(value, NULL, 10));
                else if (!strcmp(at, "machine") || !strcmp(at, "command") || !strcmp(at, "host") ||
                         !strcmp(at, "handler") || !strcmp(at, "task") || !strcmp(at, "resign"))
                        view_json_set_text(o, at, value);
                at = next;
        }
}

static bool ask_kind(struct locks_look *look)
{
        look->step = LOCKS_NAMES;
        return look->kind < KINDS && ask_children(&look->look, "%s", kinds[look->kind].folder);
}

static bool ask_name(struct locks_look *look)
{
        if (look->name < look->names.count && look->name < LOCKS_MAX) {
                look->step = LOCKS_QUEUE;
                return ask_children(&look->look, "%s/%s", kinds[look->kind].folder, look->names.items[look->name]);
        }
        look->kind++;
        return ask_kind(look);
}

static bool ask_node(struct locks_look *look)
{
        if (look->node < look->nodes.count && look->node < QUEUE_MAX) {
                look->step = LOCKS_NODE;
                return ask_get(&look->look, "%s/%s/%s", kinds[look->kind].folder, look->names.items[look->name],
                        look->nodes.items[look->node]);
        }
        /* A queue that has just become empty has no holder, and is not shown. */
        if (json_object_get(look->item, "holder"))
                (void)json_array_append(look->found, look->item);
        json_decref(look->item);
        look->item = NULL;
        look->name++;
        return ask_name(look);
}

/* Whether the place is at the front.  Places must be counted in their order. */
static bool count_place(struct locks_rank *rank, const char *name)
{
        uint32_t limit = queue_limit_of(name);
        bool is_in_front = queue_is_in_front(rank->before, rank->smallest, limit);
        rank->before++;
        rank->smallest = queue_smaller_limit(rank->smallest, limit);
        return is_in_front;
}

static uint64_t count_waiting(const struct strings *nodes)
{
        struct locks_rank rank = { 0 };
        uint64_t waiting = 0;
        for (size_t i = 0; i < nodes->count; i++)
                waiting += !count_place(&rank, nodes->items[i]);
        return waiting;
}

static void take_queue(struct locks_look *look)
{
        take_names(&look->nodes, &look->look);
        if (look->look.request.status == 0 && !look->nodes.count)
                strings_add(&look->unused, look->look.path);
        if (look->nodes.count)
                qsort(look->nodes.items, look->nodes.count, sizeof(*look->nodes.items), by_number);
        look->node = 0;
        look->rank = (struct locks_rank){ 0 };
        look->item = json_object();
        view_json_set_text(look->item, "name", look->names.items[look->name]);
        view_json_set_text(look->item, "kind", kinds[look->kind].kind);
        view_json_number(look->item, "waiting", count_waiting(&look->nodes));
        (void)json_object_set_new(look->item, "queue", json_array());
}

static void take_node(struct locks_look *look)
{
        const struct coord_get *get = &look->look.get;
        const char *name = look->nodes.items[look->node++];
        json_t *o = json_object();
        view_json_set_text(o, "node", name);
        view_json_number(o, "limit", queue_limit_of(name));
        (void)json_object_set_new(o, "holds", json_boolean(count_place(&look->rank, name)));
        if (get->request.status == 0) {
                view_json_number(o, "token", get->stat.created);
                set_says(o, get->data);
        } else {
                view_json_set_text(
                        o, "problem", get->request.status == -ENOENT ? "it has just left" : get->request.error.text);
        }
        if (!json_object_get(look->item, "holder"))
                (void)json_object_set_new(look->item, "holder", o);
        else
                (void)json_array_append_new(json_object_get(look->item, "queue"), o);
}

static bool locks_next(struct tree_look *base)
{
        struct locks_look *look = container_of(base, struct locks_look, look);
        switch (look->step) {
        case LOCKS_BEGIN:
                look->found = json_array();
                return ask_kind(look);
        case LOCKS_NAMES:
                take_names(&look->names, base);
                look->total += look->names.count;
                look->name = 0;
                return ask_name(look);
        case LOCKS_QUEUE:
                take_queue(look);
                return ask_node(look);
        case LOCKS_NODE:
                take_node(look);
                return ask_node(look);
        }
        return false;
}

void locks_look_init(struct locks_look *look)
{
        look->look.next = locks_next;
}

void locks_look_free(struct locks_look *look)
{
        json_decref(look->found);
        json_decref(look->item);
        strings_free(&look->unused);
        strings_free(&look->names);
        strings_free(&look->nodes);
}
