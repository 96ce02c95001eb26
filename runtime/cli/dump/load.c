/* load.c: what `dump` wrote, into this store: another kind, another number of shards.
 *
 * All of the dump is read and checked before the store is touched; then it is read again and put in, chunk by chunk,
 * and every chunk is checked again.  A shard takes each chunk once, so that whatever ends a load, the next one goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/dump/dump_format.h"
#include "cli/dump/load.h"
#include "cli/print.h"
#include "view/json.h"
#include "view/text.h"

/* --- the dump ----------------------------------------------------------------------------------------------------- */

/* A pipe cannot be read twice: all of it goes to a file without a name first. */
static FILE *spool(FILE *from)
{
        const char *folder = getenv("TMPDIR");
        char path[4096];
        char bytes[65536];
        (void)snprintf(path, sizeof(path), "%s/quiver-load-XXXXXX", folder && *folder ? folder : "/tmp");
        int fd = mkostemp(path, O_CLOEXEC);
        FILE *to = fd < 0 ? NULL : fdopen(fd, "w+e");
        bool is_whole = to != NULL;
        if (fd >= 0)
                (void)unlink(path);
        for (size_t size; is_whole && (size = fread(bytes, 1, sizeof(bytes), from)) > 0;)
                is_whole = fwrite(bytes, 1, size, to) == size;
        is_whole = is_whole && !ferror(from) && fflush(to) == 0;
        if (!is_whole) {
                (void)fprintf(stderr,
                        "quiver load: the dump could not be kept in %s: %s; nothing was loaded.  Say where there is "
                        "room (TMPDIR), or give load the file itself\n",
                        path, strerror(errno));
                if (to)
                        (void)fclose(to);
                else if (fd >= 0)
                        (void)close(fd);
        }
        return is_whole ? to : NULL;
}

/* The dump as a file that can be read twice; *ret_start is where it begins.  NULL after it said why not. */
static FILE *input_open(const char *path, off_t *ret_start)
{
        struct stat st = { 0 };
        FILE *in = path ? fopen(path, "re") : stdin;
        if (in && fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode))
                errno = EISDIR;
        if (!in || !st.st_mode || S_ISDIR(st.st_mode)) {
                (void)fprintf(stderr, "quiver load: %s: %s\n", path ? path : "standard input", strerror(errno));
                if (in && path)
                        (void)fclose(in);
                return NULL;
        }
        *ret_start = S_ISREG(st.st_mode) ? lseek(fileno(in), 0, SEEK_CUR) : -1;
        if (*ret_start >= 0)
                return in;
        *ret_start = 0;
        FILE *kept = spool(in);
        if (path)
                (void)fclose(in);
        return kept;
}

/* Reads all of it: name, chunks and tasks are then known. */
static int check(FILE *in, off_t start, struct dump_reader *r)
{
        r->in = in;
        clearerr(in);
        if (fseeko(in, start, SEEK_SET) < 0)
                return error_set(&r->error, -EINVAL, "cannot read it from its beginning: %s", strerror(errno));
        int result = dump_read_head(r);
        while (result == 0 && !r->is_end)
                result = dump_read_chunk(r);
        return result;
}

/* --- the store ---------------------------------------------------------------------------------------------------- */

/* As a host would: the folder too. */
static int store_ensure(struct cli_store *s, const char *config)
{
        struct error error = { "" };
        int code = cli_load(s, "load", config, READER_COMMAND);
        if (code != EXIT_DONE)
                return code;
        mode_t mask = umask(077);
        (void)mkdir(s->config.state, 0700); /* if it cannot be made, opening says so */
        int r = client_open_or_make(&s->config, &s->client, &error);
        (void)umask(mask);
        if (r < 0) {
                config_free(&s->config);
                return cli_fail("load", r, error.text);
        }
        s->info = client_store_info(s->client);
        return EXIT_DONE;
}

static int count_tasks(struct cli_store *s, uint64_t *ret_tasks, struct error *error)
{
        uint32_t shards = s->info->shards;
        struct store_counts *counts = memory_zero(shards, sizeof(*counts));
        uint64_t tasks = 0;
        int r = client_count(s->client, 0, shards, counts, error);
        for (uint32_t i = 0; i < shards; i++) {
                const struct store_counts *c = &counts[i];
                tasks += c->delayed + c->in_flight + store_counts_parked(c) + c->dead;
                for (unsigned lane = 0; lane < LANES; lane++)
                        tasks += c->queued[lane];
        }
        free(counts);
        *ret_tasks = tasks;
        return r;
}

