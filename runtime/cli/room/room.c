/* room.c: `quiver room`: named logs of messages in the store, which any number of readers replay and follow. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/room/room_append.h"
#include "cli/room/room_show.h"
#include "view/json.h"

struct room_request {
        const char *config;
        const char *room, *verb;
        struct room_appending append;
        uint64_t from, count, wait_ms, through;
        uint64_t entries_max, bytes_max, age_ms;
        bool has_new, has_raw, has_json, has_all;
        enum room_form form;
};

static int fail(const struct cli_store *s, int r)
{
        return cli_fail(s->command, r, qv_client_error());
}

/* --- verbs -------------------------------------------------------------------------------------------------------- */

static int room_compare(const void *a, const void *b)
{
        struct span x = ((const struct store_room *)a)->name;
        struct span y = ((const struct store_room *)b)->name;
        int by_bytes = memcmp(x.data, y.data, min_u64(x.size, y.size));
        return by_bytes ? by_bytes : (x.size > y.size) - (x.size < y.size);
}

static int verb_list(struct cli_store *s, struct room_request *q)
{
        struct error error = { "" };
        struct kept_rooms all = { 0 };
        for (uint32_t shard = 0; shard < s->info->shards; shard++) {
                struct kept_rooms some = { 0 };
                int r = client_rooms(s->client, shard, &some, &error);
                if (r < 0) {
                        kept_rooms_free(&all);
                        return cli_fail(s->command, r, error.text);
                }
                for (uint32_t i = 0; i < some.count; i++) {
                        all.list = array_grow(all.list, all.count, sizeof(*all.list));
                        all.list[all.count++] = some.list[i];
                }
                free(some.list);
        }
        if (all.count)
                qsort(all.list, all.count, sizeof(*all.list), room_compare);
        if (all.count || q->has_json)
                rooms_show(&all, q->has_json);
        else
                (void)printf("there is no room; the first append makes one: quiver room NAME append TEXT\n");
        kept_rooms_free(&all);
        return EXIT_DONE;
}

static int verb_append(struct cli_store *s, struct room_request *q)
{
        q->append.room = q->room;
        q->append.has_json = q->has_json;
        return room_append(s, &q->append);
}

static int verb_read(struct cli_store *s, struct room_request *q)
{
        uint64_t from = q->from;
        bool has_more = true;
        while (has_more && q->count) {
                struct qv_client_room_page *page = NULL;
                int r = qv_client_room_read(s->client, q->room, from, &page);
                if (r < 0)
                        return fail(s, r);
                q->count -= room_page_show(page, q->room, from, q->count, q->form);
                has_more = page->has_more;
                if (page->entries_count)
                        from = page->entries[page->entries_count - 1].number + 1;
                qv_client_room_page_free(page);
        }
        return EXIT_DONE;
}

/* Until so many were printed, nothing came for --wait, or the reader of our output is gone. */
static int verb_follow(struct cli_store *s, struct room_request *q)
{
        struct qv_client_follow *follow;
        uint64_t next = q->from;
        int r = qv_client_room_follow(s->client, q->room, q->has_new ? QV_CLIENT_ROOM_NEW : q->from, &follow);
        while (r == 0 && q->count && !ferror(stdout)) {
                struct qv_client_room_page *page = NULL;
                r = qv_client_follow_next(follow, q->wait_ms, &page);
                if (r < 0)
                        break;
                q->count -= room_page_show(page, q->room, next, q->count, q->form);
                if (page->entries_count)
                        next = page->entries[page->entries_count - 1].number + 1;
                qv_client_room_page_free(page);
        }
        int code = r < 0 ? fail(s, r) : EXIT_DONE;
        if (r == 0 || r == -EAGAIN)
                qv_client_follow_close(follow);
        return code;
}

static int verb_truncate(struct cli_store *s, struct room_request *q)
{
        struct error error = { "" };
        uint64_t first = 0;
        int r = client_room_truncate(
                s->client, span_of_text(q->room), q->has_all ? STORE_ROOM_BEGIN_MAX : q->through, &first, &error);
        if (r < 0)
                return cli_fail(s->command, r, error.text);
        if (q->has_json)
                cli_json_print(json_pack("{s:s, s:I}", "room", q->room, "first", (json_int_t)first));
        else
                (void)printf("room %s begins at %" PRIu64 " now\n", q->room, first);
        return EXIT_DONE;
}

