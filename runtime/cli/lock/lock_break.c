#include "cli/lock/lock_break.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/lock/tree_ask.h"
#include "cli/print.h"
#include "view/text.h"

#define BREAKS     "breaks"
#define LINES_MAX  32u
#define PLACES_MAX (COORD_MULTI_MAX - 1)
#define TRIES      5 /* while others break locks, too */

static int get_breaks(struct cli_tree *t, struct tree_ask *ask)
{
        *ask = (struct tree_ask){ .get.path = BREAKS };
        return tree_ask_get(t, ask);
}

json_t *breaks_read(struct cli_tree *t)
{
        struct tree_ask ask;
        json_t *lines = json_array();
        (void)get_breaks(t, &ask);
        for (char *at = (char *)buffer_text(&ask.data), *end; (end = strchr(at, '\n')); at = end + 1)
                (void)json_array_append_new(lines, json_stringn(at, (size_t)(end - at)));
        buffer_free(&ask.data);
        return lines;
}

static int by_number(const void *a, const void *b)
{
        const char *one = queue_number_of(*(char *const *)a);
        const char *other = queue_number_of(*(char *const *)b);
        return strcmp(one ? one : "", other ? other : "");
}

/* Of all places in order, how many hold the lock; no more than fit into one step. */
static uint32_t count_holders(const struct strings *places)
{
        uint32_t count = 0, smallest = QUEUE_NO_LIMIT;
        while (count < places->count && count < PLACES_MAX &&
                queue_is_in_front(count, smallest, queue_limit_of(places->items[count])))
                smallest = queue_smaller_limit(smallest, queue_limit_of(places->items[count++]));
        return count;
}

/* "2026-11-17 12:00:00.123Z root@web pid=17 broke lock nightly, held by machine=… pid=… …" */
static void put_line(struct buffer *to, struct cli_tree *t, const char *name, const char *path)
{
        char at[TEXT_TIME_MAX], machine[65] = "";
        struct tree_ask ask = { .get.path = path };
        const struct passwd *user = getpwuid(geteuid());
        if (gethostname(machine, sizeof(machine) - 1) < 0)
                machine[0] = 0;
        if (tree_ask_get(t, &ask) < 0)
                buffer_printf(&ask.data, "somebody whose place cannot be read: %s", ask.request.error.text);
        char *says = (char *)buffer_text(&ask.data);
        says[strcspn(says, "\n")] = 0;
        buffer_printf(to, "%s %s@%s pid=%d broke lock %s, held by %.600s\n", text_time(at, clock_wall_ms()),
                user ? user->pw_name : "?", machine, (int)getpid(), name, says);
        buffer_free(&ask.data);
}

/* The new lines first, then as many of the old ones as are kept. */
static void put_old_lines(struct buffer *to, const char *old)
{
        uint32_t lines = 0;
        for (size_t i = 0; i < to->size; i++)
                lines += to->data[i] == '\n';
        for (const char *end; lines < LINES_MAX && (end = strchr(old, '\n')); old = end + 1, lines++)
                buffer_put(to, old, (size_t)(end - old) + 1);
}

/* 1: done; 0: somebody else has changed something, once more; -1: it failed, and why was said. */
static int break_once(struct cli_tree *t, const char *name)
{
        char folder[COORD_PATH_MAX], paths[PLACES_MAX][COORD_PATH_MAX];
        struct coord_multi_op ops[COORD_MULTI_MAX] = { 0 };
        struct tree_ask list = { .children.path = folder }, old, multi = { .multi.ops = ops };
        struct buffer text = { 0 };
        (void)snprintf(folder, sizeof(folder), "locks/%.200s", name);
        int r = tree_ask_children(t, &list);
        if (list.names.count)
                qsort(list.names.items, list.names.count, sizeof(*list.names.items), by_number);
        uint32_t holders = count_holders(&list.names);
        for (uint32_t i = 0; i < holders; i++) {
                (void)snprintf(paths[i], sizeof(paths[i]), "%.205s/%.255s", folder, list.names.items[i]);
                put_line(&text, t, name, paths[i]);
                ops[i + 1] =
                        (struct coord_multi_op){ .kind = COORD_DELETE, .path = paths[i], .version = COORD_ANY_VERSION };
        }
        size_t fresh = text.size;
        int had = get_breaks(t, &old);
        put_old_lines(&text, buffer_text(&old.data));
        ops[0] = (struct coord_multi_op){ .kind = had == -ENOENT ? COORD_CREATE : COORD_SET,
                .path = BREAKS,
                .data = { (const char *)text.data, text.size },
                .version = had == 0 ? old.get.stat.version : COORD_ANY_VERSION };
        multi.multi.ops_count = holders + 1;
        if (r == 0 && !holders)
                r = -ENOENT;
        else if (r == 0)
                r = tree_ask_multi(t, &multi);
        if (r == 0)
                (void)fwrite(text.data, 1, fresh, stdout);
        else if (!holders && r == -ENOENT)
                (void)fprintf(stderr, "quiver %s: nobody holds the lock %s\n", t->command, name);
        else if (r != -ENOENT && r != -ESTALE && r != -EEXIST)
                (void)cli_fail(t->command, r, list.request.status ? list.request.error.text : multi.request.error.text);
        strings_free(&list.names);
        buffer_free(&old.data);
        buffer_free(&text);
        if (r == 0)
                return 1;
        return holders && (r == -ENOENT || r == -ESTALE || r == -EEXIST) ? 0 : -1;
}

int lock_break(const char *command, const char *config, const char *name)
{
        struct cli_tree tree;
        int code = cli_tree_open(&tree, command, config, NULL);
        if (code != EXIT_DONE)
                return code;
        int done = 0;
        for (int i = 0; i < TRIES && !done; i++)
                done = break_once(&tree, name);
        if (!done)
                (void)fprintf(
                        stderr, "quiver %s: the lock %s changes its holder all the time; try again\n", command, name);
        cli_tree_close(&tree);
        return done > 0 ? EXIT_DONE : EXIT_FAILED;
}