/* Whoever goes on with a load finds what it has put in. */
static int check_empty(struct cli_store *s, const struct loading *l, bool has_merge)
{
        struct error error = { "" };
        uint64_t tasks = 0;
        if (has_merge || l->has_begun)
                return EXIT_DONE;
        int r = count_tasks(s, &tasks, &error);
        if (r < 0)
                return cli_fail("load", r, error.text);
        if (!tasks)
                return EXIT_DONE;
        (void)fprintf(stderr,
                "quiver load: %s is not empty: %" PRIu64 " task%s; nothing was loaded.  To load behind what is there: "
                "--merge\n",
                s->config.store.url.text, tasks, text_plural(tasks));
        return EXIT_FAILED;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void report(const struct cli_store *s, const struct loading *l, uint64_t tasks, bool has_json)
{
        if (has_json) {
                json_t *o = json_object();
                (void)json_object_set_new(o, "name", json_string(l->reader->name));
                view_json_number(o, "tasks", tasks);
                view_json_number(o, "loaded", l->loaded);
                view_json_number(o, "were_there", l->were_there);
                view_json_number(o, "idempotency_keys", l->records.names);
                view_json_number(o, "schedules", l->records.schedules);
                view_json_number(o, "rooms", l->records.rooms);
                view_json_number(o, "left_out", l->left_out);
                view_json_number(o, "chunks", l->reader->chunk);
                view_json_number(o, "shards", s->info->shards);
                cli_json_print(o);
                return;
        }
        char records[DUMP_RECORDS_TEXT];
        (void)dump_records_text(&l->records, records);
        if (l->were_there)
                (void)printf("%" PRIu64 " tasks%s; an earlier load had put in %" PRIu64 " of dump %s\n", l->loaded,
                        records, l->were_there, l->reader->name);
        else
                (void)printf("%" PRIu64 " tasks%s, dump %s\n", l->loaded, records, l->reader->name);
}

static int load(
        struct cli_store *s, FILE *in, off_t start, const struct dump_reader *checked, bool has_merge, bool has_json)
{
        struct dump_reader *r = memory_zero(1, sizeof(*r));
        struct loading l = {
                .s = s, .reader = r, .progress = { .what = "load", .unit = "tasks", .all = checked->tasks }
        };
        r->in = in;
        clearerr(in);
        int result = fseeko(in, start, SEEK_SET) < 0 ? -EIO : dump_read_head(r);
        if (result == 0 && strcmp(r->name, checked->name) != 0)
                result = error_set(&r->error, -EINVAL, "the file was replaced while it was read");
        if (result == 0)
                result = loading_start(&l);
        int code = result ? EXIT_FAILED : check_empty(s, &l, has_merge);
        if (code == EXIT_DONE)
                result = loading_run(&l);
        progress_end(&l.progress);
        if (result < 0) {
                code = cli_fail("load", result, r->error.text);
                (void)fprintf(stderr,
                        "quiver load: %" PRIu64 " of %" PRIu64 " tasks are in the store, each once; run the same load "
                        "again to go on\n",
                        l.loaded + l.were_there, checked->tasks);
        } else if (code == EXIT_DONE) {
                report(s, &l, checked->tasks, has_json);
        }
        loading_free(&l);
        dump_reader_free(r);
        free(r);
        return code;
}

static int check_and_load(const char *path, const char *config, bool has_merge, bool has_json)
{
        struct cli_store s;
        off_t start = 0;
        FILE *in = input_open(path, &start);
        struct dump_reader *checked = memory_zero(1, sizeof(*checked));
        int code = EXIT_FAILED;
        int r = in ? check(in, start, checked) : -EINVAL;
        if (in && r < 0)
                (void)fprintf(stderr,
                        "quiver load: %s: %s; nothing was loaded.  Copy the dump again, or write it anew: quiver "
                        "dump\n",
                        path ? path : "the dump", checked->error.text);
        else if (in && (code = store_ensure(&s, config)) == EXIT_DONE) {
                code = load(&s, in, start, checked, has_merge, has_json);
                cli_close(&s);
        }
        dump_reader_free(checked);
        free(checked);
        if (in && in != stdin)
                (void)fclose(in);
        return code;
}

int cmd_load(int argc, char **argv)
{
        const char *config = NULL;
        bool has_merge = false;
        bool has_json = false;
        const struct option table[] = {
                OPT_CONFIG(&config),
                OPT_FLAG("--merge", &has_merge, "into a store that has tasks already, behind them"),
                OPT_JSON(&has_json),
        };
        struct options o = {
                .usage = "load [FILE]",
                .about =
                        "Puts what quiver dump wrote (FILE, or standard input) into this store, in order; it may be of "
                        "another kind and have\nanother number of shards.  What was in flight or parked is queued, "
                        "with its history.  If there is no store, it is made.\nSchedules keep their next time, their "
                        "counts, and whether they are paused; one that the store has in a newer version stays.\n"
                        "Rooms keep their numbers; one that the store has already stays as it is.\nA submit with an "
                        "idempotency key "
                        "of the dump is a repeat here, too, for the time that was left of it.\n\n"
                        "A dump that is cut off or was changed is refused before anything is loaded.  Each task is "
                        "loaded once per dump:\nafter a failure, or kill -9, run the same load again.  A store "
                        "remembers the last 64 dumps that were loaded.\nHosts may run meanwhile: they take up the "
                        "tasks as they come.",
                OPTIONS_TABLE(table),
                .words_max = 1,
                .examples = "  quiver dump -c old.cfg > tasks && quiver load -c new.cfg tasks\n"
                            "  quiver load --merge < tasks\n",
        };
        int code;
        return options_read(&o, argc, argv, &code) ? check_and_load(o.words[0], config, has_merge, has_json) : code;
}