static int verb_set(struct cli_store *s, struct room_request *q)
{
        struct error error = { "" };
        struct store_room_set set = { .name = span_of_text(q->room),
                .entries_max = q->entries_max,
                .bytes_max = q->bytes_max,
                .age_ms = q->age_ms };
        int r = client_room_set(s->client, &set, &error);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static int verb_delete(struct cli_store *s, struct room_request *q)
{
        struct error error = { "" };
        int r = client_room_delete(s->client, span_of_text(q->room), &error);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

static const struct {
        const char *name;
        int (*run)(struct cli_store *s, struct room_request *q);
} verbs[] = { { "append", verb_append }, { "read", verb_read }, { "follow", verb_follow },
        { "truncate", verb_truncate }, { "set", verb_set }, { "delete", verb_delete }, { "list", verb_list } };

static int act(struct cli_store *s, void *self)
{
        struct room_request *q = self;
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (!strcmp(verbs[i].name, q->verb))
                        return verbs[i].run(s, q);
        return EXIT_USAGE;
}

/* --- what is asked for -------------------------------------------------------------------------------------------- */

static int read_words(struct options *o, struct room_request *q)
{
        bool is_list = o->words_count == 0 || (o->words_count == 1 && !strcmp(o->words[0], "list"));
        bool is_known = is_list;
        q->room = is_list ? "" : o->words[0];
        q->verb = is_list ? "list" : o->words_count > 1 ? o->words[1] : "";
        for (size_t i = 0; i + 1 < sizeof(verbs) / sizeof(verbs[0]); i++)
                is_known |= !strcmp(verbs[i].name, q->verb);
        if (!is_known)
                return options_wrong(o, "what about room %s? append, read, follow, truncate, set or delete", q->room);
        bool is_append = !strcmp(q->verb, "append");
        bool is_truncate = !strcmp(q->verb, "truncate");
        q->append.words = o->words + 2;
        q->append.words_count = o->words_count > 2 ? o->words_count - 2 : 0;
        if (q->append.has_lines && (!is_append || q->append.words_count))
                return options_wrong(o, "--lines: append reads its entries from standard input then");
        if (is_truncate && q->has_all == (q->append.words_count == 1))
                return options_wrong(o, "up to which number? quiver room %s truncate NUMBER, or --all", q->room);
        if (is_truncate && !q->has_all && !options_number(q->append.words[0], 1, STORE_ROOM_BEGIN_MAX, &q->through))
                return options_wrong(o, "%s is no number of an entry", q->append.words[0]);
        if (!is_append && q->append.words_count > is_truncate)
                return options_wrong(o, "what is %s?", q->append.words[is_truncate]);
        if (q->has_new && q->from)
                return options_wrong(o, "--new or --from, not both");
        if (q->has_raw && q->has_json)
                return options_wrong(o, "--raw or --json, not both");
        return EXIT_DONE;
}

int cmd_room(int argc, char **argv)
{
        struct room_request q = { .count = UINT64_MAX, .wait_ms = UINT64_MAX };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_FLAG("--lines", &q.append.has_lines, "append: each line of standard input, as it comes"),
                OPT_NUMBER("--from N", &q.from, 1, STORE_ROOM_BEGIN_MAX,
                        "read, follow: from this number on (default: the first that is there)"),
                OPT_FLAG("--new", &q.has_new, "follow: only what is appended from now on"),
                OPT_NUMBER("-n, --count N", &q.count, 1, INT64_MAX, "read, follow: so many entries, then end"),
                OPT_DURATION("--wait TIME", &q.wait_ms, 0,
                        "follow: give up, with exit code 1, when nothing came for so long"),
                OPT_FLAG("--raw", &q.has_raw, "read, follow: the bytes alone, with nothing between them"),
                OPT_FLAG("--all", &q.has_all, "truncate: all that there is"),
                OPT_NUMBER("--entries N", &q.entries_max, 1, STORE_ROOM_ENTRIES_MAX,
                        "set: the most entries that are kept (default: 10000)"),
                OPT_SIZE("--bytes SIZE", &q.bytes_max, "set: the most bytes (default: 64MiB)"),
                OPT_DURATION("--age TIME", &q.age_ms, 1, "set: the oldest entry (default: 7d)"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "room [list] | NAME append [ENTRY…|-] | NAME read | NAME follow | NAME truncate NUMBER |\n"
                         "                   NAME set | NAME delete",
                .about = "A room is a named log in the store. Entries are numbered from 1 in the order of their "
                         "arrival;\n"
                         "any number of readers replay them from any number on, and follow: nothing is asked while\n"
                         "nothing comes. What is kept is bounded (set); who asks for what is gone is told.\n"
                         "append prints the number of each entry; without one, standard input is the entry, any bytes.",
                OPTIONS_TABLE(table),
                .words_max = WORDS_ANY,
                .examples = "  quiver room deploys append 'web 1.4.2 is live'\n"
                            "  tail -F changes | quiver room changes append --lines\n"
                            "  quiver room changes follow --from 100 --json\n"
                            "  quiver room changes truncate 90        # after a checkpoint\n"
                            "  quiver room changes set --entries 100000 --age 1d\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        code = read_words(&o, &q);
        if (code != EXIT_DONE)
                return code;
        q.form = q.has_json ? ROOM_JSON : q.has_raw ? ROOM_RAW : ROOM_LINES;
        return cli_act(&o, q.config, act, &q);
}
